import type { Worker } from '../../../src/worker/worker.ts'
import type { ColumnType, JsonObject } from '../../../src/contract/index.ts'
import type { Fetch } from '../../../src/platform/fetch.ts'

/** A system with values of every type of its source, and the columns of its copy. */
export interface TypeCase {
  readonly name: string
  /** By field, in any order. */
  readonly types: Readonly<Record<string, ColumnType>>
  readonly key: readonly string[]
  open(): Promise<OpenCase>
}

export interface OpenCase {
  /** Declares the syncs into the database `things`: one for the first cycle, one for the second. */
  declare(worker: Worker): { readonly first: string; readonly second: string }
  /** The expected records by key, as they land. */
  truth(): Readonly<Record<string, JsonObject>>
  /** Changes values but not their types. */
  change(): Promise<void>
  readonly fetch?: Fetch
  close(): Promise<void>
}

export const DATABASE = 'things'
