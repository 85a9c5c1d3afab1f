import type { Worker } from '../../../src/worker/worker.ts'
import type { ColumnType, JsonObject } from '../../../src/contract/index.ts'
import type { Fetch } from '../../../src/platform/fetch.ts'

/** A system with a value of every type that its source knows, and the columns that a copy of it has. */
export interface TypeCase {
  readonly name: string
  /** By member, in any order. */
  readonly types: Readonly<Record<string, ColumnType>>
  readonly key: readonly string[]
  open(): Promise<OpenCase>
}

export interface OpenCase {
  /** Declares the syncs into the database `things`: one for the first cycle, one for the second. */
  declare(worker: Worker): { readonly first: string; readonly second: string }
  /** The records that the system holds, as they land, by key. */
  truth(): Readonly<Record<string, JsonObject>>
  /** Changes values, and not the types of them. */
  change(): Promise<void>
  readonly fetch?: Fetch
  close(): Promise<void>
}

export const DATABASE = 'things'
