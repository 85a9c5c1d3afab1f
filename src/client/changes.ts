import type { ChangeBatch } from './batch.ts'
import { changeKey, type Change } from './change.ts'
import type { Checkpoint } from './checkpoint.ts'
import { ClientError } from './client-error.ts'
import { pollPages } from './poll-pages.ts'
import {
  toLastChange,
  planRead,
  planRestart,
  skipThroughAnchor,
  START_POSITION,
  advanceWithinPage,
  type ReadPlan,
  type ReaderPosition,
  type Restart,
} from './reader-position.ts'
import { RecentKeys } from './recent-keys.ts'
import { streamEvents } from './stream-events.ts'
import type { Transport } from './transport.ts'

/** Selects the changes to follow and where the consumer stores its cursor. */
export interface ChangesOptions<Type extends string = string> {
  /** Databases to read; all if absent, including future ones. */
  readonly types?: readonly Type[]
  /** Without a checkpoint, every loop starts from the beginning. */
  readonly checkpoint?: Checkpoint
  /** Save after each page, or after each change: more writes, fewer redeliveries after a crash. */
  readonly saveEach?: 'page' | 'change'
  /** For a first read without history: start at this time, inclusive. A checkpoint takes precedence. */
  readonly updatedSince?: string
  /** Ends the loop. Processed changes are saved. */
  readonly signal?: AbortSignal
  /** poll: long polling, one request after the other. stream: one connection with server-sent events. */
  readonly mode?: 'poll' | 'stream'
  /** If false, ends when no more changes are available. Always uses pages. */
  readonly follow?: boolean
  /** Changes per page, at most 200. */
  readonly pageSize?: number
  /** Maximum time the server holds a request open; at most 60. */
  readonly waitSeconds?: number
  /** Consecutive failed attempts before the loop throws; unlimited by default. */
  readonly retriesMax?: number
  /**
   * The position in the feed was lost and the loop continues from another. Called again by a process that continues
   * the unfinished backfill of a crashed one.
   */
  readonly onRestart?: (restart: Restart) => void | Promise<void>
  /**
   * Called at the end of a fresh backfill: every existing row was delivered since `onRestart`. Delete the rows you
   * hold that were not.
   */
  readonly onRestored?: (restart: Restart) => void | Promise<void>
}

const PAGE_SIZE = 200
const WAIT_SECONDS = 30
/** Number of change keys remembered to drop duplicates. */
const SEEN_MAX = 10_000

/**
 * Yields changes one by one. Requesting the next change acknowledges the previous one: only then does the position
 * advance, so a consumer that crashes at any point gets every change at least once (A11).
 */
export async function* readChanges(
  transport: Transport,
  options: ChangesOptions,
): AsyncGenerator<Change, void, undefined> {
  const { checkpoint, signal = new AbortController().signal, retriesMax = Infinity, onRestart, onRestored } = options
  let position = await loadPosition(checkpoint)
  let saved = position
  const save = async (): Promise<void> => {
    if (position === saved) return
    await checkpoint?.save(position)
    saved = position
  }
  const seen = new RecentKeys(SEEN_MAX)
  let [failures, restarts] = [0, 0]
  // Another process left a backfill unfinished. The consumer has to know that it continues.
  if (position.restart !== null) await onRestart?.(position.restart)
  try {
    while (!signal.aborted) {
      try {
        const plan = planRead(position, options.updatedSince)
        let { anchor } = plan
        let isFirst = plan.query['cursor'] === undefined
        for await (const batch of openBatches(transport, plan, options, signal)) {
          failures = 0
          // The server accepted its own cursor, so the cause of the restart is gone.
          if (!isFirst) restarts = 0
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
          if (batch.cursor !== position.cursor || position.midPage)
            position = { ...position, cursor: batch.cursor, midPage: anchor !== null }
          if (batch.upToDate && position.restart !== null) {
            await onRestored?.(position.restart)
            position = { ...position, restart: null }
            restarts = 0
          }
          await save()
        }
        if (options.follow === false) return
      } catch (error) {
        // Errors caused by the abort end the loop; other errors are still thrown.
        if (signal.aborted && (error === signal.reason || error instanceof ClientError)) return
        const recovery = error instanceof ClientError ? planRestart(position, error, transport.clock.now()) : null
        if (recovery === null)
          await transport.waitForRetry(error, ++failures, retriesMax, signal).catch(ignoreWhenAborted(signal))
        else {
          // Back off when a restart leads to another one, to avoid an endless loop.
          if (restarts > 0 || position.restart !== null)
            await transport
              .backOff(error as ClientError, Math.max(1, restarts), retriesMax, signal)
              .catch(ignoreWhenAborted(signal))
          restarts++
          position = recovery.position
          // Changes of a restored store may repeat earlier keys and must be delivered again.
          if (recovery.restart.from === 'backfill') seen.clear()
          await onRestart?.(recovery.restart)
          await save()
        }
      }
    }
  } finally {
    // Also runs when the consumer leaves the loop: everything but the current change is processed.
    await save()
  }
}

function openBatches(
  transport: Transport,
  { query }: ReadPlan,
  options: ChangesOptions,
  signal: AbortSignal,
): AsyncGenerator<ChangeBatch> {
  const { mode = 'poll', follow = true, pageSize = PAGE_SIZE, waitSeconds = WAIT_SECONDS } = options
  const types = options.types?.join(',')
  if (mode === 'stream' && follow) return streamEvents(transport, query, { types, signal })
  return pollPages(transport, query, {
    types,
    limit: pageSize,
    waitSeconds: follow ? Math.max(1, waitSeconds) : 0,
    signal,
  })
}

async function loadPosition(checkpoint: Checkpoint | undefined): Promise<ReaderPosition> {
  const position = (await checkpoint?.load()) ?? START_POSITION
  const { cursor, last, midPage, restart } = Object(position) as Partial<ReaderPosition>
  const isPosition =
    (cursor === null || typeof cursor === 'string') &&
    (last === null || (typeof last?.key === 'string' && typeof last.updatedAt === 'string')) &&
    typeof midPage === 'boolean' &&
    typeof restart === 'object'
  if (!isPosition)
    throw new ClientError('CHECKPOINT_INVALID', 'The checkpoint contains a value that no client has saved.')
  return position
}

function ignoreWhenAborted(signal: AbortSignal): (error: unknown) => void {
  return (error) => {
    if (!signal.aborted) throw error
  }
}
