import { SyncError, type SyncContext } from '../contract/index.ts'
import { maskSecrets } from '../redaction/known-secrets.ts'
import { maskUrl } from '../redaction/mask-url.ts'
import { readServerTime } from '../values/retry-after.ts'

/** One request of a probe, and the parts of its answer that are no data. */
export interface JournalEntry {
  readonly number: number
  readonly purpose: string
  readonly method: string
  /** Path and query, without credentials. */
  readonly target: string
  readonly sentAt: number
  answeredAt: number | null
  status: number | null
  /** The time of the `Date` header; null without one. */
  serverTime: number | null
  /** Headers about rate limits. */
  limits: Readonly<Record<string, string>>
}

const LIMIT_HEADER = /rate-?limit|^retry-after$|limit-info$|api-usage/i

/** Numbers the requests of a probe, and refuses those beyond its budget and those that could write. */
export class RequestJournal {
  readonly entries: JournalEntry[] = []
  readonly budget: number
  #purpose = ''

  constructor(budget: number) {
    this.budget = budget
  }

  get left(): number {
    return this.budget - this.entries.length
  }

  /** The number of the last request. */
  get last(): number {
    return this.entries.length
  }

  /** Runs a step; its requests are recorded with this purpose. */
  async during<Result>(purpose: string, step: () => Promise<Result>): Promise<Result> {
    this.#purpose = purpose
    return step()
  }

  /** The context with a `fetch` that records. `isReadOnly` decides about a request that is not GET or HEAD. */
  wrap(context: SyncContext, isReadOnly: (method: string) => boolean = () => false): SyncContext {
    return {
      ...context,
      fetch: async (input, init = {}) => {
        const url = new URL(input)
        const method = (init.method ?? 'GET').toUpperCase()
        if (method !== 'GET' && method !== 'HEAD' && !isReadOnly(method))
          throw new SyncError('CANCELLED', `A probe sends no ${method} requests.`)
        if (this.left <= 0) throw new BudgetSpentError(this.budget)
        const entry: JournalEntry = {
          number: this.entries.length + 1,
          purpose: this.#purpose,
          method,
          target: toTarget(url),
          sentAt: context.clock.now(),
          answeredAt: null,
          status: null,
          serverTime: null,
          limits: {},
        }
        this.entries.push(entry)
        const response = await context.fetch(input, init)
        entry.answeredAt = context.clock.now()
        entry.status = response.status
        entry.serverTime = readServerTime(response.headers)
        entry.limits = Object.fromEntries([...response.headers].filter(([name]) => LIMIT_HEADER.test(name)))
        return response
      },
    }
  }
}

/** The probe has sent as many requests as it may. */
export class BudgetSpentError extends SyncError {
  constructor(budget: number) {
    super('CANCELLED', `The budget of ${budget} requests is spent.`)
  }
}

const TARGET_CHARS_MAX = 160

function toTarget(url: URL): string {
  const masked = maskSecrets(`${url.origin}${url.pathname}${url.search}`)
  const shown = maskUrl(maskSecrets(decodeQuery(masked)))
  return shown.slice(url.origin.length, url.origin.length + TARGET_CHARS_MAX)
}

function decodeQuery(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
