import {
  SyncError,
  type Clock,
  type Meter,
  type Pacing,
  type Ports,
  type SlotRequest,
  type SlotGrant,
} from '../contract/index.ts'
import type { PacerPlan } from './sync-plan.ts'

/** The provider of slots: the store, which is shared by all users of a rate limit, or a substitute. */
export type SlotProvider = (request: Omit<SlotRequest, 'worker'>) => Promise<SlotGrant>

export interface PacerOptions {
  readonly ports: Pick<Ports, 'clock' | 'meter'>
  readonly signal: AbortSignal
  readonly plans: readonly PacerPlan[]
  readonly takeSlots: SlotProvider
}

/**
 * Every request waits for its own slot. Slots are evenly spaced across all processes, so that no window holds more of
 * them than allowed.
 */
export class Pacer implements Pacing {
  readonly #clock: Clock
  readonly #signal: AbortSignal
  readonly #meter: Meter | undefined
  readonly #queues: ReadonlyMap<string, SlotQueue>

  constructor({ ports: { clock, meter }, signal, plans, takeSlots }: PacerOptions) {
    this.#clock = clock
    this.#meter = meter
    this.#signal = signal
    this.#queues = new Map(plans.map((plan) => [plan.name, new SlotQueue({ clock, signal, plan, takeSlots })]))
  }

  async wait(name?: string): Promise<void> {
    if (name === undefined) {
      for (const pacer of this.#queues.keys()) await this.wait(pacer)
      return
    }
    const queue = this.#queues.get(name)
    if (queue === undefined)
      throw new SyncError('PACER_UNKNOWN', `This sync does not use a pacer named ${JSON.stringify(name)}.`)
    const ms = (await queue.nextSlot()) - this.#clock.now()
    if (ms <= 0) return
    this.#meter?.record('waitDuration', ms / 1_000, { 'tidemark.reason': 'pacer' })
    await this.#clock.sleep(ms, this.#signal)
  }
}

/**
 * Slots are reserved at most this far ahead, or one by one. This bounds the slots that a crashed process wastes and
 * that others wait for.
 */
const LOOKAHEAD_MS = 1_000
/** One spare slot is reserved per this many requested ones, so that a cycle that ends leaves few unused. */
const REQUESTS_PER_SPARE_SLOT = 8

interface SlotQueueOptions {
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly plan: PacerPlan
  readonly takeSlots: SlotProvider
}

/**
 * Waiters of one pacer, in order. If requests wait for slots and not for the source, slots are reserved in batches.
 */
class SlotQueue {
  readonly #clock: Clock
  readonly #signal: AbortSignal
  readonly #plan: PacerPlan
  readonly #paceMs: number
  readonly #takeSlots: SlotProvider
  readonly #waiting: Array<{ resolve(slot: number): void; reject(error: unknown): void }> = []
  /** Reserved and unused slots. A slot in the past is dropped: used late, it would be too close to the next. */
  #spareSlots: number[] = []
  #isRequesting = false
  #requestedAt = -Infinity
  /**
   * The last slot given to a request, and the number of consecutive requests that arrived before their slot had passed.
   */
  #lastUsedSlot = -Infinity
  #onTimeCount = 0
  /** The last reserved slot, by the store's clock. */
  #lastTakenSlot: number | null = null

  constructor({ clock, signal, plan, takeSlots }: SlotQueueOptions) {
    this.#clock = clock
    this.#signal = signal
    this.#plan = plan
    this.#paceMs = Math.ceil(plan.intervalMs / plan.allowedRequests)
    this.#takeSlots = takeSlots
  }

  nextSlot(): number | Promise<number> {
    const now = this.#clock.now()
    const isSetBack = now < this.#requestedAt
    this.#requestedAt = now
    this.#spareSlots = isSetBack ? [] : this.#spareSlots.filter((slot) => slot >= now)
    this.#onTimeCount = !isSetBack && now <= this.#lastUsedSlot + this.#paceMs ? this.#onTimeCount + 1 : 0
    const spare = this.#spareSlots.shift()
    if (spare !== undefined) return (this.#lastUsedSlot = spare)
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject })
      if (!this.#isRequesting) void this.#requestSlots()
    })
  }

  async #requestSlots(): Promise<void> {
    this.#isRequesting = true
    try {
      while (this.#waiting.length > 0) {
        this.#signal.throwIfAborted()
        const slots = await this.#takeBatch()
        for (const slot of slots) {
          const waiter = this.#waiting.shift()
          if (waiter === undefined) this.#spareSlots.push(slot)
          else waiter.resolve((this.#lastUsedSlot = slot))
        }
        const aheadMs = Math.max(...slots) - this.#clock.now() - LOOKAHEAD_MS
        if (this.#waiting.length > 0 && aheadMs > 0) await this.#clock.sleep(aheadMs, this.#signal)
      }
    } catch (error) {
      for (const { reject } of this.#waiting.splice(0)) reject(error)
    } finally {
      this.#isRequesting = false
    }
  }

  /** In the local clock, relative to when the response arrived: never early, regardless of the store's clock. */
  async #takeBatch(): Promise<number[]> {
    const wanted = Math.max(this.#waiting.length, Math.floor(this.#onTimeCount / REQUESTS_PER_SPARE_SLOT))
    const count = Math.max(1, Math.min(wanted, Math.floor(LOOKAHEAD_MS / this.#paceMs)))
    const { now, firstSlotAt } = await this.#takeSlots({
      pacer: this.#plan.name,
      count,
      paceMs: this.#paceMs,
      at: this.#clock.now(),
    })
    // Other processes reserved so many slots in between that ours come too rarely: smaller batches come sooner.
    if (this.#lastTakenSlot !== null && firstSlotAt - this.#lastTakenSlot > 2 * LOOKAHEAD_MS)
      this.#onTimeCount = Math.floor(this.#onTimeCount / 2)
    this.#lastTakenSlot = firstSlotAt + (count - 1) * this.#paceMs
    const start = this.#clock.now() + (firstSlotAt - now)
    return Array.from({ length: count }, (_, i) => start + i * this.#paceMs)
  }
}
