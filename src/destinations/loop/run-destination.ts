import {
  isSyncError,
  SyncError,
  type Destination,
  type DestinationClaim,
  type DestinationEvent,
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
import { toWebhookMessage } from './destination-event.ts'
import { DEFAULT_LIMITS, type BatchLimits } from './read-batches.ts'
import { RejectedBatchSearch, type RejectedBatch } from './rejected-batch.ts'
import { syncDatabase } from './sync-database.ts'

/** A destination of a worker, with its databases. */
export interface DestinationPlan {
  readonly name: string
  readonly destination: Destination
  readonly databases: readonly string[]
  readonly mode: DestinationMode
  /** By database: fields that are stored in child tables. */
  readonly children?: Readonly<Record<string, readonly string[]>>
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
  /** Called once the event is recorded, and its messages are queued for the webhooks that receive it. */
  readonly onEvent?: (event: DestinationEvent) => void
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
  #search: RejectedBatchSearch
  #rejected: RejectedBatch | null = null
  #storeId = ''
  #eventCount = 0
  /** By database: its error in this run, without the key of a record. */
  readonly #errors = new Map<string, SyncError>()

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
    this.#search = new RejectedBatchSearch(options.limits ?? DEFAULT_LIMITS)
    this.#log = createChildLog(options.ports.log, { tenant: options.store.tenant, destination: plan.name })
  }

  async run(): Promise<DestinationResult> {
    const { store, ports, newStoreId } = this.#options
    let failure: SyncError | null = null
    const waiting = this.#findWaiting()
    try {
      const storeId = await store.storeId(newStoreId())
      this.#storeId = storeId
      for (const database of this.#plan.databases) {
        if (waiting.has(database)) continue
        try {
          await this.#syncWithRetries(database, storeId)
        } catch (error) {
          if (this.#signal.aborted) throw error
          const own = this.#recordFailure(database, toDestinationError(error))
          failure ??= own
        }
      }
    } catch (error) {
      failure = this.#signal.aborted ? toDestinationError(this.#signal.reason) : toDestinationError(error)
    } finally {
      await this.#closeSession()
    }
    const endedAt = ports.clock.now()
    const report = this.#report({ endedAt, ...this.#conclude(failure, endedAt, waiting.size > 0) })
    await this.#record(report, this.#findTransition(report, failure))
    return { name: this.#plan.name, report, changes: this.#changes }
  }

  /** Databases whose retry is not due yet. They do not delay the others. */
  #findWaiting(): Set<string> {
    const { ports, isAutomatic = false } = this.#options
    const { retryAt, databases } = this.#status
    if (!isAutomatic || (retryAt ?? 0) <= ports.clock.now()) return new Set()
    return new Set(databases.filter(({ failure }) => failure != null).map(({ database }) => database))
  }

  #conclude(
    failure: SyncError | null,
    now: number,
    hasWaiting: boolean,
  ): Pick<DestinationReport, 'failures' | 'error' | 'retryAt'> {
    const { failures, error, retryAt } = this.#status
    // A run that was stopped says nothing about the destination.
    if (failure !== null && this.#signal.aborted) return { failures, error, retryAt }
    if (failure === null) return hasWaiting ? { failures, error, retryAt } : { failures: 0, error: null, retryAt: null }
    const { code, message } = failure
    const delayMs = cycleDelayMs(failure, failures + 1, this.#options.ports.random)
    return { failures: failures + 1, error: { code, message }, retryAt: now + delayMs }
  }

  /** Compares the end of the run with its beginning, which the claim returned: each state is reported once. */
  #findTransition(report: DestinationReport, failure: SyncError | null): DestinationEvent | null {
    if (failure !== null && this.#signal.aborted) return null
    const { error, databases: before } = this.#status
    const failingBefore = before.filter((one) => one.failure != null).map(({ database }) => database)
    const of = { destination: this.#plan.name, at: report.endedAt ?? 0 }
    if (report.error === null)
      return error === null && failingBefore.length === 0 ? null : { kind: 'destination.recovered', ...of }
    if (failure === null) return null
    // Without an error of the last run, it was stopped before it reported its failures.
    const reported = new Set(error === null ? [] : failingBefore)
    const failing = report.databases.filter((one) => one.failure != null && !reported.has(one.database))
    if (failing.length === 0 && error !== null) return null
    const first = this.#errors.get(failing[0]?.database ?? '') ?? failure
    return {
      kind: 'destination.failing',
      ...of,
      databases: failing.map(({ database }) => database),
      code: first.code,
      message: first.message,
      isTemporary: isTemporary(first),
      retryAt: report.retryAt,
    }
  }

  /** A status that another process has overwritten by now is not reported. */
  async #record(report: DestinationReport, event: DestinationEvent | null): Promise<void> {
    const { store, onEvent } = this.#options
    const id = `msg_${this.#storeId}_${this.#plan.name}_${this.claim.epoch}_${++this.#eventCount}`
    const messages = event === null ? [] : [toWebhookMessage(event, id)]
    if (!(await store.recordDestination(this.claim, { ...report, messages })) || event === null) return
    if (event.kind === 'destination.recovered') this.#log.info('destination recovered')
    onEvent?.(event)
  }

  /** After an error the position is read again: it shows whether the batch was applied. */
  async #syncWithRetries(database: string, storeId: string): Promise<void> {
    const { ports, attemptsMax = ATTEMPTS_MAX } = this.#options
    this.#search = new RejectedBatchSearch(this.#options.limits ?? DEFAULT_LIMITS)
    for (let attempt = 1, applied = this.#changes; ; attempt++) {
      this.#rejected = null
      try {
        return await this.#sync(database, storeId)
      } catch (error) {
        await this.#closeSession()
        this.#signal.throwIfAborted()
        const failure = await this.#checkClaim(toDestinationError(error))
        if (this.#changes > applied) [attempt, applied] = [1, this.#changes]
        if (this.#search.narrow(failure, this.#rejected)) {
          const { code, message: reason } = failure
          this.#log.warn('a batch was rejected and is tried in parts', { database, code, reason })
          attempt--
          continue
        }
        // A full disk needs more time than the retries of a batch.
        const isRetried =
          (isRetryable(failure) && failure.code !== 'DESTINATION_FULL') || failure.code === 'COMMIT_UNKNOWN'
        if (!isRetried || this.#isClaimLost || attempt >= attemptsMax) throw failure
        this.#log.warn('destination retries', { database, attempt, code: failure.code, error: failure.message })
        await ports.clock.sleep(pageDelayMs(failure, attempt, ports.random), this.#signal)
      }
    }
  }

  /** The position stays before the batch, so the next run tries it again. */
  #recordFailure(database: string, error: SyncError): SyncError {
    const { ports } = this.#options
    const batch = this.#rejected
    const isWaiting = isTemporary(error)
    this.#errors.set(database, error)
    const failure = batch === null || isWaiting ? error : nameBatch(error, database, batch)
    const { code, message } = failure
    this.#update(database, {
      state: isWaiting ? 'waiting' : 'failed',
      failure: {
        code,
        message,
        at: ports.clock.now(),
        firstSequence: batch?.firstSequence ?? null,
        lastSequence: batch?.lastSequence ?? null,
        key: isWaiting ? null : (batch?.key ?? null),
      },
    })
    ports.meter?.record('destinationFailures', 1, { 'tidemark.destination': this.#plan.name, 'error.type': code })
    // Invariant 10: the key of a record is not logged. `tidemark destinations list` shows it.
    const { firstSequence, lastSequence } = batch ?? {}
    this.#log.error('destination failed', { database, code, error: error.message, firstSequence, lastSequence })
    return failure
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
    const { store, ports } = this.#options
    const { destination, mode, children = {} } = this.#plan
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
      children: (Object.hasOwn(children, database) ? children[database] : undefined) ?? [],
      supportsValues: destination.supports.values === true,
      limits: () => this.#search.limits,
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
        this.#update(database, { state: 'loading', loadReason: reason, failure: null })
        await this.#record(this.#report({}), {
          kind: 'destination.loading',
          destination: this.#plan.name,
          at: ports.clock.now(),
          database,
          reason,
        })
      },
      onApplied: async ({ token, state, changes }) => {
        const now = ports.clock.now()
        const labels = { 'tidemark.destination': this.#plan.name }
        ports.meter?.record('destinationBatchDuration', Math.max(0, now - batchStartedAt) / 1_000, labels)
        ports.meter?.record('destinationChanges', changes, labels)
        batchStartedAt = now
        this.#changes += changes
        this.#search.onApplied(changes)
        const before = this.#progress.get(database)
        this.#update(database, {
          state,
          failure: null,
          sequence: token.sequence,
          committedAt: token.committedAt,
          changes: (before?.changes ?? 0) + changes,
        })
        if (!isRequested || this.#resynced.has(database)) return this.#recordSometimes(now)
        // Only now: a load that fails before its first batch is still requested.
        this.#resynced.add(database)
        await store.recordDestination(this.claim, this.#report({}))
      },
      onRejected: (batch) => (this.#rejected = batch),
      onRead: (readSequence) => this.#update(database, { state: 'following', failure: null, readSequence }),
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

/** Errors that end by themselves. */
function isTemporary(error: SyncError): boolean {
  return isRetryable(error) || error.code === 'COMMIT_UNKNOWN'
}

/** Errors of a destination have a code; anything else is a defect of it. Invariant 10: secrets are masked. */
function toDestinationError(thrown: unknown): SyncError {
  const message = maskSecrets(thrown instanceof Error ? thrown.message : String(thrown))
  if (isSyncError(thrown)) {
    const { code, retryAfterMs } = thrown
    return new SyncError(code, message, { cause: thrown, ...(retryAfterMs !== undefined && { retryAfterMs }) })
  }
  return new SyncError('DESTINATION_FAILED', message, { cause: thrown })
}

function nameBatch(error: SyncError, database: string, batch: RejectedBatch): SyncError {
  const { firstSequence: first, lastSequence: last, key } = batch
  const record = key === null ? '' : `, key ${JSON.stringify(key)}`
  const sequences = first === last ? `sequence ${first}` : `sequences ${first} to ${last}`
  return new SyncError(error.code, `${error.message} Rejected: database ${database}, ${sequences}${record}.`, {
    cause: error,
  })
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
