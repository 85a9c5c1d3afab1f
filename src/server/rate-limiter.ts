import type { Clock, Store } from '../contract/index.ts'
import { HttpError } from './http-error.ts'

const WINDOW_MS = 60_000
const SHARE_INTERVAL_MS = 1_000

export interface RateLimitStatus {
  readonly limit: number
  readonly remaining: number
  /** Unix seconds at which the next window begins. */
  readonly resetAt: number
}

interface RequestCount {
  /** Store that shares the count; null for counts of this process only, such as requests to a replica. */
  readonly store: Store | null
  local: number
  /** The part of `local` that was reported to the store. */
  reported: number
  remote: number
}

/**
 * Fixed one-minute windows. Local counts are reported to the store, which returns the counts of the other processes:
 * all processes on one store share a limit, within the requests of about a second. Requests never wait for this.
 */
export class RateLimiter {
  readonly #clock: Clock
  readonly #stopping: AbortSignal
  #window = 0
  #counts = new Map<string, RequestCount>()
  #isSharing = false

  constructor(clock: Clock, stopping: AbortSignal) {
    this.#clock = clock
    this.#stopping = stopping
  }

  /** Counts one request, also beyond the limit. */
  count(name: string, limit: number, store: Store | null = null): RateLimitStatus {
    const counts = this.#current()
    let count = counts.get(name)
    if (count === undefined) counts.set(name, (count = { store, local: 0, reported: 0, remote: 0 }))
    count.local++
    if (store !== null && !this.#isSharing) void this.#shareCounts()
    return { limit, remaining: limit - count.local - count.remote, resetAt: ((this.#window + 1) * WINDOW_MS) / 1_000 }
  }

  /** Runs while requests arrive. */
  async #shareCounts(): Promise<void> {
    this.#isSharing = true
    for (let pending = this.#unreported(); pending.size > 0 && !this.#stopping.aborted; pending = this.#unreported()) {
      // A failed report is retried with the next one; without the store no caller can be authenticated anyway.
      await Promise.all([...pending].map(([store, counts]) => this.#report(store, counts).catch(() => {})))
      await this.#clock.sleep(SHARE_INTERVAL_MS, this.#stopping).catch(() => {})
    }
    this.#isSharing = false
  }

  #unreported(): Map<Store, Array<[string, RequestCount]>> {
    const pending = new Map<Store, Array<[string, RequestCount]>>()
    for (const [name, count] of this.#current()) {
      if (count.store === null || count.local === count.reported) continue
      const found = pending.get(count.store)
      if (found === undefined) pending.set(count.store, [[name, count]])
      else found.push([name, count])
    }
    return pending
  }

  async #report(store: Store, counts: ReadonlyArray<readonly [string, RequestCount]>): Promise<void> {
    const reports = counts.map(([name, count]) => ({ name, count, local: count.local }))
    const totals = await store.countRequests(
      this.#window,
      reports.map(({ name, count, local }) => [name, local - count.reported]),
    )
    for (const [index, { count, local }] of reports.entries()) {
      count.reported = local
      count.remote = (totals[index] ?? local) - local
    }
  }

  /** Counts are dropped with their window, so no cleanup is needed. */
  #current(): Map<string, RequestCount> {
    const window = Math.floor(this.#clock.now() / WINDOW_MS)
    if (window !== this.#window) {
      this.#window = window
      this.#counts = new Map()
    }
    return this.#counts
  }
}

export function rateLimitHeaders({ limit, remaining, resetAt }: RateLimitStatus): Record<string, string> {
  return {
    'x-ratelimit-limit': String(limit),
    'x-ratelimit-remaining': String(Math.max(0, remaining)),
    'x-ratelimit-reset': String(resetAt),
  }
}

export function rateLimitError(status: RateLimitStatus, now: number): HttpError {
  const seconds = Math.max(1, Math.ceil(status.resetAt - now / 1_000))
  return new HttpError(
    'RATE_LIMIT_EXCEEDED',
    `More than ${status.limit} requests in a minute. Retry in ${seconds} s.`,
    { headers: { 'retry-after': String(seconds) } },
  )
}
