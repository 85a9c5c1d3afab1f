import type { ColumnType, DestinationChange, DestinationSchema, Store } from '../../contract/index.ts'
import { RowChange } from './row-change.ts'

/** The columns of a database, read again when a record has a field without a column. */
export class SchemaReader {
  readonly #store: Store
  readonly #target: Omit<DestinationSchema, 'columns'>
  #schema: DestinationSchema | null = null
  /** Fields with a column, and fields that the store itself keeps without one. */
  readonly #known = new Set<string>()

  constructor(store: Store, { database, mode, children = [] }: Omit<DestinationSchema, 'columns'>) {
    this.#store = store
    this.#target = { database, mode, children }
  }

  /** Returns a schema with a column for every field of these changes that has one in the store. */
  async schemaFor(changes: readonly DestinationChange[], members: readonly string[] = []): Promise<DestinationSchema> {
    const isSeen = (at: number): boolean => changes.some(({ values }) => (values?.[at] ?? null) !== null)
    const added = new Set(members.filter((member, at) => !this.#known.has(member) && isSeen(at)))
    for (const change of changes)
      if (!(change instanceof RowChange) && change.record !== null)
        for (const member of Object.keys(change.record))
          if (change.record[member] !== null && !this.#known.has(member)) added.add(member)
    if (this.#schema === null || added.size > 0) this.#schema = await this.#read()
    for (const member of added) this.#known.add(member)
    return this.#schema
  }

  async #read(): Promise<DestinationSchema> {
    const columns = (await this.#store.schema(this.#target.database))?.columns ?? []
    const named = columns.filter(({ column }) => column !== null)
    for (const { member } of named) this.#known.add(member)
    return { ...this.#target, columns: named.map(({ member, type }) => ({ member, type: type as ColumnType })) }
  }
}
