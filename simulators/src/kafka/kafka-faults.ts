import type { KafkaApiName } from './apis.ts'
import type { KafkaErrorName } from './error-codes.ts'

/** A fault that the Kafka simulator injects into a request. */
export type KafkaFault =
  /** Everything in the request is answered with this error. */
  | { readonly kind: 'error'; readonly error: KafkaErrorName }
  /** The connection breaks: `before` the request is read, or `inside` the response, after the request took effect. */
  | { readonly kind: 'cut'; readonly where: 'before' | 'inside' }
  | { readonly kind: 'slow'; readonly ms: number }

interface PlannedFault {
  readonly fault: KafkaFault
  readonly api: KafkaApiName | undefined
  times: number
}

/** Planned faults, at any broker. */
export class KafkaFaults {
  #planned: PlannedFault[] = []
  /** Decides for each request before the planned faults; undefined leaves it to them. */
  decide: ((api: KafkaApiName) => KafkaFault | undefined) | null = null

  /** Applies to the next `times` requests of this kind; of any kind when absent. */
  plan(fault: KafkaFault, { api, times = 1 }: { readonly api?: KafkaApiName; readonly times?: number } = {}): void {
    this.#planned.push({ fault, api, times })
  }

  /** How many of them are left, for this kind or for every kind. */
  clear(api?: KafkaApiName): void {
    this.#planned = api === undefined ? [] : this.#planned.filter((planned) => planned.api !== api)
  }

  take(api: KafkaApiName): KafkaFault | undefined {
    const decided = this.decide?.(api)
    if (decided !== undefined) return decided
    const planned = this.#planned.find((candidate) => candidate.times > 0 && (candidate.api ?? api) === api)
    if (planned === undefined) return undefined
    planned.times--
    return planned.fault
  }
}
