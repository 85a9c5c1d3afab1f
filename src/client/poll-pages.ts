import { batchOf, type Batch } from './batch.ts'
import type { Query, Wire } from './wire.ts'

export const CHANGES_PATH = '/agents/v1/changes'

export interface PageOptions {
  readonly types: string | undefined
  readonly limit: number
  /** How long the server may hold an answer back while there is nothing to tell. */
  readonly waitSeconds: number
  readonly signal: AbortSignal
}

const ANSWER_MS = 30_000
/** Between two questions that were answered with nothing, for a server that does not wait. */
const QUIET_MS = 1_000

/** Page after page from a place on. Ends with the first one that is up to date when nobody waits for more. */
export async function* pollPages(wire: Wire, from: Query, { types, limit, waitSeconds, signal }: PageOptions): AsyncGenerator<Batch> {
  for (let at = from; ; ) {
    const asked = wire.clock.now()
    const wait = waitSeconds === 0 ? undefined : waitSeconds
    const batch = batchOf(await wire.json({ path: CHANGES_PATH, query: { ...at, types, limit, wait }, timeoutMs: ANSWER_MS + waitSeconds * 1_000, signal }))
    yield batch
    if (batch.upToDate && waitSeconds === 0) return
    const quiet = batch.upToDate && (batch.changes.length === 0 || batch.cursor === null)
    if (quiet) await wire.clock.sleep(Math.max(0, QUIET_MS - (wire.clock.now() - asked)), signal)
    // Without a cursor only the reader knows where to go on.
    if (batch.cursor === null) return
    at = { cursor: batch.cursor }
  }
}
