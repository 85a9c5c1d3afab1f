import { parseBatch, type ChangeBatch } from './batch.ts'
import type { Query, Transport } from './transport.ts'

export const CHANGES_PATH = '/agents/v1/changes'

export interface PollOptions {
  readonly types: string | undefined
  readonly limit: number
  /** Maximum time the server holds a request open while there are no changes. */
  readonly waitSeconds: number
  readonly signal: AbortSignal
}

const RESPONSE_TIMEOUT_MS = 30_000
/** Minimum interval between two empty responses, for a server that does not support long polling. */
const POLL_INTERVAL_MIN_MS = 1_000

/** Reads page after page from a position. Without `waitSeconds`, ends with the first page that is up to date. */
export async function* pollPages(
  transport: Transport,
  from: Query,
  { types, limit, waitSeconds, signal }: PollOptions,
): AsyncGenerator<ChangeBatch> {
  for (let position = from; ;) {
    const sentAt = transport.clock.now()
    const wait = waitSeconds === 0 ? undefined : waitSeconds
    const batch = parseBatch(
      await transport.requestJson({
        path: CHANGES_PATH,
        query: { ...position, types, limit, wait },
        timeoutMs: RESPONSE_TIMEOUT_MS + waitSeconds * 1_000,
        signal,
      }),
    )
    yield batch
    if (batch.upToDate && waitSeconds === 0) return
    const isIdle = batch.upToDate && (batch.changes.length === 0 || batch.cursor === null)
    if (isIdle)
      await transport.clock.sleep(Math.max(0, POLL_INTERVAL_MIN_MS - (transport.clock.now() - sentAt)), signal)
    // Without a cursor, the caller has to compute the next request.
    if (batch.cursor === null) return
    position = { cursor: batch.cursor }
  }
}
