import type { JsonObject } from '../contract/index.ts'
import type { AnyDatabases, Change, Row } from './change.ts'
import { readChanges, type ChangesOptions } from './changes.ts'
import type { Checkpoint } from './checkpoint.ts'
import { ClientError } from './client-error.ts'
import { serverCheckpoint } from './server-checkpoint.ts'
import { Transport, type Query, type TransportOptions } from './transport.ts'

export interface ClientOptions extends TransportOptions {
  /** Failed tries before `list` and `get` give up. */
  readonly retriesMax?: number
}

export interface ReadOptions {
  readonly signal?: AbortSignal
}

export interface ListOptions extends ReadOptions {
  /** Only rows changed at this time or later. */
  readonly updatedSince?: string
}

/** A reader of one feed. `Databases` is what `tidemark types` writes. */
export interface Client<Databases extends object = AnyDatabases> {
  /** What changed, for ever: `for await (const change of client.changes({ checkpoint })) …`. */
  changes<Type extends keyof Databases & string = keyof Databases & string>(options?: ChangesOptions<Type>): AsyncGenerator<Change<Databases, Type>, void, undefined>
  /** Every row, by the time of its last change. One that changes meanwhile may come again. */
  list<Name extends keyof Databases & string>(database: Name, options?: ListOptions): AsyncGenerator<Row<Databases[Name]>, void, undefined>
  /** Null when there is no such row. */
  get<Name extends keyof Databases & string>(database: Name, key: string, options?: ReadOptions): Promise<Row<Databases[Name]> | null>
  /** The names of those that the key may read. */
  databases(options?: ReadOptions): Promise<(keyof Databases & string)[]>
  /** Keeps the place of a consumer with the server, under the name of the key: for one that has no place of its own for it. */
  checkpoint(name?: string): Checkpoint
}

const RETRIES_MAX = 5
const RESPONSE_TIMEOUT_MS = 30_000
const PAGE_SIZE = 200

export function createClient<Databases extends object = AnyDatabases>(options: ClientOptions): Client<Databases> {
  const wire = new Transport(options)
  const ask = (path: string, query: Query, signal: AbortSignal = new AbortController().signal, body?: JsonObject): Promise<JsonObject> =>
    wire.withRetries(options.retriesMax ?? RETRIES_MAX, signal, () => wire.requestJson({ path, query, timeoutMs: RESPONSE_TIMEOUT_MS, signal, ...(body !== undefined && { body }) }))
  return {
    changes: (changesOptions = {}) => readChanges(wire, changesOptions) as AsyncGenerator<never, void, undefined>,
    async *list(database, { updatedSince, signal } = {}) {
      const path = `/agents/v1/${encodePathPart(database)}`
      for (let at: Record<string, string | undefined> = { updatedSince }; ; ) {
        const { data, page } = (await ask(path, { ...at, limit: PAGE_SIZE }, signal)) as unknown as { data: never[]; page: { nextCursor: string | null; hasMore: boolean } }
        yield* data
        if (!page.hasMore || page.nextCursor === null) return
        at = { cursor: page.nextCursor }
      }
    },
    async get(database, key, { signal } = {}) {
      try {
        return (await ask(`/agents/v1/${encodePathPart(database)}/${encodePathPart(key)}`, {}, signal))['data'] as never
      } catch (error) {
        if (error instanceof ClientError && error.code === 'NOT_FOUND') return null
        throw error
      }
    },
    async databases({ signal } = {}) {
      const { databases } = (await ask('/agents/v1/capabilities', {}, signal)) as unknown as { databases: { name: keyof Databases & string }[] }
      return databases.map(({ name }) => name)
    },
    checkpoint: (name = 'default') => serverCheckpoint(name, ask),
  }
}

/** Everything in one call, for programs with one feed. */
export function changes<Databases extends object = AnyDatabases>(options: TransportOptions & ChangesOptions<keyof Databases & string>): AsyncGenerator<Change<Databases>, void, undefined> {
  return createClient<Databases>(options).changes(options)
}

/** Dots alone would be taken for folders, however they are written. */
function encodePathPart(text: string): string {
  if (text === '.' || text === '..' || text === '') throw new ClientError('ARGUMENT_INVALID', `${JSON.stringify(text)} cannot stand in an address; \`list\` gives the row.`)
  return encodeURIComponent(text)
}
