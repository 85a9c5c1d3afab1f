import {
  SCALAR_TYPES,
  SyncError,
  type Column,
  type CommitShape,
  type ShapeColumn,
  type TableShape,
} from '../contract/index.ts'
import type { DatabasePlan } from './sync-plan.ts'
import { required } from '../values/required.ts'

/** The shapes of a cycle's databases, declared or returned with pages. Tracks the ones that are committed. */
export class TableShapes {
  readonly #sync: string
  readonly #databases: readonly DatabasePlan[]
  readonly #sourceShapes = new Map<string, TableShape>()
  /** The fields seen in records. */
  readonly #seenMembers = new Map<string, Set<string>>()
  readonly #committed = new Map<string, string>()

  constructor(sync: string, databases: readonly DatabasePlan[]) {
    this.#sync = sync
    this.#databases = databases
  }

  /**
   * The shapes that are not committed yet, including those of the page. Metadata counts only for fields that records
   * have: a transformation between the source and the copy may have renamed or removed them.
   */
  collectUncommitted(
    tables: readonly TableShape[],
    columns: Readonly<Record<string, readonly Column[]>>,
  ): CommitShape[] {
    for (const [database, seen] of Object.entries(columns)) {
      const names = this.#seenMembers.get(database) ?? new Set()
      for (const { name } of seen) names.add(name)
      this.#seenMembers.set(database, names)
    }
    for (const table of tables) {
      const name = table.database ?? required(this.#databases[0], 'database of the sync').name
      if (!this.#databases.some((database) => database.name === name)) {
        throw new SyncError(
          'DATABASE_UNKNOWN',
          `${this.#sync}: a page has columns of the database ${JSON.stringify(name)}, which this sync does not write to.`,
        )
      }
      this.#sourceShapes.set(name, table)
    }
    return this.#databases.flatMap(({ name, shape }) => {
      const merged = mergeShapes(name, shape, this.#sourceShapes.get(name), this.#seenMembers.get(name))
      return merged === null || this.#committed.get(name) === JSON.stringify(merged) ? [] : [merged]
    })
  }

  markCommitted(shapes: readonly CommitShape[]): void {
    for (const shape of shapes) this.#committed.set(shape.database, JSON.stringify(shape))
  }
}

/** Null if nothing is known. */
function mergeShapes(
  database: string,
  declared: TableShape | undefined,
  fromSource: TableShape | undefined,
  seen: ReadonlySet<string> = new Set(),
): CommitShape | null {
  const columns = new Map<string, CommitShape['columns'][number]>()
  for (const column of fromSource?.columns ?? [])
    if (seen.has(column.name)) columns.set(column.name, { ...column, from: 'source' })
  for (const column of declared?.columns ?? []) columns.set(column.name, { ...column, from: 'schema' })
  const key = declared?.key ?? (fromSource?.key?.every((name) => seen.has(name)) === true ? fromSource.key : [])
  return columns.size === 0 && key.length === 0 ? null : { database, columns: [...columns.values()], key }
}

/** Returns the fault in the `tables` of a page, or null. */
export function findShapeFault(tables: unknown): string | null {
  if (!Array.isArray(tables)) return 'is not an array'
  for (const table of tables as unknown[]) {
    const { database, columns, key } = (table ?? {}) as Partial<Record<keyof TableShape, unknown>>
    if (database !== undefined && typeof database !== 'string') return 'has a `database` that is not a string'
    if (!Array.isArray(columns) || !columns.every(isColumn))
      return 'has `columns` that lack a `name` or a column `type`'
    if (key !== undefined && !(Array.isArray(key) && key.every((name) => typeof name === 'string')))
      return 'has a `key` that is not an array of names'
  }
  return null
}

function isColumn(column: unknown): boolean {
  const { name, type } = (column ?? {}) as Partial<Record<keyof ShapeColumn, unknown>>
  return (
    typeof name === 'string' &&
    typeof type === 'string' &&
    SCALAR_TYPES.some((scalar) => type === scalar || type === `${scalar}[]`)
  )
}
