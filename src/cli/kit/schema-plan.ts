import { required } from '../../values/required.ts'
import { SyncError, type ColumnChange, type SchemaColumn, type SchemaInfo } from '../../contract/index.ts'
import { didYouMean } from '../../values/did-you-mean.ts'
import { describeValue } from '../../config/names.ts'

export interface ChangeFlags {
  readonly widen?: readonly string[]
  readonly narrow?: readonly string[]
  readonly promote?: readonly string[]
  readonly rename?: readonly string[]
  readonly drop?: readonly string[]
}

/** The effect of a column change. */
export interface SchemaPlan {
  readonly changes: readonly ColumnChange[]
  readonly actions: readonly PlannedAction[]
  readonly statements: readonly string[]
  /** The maximum number of rewritten rows and versions; an estimate if the store only has statistics. */
  readonly rowsMax: number
  readonly locks: readonly string[]
  readonly dependentsKept: readonly string[]
  readonly dependentsLost: readonly string[]
}

export interface PlannedAction {
  readonly member: string
  readonly action: 'widen' | 'narrow' | 'promote' | 'rename' | 'drop'
  readonly column: string | null
  readonly from: string | null
  readonly to: string | null
}

/** Plans the requested changes, or columns for all fields in `_extra` if none is requested. */
export function planSchema(info: SchemaInfo, flags: ChangeFlags): SchemaPlan {
  const requested = readRequestedChanges(info, flags)
  const changes: readonly ColumnChange[] = requested.length > 0 ? requested : proposeChanges(info)
  const dependents = changes.flatMap(({ member, type, drop }) => {
    const column = columnOfMember(info, member)
    if (column === undefined || column.column === null || (type === undefined && drop !== true)) return []
    return column.dependents.map(({ name, isKept }) => ({ name, isKept: isKept && drop !== true }))
  })
  const nameIf = (isKept: boolean): string[] => [
    ...new Set(dependents.filter((dependent) => dependent.isKept === isKept).map(({ name }) => name)),
  ]
  return {
    changes,
    actions: changes.map((wanted) => toPlannedAction(info, wanted)),
    statements: buildStatements(info, changes),
    rowsMax: estimateRows(info, changes),
    locks: listLocks(info, changes),
    dependentsKept: nameIf(true),
    dependentsLost: nameIf(false),
  }
}

/** A declared type takes precedence over one derived from the values in `_extra`. */
function proposeChanges({ columns, waiting }: SchemaInfo): ColumnChange[] {
  const declared = columns.flatMap(({ member, column, wanted }) =>
    column === null || wanted === null ? [] : [{ member, type: wanted }],
  )
  const known = new Set(declared.map(({ member }) => member))
  return [
    ...declared,
    ...waiting.flatMap(({ member, proposal }) =>
      proposal === null || known.has(member) ? [] : [{ member, type: proposal }],
    ),
  ]
}

function readRequestedChanges(
  info: SchemaInfo,
  { widen = [], narrow = [], promote = [], rename = [], drop = [] }: ChangeFlags,
): ColumnChange[] {
  const changes = new Map<string, ColumnChange>()
  const add = (wanted: ColumnChange): void =>
    void changes.set(wanted.member, { ...changes.get(wanted.member), ...wanted })
  for (const [texts, isWide] of [
    [widen, true],
    [narrow, false],
  ] as const) {
    for (const text of texts) {
      const [name, type] = parsePair(text, 'a field and a type, such as age=text')
      checkType(info, type)
      const { member, column, type: from } = findColumn(info, name)
      if (column === null)
        throw invalidChange(`${describeValue(name)} has no column yet. Create one with --promote ${name}=${type}.`)
      if (isWider(from, type) !== isWide)
        throw invalidChange(
          `${type} is ${isWide ? 'not wider' : 'wider'} than ${from}. Use --${isWide ? 'narrow' : 'widen'} ${text}.`,
        )
      add({ member, type })
    }
  }
  for (const text of promote) {
    const [name, given] = text.includes('=') ? parsePair(text, 'a field and a type') : [text, null]
    if (given !== null) checkType(info, given)
    const waiting = info.waiting.find(({ member }) => member === name)
    const known = info.columns.find(({ member }) => member === name)
    if (known !== undefined && known.column !== null)
      throw invalidChange(`${describeValue(name)} already has the column ${describeValue(known.column)}.`)
    if (waiting === undefined && known === undefined)
      throw unknownMember(
        name,
        info.waiting.map(({ member }) => member),
      )
    add({ member: name, type: given ?? waiting?.proposal ?? known?.type ?? 'text' })
  }
  for (const text of rename) {
    const [name, column] = parsePair(text, 'a field and a column, such as age=years')
    add({ member: findColumn(info, name).member, column })
  }
  for (const name of drop) add({ member: findColumn(info, name).member, drop: true })
  return [...changes.values()]
}

/** Splits at the last `=`: a field name may contain one, a type or column name cannot. */
function parsePair(text: string, what: string): [string, string] {
  const at = text.lastIndexOf('=')
  if (at < 1 || at === text.length - 1) throw invalidChange(`${describeValue(text)} is not ${what}.`)
  return [text.slice(0, at), text.slice(at + 1)]
}

/** Runs before types are compared, so that a misspelt type is reported as such. */
function checkType({ types }: SchemaInfo, type: string): void {
  const known = Object.keys(types)
  if (known.includes(type.replace(/\[\]$/, ''))) return
  throw invalidChange(
    `Unknown type ${describeValue(type)}.${didYouMean(type, known)} The types are ${known.join(', ')}.`,
  )
}

/** Finds a column by the name of its field or by its own name. */
function findColumn({ columns }: SchemaInfo, name: string): SchemaColumn {
  const found = columns.find(({ member }) => member === name) ?? columns.find(({ column }) => column === name)
  if (found === undefined)
    throw unknownMember(
      name,
      columns.map(({ member }) => member),
    )
  return found
}

function columnOfMember({ columns }: SchemaInfo, member: string): SchemaColumn | undefined {
  return columns.find((column) => column.member === member)
}

const WIDER_TYPES: Readonly<Record<string, readonly string[]>> = {
  bigint: ['double', 'numeric'],
  double: ['numeric'],
  date: ['timestamp'],
}

function isWider(from: string, to: string): boolean {
  return to === 'json' || (to === 'text' && from !== 'json') || (WIDER_TYPES[from]?.includes(to) ?? false)
}

function toPlannedAction(info: SchemaInfo, { member, type, column, drop }: ColumnChange): PlannedAction {
  const known = columnOfMember(info, member)
  const from = known === undefined || known.column === null ? null : known.type
  if (drop === true) return { member, action: 'drop', column: known?.column ?? null, from, to: null }
  if (type === undefined)
    return { member, action: 'rename', column: required(column, `the new name of ${member}`), from, to: from }
  const action = from === null ? 'promote' : isWider(from, type) ? 'widen' : 'narrow'
  return { member, action, column: column ?? known?.column ?? member, from, to: type }
}

function estimateRows(info: SchemaInfo, changes: readonly ColumnChange[]): number {
  const { rows, versions, waiting } = info
  if (changes.every(({ type, drop }) => type === undefined && drop !== true)) return 0
  const promotedRows = ({ member, type }: ColumnChange): number | undefined =>
    type !== undefined && columnOfMember(info, member)?.column == null
      ? waiting.find((item) => item.member === member)?.rows
      : undefined
  const counts = changes.map(promotedRows).filter((count) => count !== undefined)
  const isAllPromoted = info.isWaitingExact && counts.length === changes.length
  return isAllPromoted
    ? Math.min(
        rows,
        counts.reduce((sum, count) => sum + count, 0),
      ) + versions
    : rows + versions
}

/** The statements as a person would write them, with a comment where the store works in batches. */
function buildStatements(info: SchemaInfo, changes: readonly ColumnChange[]): string[] {
  const statements: string[] = []
  const both = (sql: (table: string) => string): void => void statements.push(...[info.table, info.history].map(sql))
  const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`
  const swaps: Array<(table: string) => string> = []
  for (const wanted of changes) {
    const { action, column } = toPlannedAction(info, wanted)
    const existing = columnOfMember(info, wanted.member)?.column ?? wanted.member
    const target = column ?? wanted.member
    const name = quoted(target)
    const sqlType = wanted.type === undefined ? '' : (info.types[wanted.type] ?? wanted.type)
    if (action === 'promote') both((table) => `alter table ${table} add column ${name} ${sqlType}`)
    if (action === 'widen' || action === 'narrow') {
      const replacement = quoted(`${target}__new`)
      both((table) => `alter table ${table} add column ${replacement} ${sqlType}`)
      swaps.push(
        (table) => `alter table ${table} drop column ${quoted(existing)}`,
        (table) => `alter table ${table} rename column ${replacement} to ${name}`,
      )
    }
    if (action === 'rename') swaps.push((table) => `alter table ${table} rename column ${quoted(existing)} to ${name}`)
    if (action === 'drop') swaps.push((table) => `alter table ${table} drop column ${quoted(existing)}`)
  }
  if (changes.some(({ type, drop }) => type !== undefined || drop === true)) {
    statements.push(
      `update ${info.table} set … where _key > … -- in batches, by _key`,
      `update ${info.history} set … where _until_sequence > … -- in batches, by _until_sequence`,
    )
  }
  for (const swap of swaps) both(swap)
  return statements
}

function listLocks({ locks }: SchemaInfo, changes: readonly ColumnChange[]): string[] {
  if (changes.length === 0) return []
  if (locks === null) throw invalidChange('This store cannot change columns.')
  const copies = changes.some(({ type, drop }) => type !== undefined || drop === true)
  return [...(copies ? [locks.batch] : []), locks.swap]
}

function unknownMember(name: string, known: readonly string[]): SyncError {
  return invalidChange(`Unknown field ${describeValue(name)}.${didYouMean(name, known)}`)
}

function invalidChange(message: string): SyncError {
  return new SyncError('SCHEMA_CHANGE_INVALID', message)
}
