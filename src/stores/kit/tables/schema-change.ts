import {
  SyncError,
  type ColumnChange,
  type SchemaChangeRequest,
  type SchemaChangeState,
  type SchemaColumn,
  type SchemaPhase,
} from '../../../contract/index.ts'
import { nameColumn } from '../column-names.ts'
import { itemTypeOf, type ColumnType, type ScalarType, type TableColumn } from './column.ts'
import type { ColumnLimits } from './grow-columns.ts'
import { required } from '../../../values/required.ts'

/** How one field gets from its current column to the requested one. */
export interface ColumnTransition {
  readonly member: string
  /** The current column; null for none. */
  readonly from: string | null
  /** The column that is filled beside it; null when none is needed. */
  readonly to: string | null
  /** The final name; null for a field that goes to `_extra`. */
  readonly name: string | null
  readonly type: ColumnType
}

/** A running schema change, as it is stored with its database. */
export interface StoredSchemaChange extends SchemaChangeState {
  readonly moves: readonly ColumnTransition[]
  /** The key, or the end of a version, up to which rows were copied; null at the start of a phase. */
  readonly position: string | null
  readonly lose: boolean
}

export interface SchemaChangeFacts extends ColumnLimits {
  readonly types: Readonly<Record<ScalarType, unknown>>
  /** For a field that becomes a timestamp: the format of most of its values. */
  formatOf(member: string, type: ColumnType): string | undefined
}

/** Returns the columns during the change, and the change itself. Throws when it cannot be carried out. */
export function planSchemaChange(
  columns: readonly TableColumn[],
  request: SchemaChangeRequest,
  facts: SchemaChangeFacts,
): { columns: TableColumn[]; change: StoredSchemaChange } {
  const { changes, actor, reason, at, allowDependentLoss = false } = request
  if (changes.length === 0)
    throw createInvalidSchemaChangeError('The schema change is empty. Name at least one field to change.')
  if (new Set(changes.map(({ member }) => member)).size < changes.length)
    throw createInvalidSchemaChangeError('A field is named twice.')
  const changed = [...columns]
  const taken = new Set(
    [...facts.reserved, ...columns.flatMap(({ name }) => name ?? [])].map((name) => name.toLowerCase()),
  )
  const moves = changes.map((wanted) => planColumnTransition(changed, wanted, taken, facts))
  if (changed.filter(({ name, former }) => name !== null && former !== true).length > facts.columnsMax)
    throw createInvalidSchemaChangeError(`The table can have at most ${facts.columnsMax} columns for fields.`)
  return {
    columns: changed,
    change: {
      changes,
      moves,
      phase: 'add',
      position: null,
      scanned: 0,
      rewritten: 0,
      actor,
      reason,
      startedAt: at,
      lose: allowDependentLoss,
    },
  }
}

function planColumnTransition(
  columns: TableColumn[],
  { member, type, column, drop }: ColumnChange,
  taken: Set<string>,
  facts: SchemaChangeFacts,
): ColumnTransition {
  const at = columns.findIndex((known) => known.member === member && known.former !== true)
  const before = columns[at]
  const from = before?.name ?? null
  if (before?.key === 'enforced' && (drop === true || type !== undefined))
    throw createInvalidSchemaChangeError(
      `${formatName(member)} is part of the key; its column cannot be changed or dropped.`,
    )
  if (drop === true) {
    if (type !== undefined || column !== undefined)
      throw createInvalidSchemaChangeError(`${formatName(member)} cannot be dropped and changed in one request.`)
    if (before === undefined || from === null)
      throw createInvalidSchemaChangeError(`${formatName(member)} has no column.`)
    const { format: _, ...held } = before
    columns[at] = { ...held, name: null, held: true }
    columns.push({ ...before, former: true })
    return { member, from, to: null, name: null, type: before.type }
  }
  const name = column === undefined ? null : reserveColumnName(column, from, taken, facts)
  if (type === undefined) {
    if (name === null) throw createInvalidSchemaChangeError(`No change is given for ${formatName(member)}.`)
    if (before === undefined || from === null)
      throw createInvalidSchemaChangeError(`${formatName(member)} has no column.`)
    return { member, from, to: null, name, type: before.type }
  }
  if (!Object.hasOwn(facts.types, itemTypeOf(type as ColumnType) ?? type))
    throw createInvalidSchemaChangeError(
      `Unknown type ${formatName(type)}. Types: ${Object.keys(facts.types).join(', ')}.`,
    )
  if (from !== null && before?.type === type)
    throw createInvalidSchemaChangeError(`The column of ${formatName(member)} already has the type ${type}.`)
  const final = name ?? from ?? nameColumn(member, taken, facts.nameBytesMax)
  if (final === null) throw createInvalidSchemaChangeError(`No column name can be derived from ${formatName(member)}.`)
  const to =
    from === null
      ? final
      : required(nameColumn(`${final}__new`, taken, facts.nameBytesMax), 'The name of the new column')
  taken.add(to.toLowerCase())
  const format = facts.formatOf(member, type as ColumnType)
  const made: TableColumn = {
    member,
    name: to,
    type: type as ColumnType,
    none: before?.none ?? 'absent',
    since: before?.since ?? 0,
    from: 'change',
    ...(format !== undefined && { format }),
  }
  if (at === -1) columns.push(made)
  else columns[at] = made
  if (before !== undefined && from !== null) columns.push({ ...before, former: true })
  return { member, from, to, name: final, type: made.type }
}

function reserveColumnName(
  column: string,
  from: string | null,
  taken: Set<string>,
  { nameBytesMax }: SchemaChangeFacts,
): string {
  if (column === from) throw createInvalidSchemaChangeError(`The column is already called ${formatName(column)}.`)
  if (nameColumn(column, new Set(), nameBytesMax) !== column)
    throw createInvalidSchemaChangeError(`${formatName(column)} is not a valid column name.`)
  if (taken.has(column.toLowerCase()) && column.toLowerCase() !== from?.toLowerCase())
    throw createInvalidSchemaChangeError(`The column name ${formatName(column)} is already used or reserved.`)
  taken.add(column.toLowerCase())
  return column
}

/** Throws when the change would drop objects that depend on a column, and the request does not allow it. */
export function checkDependentLoss(
  columns: readonly TableColumn[],
  { moves, lose }: StoredSchemaChange,
  dependentsOf: (column: string) => SchemaColumn['dependents'],
): void {
  const lost = moves.flatMap(({ member, from, to, name }) => {
    const isReplaced = from !== null && (to !== null || name === null)
    if (!isReplaced) return []
    const old = columns.find((column) => column.member === member && column.former === true)?.name ?? from
    return dependentsOf(old)
      .filter(({ isKept }) => !isKept || name === null)
      .map((dependent) => dependent.name)
  })
  if (lost.length > 0 && !lose)
    throw createInvalidSchemaChangeError(
      `These objects would be dropped with their column: ${[...new Set(lost)].join(', ')}. Drop them first, or allow the loss.`,
    )
}

/** The columns after all values have been copied. */
export function finishColumns(columns: readonly TableColumn[], moves: readonly ColumnTransition[]): TableColumn[] {
  const names = new Map(moves.map(({ member, name }) => [member, name]))
  return columns
    .filter(({ former }) => former !== true)
    .map((column) =>
      column.name !== null && names.has(column.member) ? { ...column, name: names.get(column.member) ?? null } : column,
    )
}

/** True when values have to be copied. */
export function needsRowCopy(moves: readonly ColumnTransition[]): boolean {
  return moves.some(({ from, to, name }) => to !== null || (from !== null && name === null))
}

/** Returns the change after a batch of rows. `last` identifies the last row; null when there were no more. */
export function advanceAfterBatch(
  change: StoredSchemaChange,
  { scanned, rewritten, last }: { scanned: number; rewritten: number; last: string | null },
): StoredSchemaChange {
  const phase: SchemaPhase = last !== null ? change.phase : change.phase === 'rows' ? 'history' : 'indexes'
  return {
    ...change,
    phase,
    position: last,
    scanned: change.scanned + scanned,
    rewritten: change.rewritten + rewritten,
  }
}

export function toSchemaChangeState({
  changes,
  phase,
  scanned,
  rewritten,
  actor,
  reason,
  startedAt,
}: StoredSchemaChange): SchemaChangeState {
  return { changes, phase, scanned, rewritten, actor, reason, startedAt }
}

/** Describes the changes for the audit log. */
export function describeChanges(changes: readonly ColumnChange[]): string {
  return changes
    .map(({ member, type, column, drop }) => {
      if (drop === true) return `drop ${formatName(member)}`
      return [
        formatName(member),
        ...(type === undefined ? [] : [`type ${type}`]),
        ...(column === undefined ? [] : [`column ${formatName(column)}`]),
      ].join(' ')
    })
    .join('; ')
}

export function createInvalidSchemaChangeError(message: string): SyncError {
  return new SyncError('SCHEMA_CHANGE_INVALID', message)
}

function formatName(name: string): string {
  return JSON.stringify(name.length > 64 ? `${name.slice(0, 64)}…` : name)
}
