import type { Clock } from '../kit/ports.ts'
import type { KafkaFaults } from './kafka-faults.ts'
import type { Topics } from './topics.ts'
import { Transactions } from './transactions.ts'

export interface ClusterOptions {
  readonly topics: Topics
  readonly faults: KafkaFaults
  readonly clock: Clock
  /** Called before each request, so that due writes can be made. */
  readonly beforeRead: () => void
}

/** The state that all of its brokers share. */
export class Cluster {
  readonly faults: KafkaFaults
  readonly clock: Clock
  readonly transactions = new Transactions()
  brokers: readonly { readonly id: number; readonly port: number }[] = []
  readonly #topics: Topics
  readonly #beforeRead: () => void
  readonly #waiting = new Set<() => void>()

  constructor({ topics, faults, clock, beforeRead: onLook }: ClusterOptions) {
    this.#topics = topics
    this.faults = faults
    this.clock = clock
    this.#beforeRead = onLook
  }

  /** The current topics. */
  readTopics(): Topics {
    this.#beforeRead()
    return this.#topics
  }

  now(): number {
    this.#beforeRead()
    return this.clock.now()
  }

  /** Called after an append. */
  notifyAppend(): void {
    for (const wake of this.#waiting) wake()
  }

  /** Resolves with the next message, or when the time is over. */
  async waitForAppend(waitMs: number, signal: AbortSignal): Promise<void> {
    const awake = new AbortController()
    const wake = (): void => awake.abort()
    this.#waiting.add(wake)
    await this.clock.sleep(waitMs, AbortSignal.any([awake.signal, signal])).catch(() => {})
    this.#waiting.delete(wake)
    signal.throwIfAborted()
  }
}
