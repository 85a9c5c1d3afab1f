import type { SchemaChangeRequest, SchemaDrift, SchemaInfo, SchemaStepResult } from '../schema.ts'

/** The columns of the tables, and changes of them. */
export interface SchemaStore {
  /** The open drift of every database. */
  schemaDrift(): Promise<SchemaDrift[]>
  /** Null for an unknown database. */
  schema(database: string): Promise<SchemaInfo | null>
  /**
   * Begins a change of the columns; audited. Refused (SCHEMA_CHANGE_INVALID) if it is impossible, if it would drop
   * objects that depend on a column, or while another change is in progress.
   */
  beginSchemaChange(database: string, request: SchemaChangeRequest): Promise<void>
  /**
   * Advances the change in progress by one bounded step; null if there is none. Between two steps commits and reads
   * work as before, and a crash loses nothing.
   */
  advanceSchemaChange(database: string, step: { at: number; rowsMax: number }): Promise<SchemaStepResult | null>
}
