import type { JsonObject } from '../contract/index.ts'
import type { Checkpoint } from './checkpoint.ts'
import { ClientError } from './client-error.ts'
import type { ReaderPosition } from './reader-position.ts'
import type { Query } from './transport.ts'

const PATH = '/agents/v1/sync-state/checkpoint'

type SendRequest = (path: string, query: Query, signal?: AbortSignal, body?: JsonObject) => Promise<JsonObject>

/** Stores the position on the feed's server, which can then report the consumer's lag. */
export function serverCheckpoint(name: string, sendRequest: SendRequest): Checkpoint {
  return {
    async load() {
      try {
        const { data } = (await sendRequest(PATH, { integrationKey: name })) as {
          data: { metadata: JsonObject | null }
        }
        return (data.metadata?.['position'] ?? null) as ReaderPosition | null
      } catch (error) {
        if (error instanceof ClientError && error.code === 'NOT_FOUND') return null
        throw error
      }
    },
    async save(position) {
      const { cursor, last, midPage, restart } = position
      const progress = cursor !== null ? { cursor } : last !== null ? { updatedSince: last.updatedAt } : {}
      await sendRequest(PATH, {}, undefined, {
        integrationKey: name,
        ...progress,
        metadata: {
          position: {
            cursor,
            last: last === null ? null : { ...last },
            midPage,
            restart: restart === null ? null : { ...restart },
          },
        },
      })
    },
  }
}
