import type { Clock } from '../../contract/index.ts'
import { Agenda } from '../agenda.ts'
import type { Waiting } from '../order.ts'

/**
 * The places of one process. Restate hands out whatever is due; so many cycles run at once, and the others stand in line,
 * in the order and with the fairness of every runner.
 */
export class Places {
  readonly #clock: Clock
  readonly #line = new Agenda<Waiting>()
  readonly #called = new Map<Waiting, () => void>()
  readonly #running = new Map<string, number>()
  readonly #turns = new Map<string, number>()
  #free: number
  #turn = 0

  constructor(count: number, clock: Clock) {
    this.#free = count
    this.#clock = clock
  }

  /** False when none became free within the time, or before the signal. Whoever got one leaves it. */
  async take(waiting: Waiting, ms: number, signal: AbortSignal): Promise<boolean> {
    const patience = new AbortController()
    let isMine = false
    this.#called.set(waiting, () => {
      isMine = true
      patience.abort(new Error('a place is free'))
    })
    this.#line.put(waiting, 0)
    this.#serve()
    await this.#clock.sleep(ms, AbortSignal.any([patience.signal, signal])).catch(() => {})
    this.#called.delete(waiting)
    this.#line.remove(waiting)
    return isMine
  }

  leave({ tenant }: Waiting): void {
    this.#free++
    this.#running.set(tenant, this.#running.get(tenant)! - 1)
    this.#serve()
  }

  #serve(): void {
    while (this.#free > 0) {
      const next = this.#line.next(0, { running: (tenant) => this.#running.get(tenant) ?? 0, lastTurn: (tenant) => this.#turns.get(tenant) ?? 0 })
      if (next === null) return
      this.#free--
      this.#running.set(next.tenant, (this.#running.get(next.tenant) ?? 0) + 1)
      this.#turns.set(next.tenant, ++this.#turn)
      this.#called.get(next)!()
    }
  }
}
