import { RandomStream, type Trace } from './random-stream.ts'

/** Where virtual time begins: a whole day, so that every granularity of stamps divides it. */
export const TIME_ZERO = Date.UTC(2026, 0, 1)

/**
 * Virtual time. Every wait of every process stands in one heap, ordered by (time, chance); a step takes the first, sets
 * the clock, resolves it, and lets everything run that it woke, until all of it waits again. Nothing else may wait.
 */
export class Scheduler {
  now = TIME_ZERO
  steps = 0
  readonly trace: Trace
  /** Called when a process begins to wait: the place where it can be made to crash, freeze or stop. */
  onWait: ((process: SimulatedProcess, label: string) => void) | null = null
  readonly #ties: RandomStream
  readonly #heap = new WaitHeap()
  #realCalls = 0
  #onRealEnd: () => void = () => {}

  constructor(seed: number, trace: Trace) {
    this.#ties = new RandomStream(seed, 'schedule')
    this.trace = trace
  }

  /** A process begins its life. */
  start(name: string): SimulatedProcess {
    return new SimulatedProcess(this, name)
  }

  /** False when nothing waits any more. */
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

  /** Work in real time, such as a query of a database server: virtual time stands still until it has ended. */
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
    const parked: PendingWait = { at: this.now + Math.ceil(ms), tie: this.#ties.next(), process, label, resolve, cancelled: false }
    this.#heap.push(parked)
    return { cancel: () => void (parked.cancelled = true) }
  }
}

/**
 * One life of a process. A crash is the end of its promises: they never settle, so no `finally` runs and no `catch`
 * tidies up, exactly as when the power goes.
 */
export class SimulatedProcess {
  isRunning = true
  /** Frozen until then: its waits end later, and it does not know. */
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

  /** A wait inside the code under test: named, and a place for faults. */
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
        if (this.isRunning) reject(signal!.reason as Error)
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
      if (!isBefore(items[at]!, items[parent]!)) break
      swap(items, at, parent)
      at = parent
    }
  }

  pop(): PendingWait | undefined {
    const items = this.#items
    const first = items[0]
    const last = items.pop()
    if (first === undefined || items.length === 0) return first
    items[0] = last!
    for (let at = 0; ; ) {
      let least = at
      for (const child of [2 * at + 1, 2 * at + 2]) if (child < items.length && isBefore(items[child]!, items[least]!)) least = child
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
  const item = items[a]!
  items[a] = items[b]!
  items[b] = item
}

/** Taken before anybody can replace it. */
const realSetImmediate = setImmediate

/** Every promise job that is ready, and every one that those make ready, has run by then. */
function flushPromises(): Promise<void> {
  return new Promise((resolve) => realSetImmediate(resolve))
}
