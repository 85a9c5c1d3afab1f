import type { ChangeBatch } from './batch.ts'
import { changeKey, type Change } from './change.ts'
import type { Checkpoint } from './checkpoint.ts'
import { ClientError } from './client-error.ts'
import { pollPages } from './poll-pages.ts'
import { toLastChange, planRead, planRestart, skipThroughAnchor, START_POSITION, advanceWithinPage, type ReadPlan, type ReaderPosition, type Restart } from './reader-position.ts'
import { RecentKeys } from './recent-keys.ts'
import { streamEvents } from './stream-events.ts'
import type { Transport } from './transport.ts'

export interface ChangesOptions<Type extends string = string> {
  /** The databases to hear of; all when absent, also those that are yet to come. */
  readonly types?: readonly Type[]
  /** Where to go on. Without one every loop begins at the start. */
  readonly checkpoint?: Checkpoint
  /** After each page, or after every single change: more writing, less that comes again after a crash. */
  readonly saveEach?: 'page' | 'change'
  /** For a first read that needs no history: from this time on, inclusive. A checkpoint wins over it. */
  readonly updatedSince?: string
  /** Ends the loop. What the consumer was done with is saved. */
  readonly signal?: AbortSignal
  /** poll: one request after the other, each held open until there is something. stream: one connection, server-sent events. */
  readonly mode?: 'poll' | 'stream'
  /** False: ends when there is nothing more for now. Always by pages. */
  readonly follow?: boolean
  /** Changes in a page, at most 200. */
  readonly pageSize?: number
  /** How long the server may hold an answer back, at most 60. */
  readonly waitSeconds?: number
  /** Failed tries in a row before the loop gives up; it never does unless told so. */
  readonly retriesMax?: number
  /** The place in the feed was lost; the loop goes on from another. Told again by a process that takes up the backfill of one that died. */
  readonly onRestart?: (restart: Restart) => void | Promise<void>
  /** After a fresh backfill: everything there is has come since `onRestart`. What you hold and did not come is gone. */
  readonly onRestored?: (restart: Restart) => void | Promise<void>
}

const PAGE_SIZE = 200
const WAIT_SECONDS = 30
/** Changes to remember for the case that a server tells one twice. */
const SEEN_MAX = 10_000

/**
 * The changes one by one. Asking for the next one says that the one before is done: only then does the position move, so
 * that a consumer that dies, wherever it dies, gets everything at least once (A11).
 */
export async function* readChanges(wire: Transport, options: ChangesOptions): AsyncGenerator<Change, void, undefined> {
  const { checkpoint, signal = new AbortController().signal, retriesMax = Infinity, onRestart, onRestored } = options
  let position = await loadPosition(checkpoint)
  let saved = position
  const save = async (): Promise<void> => {
    if (position === saved) return
    await checkpoint?.save(position)
    saved = position
  }
  const seen = new RecentKeys(SEEN_MAX)
  let [failures, relapses] = [0, 0]
  // Another process began a backfill and did not end it: whoever goes on with it has to know.
  if (position.restart !== null) await onRestart?.(position.restart)
  try {
    while (!signal.aborted) {
      try {
        const opening = planRead(position, options.updatedSince)
        let { anchor } = opening
        let isFirst = opening.query['cursor'] === undefined
        for await (const batch of openBatches(wire, opening, options, signal)) {
          failures = 0
          // A cursor of the server was taken by it: what made the loop begin again is over.
          if (!isFirst) relapses = 0
          isFirst = false
          let { changes } = batch
          if (anchor !== null) ({ rest: changes, anchor } = skipThroughAnchor(anchor, changes, batch.upToDate))
          const start = position
          for (const change of changes) {
            const key = changeKey(change)
            if (!seen.has(key)) yield change
            seen.add(key)
            position = advanceWithinPage(start, toLastChange(change))
            if (signal.aborted) return
            if (options.saveEach === 'change') await save()
          }
          if (batch.cursor !== position.cursor || position.midPage) position = { ...position, cursor: batch.cursor, midPage: anchor !== null }
          if (batch.upToDate && position.restart !== null) {
            await onRestored?.(position.restart)
            position = { ...position, restart: null }
            relapses = 0
          }
          await save()
        }
        if (options.follow === false) return
      } catch (error) {
        // What fails because of the abort is no failure; anything else still is.
        if (signal.aborted && (error === signal.reason || error instanceof ClientError)) return
        const way = error instanceof ClientError ? planRestart(position, error, wire.clock.now()) : null
        if (way === null) await wire.waitForRetry(error, ++failures, retriesMax, signal).catch(ignoreWhenAborted(signal))
        else {
          // A restart that leads to another one is tried again, but not at once: that could go on for ever.
          if (relapses > 0 || position.restart !== null) await wire.backOff(error as ClientError, Math.max(1, relapses), retriesMax, signal).catch(ignoreWhenAborted(signal))
          relapses++
          position = way.position
          // What was read of a store that was set back may come again, and counts again.
          if (way.restart.from === 'backfill') seen.clear()
          await onRestart?.(way.restart)
          await save()
        }
      }
    }
  } finally {
    // Also when the consumer leaves the loop: all but the change in hand is done.
    await save()
  }
}

function openBatches(wire: Transport, { query }: ReadPlan, options: ChangesOptions, signal: AbortSignal): AsyncGenerator<ChangeBatch> {
  const { mode = 'poll', follow = true, pageSize = PAGE_SIZE, waitSeconds = WAIT_SECONDS } = options
  const types = options.types?.join(',')
  if (mode === 'stream' && follow) return streamEvents(wire, query, { types, signal })
  return pollPages(wire, query, { types, limit: pageSize, waitSeconds: follow ? Math.max(1, waitSeconds) : 0, signal })
}

async function loadPosition(checkpoint: Checkpoint | undefined): Promise<ReaderPosition> {
  const position = (await checkpoint?.load()) ?? START_POSITION
  const { cursor, last, midPage, restart } = Object(position) as Partial<ReaderPosition>
  const isPosition = (cursor === null || typeof cursor === 'string') && (last === null || (typeof last?.key === 'string' && typeof last.updatedAt === 'string'))
    && typeof midPage === 'boolean' && typeof restart === 'object'
  if (!isPosition) throw new ClientError('CHECKPOINT_INVALID', 'The checkpoint holds something that no client has saved.')
  return position
}

function ignoreWhenAborted(signal: AbortSignal): (error: unknown) => void {
  return (error) => {
    if (!signal.aborted) throw error
  }
}
