import type { DestinationBatch, DestinationChange, TokenStep } from '../../contract/index.ts'
import type { TableColumn } from '../../stores/kit/tables/column.ts'
import { growColumns } from '../../stores/kit/tables/grow-columns.ts'
import { fieldsOfBatch, fieldsOfRecords } from './batch-fields.ts'
import { childrenOf, createChildTable, toChildRows, withoutChildren } from './child-rows.ts'
import { extendColumns, withFormats, type DestinationColumnLimits } from './extend-columns.ts'
import type { TableState } from './sql-states.ts'
import { namedColumns, type SqlTables, type TableSpec } from './sql-tables.ts'
import { childTableNameOf, toTargetName } from './table-names.ts'
import { PRIMARY_KEYS, SYSTEM_COLUMNS, toTableRows } from './table-rows.ts'

/** The columns of a table and of its child tables. */
export type TableLayout = Pick<TableState, 'columns' | 'children'>

/** One batch for the tables of its target. */
export class SqlBatch {
  readonly #tables: SqlTables
  readonly #batch: DestinationBatch
  readonly #step: TokenStep
  readonly #table: TableSpec
  readonly #children: ReadonlyArray<{ readonly member: string; readonly table: TableSpec }>

  constructor(tables: SqlTables, name: string, batch: DestinationBatch, step: TokenStep) {
    this.#tables = tables
    this.#batch = batch
    this.#step = step
    const { target } = batch
    const { mode, children = [] } = batch.schema
    this.#table = { name: toTargetName(name, target), system: SYSTEM_COLUMNS[mode], key: PRIMARY_KEYS[mode] }
    this.#children = children.map((member) => ({
      member,
      table: createChildTable(toTargetName(childTableNameOf(name, member), target)),
    }))
  }

  /** Creates the tables of a load, without columns. */
  async create(): Promise<void> {
    for (const table of this.#specs) await this.#tables.create(table)
  }

  /** The columns that the rows need: the same object if there are no new ones. `before` is null for new tables. */
  async layout(before: TableLayout | null): Promise<TableLayout> {
    const known = before ?? { columns: [], children: new Map(this.#children.map(({ member }) => [member, []])) }
    const { schema, changes, isLast } = this.#batch
    if (changes.length === 0 && !isLast) return known
    const { previous } = this.#step
    const isEmptyTable = before === null || (known.columns.length === 0 && isRowPhase(previous))
    const since = isEmptyTable ? 0 : (previous?.sequence ?? 0) + 1
    const members = new Set(schema.children)
    const own = { ...schema, columns: schema.columns.filter(({ member }) => !members.has(member)) }
    const fields = fieldsOfBatch(this.#batch)
    const columns = await this.#extend(this.#table, known.columns, (limits) =>
      extendColumns(known.columns, own, fields, since, limits),
    )
    const children = new Map<string, readonly TableColumn[]>()
    for (const { member, table } of this.#children) {
      const current = known.children.get(member) ?? []
      const records = changes.flatMap(({ record }) => childrenOf(record, member))
      const grow = (limits: DestinationColumnLimits) =>
        withFormats(growColumns(current, records, since, limits), current, fieldsOfRecords(records), limits)
      children.set(member, await this.#extend(table, current, grow))
    }
    const isSame =
      columns === known.columns && [...children].every(([member, grown]) => grown === known.children.get(member))
    return isSame ? known : { columns, children }
  }

  async addColumns(layout: TableLayout, before: TableLayout | null): Promise<void> {
    await this.#addMissing(this.#table, layout.columns, before?.columns ?? [])
    for (const { member, table } of this.#children)
      await this.#addMissing(table, layout.children.get(member) ?? [], before?.children.get(member) ?? [])
  }

  async writeRows({ columns, children }: TableLayout): Promise<void> {
    const { changes, target, isFirst } = this.#batch
    const { previous, next } = this.#step
    const isLoad = isRowPhase(previous)
    if (changes.length > 0) {
      await this.#writeTable(columns, isLoad)
      for (const { member, table } of this.#children)
        await this.#writeChildren(member, table, children.get(member) ?? [], isLoad)
    }
    if (target === 'loading' && next.after === null && (isFirst || isLoad))
      for (const table of this.#specs) await this.#tables.finishLoad(table)
  }

  async #writeTable(columns: readonly TableColumn[], isLoad: boolean): Promise<void> {
    const { mode, children = [] } = this.#batch.schema
    const encode = this.#tables.encoder(columns, this.#batch.members ?? [])
    const changes =
      children.length === 0
        ? this.#batch.changes
        : this.#batch.changes.map((change) => withoutChildren(change, children))
    const { rows, deletedKeys, endedKeys } = toTableRows(mode, changes, columns, encode)
    const { name } = this.#table
    if (deletedKeys.length > 0) await this.#tables.deleteRows(name, '_key', deletedKeys)
    if (endedKeys.length > 0 && !isLoad) await this.#tables.endVersions(name, endedKeys)
    if (rows.length === 0) return
    const named = namedColumns(columns)
    await (mode !== 'mirror' || isLoad
      ? this.#tables.append(this.#table, named, rows)
      : this.#tables.merge(this.#table, named, rows))
  }

  /** The children of a changed row are replaced. A row that was deleted and created again in one batch has old ones too. */
  async #writeChildren(
    member: string,
    table: TableSpec,
    columns: readonly TableColumn[],
    isLoad: boolean,
  ): Promise<void> {
    const { changes } = this.#batch
    if (!isLoad) await this.#tables.deleteRows(table.name, '_parent_key', changes.map(keyOf))
    const rows = toChildRows(changes, member, columns, this.#tables.encoder(columns, []))
    if (rows.length > 0) await this.#tables.append(table, namedColumns(columns), rows)
  }

  /** Columns that a user added keep their names. */
  async #extend(
    table: TableSpec,
    known: readonly TableColumn[],
    extend: (limits: DestinationColumnLimits) => readonly TableColumn[],
  ): Promise<readonly TableColumn[]> {
    const limits = this.#tables.columnLimits
    const extendWith = (reserved: readonly string[]): readonly TableColumn[] => extend({ ...limits, reserved })
    const reserved = [...limits.reserved, ...table.system.map(({ name }) => name)]
    if (extendWith(reserved) === known) return known
    const ours = new Set(namedColumns(known).map(({ name }) => name))
    const foreign = (await this.#tables.columnNames(table.name)).filter((name) => !ours.has(name))
    return extendWith([...reserved, ...foreign])
  }

  async #addMissing(table: TableSpec, columns: readonly TableColumn[], known: readonly TableColumn[]): Promise<void> {
    const existing = new Set(namedColumns(known).map(({ name }) => name))
    const added = namedColumns(columns).filter(({ name }) => !existing.has(name))
    if (added.length > 0) await this.#tables.addColumns(table.name, added)
  }

  get #specs(): TableSpec[] {
    return [this.#table, ...this.#children.map(({ table }) => table)]
  }
}

function keyOf({ key }: DestinationChange): string {
  return key
}

/** Rows of a load: no key occurs twice. */
function isRowPhase(previous: TokenStep['previous']): boolean {
  return previous !== null && previous.after !== null
}
