import type { Clock } from '../../../contract/index.ts'
import type { KafkaFaults } from './kafka-faults.ts'
import type { Topics } from './topics.ts'

export interface ClusterOptions {
  readonly topics: Topics
  readonly faults: KafkaFaults
  readonly clock: Clock
  /** Called before anything is looked at: the moment to write what has happened meanwhile. */
  readonly beforeRead: () => void
}

/** What all of its brokers know. */
export class Cluster {
  readonly faults: KafkaFaults
  readonly clock: Clock
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

  /** As they are now. */
  readTopics(): Topics {
    this.#beforeRead()
    return this.#topics
  }

  now(): number {
    this.#beforeRead()
    return this.clock.now()
  }

  /** Something was appended. */
  notifyAppend(): void {
    for (const wake of this.#waiting) wake()
  }

  /** The next message, or the end of the time. */
  async waitForAppend(waitMs: number, signal: AbortSignal): Promise<void> {
    const awake = new AbortController()
    const wake = (): void => awake.abort()
    this.#waiting.add(wake)
    await this.clock.sleep(waitMs, AbortSignal.any([awake.signal, signal])).catch(() => {})
    this.#waiting.delete(wake)
    signal.throwIfAborted()
  }
}
