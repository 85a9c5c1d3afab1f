import type { ColumnType, DestinationChange, DestinationMode, DestinationSchema, Store } from '../../contract/index.ts'

/** The columns of a database, read again when a record has a field without a column. */
export class SchemaReader {
  readonly #store: Store
  readonly #database: string
  readonly #mode: DestinationMode
  #schema: DestinationSchema | null = null
  /** Fields with a column, and fields that the store itself keeps without one. */
  readonly #known = new Set<string>()

  constructor(store: Store, database: string, mode: DestinationMode) {
    this.#store = store
    this.#database = database
    this.#mode = mode
  }

  /** Returns a schema with a column for every field of these changes that has one in the store. */
  async schemaFor(changes: readonly DestinationChange[]): Promise<DestinationSchema> {
    const isNew = changes.some(
      ({ record }) =>
        record !== null && Object.keys(record).some((member) => record[member] !== null && !this.#known.has(member)),
    )
    if (this.#schema === null || isNew) this.#schema = await this.#read()
    for (const { record } of isNew ? changes : [])
      if (record !== null)
        for (const member of Object.keys(record)) if (record[member] !== null) this.#known.add(member)
    return this.#schema
  }

  async #read(): Promise<DestinationSchema> {
    const columns = (await this.#store.schema(this.#database))?.columns ?? []
    const named = columns.filter(({ column }) => column !== null)
    for (const { member } of named) this.#known.add(member)
    return {
      database: this.#database,
      mode: this.#mode,
      columns: named.map(({ member, type }) => ({ member, type: type as ColumnType })),
    }
  }
}
