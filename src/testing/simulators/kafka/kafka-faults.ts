import type { KafkaApiName } from './apis.ts'
import type { KafkaErrorName } from './error-codes.ts'

export type KafkaFault =
  /** Everything that the request is about is answered with this error. */
  | { readonly kind: 'error'; readonly error: KafkaErrorName }
  /** The connection breaks: `before` the request is heard, or `inside` the answer, after what was asked for has been done. */
  | { readonly kind: 'cut'; readonly where: 'before' | 'inside' }
  | { readonly kind: 'slow'; readonly ms: number }

interface PlannedFault {
  readonly fault: KafkaFault
  readonly api: KafkaApiName | undefined
  times: number
}

/** Faults to come, at whichever broker. */
export class KafkaFaults {
  #planned: PlannedFault[] = []

  /** The next `times` requests of this kind meet it; of any kind unless given. */
  plan(fault: KafkaFault, { api, times = 1 }: { readonly api?: KafkaApiName; readonly times?: number } = {}): void {
    this.#planned.push({ fault, api, times })
  }

  /** What is left of them, of this kind or of every kind. */
  clear(api?: KafkaApiName): void {
    this.#planned = api === undefined ? [] : this.#planned.filter((planned) => planned.api !== api)
  }

  take(api: KafkaApiName): KafkaFault | undefined {
    const planned = this.#planned.find((candidate) => candidate.times > 0 && (candidate.api ?? api) === api)
    if (planned === undefined) return undefined
    planned.times--
    return planned.fault
  }
}
