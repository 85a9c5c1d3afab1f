import { EMPTY_CHECKPOINT } from '../../contract/index.ts'
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

export interface TurnRunnerOptions extends Pick<RunnerOptions, 'ports' | 'fetch' | 'secrets' | 'holder' | 'isDead' | 'pauseMs'> {
  readonly clock: StoreClock
  readonly concurrency: number
  readonly pollMs: number
  /** How long a cycle runs before it lets others have their turn. */
  readonly sliceMs: number
  readonly onEvent: (event: RunnerEvent) => void
}

/** What an object remembers from one turn to the next. */
export interface TurnMemory {
  /** Since when the schedule has been known; null at first. */
  readonly since: number | null
  /** Tries of one page that ended in a wait, and turns in a row in which the store could not be reached. */
  readonly tries: number
  readonly storeFailures: number
}

export interface TurnResult extends TurnMemory {
  /** Null when only news can make it due. */
  readonly next: NextTurn | null
}

export interface NextTurn {
  readonly inMs: number
  /** The same as a time: of the slot, where it is one. */
  readonly at: number
  /** The source asked for this wait: not even news end it. */
  readonly isThrottled: boolean
}

/** How long a turn stands in line before it lets go of the connection and comes again. */
export const QUEUE_WAIT_MS = 20_000
/** A longer wait is not sat out here: the cycle is left, and goes on by a timer of Restate. */
export const WAIT_MAX_MS = 5_000
const BUSY_RETRY_MS = 1_000
const LEASE_RECHECK_MS = 30_000

/**
 * One turn of a sync: look at the registry whether it is due, and if so run its cycle for a while. Whatever becomes of it
 * is in the registry; what is returned only says when to look again. So a turn that is taken twice does no harm.
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

  /** Aborted, it ends between two pages. */
  async runTurn(job: Job, carried: TurnMemory, signal: AbortSignal): Promise<TurnResult> {
    this.#stopping.signal.throwIfAborted()
    const until = new LinkedAbortController(this.#stopping.signal)
    const turn = this.#executeTurn(job, carried, AbortSignal.any([signal, until.signal]))
    this.#running.add(turn)
    try {
      return await turn
    } finally {
      this.#running.delete(turn)
      until.unlink()
    }
  }

  /** Resolves when the last turn has ended. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the runner stops'))
    await Promise.allSettled(this.#running)
  }

  async #executeTurn({ store, sync, ref: name }: Job, { since, tries, storeFailures: stumbles }: TurnMemory, signal: AbortSignal): Promise<TurnResult> {
    const turned = (next: NextTurn | null, left: Partial<TurnMemory> = {}): TurnResult => ({ next, since: since ?? this.#clock.now(), tries: 0, storeFailures: 0, ...left })
    try {
      const job = await this.#refresh(new Job(store, sync, this.#options.ports.random.next()), since)
      if (!this.#isReady(job)) return turned(this.#computeNext(job))
      if (!(await this.#slots.acquire(job, QUEUE_WAIT_MS, signal))) return turned(this.#after(signal.aborted ? 0 : BUSY_RETRY_MS), { tries })
      try {
        const slice = await this.#runSlice(job, tries, signal)
        if (slice.stopReason === 'held') return turned(this.#after(this.#options.pollMs))
        // What ended otherwise, in spite of the wait, is told by the registry.
        if (slice.stopReason === 'cancelled' && slice.waitMs !== null) return turned({ ...this.#after(slice.waitMs), isThrottled: true }, { tries: slice.tries })
        return turned(this.#computeNext(await this.#refresh(job, since)))
      } finally {
        this.#slots.release(job)
      }
    } catch (thrown) {
      const { code, message } = classifyError(thrown)
      const waitMs = backoffMs(this.#options.pollMs, stumbles)
      this.#options.ports.log.warn('the store could not be asked', { ...name, code, waitMs, reason: message })
      this.#options.onEvent({ kind: 'store', ...name, code, message, waitMs })
      return turned(this.#after(waitMs), { tries, storeFailures: stumbles + 1 })
    }
  }

  async #refresh(job: Job, since: number | null): Promise<Job> {
    const { worker, sync } = job.ref
    const { syncs } = await this.#clock.synchronize((at) => job.store.listSyncStatus({ at, recent: RECENT_CYCLES, ref: { worker, sync } }))
    job.facts = syncs[0] ?? { checkpoint: EMPTY_CHECKPOINT, recent: [] }
    const now = this.#clock.now()
    job.updateDue({ now, since: since ?? now, pauseMs: this.#options.pauseMs ?? CONTINUOUS_PAUSE_MS })
    // What piled up while nothing ran gets no head start.
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
    // Somebody else's lease may be given back before it is over.
    const heldMs = Math.min(job.heldUntil(this.#isDead(job)) - now, LEASE_RECHECK_MS)
    return heldMs > 0 && at <= now ? this.#after(heldMs) : { inMs: Math.max(0, at - now), at, isThrottled: false }
  }

  #after(inMs: number): NextTurn {
    return { inMs, at: this.#clock.now() + inMs, isThrottled: false }
  }

  async #runSlice(job: Job, tried: number, signal: AbortSignal): Promise<SliceResult> {
    const { ports, fetch, secrets, sliceMs } = this.#options
    const { plan } = job.sync
    const why = job.due!.why as DueReason
    const cutting = new AbortController()
    const slice = { waitMs: null as number | null, tries: tried }
    let outrun = false
    const note = (progress: CycleProgress): void => {
      this.#reportProgress(job, why, progress)
      if (progress.kind === 'landed') slice.tries = tried = 0
      if (progress.kind !== 'waiting') return
      slice.tries++
      if (progress.ms <= WAIT_MAX_MS) return
      slice.waitMs = progress.ms
      cutting.abort(new Error('the wait is long'))
    }
    const result = await runCycle(limitToSlice(plan, sliceMs, () => tried), {
      store: createOncePerSlotStore(job.store, job.ref, fingerprintCheckpoint(job.facts!.checkpoint), () => (outrun = true)),
      ports: { ...ports, clock: this.#clock },
      fetch,
      secrets: typeof secrets === 'function' ? secrets(job.tenant) : secrets,
      holder: `${holderPrefix(plan)}${this.#options.holder}#${++this.#cycles}`,
      trigger: why === 'trigger' ? 'trigger' : 'schedule',
      signal: AbortSignal.any([signal, cutting.signal]),
      isHolderGone: this.#isDead(job),
      onProgress: note,
    })
    if (result.stopReason === 'held') {
      if (!outrun) await this.#reportHeld(job)
    } else if (result.stopReason !== 'paused' || result.cycle !== null) this.#options.onEvent({ kind: 'ended', ...job.ref, result })
    return { ...slice, stopReason: result.stopReason }
  }

  /** By whom, unless it was given back by now. */
  async #reportHeld(job: Job): Promise<void> {
    const { heldBy, heldUntil } = (await this.#refresh(job, null)).facts!.checkpoint
    this.#options.onEvent({ kind: 'held', ...job.ref, by: heldBy, until: heldUntil })
  }

  #reportProgress(job: Job, why: DueReason, progress: CycleProgress): void {
    if (progress.kind !== 'begun') return this.#options.onEvent({ ...job.ref, ...progress })
    const { cycle, resumed, page } = progress
    this.#options.onEvent({ kind: 'started', ...job.ref, why, cycle, resumed, page })
  }

  /**
   * Restate gives an object one turn at a time: whoever holds the lease in the object's own name had an earlier one, which
   * Restate has given up. It may not know yet; the epoch of the lease keeps it from landing anything.
   */
  #isDead({ sync: { plan } }: Job): (holder: string) => boolean {
    return (holder) => holder.startsWith(holderPrefix(plan)) || this.#options.isDead?.(holder) === true
  }
}

interface SliceResult {
  readonly stopReason: CycleResult['stopReason']
  /** How long the source is to be left alone, when that was what ended it. */
  readonly waitMs: number | null
  readonly tries: number
}

/** It also names the object: a backfill takes its delta's lease for a moment, and neither may think the other dead. */
function holderPrefix({ sync }: SyncPlan): string {
  return `restate/${sync}:`
}

/** The same plan, ended after a while by its own budget, which wastes no page. Tries of a page before the wait that ended the last slice count. */
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
