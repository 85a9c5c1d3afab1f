import {
  isSyncError,
  SyncError,
  type Destination,
  type DestinationClaim,
  type DestinationMode,
  type DestinationProgress,
  type DestinationReport,
  type DestinationSession,
  type DestinationStatus,
  type Log,
  type Ports,
  type Store,
} from '../../contract/index.ts'
import { cycleDelayMs, isRetryable, pageDelayMs } from '../../engine/retry.ts'
import { maskSecrets } from '../../redaction/known-secrets.ts'
import { createChildLog } from '../../telemetry/child-log.ts'
import { DEFAULT_LIMITS, type BatchLimits } from './read-batches.ts'
import { syncDatabase } from './sync-database.ts'

/** A destination of a worker, with its databases. */
export interface DestinationPlan {
  readonly name: string
  readonly destination: Destination
  readonly databases: readonly string[]
  readonly mode: DestinationMode
}

export interface RunDestinationOptions {
  readonly store: Store
  readonly ports: Ports
  /** Unique per process. */
  readonly holder: string
  readonly isHolderGone?: (holder: string) => boolean
  readonly signal: AbortSignal
  /** A candidate for the identity of a store that has none. */
  readonly newStoreId: () => string
  readonly claimTtlMs?: number
  readonly limits?: BatchLimits
  /** A schedule made the request. */
  readonly isAutomatic?: boolean
  readonly attemptsMax?: number
}

export interface DestinationResult {
  readonly name: string
  /** Null if the destination did not run: it is paused, or another process holds it. */
  readonly report: DestinationReport | null
  /** Changes applied in this run. */
  readonly changes: number
}

const ATTEMPTS_MAX = 5

/** Brings every database of a destination up to date, once, under a claim that fences off other processes. */
export async function runDestination(
  plan: DestinationPlan,
  options: RunDestinationOptions,
): Promise<DestinationResult> {
  const { store, ports, holder, isHolderGone, claimTtlMs = 60_000 } = options
  const { clock } = ports
  const held = (await store.destinations()).find(({ name }) => name === plan.name)?.heldBy ?? null
  const claim = await store.claimDestination(plan.name, {
    holder,
    ttlMs: claimTtlMs,
    at: clock.now(),
    ...(held !== null && (held === holder || isHolderGone?.(held) === true) && { evictHolder: held }),
    ...(options.isAutomatic === true && { automatic: true }),
  })
  if (claim === null) return { name: plan.name, report: null, changes: 0 }
  const aborting = new AbortController()
  const onAbort = (): void => aborting.abort(options.signal.reason)
  options.signal.addEventListener('abort', onAbort, { once: true })
  if (options.signal.aborted) onAbort()
  const run = new DestinationRun(plan, { ...options, claimTtlMs }, claim, aborting.signal)
  const heartbeat = startHeartbeat(store, ports, run, claimTtlMs, aborting)
  try {
    return await run.run()
  } finally {
    heartbeat.abort(new Error('the run is over'))
    options.signal.removeEventListener('abort', onAbort)
    await store.releaseDestination(run.claim)
  }
}

class DestinationRun {
  claim: DestinationClaim
  readonly #plan: DestinationPlan
  readonly #options: RunDestinationOptions & { readonly claimTtlMs: number }
  readonly #signal: AbortSignal
  readonly #status: DestinationStatus
  readonly #log: Log
  readonly #progress = new Map<string, DestinationProgress>()
  readonly #resynced = new Set<string>()
  readonly #startedAt: number
  #session: DestinationSession | null = null
  #changes = 0
  #recordedAt = 0
  #isClaimLost = false

  constructor(
    plan: DestinationPlan,
    options: RunDestinationOptions & { readonly claimTtlMs: number },
    claim: DestinationClaim & { readonly status: DestinationStatus },
    signal: AbortSignal,
  ) {
    this.#plan = plan
    this.#options = options
    this.#signal = signal
    this.claim = claim
    this.#status = claim.status
    for (const progress of claim.status.databases) this.#progress.set(progress.database, progress)
    this.#startedAt = options.ports.clock.now()
    this.#log = createChildLog(options.ports.log, { tenant: options.store.tenant, destination: plan.name })
  }

  async run(): Promise<DestinationResult> {
    const { store, ports, newStoreId } = this.#options
    let failure: SyncError | null = null
    try {
      const storeId = await store.storeId(newStoreId())
      for (const database of this.#plan.databases) {
        try {
          await this.#syncWithRetries(database, storeId)
        } catch (error) {
          if (this.#signal.aborted) throw error
          failure ??= toDestinationError(error)
          this.#update(database, { state: 'failed' })
          this.#log.error('destination failed', { database, code: failure.code, error: failure.message })
        }
      }
    } catch (error) {
      failure = this.#signal.aborted ? toDestinationError(this.#signal.reason) : toDestinationError(error)
    } finally {
      await this.#closeSession()
    }
    const isStopped = this.#signal.aborted
    const failures = failure === null ? 0 : this.#status.failures + (isStopped ? 0 : 1)
    const report = this.#report({
      endedAt: ports.clock.now(),
      failures,
      error: failure === null || isStopped ? null : { code: failure.code, message: failure.message },
      retryAt: failure === null || isStopped ? null : ports.clock.now() + cycleDelayMs(failure, failures, ports.random),
    })
    await store.recordDestination(this.claim, report)
    return { name: this.#plan.name, report, changes: this.#changes }
  }

  /** After an error the position is read again: it shows whether the batch was applied. */
  async #syncWithRetries(database: string, storeId: string): Promise<void> {
    const { ports, attemptsMax = ATTEMPTS_MAX } = this.#options
    for (let attempt = 1, applied = this.#changes; ; attempt++) {
      try {
        return await this.#sync(database, storeId)
      } catch (error) {
        await this.#closeSession()
        this.#signal.throwIfAborted()
        const failure = await this.#checkClaim(toDestinationError(error))
        if (this.#changes > applied) [attempt, applied] = [1, this.#changes]
        const isRetried = isRetryable(failure) || failure.code === 'COMMIT_UNKNOWN'
        if (!isRetried || this.#isClaimLost || attempt >= attemptsMax) throw failure
        this.#log.warn('destination retries', { database, attempt, code: failure.code, error: failure.message })
        await ports.clock.sleep(pageDelayMs(failure, attempt, ports.random), this.#signal)
      }
    }
  }

  /** A process that was fenced off reports that, and not the newer tokens of the other process. */
  async #checkClaim(failure: SyncError): Promise<SyncError> {
    if (failure.code !== 'DESTINATION_AHEAD' && failure.code !== 'LEASE_LOST') return failure
    const { store, ports, claimTtlMs } = this.#options
    if (await store.renewDestination(this.claim, { ttlMs: claimTtlMs, at: ports.clock.now() })) return failure
    this.#isClaimLost = true
    return new SyncError('LEASE_LOST', `${this.#plan.name}: another process took over.`, { cause: failure })
  }

  async #sync(database: string, storeId: string): Promise<void> {
    const { store, ports, limits = DEFAULT_LIMITS } = this.#options
    const { destination, mode } = this.#plan
    this.#session ??= await destination.open({ tenant: store.tenant, signal: this.#signal })
    const session = this.#session
    const isRequested = this.#status.resync.includes(database) && !this.#resynced.has(database)
    if (isRequested) await this.#raiseEpoch(await session.position(database))
    let batchStartedAt = ports.clock.now()
    await syncDatabase({
      store,
      session,
      storeId,
      epoch: this.claim.epoch,
      database,
      mode,
      limits,
      recorded: this.#progress.get(database),
      isResyncRequested: isRequested,
      signal: this.#signal,
      onStart: (start) => {
        if (start.kind === 'follow' && start.isRestored)
          this.#log.warn('the destination went back to an earlier state and is replayed', {
            database,
            sequence: start.token.sequence,
          })
      },
      onLoad: async (reason) => {
        this.#log[reason === 'new' ? 'info' : 'warn']('database is loaded from the tables', { database, reason })
        if (isRequested) this.#resynced.add(database)
        this.#update(database, { state: 'loading', loadReason: reason })
        await store.recordDestination(this.claim, this.#report({}))
      },
      onApplied: async ({ token, state, changes }) => {
        const now = ports.clock.now()
        const labels = { 'tidemark.destination': this.#plan.name }
        ports.meter?.record('destinationBatchDuration', Math.max(0, now - batchStartedAt) / 1_000, labels)
        ports.meter?.record('destinationChanges', changes, labels)
        batchStartedAt = now
        this.#changes += changes
        const before = this.#progress.get(database)
        this.#update(database, {
          state,
          sequence: token.sequence,
          committedAt: token.committedAt,
          changes: (before?.changes ?? 0) + changes,
        })
        await this.#recordSometimes(now)
      },
      onRead: (readSequence) => this.#update(database, { state: 'following', readSequence }),
    })
  }

  /** A load that an operator requested replaces tokens of a store with higher epochs. */
  async #raiseEpoch(position: Awaited<ReturnType<DestinationSession['position']>>): Promise<void> {
    const { store, ports, holder, claimTtlMs } = this.#options
    const epochMin = Math.max(position.live?.epoch ?? 0, position.loading?.epoch ?? 0)
    if (epochMin <= this.claim.epoch) return
    const request = { holder, evictHolder: holder, ttlMs: claimTtlMs, at: ports.clock.now(), epochMin }
    const claim = await store.claimDestination(this.#plan.name, request)
    if (claim === null) throw new SyncError('LEASE_LOST', `${this.#plan.name}: another process took over.`)
    this.claim = { name: claim.name, epoch: claim.epoch }
  }

  #update(database: string, change: Partial<DestinationProgress>): void {
    const before = this.#progress.get(database) ?? {
      database,
      state: 'loading',
      sequence: 0,
      readSequence: 0,
      committedAt: 0,
      changes: 0,
      loadReason: null,
    }
    this.#progress.set(database, { ...before, ...change })
  }

  /** Not after every batch: the status must not slow the copy down. */
  async #recordSometimes(now: number): Promise<void> {
    if (now - this.#recordedAt < 1_000) return
    this.#recordedAt = now
    await this.#options.store.recordDestination(this.claim, this.#report({}))
  }

  #report(result: Partial<DestinationReport>): DestinationReport {
    const { destination, mode, databases } = this.#plan
    return {
      kind: destination.kind,
      location: destination.location,
      mode,
      startedAt: this.#startedAt,
      endedAt: null,
      failures: this.#status.failures,
      retryAt: null,
      error: null,
      databases: databases.flatMap((database) => this.#progress.get(database) ?? []),
      resynced: [...this.#resynced],
      ...result,
    }
  }

  async #closeSession(): Promise<void> {
    const session = this.#session
    this.#session = null
    await session?.close().catch(() => {})
  }
}

/** Errors of a destination have a code; anything else is a defect of it. Invariant 10: secrets are masked. */
function toDestinationError(thrown: unknown): SyncError {
  const message = maskSecrets(thrown instanceof Error ? thrown.message : String(thrown))
  if (isSyncError(thrown)) return new SyncError(thrown.code, message, { cause: thrown })
  return new SyncError('DESTINATION_FAILED', message, { cause: thrown })
}

/** Renews the claim three times per TTL, and aborts the run if it is lost. */
function startHeartbeat(
  store: Store,
  { clock }: Ports,
  run: { readonly claim: DestinationClaim },
  ttlMs: number,
  aborting: AbortController,
): AbortController {
  const ending = new AbortController()
  const renew = async (): Promise<void> => {
    for (let renewedAt = clock.now(); ;) {
      await clock.sleep(ttlMs / 3, ending.signal)
      const at = clock.now()
      const isRenewed = await store.renewDestination(run.claim, { ttlMs, at }).catch(() => null)
      if (isRenewed === true) renewedAt = at
      if (isRenewed === false || clock.now() - renewedAt >= ttlMs)
        return aborting.abort(
          new SyncError('LEASE_LOST', `${run.claim.name}: the destination was paused or taken over.`),
        )
    }
  }
  renew().catch(() => {})
  return ending
}
