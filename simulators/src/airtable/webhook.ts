import type { Clock } from '../kit/ports.ts'
import type { Fields } from '../kit/simulator.ts'

/** The id of the webhook that every simulated base has. It reports the records of all tables. */
export const WEBHOOK_ID = 'achSimulated00001'

interface NumberedPayload {
  readonly number: number
  readonly atMs: number
  readonly payload: Fields
}

const RETENTION_MS = 7 * 86_400_000
const PAYLOADS_MAX = 50

/** The payloads of one webhook, numbered from 1. They are kept for a week, whether read or not. */
export class WebhookPayloads {
  readonly #clock: Clock
  #payloads: NumberedPayload[] = []
  #next = 1

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get cursorForNextPayload(): number {
    return this.#next
  }

  /** `change` is the change of one table, as `changedTablesById` contains it. */
  add(tableId: string, change: Fields): void {
    const atMs = this.#clock.now()
    const number = this.#next++
    const payload = {
      timestamp: new Date(atMs).toISOString(),
      baseTransactionNumber: number,
      actionMetadata: { source: 'publicApi' },
      payloadFormat: 'v0',
      changedTablesById: { [tableId]: change },
    }
    this.#payloads.push({ number, atMs, payload })
  }

  list(cursor: number, limit: number): { payloads: Fields[]; cursor: number; mightHaveMore: boolean } {
    this.#payloads = this.#payloads.filter(({ atMs }) => atMs >= this.#clock.now() - RETENTION_MS)
    const after = this.#payloads.filter(({ number }) => number >= cursor)
    const shown = after.slice(0, Math.min(limit, PAYLOADS_MAX))
    const last = shown.at(-1)
    return {
      payloads: shown.map(({ payload }) => payload),
      cursor: last === undefined ? cursor : last.number + 1,
      mightHaveMore: after.length > shown.length,
    }
  }
}
