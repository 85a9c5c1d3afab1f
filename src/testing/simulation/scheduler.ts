import { RandomStream, type Trace } from './random-stream.ts'
import { required } from '../../values/required.ts'

/** Start of virtual time: midnight, so that every timestamp granularity divides it. */
export const TIME_ZERO = Date.UTC(2026, 0, 1)

/**
 * Virtual time. Every wait of every process is in one heap, ordered by (time, random draw); a step takes the first,
 * sets the clock, resolves it, and runs all resumed code until every process waits again. No other kind of wait is
 * allowed.
 */
export class Scheduler {
  now = TIME_ZERO
  steps = 0
  readonly trace: Trace
  /** Called when a process begins to wait: the point where it can be made to crash, freeze or stop. */
  onWait: ((process: SimulatedProcess, label: string) => void) | null = null
  readonly #ties: RandomStream
  readonly #heap = new WaitHeap()
  #realCalls = 0
  #onRealEnd: () => void = () => {}

  constructor(seed: number, trace: Trace) {
    this.#ties = new RandomStream(seed, 'schedule')
    this.trace = trace
  }

  /** Starts a process. */
  start(name: string): SimulatedProcess {
    return new SimulatedProcess(this, name)
  }

  /** False when no process is waiting. */
  async step(): Promise<boolean> {
    for (;;) {
      const parked = this.#heap.pop()
      if (parked === undefined) return false
      if (parked.cancelled || !parked.process.isRunning) continue
      if (parked.process.frozenUntil > parked.at) {
        parked.at = parked.process.frozenUntil
        this.#heap.push(parked)
        continue
      }
      this.now = Math.max(this.now, parked.at)
      this.steps++
      this.trace.add(this.now - TIME_ZERO, `${parked.process.name} ${parked.label}`)
      parked.resolve()
      await this.#waitUntilSettled()
      return true
    }
  }

  /** Work in real time, such as a query to a database server: virtual time stops until it has ended. */
  async awaitReal<T>(work: Promise<T>): Promise<T> {
    this.#realCalls++
    try {
      return await work
    } finally {
      this.#realCalls--
      this.#onRealEnd()
    }
  }

  async #waitUntilSettled(): Promise<void> {
    await flushPromises()
    while (this.#realCalls > 0) {
      await new Promise<void>((resolve) => void (this.#onRealEnd = resolve))
      await flushPromises()
    }
  }

  schedule(process: SimulatedProcess, label: string, ms: number, resolve: () => void): { cancel(): void } {
    const parked: PendingWait = {
      at: this.now + Math.ceil(ms),
      tie: this.#ties.next(),
      process,
      label,
      resolve,
      cancelled: false,
    }
    this.#heap.push(parked)
    return { cancel: () => void (parked.cancelled = true) }
  }
}

/**
 * One run of a process. After a crash its promises never settle, so no `finally` or `catch` block runs, as after a
 * power failure.
 */
export class SimulatedProcess {
  isRunning = true
  /** Frozen until this time: its waits end later, without its knowledge. */
  frozenUntil = 0
  readonly name: string
  readonly scheduler: Scheduler

  constructor(scheduler: Scheduler, name: string) {
    this.scheduler = scheduler
    this.name = name
  }

  crash(): void {
    this.isRunning = false
  }

  freeze(ms: number): void {
    this.frozenUntil = Math.max(this.frozenUntil, this.scheduler.now + ms)
  }

  /** A named wait inside the code under test, at which faults can be injected. */
  wait(label: string, ms: number, signal?: AbortSignal): Promise<void> {
    if (this.isRunning) this.scheduler.onWait?.(this, label)
    return this.idle(ms, signal, label)
  }

  /** A wait of the simulation itself. */
  idle(ms: number, signal?: AbortSignal, label = 'idle'): Promise<void> {
    if (!this.isRunning) return new Promise(() => {})
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) return reject(signal.reason as Error)
      const abort = (): void => {
        parked.cancel()
        if (this.isRunning) reject(required(signal, 'signal').reason as Error)
      }
      const parked = this.scheduler.schedule(this, label, ms, () => {
        signal?.removeEventListener('abort', abort)
        resolve()
      })
      signal?.addEventListener('abort', abort, { once: true })
    })
  }
}

interface PendingWait {
  at: number
  readonly tie: number
  readonly process: SimulatedProcess
  readonly label: string
  readonly resolve: () => void
  cancelled: boolean
}

class WaitHeap {
  readonly #items: PendingWait[] = []

  push(item: PendingWait): void {
    const items = this.#items
    let at = items.push(item) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!isBefore(required(items[at], 'items[at]'), required(items[parent], 'items[parent]'))) break
      swap(items, at, parent)
      at = parent
    }
  }

  pop(): PendingWait | undefined {
    const items = this.#items
    const first = items[0]
    const last = items.pop()
    if (first === undefined || items.length === 0) return first
    items[0] = required(last, 'last')
    for (let at = 0; ;) {
      let least = at
      for (const child of [2 * at + 1, 2 * at + 2])
        if (
          child < items.length &&
          isBefore(required(items[child], 'items[child]'), required(items[least], 'items[least]'))
        )
          least = child
      if (least === at) return first
      swap(items, at, least)
      at = least
    }
  }
}

function isBefore(a: PendingWait, b: PendingWait): boolean {
  return a.at < b.at || (a.at === b.at && a.tie < b.tie)
}

function swap(items: PendingWait[], a: number, b: number): void {
  const item = required(items[a], 'items[a]')
  items[a] = required(items[b], 'items[b]')
  items[b] = item
}

/** Captured before it can be replaced. */
const realSetImmediate = setImmediate

/** Resolves when every promise job that is ready, and every one that those make ready, has run. */
function flushPromises(): Promise<void> {
  return new Promise((resolve) => realSetImmediate(resolve))
}
