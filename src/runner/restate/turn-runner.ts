import { EMPTY_CHECKPOINT, type SyncStatusRow } from '../../contract/index.ts'
import { classifyError } from '../../engine/classify-error.ts'
import { runCycle } from '../../engine/cycle.ts'
import type { CycleResult, CycleProgress } from '../../engine/cycle-options.ts'
import type { SyncPlan } from '../../engine/sync-plan.ts'
import { LinkedAbortController } from '../../values/linked-abort-controller.ts'
import { fingerprintCheckpoint, RECENT_CYCLES, type DueReason } from '../due.ts'
import { Job } from '../job.ts'
import { createOncePerSlotStore } from '../once-per-slot-store.ts'
import type { RunnerEvent, RunnerOptions } from '../runner-options.ts'
import { CONTINUOUS_PAUSE_MS } from '../status.ts'
import type { StoreClock } from '../store-clock.ts'
import { backoffMs } from '../sync-watcher.ts'
import { ConcurrencySlots } from './concurrency-slots.ts'

export interface TurnRunnerOptions extends Pick<
  RunnerOptions,
  'ports' | 'fetch' | 'secrets' | 'holder' | 'isDead' | 'pauseMs'
> {
  readonly clock: StoreClock
  readonly concurrency: number
  readonly pollMs: number
  /** Maximum time a cycle runs before it yields to other syncs. */
  readonly sliceMs: number
  readonly onEvent: (event: RunnerEvent) => void
}

/** State that an object carries from one turn to the next. */
export interface TurnMemory {
  /** Time at which the schedule was first seen; null at first. */
  readonly since: number | null
  /**
   * tries: attempts of one page that ended in a wait. storeFailures: consecutive turns in which the store was
   * unreachable.
   */
  readonly tries: number
  readonly storeFailures: number
}

export interface TurnResult extends TurnMemory {
  /** Null if only a signal can make the sync due. */
  readonly next: NextTurn | null
}

export interface NextTurn {
  readonly inMs: number
  /** The same as a timestamp; for a scheduled slot, the time of the slot. */
  readonly at: number
  /** The source requested this wait, so a wake-up does not shorten it. */
  readonly isThrottled: boolean
}

/** Time a turn waits for a slot before it ends and is retried, which frees the connection. */
export const QUEUE_WAIT_MS = 20_000
/** For a longer wait the cycle is suspended and continues by a Restate timer. */
export const WAIT_MAX_MS = 5_000
const BUSY_RETRY_MS = 1_000
const LEASE_RECHECK_MS = 30_000

/**
 * Runs one turn of a sync: checks in the registry whether it is due, and if so runs its cycle for one slice. Results
 * are in the registry, and the return value only schedules the next turn, so running a turn twice is harmless.
 */
export class TurnRunner {
  readonly #options: TurnRunnerOptions
  readonly #clock: StoreClock
  readonly #slots: ConcurrencySlots
  readonly #stopping = new AbortController()
  readonly #running = new Set<Promise<unknown>>()
  readonly #startedAt: number
  #cycles = 0

  constructor(options: TurnRunnerOptions) {
    this.#options = options
    this.#clock = options.clock
    this.#startedAt = options.clock.now()
    this.#slots = new ConcurrencySlots(options.concurrency, options.clock)
  }

  /** An abort ends the turn between two pages. */
  async runTurn(job: Job, memory: TurnMemory, signal: AbortSignal): Promise<TurnResult> {
    this.#stopping.signal.throwIfAborted()
    const stopping = new LinkedAbortController(this.#stopping.signal)
    const turn = this.#executeTurn(job, memory, AbortSignal.any([signal, stopping.signal]))
    this.#running.add(turn)
    try {
      return await turn
    } finally {
      this.#running.delete(turn)
      stopping.unlink()
    }
  }

  /** Resolves when the last turn has ended. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the runner is stopping'))
    await Promise.allSettled(this.#running)
  }

  async #executeTurn(
    { store, sync, ref, connection }: Job,
    { since, tries, storeFailures }: TurnMemory,
    signal: AbortSignal,
  ): Promise<TurnResult> {
    const toResult = (next: NextTurn | null, memory: Partial<TurnMemory> = {}): TurnResult => ({
      next,
      since: since ?? this.#clock.now(),
      tries: 0,
      storeFailures: 0,
      ...memory,
    })
    try {
      const own = new Job(store, sync, this.#options.ports.random.next())
      own.connection = connection
      const job = await this.#refresh(own, since)
      if (!this.#isReady(job)) return toResult(this.#computeNext(job))
      if (!(await this.#slots.acquire(job, QUEUE_WAIT_MS, signal)))
        return toResult(this.#after(signal.aborted ? 0 : BUSY_RETRY_MS), { tries })
      try {
        const slice = await this.#runSlice(job, tries, signal)
        if (slice.stopReason === 'held') return toResult(this.#after(this.#options.pollMs))
        // If the cycle ended for another reason despite the wait, the registry has the result.
        if (slice.stopReason === 'cancelled' && slice.waitMs !== null)
          return toResult({ ...this.#after(slice.waitMs), isThrottled: true }, { tries: slice.tries })
        return toResult(this.#computeNext(await this.#refresh(job, since)))
      } finally {
        this.#slots.release(job)
      }
    } catch (thrown) {
      const { code, message } = classifyError(thrown)
      const waitMs = backoffMs(this.#options.pollMs, storeFailures)
      this.#options.ports.log.warn('the store is unreachable', { ...ref, code, waitMs, reason: message })
      this.#options.onEvent({ kind: 'store', ...ref, code, message, waitMs })
      return toResult(this.#after(waitMs), { tries, storeFailures: storeFailures + 1 })
    }
  }

  async #refresh(job: Job, since: number | null): Promise<Job> {
    const { worker, sync } = job.ref
    // The due time of a sync with parents depends on their checkpoints too.
    const query = job.sync.after === undefined ? { ref: { worker, sync } } : {}
    const { syncs } = await this.#clock.synchronize((at) =>
      job.store.listSyncStatus({ at, recent: RECENT_CYCLES, ...query }),
    )
    const find = (name: string): SyncStatusRow | undefined =>
      syncs.find((status) => status.worker === worker && status.sync === name)
    job.findCheckpoint = (name) => find(name)?.checkpoint
    job.facts = find(sync) ?? { checkpoint: EMPTY_CHECKPOINT, recent: [] }
    const now = this.#clock.now()
    job.updateDue({ now, since: since ?? now, pauseMs: this.#options.pauseMs ?? CONTINUOUS_PAUSE_MS })
    // A backlog from downtime gets no head start.
    job.dueSince = Math.max(job.dueSince, this.#startedAt)
    return job
  }

  #isReady(job: Job): boolean {
    return job.readyAt(this.#isDead(job)) <= this.#clock.now()
  }

  #computeNext(job: Job): NextTurn | null {
    if (job.due === null || job.due.kind === 'never') return null
    const now = this.#clock.now()
    const { at } = job.due
    // Another holder may release its lease early.
    const heldMs = Math.min(job.heldUntil(this.#isDead(job)) - now, LEASE_RECHECK_MS)
    return heldMs > 0 && at <= now ? this.#after(heldMs) : { inMs: Math.max(0, at - now), at, isThrottled: false }
  }

  #after(inMs: number): NextTurn {
    return { inMs, at: this.#clock.now() + inMs, isThrottled: false }
  }

  async #runSlice(job: Job, tried: number, signal: AbortSignal): Promise<SliceResult> {
    const { ports, fetch, secrets, sliceMs } = this.#options
    const { plan } = job.sync
    const why = job.dueReason
    const suspending = new AbortController()
    const slice = { waitMs: null as number | null, tries: tried }
    let slotTaken = false
    const onProgress = (progress: CycleProgress): void => {
      this.#reportProgress(job, why, progress)
      if (progress.kind === 'landed') slice.tries = tried = 0
      if (progress.kind !== 'waiting') return
      slice.tries++
      if (progress.ms <= WAIT_MAX_MS) return
      slice.waitMs = progress.ms
      suspending.abort(new Error('the cycle is suspended for a long wait'))
    }
    const result = await runCycle(
      limitToSlice(plan, sliceMs, () => tried),
      {
        store: createOncePerSlotStore(
          job.store,
          job.ref,
          fingerprintCheckpoint(job.checkpoint),
          () => (slotTaken = true),
        ),
        ports: { ...ports, clock: this.#clock },
        fetch,
        secrets: typeof secrets === 'function' ? secrets(job.tenant) : secrets,
        holder: `${holderPrefix(plan)}${this.#options.holder}#${++this.#cycles}`,
        trigger: why === 'trigger' ? 'trigger' : 'schedule',
        signal: AbortSignal.any([signal, suspending.signal]),
        isHolderGone: this.#isDead(job),
        onProgress,
      },
    )
    if (result.stopReason === 'held') {
      if (!slotTaken) await this.#reportHeld(job)
    } else if (result.stopReason !== 'paused' || result.cycle !== null)
      this.#options.onEvent({ kind: 'ended', ...job.ref, result })
    return { ...slice, stopReason: result.stopReason }
  }

  /** Reads the holder from the registry; null if the lease was released meanwhile. */
  async #reportHeld(job: Job): Promise<void> {
    const { heldBy, heldUntil } = (await this.#refresh(job, null)).checkpoint
    this.#options.onEvent({ kind: 'held', ...job.ref, by: heldBy, until: heldUntil })
  }

  #reportProgress(job: Job, why: DueReason, progress: CycleProgress): void {
    if (progress.kind !== 'begun') return this.#options.onEvent({ ...job.ref, ...progress })
    const { cycle, resumed, page } = progress
    this.#options.onEvent({ kind: 'started', ...job.ref, why, cycle, resumed, page })
  }

  /**
   * Restate runs one turn per object at a time, so a lease under the object's own name belongs to an earlier turn that
   * Restate gave up. That turn may still run; fencing by the lease epoch rejects its commits.
   */
  #isDead({ sync: { plan } }: Job): (holder: string) => boolean {
    return (holder) => holder.startsWith(holderPrefix(plan)) || this.#options.isDead?.(holder) === true
  }
}

interface SliceResult {
  readonly stopReason: CycleResult['stopReason']
  /** The wait requested by the source, if it ended the slice. */
  readonly waitMs: number | null
  readonly tries: number
}

/** Includes the sync: a backfill briefly takes its delta's lease, and neither may evict the other. */
function holderPrefix({ sync }: SyncPlan): string {
  return `restate/${sync}:`
}

/**
 * The same plan with the slice as its time budget, so that no page is discarded. Attempts made before the last slice
 * count towards `retriesMax`.
 */
function limitToSlice(plan: SyncPlan, sliceMs: number, tried: () => number): SyncPlan {
  const { minutesMax, retriesMax } = plan.limits
  const minutes = sliceMs / 60_000
  return {
    ...plan,
    limits: {
      ...plan.limits,
      minutesMax: minutesMax > 0 ? Math.min(minutesMax, minutes) : minutes,
      get retriesMax() {
        return Math.max(0, retriesMax - tried())
      },
    },
  }
}
