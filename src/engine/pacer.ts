import { SyncError, type Clock, type Meter, type Pacing, type Ports } from '../contract/index.ts'
import type { PacerPlan } from './sync-plan.ts'

/** Slots evenly spaced, each sync its even share of the budget; where it stood is kept across runs. */
export class Pacer implements Pacing {
  readonly #clock: Clock
  readonly #signal: AbortSignal
  readonly #plans: ReadonlyMap<string, PacerPlan>
  readonly #slots: Map<string, number>
  readonly #waiting = new Map<string, number>()
  readonly #meter: Meter | undefined

  constructor({ clock, meter }: Pick<Ports, 'clock' | 'meter'>, signal: AbortSignal, plans: readonly PacerPlan[], slots: Readonly<Record<string, number>>) {
    this.#clock = clock
    this.#meter = meter
    this.#signal = signal
    this.#plans = new Map(plans.map((plan) => [plan.name, plan]))
    this.#slots = new Map(plans.map((plan) => [plan.name, slots[plan.name] ?? 0]))
  }

  async wait(name?: string): Promise<void> {
    if (name === undefined) {
      for (const plan of this.#plans.keys()) await this.wait(plan)
      return
    }
    const plan = this.#plans.get(name)
    if (plan === undefined) throw new SyncError('PACER_UNKNOWN', `This sync does not use a pacer named ${JSON.stringify(name)}.`)
    const now = this.#clock.now()
    const waiting = this.#waiting.get(name) ?? 0
    // No slot lies further ahead than those who wait for one reach, unless the clock was set back since.
    const last = Math.min(this.#slots.get(name)!, now + waiting * paceMs(plan))
    const slot = Math.max(last + paceMs(plan), now)
    this.#slots.set(name, slot)
    if (slot <= now) return
    this.#waiting.set(name, waiting + 1)
    this.#meter?.note('waitDuration', (slot - now) / 1_000, { 'tidemark.reason': 'pacer' })
    try {
      await this.#clock.sleep(slot - now, this.#signal)
    } finally {
      this.#waiting.set(name, this.#waiting.get(name)! - 1)
    }
  }

  slots(): Record<string, number> {
    return Object.fromEntries(this.#slots)
  }
}

function paceMs(plan: PacerPlan): number {
  return Math.ceil(plan.intervalMs / plan.allowedRequests) * plan.sharedBy
}
