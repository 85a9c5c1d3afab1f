import { SyncError, type Store } from '../contract/index.ts'
import type { Desk } from './desk.ts'

/** One thing an agent can do here. */
export interface Tool {
  readonly name: string
  readonly description: string
  /** JSON Schema of the arguments; they are checked by it before `run` sees them. */
  readonly input: { readonly type: 'object'; readonly [keyword: string]: unknown }
  readonly writes: boolean
  /** A document that `bounded` cuts to size. */
  run(desk: Desk, given: Given): Promise<object>
}

export type Given = Readonly<Record<string, unknown>>

export const NAME = { type: 'string', minLength: 1, maxLength: 63 } as const
export const KEY = { type: 'string', minLength: 1, maxLength: 1_024 } as const

export function input(properties: Readonly<Record<string, unknown>>, required: readonly string[] = []): Tool['input'] {
  return { type: 'object', properties, required, additionalProperties: false }
}

/** Of a database that is there; who asks for another one is told which there are. */
export async function databaseIn(desk: Desk, name: unknown): Promise<{ store: Store; table: string; hasDeleted: boolean }> {
  const store = await desk.reading()
  const databases = store === null ? [] : await store.databases()
  const found = databases.find((database) => database.name === name)
  if (store === null || found === undefined) {
    throw new SyncError('ARGUMENT_INVALID', `There is no database ${JSON.stringify(name)}; there are: ${databases.map((database) => database.name).join(', ') || 'none, since nothing has landed yet'}.`)
  }
  return { store, table: found.table, hasDeleted: found.hasDeleted === true }
}

export function iso(ms: number): string
export function iso(ms: number | null): string | null
export function iso(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}
