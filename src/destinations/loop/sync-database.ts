import {
  SyncError,
  type DestinationBatch,
  type DestinationChange,
  type DestinationMode,
  type DestinationProgress,
  type DestinationSession,
  type DestinationToken,
  type Store,
} from '../../contract/index.ts'
import { decideStart, type LoadReason, type Start } from './decide-start.ts'
import { readFeed, readRows, type BatchLimits } from './read-batches.ts'
import { describeBatch, type RejectedBatch } from './rejected-batch.ts'
import { SchemaReader } from './schema-reader.ts'

export interface SyncDatabaseOptions {
  readonly store: Store
  readonly session: DestinationSession
  readonly storeId: string
  readonly epoch: number
  readonly database: string
  readonly mode: DestinationMode
  readonly children: readonly string[]
  /** See DestinationSupport.values. */
  readonly supportsValues: boolean
  /** Read before every batch. */
  readonly limits: () => BatchLimits
  readonly recorded: DestinationProgress | undefined
  readonly isResyncRequested: boolean
  readonly signal: AbortSignal
  onStart(start: Start): void
  onLoad(reason: LoadReason): Promise<void>
  /** After every batch. */
  onApplied(progress: { token: DestinationToken; state: 'loading' | 'following'; changes: number }): Promise<void>
  /** After a batch that the destination did not apply. The error follows. */
  onRejected(batch: RejectedBatch): void
  /** The log was read up to this sequence. */
  onRead(sequence: number): void
}

/** A destination behind by a quiet hour gets an empty batch, so that its token does not fall behind the kept history. */
const QUIET_MS = 3_600_000

/**
 * Brings one database of a destination up to date with the log, once.
 *
 *   position ─ decideStart ─┬─ follow ──────────────────────────────► live
 *                           ├─ resume ─┐
 *                           └─ load ───┴─ rows ─ feed until the head ─ swap ─► live
 *
 * A load reads the current rows up to the head at its start, then the feed from there, so that nothing is missing
 * between the two and nothing is applied twice. The live rows are replaced only when the load has caught up.
 */
export async function syncDatabase(options: SyncDatabaseOptions): Promise<void> {
  const { store, session, database, storeId, epoch, signal } = options
  const position = await session.position(database)
  const head = await store.feed({ after: 0, limit: 0, scanMax: 0 })
  const start = await decideStart(
    position,
    {
      storeId,
      epoch,
      headSequence: head.headSequence,
      floor: head.floor,
      committedAt: async (sequence) => (await store.feed({ after: sequence, limit: 0, scanMax: 0 })).afterCommittedAt,
    },
    options.recorded,
    options.isResyncRequested,
  )
  options.onStart(start)
  const applier = new Applier(options)
  await session.prepare(await applier.schemas.schemaFor([]))
  if (start.kind === 'follow') {
    if (!(await follow(options, applier, start.token, 'live'))) {
      // The log was compacted in the meantime.
      await syncDatabase({ ...options, isResyncRequested: false })
    }
    return
  }
  let token: DestinationToken
  if (start.kind === 'load') {
    await options.onLoad(start.reason)
    // A complete log has every version. Without it, a history begins with the current rows.
    const isReplayed = options.mode !== 'mirror' && head.floor === 0
    token = {
      storeId,
      epoch,
      sequence: isReplayed ? 0 : head.headSequence,
      committedAt: isReplayed ? 0 : head.headCommittedAt,
      after: isReplayed ? null : '',
    }
    await applier.apply([], { previous: start.replaces, next: token }, { target: 'loading', isFirst: true })
  } else token = start.token
  token = await load(options, applier, token)
  signal.throwIfAborted()
  if (!(await follow(options, applier, token, 'loading'))) await syncDatabase({ ...options, isResyncRequested: false })
}

/** Loads the rows above the key of the token. The next part is read while one is applied. */
async function load(
  { store, database, mode, children, supportsValues, limits, epoch, signal }: SyncDatabaseOptions,
  applier: Applier,
  from: DestinationToken,
): Promise<DestinationToken> {
  let token = from
  if (token.after === null) return token
  const byValues = supportsValues && mode === 'mirror' && children.length === 0
  const read = (after: string) => readRows(store, { database, byValues }, token.sequence, after, limits())
  let next = read(token.after)
  for (;;) {
    const part = await next
    if (part.after !== null) next = prefetch(read(part.after))
    signal.throwIfAborted()
    const advanced: DestinationToken = { ...token, epoch, after: part.after }
    await applier.apply(part.changes, { previous: token, next: advanced }, { target: 'loading', members: part.members })
    token = advanced
    if (part.after === null) return token
  }
}

/** Applies the feed until its head. False if the log no longer has the changes since the token. */
async function follow(
  { store, database, mode, limits, epoch, signal, onRead }: SyncDatabaseOptions,
  applier: Applier,
  from: DestinationToken,
  target: 'live' | 'loading',
): Promise<boolean> {
  let token = from
  const read = (after: number) => readFeed(store, { database, mode }, after, limits())
  let next = read(token.sequence)
  for (;;) {
    const part = await next
    if (part.floor > token.sequence) return false
    const isLast = part.sequence >= part.headSequence
    if (!isLast) next = prefetch(read(part.sequence))
    signal.throwIfAborted()
    const isQuiet = part.changes.length === 0 && part.committedAt - token.committedAt < QUIET_MS
    if (target === 'loading' || !isQuiet) {
      const advanced: DestinationToken = {
        ...token,
        epoch,
        sequence: part.sequence,
        // A sequence that was not advanced keeps the time of its token.
        committedAt: part.sequence === token.sequence ? token.committedAt : part.committedAt,
      }
      await applier.apply(
        part.changes,
        { previous: token, next: advanced },
        { target, isLast: isLast && target === 'loading' },
      )
      token = advanced
    }
    onRead(part.sequence)
    if (isLast) return true
  }
}

class Applier {
  readonly schemas: SchemaReader
  readonly #options: SyncDatabaseOptions

  constructor(options: SyncDatabaseOptions) {
    this.#options = options
    this.schemas = new SchemaReader(options.store, options)
  }

  async apply(
    changes: readonly DestinationChange[],
    step: { previous: DestinationToken | null; next: DestinationToken },
    {
      target,
      isFirst = false,
      isLast = false,
      members = [],
    }: Partial<DestinationBatch> & Pick<DestinationBatch, 'target'>,
  ): Promise<void> {
    const { session, database, onApplied, onRejected } = this.#options
    const schema = await this.schemas.schemaFor(changes, members)
    let outcome: 'applied' | 'refused'
    try {
      outcome = await session.apply({ schema, target, isFirst, isLast, changes, members }, step)
    } catch (error) {
      onRejected(describeBatch(changes, step))
      throw error
    }
    if (outcome === 'refused')
      throw new SyncError('LEASE_LOST', `${database}: another process wrote to the destination in the meantime.`)
    const state = target === 'live' || isLast ? 'following' : 'loading'
    await onApplied({ token: step.next, state, changes: changes.length })
  }
}

/** An error of a read that is never awaited must not end the process; awaiting it still throws. */
function prefetch<T>(reading: Promise<T>): Promise<T> {
  reading.catch(() => {})
  return reading
}
