import type { SchemaChangeRequest, SchemaDrift, SchemaInfo, SchemaStepResult } from '../schema.ts'

/** The columns of the tables, and how they are changed. */
export interface SchemaStore {
  /** The drift that is open, of every database. */
  schemaDrift(): Promise<SchemaDrift[]>
  /** Null for a database that is not there. */
  schema(database: string): Promise<SchemaInfo | null>
  /**
   * Begins a change of the columns; audited. Refused (SCHEMA_CHANGE_INVALID) when it cannot be carried out, when it would lose
   * what depends on a column, and while another one is under way.
   */
  beginSchemaChange(database: string, request: SchemaChangeRequest): Promise<void>
  /**
   * Takes the change that is under way one bounded step further; null when there is none. Records land, and are read, as
   * before between any two steps, and a process that dies between them loses nothing.
   */
  advanceSchemaChange(database: string, step: { at: number; rowsMax: number }): Promise<SchemaStepResult | null>
}
