import { SyncError, type Store } from '../contract/index.ts'
import type { ToolContext } from './tool-context.ts'

/** One tool that an agent can call. */
export interface McpTool {
  readonly name: string
  readonly description: string
  /** JSON Schema of the arguments, which are validated before `run`. */
  readonly inputSchema: { readonly type: 'object'; readonly [keyword: string]: unknown }
  readonly writes: boolean
  /** Returns a document. */
  run(context: ToolContext, given: ToolArguments): Promise<object>
}

export type ToolArguments = Readonly<Record<string, unknown>>

export const NAME_SCHEMA = { type: 'string', minLength: 1, maxLength: 63 } as const
export const KEY_SCHEMA = { type: 'string', minLength: 1, maxLength: 1_024 } as const

export function objectSchema(
  properties: Readonly<Record<string, unknown>>,
  required: readonly string[] = [],
): McpTool['inputSchema'] {
  return { type: 'object', properties, required, additionalProperties: false }
}

/** Finds a database by name. The error lists the existing databases. */
export async function findDatabase(
  context: ToolContext,
  name: unknown,
): Promise<{ store: Store; table: string; hasDeleted: boolean }> {
  const store = await context.openExistingStore()
  const databases = store === null ? [] : await store.databases()
  const found = databases.find((database) => database.name === name)
  if (store === null || found === undefined) {
    throw new SyncError(
      'ARGUMENT_INVALID',
      `Unknown database ${JSON.stringify(name)}. The databases are: ${databases.map((database) => database.name).join(', ') || 'none yet'}.`,
    )
  }
  return { store, table: found.table, hasDeleted: found.hasDeleted === true }
}

export function isoTime(ms: number): string
export function isoTime(ms: number | null): string | null
export function isoTime(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}
