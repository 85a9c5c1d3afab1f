import { SyncError, type Clock, type Log, type PauseList, type Random, type Store } from '../contract/index.ts'
import { formatDuration } from '../values/duration.ts'
import { announcedPauseMs } from '../values/retry-after.ts'
import { classifyError } from './classify-error.ts'
import { storeDelayMs, waitHintMs } from './retry.ts'
import type { SyncPlan } from './sync-plan.ts'

export type PauseStore = Pick<Store, 'recordPause' | 'pauses'>

/** For use without a store: pauses last as long as the AccountPauses instance. */
export const NOOP_PAUSE_STORE: PauseStore = {
  recordPause: async () => {},
  pauses: async ({ at }) => ({ now: at, pauses: [] }),
}

/** A pause of the account prevented a request. */
export class PauseError extends SyncError {
  constructor(origin: string, ms: number, now: number) {
    super(
      'RATE_LIMITED',
      `${origin === '' ? 'The source' : origin} asked for a pause until ${formatPauseEnd(now, ms)}. Nothing was sent.`,
      { retryAfterMs: ms },
    )
  }
}

/**
 * The pauses that a source has announced. They belong to its account and are kept in the store, so that every sync,
 * process and command waits until they end.
 *
 * An account is identified by the pacers of the sync and the origin of the request. A sync without a pacer shares the
 * account of every sync of its worker that uses the same origin. Origins are separate because a sync may read from
 * several providers, and one at its limit must not block the others.
 */
export class AccountPauses {
  readonly #worker: string
  readonly #pacers: readonly string[]
  readonly #clock: Clock
  readonly #log: Log
  readonly #store: PauseStore
  /** Pauses recorded by this process, kept even if the store is unavailable. By origin, in the local clock. */
  readonly #localPauses = new Map<string, { readonly notedAt: number; readonly until: number }>()
  /** Origins whose pause is not stored yet. */
  readonly #unstoredOrigins = new Set<string>()
  #cachedPauses: { readonly at: number; readonly pauses: Promise<PauseList> } | null = null

  constructor(
    { worker, pacers }: SyncPlan,
    { clock, log }: { readonly clock: Clock; readonly log: Log },
    store: PauseStore,
  ) {
    this.#worker = worker
    this.#pacers = pacers.map(({ name }) => name)
    this.#clock = clock
    this.#log = log
    this.#store = store
  }

  /** Throws a PauseError during a pause; waits if the pause is about to end. `origin` is null if it is not known. */
  async check(origin: string | null, signal: AbortSignal): Promise<void> {
    for (;;) {
      const { origin: paused, ms } = await this.#findLongestPause(origin)
      if (ms <= 0) return
      if (ms > INLINE_WAIT_MAX_MS) throw new PauseError(paused, ms, this.#clock.now())
      await this.#clock.sleep(ms, signal)
    }
  }

  /** Records the pause that a response announces by its status and headers, even if the connector ignores it. */
  async recordResponse(origin: string, { status, headers }: Response): Promise<void> {
    const ms = announcedPauseMs(status, headers, this.#clock.now())
    if (ms !== undefined) await this.#record(origin, ms)
  }

  /** Records a pause that only the connector can detect, from a response body or a client library. */
  async recordError(origin: string | null, error: SyncError): Promise<void> {
    if (error.code !== 'RATE_LIMITED' || error instanceof PauseError) return
    const ms = waitHintMs(error)
    if (ms > 0) await this.#record(origin ?? '', ms)
  }

  /**
   * For the last attempt of a page, when the source gave no wait time. Many sources count refused requests too, so the
   * next request, from any process, must wait as well. Returns the error with the end of the pause.
   */
  async recordFinalFailure(origin: string | null, error: SyncError): Promise<SyncError> {
    if (error.code !== 'RATE_LIMITED' || waitHintMs(error) > 0) return withRetryTime(error, this.#clock.now())
    await this.#record(origin ?? '', DEFAULT_PAUSE_MS)
    const until = formatPauseEnd(this.#clock.now(), DEFAULT_PAUSE_MS)
    return new SyncError(error.code, `${error.message} The source gave no wait time; nothing is sent until ${until}.`, {
      cause: error,
      retryAfterMs: DEFAULT_PAUSE_MS,
    })
  }

  async #record(origin: string, ms: number): Promise<void> {
    const now = this.#clock.now()
    this.#localPauses.set(origin, { notedAt: now, until: now + Math.max(ms, this.#localPauseMs(origin)) })
    await this.#store.recordPause({ worker: this.#worker, pacers: this.#pacers, origin, ms, at: now }).then(
      () => this.#unstoredOrigins.delete(origin),
      (thrown: unknown) => {
        this.#unstoredOrigins.add(origin)
        this.#log.warn('could not store a pause of the source; only this process observes it', {
          origin,
          ms,
          code: classifyError(thrown).code,
        })
      },
    )
  }

  /**
   * At the end of a cycle: stores pauses that the store could not accept earlier, so that other processes observe them
   * too.
   */
  async flush(random: Random): Promise<void> {
    for (let attempt = 1; this.#unstoredOrigins.size > 0 && attempt <= FLUSH_ATTEMPTS_MAX; attempt++) {
      if (attempt > 1) await this.#clock.sleep(storeDelayMs(attempt, random))
      for (const origin of this.#unstoredOrigins) {
        const ms = this.#localPauseMs(origin)
        if (ms <= 0) this.#unstoredOrigins.delete(origin)
        else await this.#record(origin, ms)
      }
    }
  }

  async #findLongestPause(origin: string | null): Promise<{ origin: string; ms: number }> {
    const { now, pauses } = await this.#readStoredPauses()
    const stored = pauses
      .filter((pause) => this.#appliesToPacer(pause.pacer))
      .map((pause) => ({ origin: pause.origin, ms: pause.until - now }))
    const local = [...this.#localPauses.keys()].map((paused) => ({ origin: paused, ms: this.#localPauseMs(paused) }))
    return [...stored, ...local]
      .filter((pause) => pause.origin === '' || pause.origin === origin)
      .reduce((longest, pause) => (pause.ms > longest.ms ? pause : longest), { origin: '', ms: 0 })
  }

  /**
   * Results of the store are cached briefly, so that the first request of a page does not wait for a store that is
   * still committing the page before.
   */
  #readStoredPauses(): Promise<PauseList> {
    const at = this.#clock.now()
    if (this.#cachedPauses !== null && at >= this.#cachedPauses.at && at - this.#cachedPauses.at < CACHE_TTL_MS)
      return this.#cachedPauses.pauses
    const pauses = this.#store.pauses({ worker: this.#worker, at })
    this.#cachedPauses = { at, pauses }
    pauses.catch(() => (this.#cachedPauses = null))
    return pauses
  }

  #appliesToPacer(pacer: string): boolean {
    return pacer === '' || this.#pacers.length === 0 || this.#pacers.includes(pacer)
  }

  #localPauseMs(origin: string): number {
    const { notedAt, until } = this.#localPauses.get(origin) ?? { notedAt: 0, until: 0 }
    return Math.min(until - this.#clock.now(), until - notedAt)
  }
}

const CACHE_TTL_MS = 20
const FLUSH_ATTEMPTS_MAX = 6

/** Less than the shortest backoff, so that a short pause does not fail the page. */
const INLINE_WAIT_MAX_MS = 500

/** For a source that kept refusing without a wait time. Equals the first backoff between cycles. */
const DEFAULT_PAUSE_MS = 60_000

/** Returns the error with the end of the requested wait in its message. */
export function withRetryTime(error: SyncError, now: number): SyncError {
  const ms = waitHintMs(error)
  if (ms <= 0 || error instanceof PauseError) return error
  return new SyncError(error.code, `${error.message} The source asked to wait until ${formatPauseEnd(now, ms)}.`, {
    cause: error,
    retryAfterMs: ms,
  })
}

/** Empty for text that is not a URL; the transport rejects it. */
export function parseOrigin(input: string | URL): string {
  return URL.canParse(String(input)) ? new URL(input).origin : ''
}

function formatPauseEnd(now: number, ms: number): string {
  return `${new Date(now + ms).toISOString().replace(/\.\d+Z$/, 'Z')} (in ${formatDuration(Math.ceil(ms / 1_000) * 1_000)})`
}
