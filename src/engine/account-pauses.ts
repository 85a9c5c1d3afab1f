import { SyncError, type Clock, type Log, type PauseList, type Random, type Store } from '../contract/index.ts'
import { formatDuration } from '../values/duration.ts'
import { announcedPauseMs } from '../values/retry-after.ts'
import { classifyError } from './classify-error.ts'
import { storeDelayMs, waitHintMs } from './retry.ts'
import type { SyncPlan } from './sync-plan.ts'

export type PauseStore = Pick<Store, 'recordPause' | 'pauses'>

/** Where there is no store: pauses are kept as long as somebody asks. */
export const NOOP_PAUSE_STORE: PauseStore = { recordPause: async () => {}, pauses: async ({ at }) => ({ now: at, pauses: [] }) }

/** A pause of the account kept a request from being sent. */
export class PauseError extends SyncError {
  constructor(origin: string, ms: number, now: number) {
    super('RATE_LIMITED', `${origin === '' ? 'The source' : origin} asked for a pause until ${formatPauseEnd(now, ms)}. Nothing was sent.`, { retryAfterMs: ms })
  }
}

/**
 * The pauses that a source has announced. They belong to its account and are kept in the store, so that every sync, process
 * and command stays away until they are over.
 *
 * The account is known by the pacers of the sync and the origin of the request. A sync without a pacer shares the account
 * of every sync of its worker that asks the same origin. Origins are told apart because a sync may read from several
 * providers, and one that is at its limit must not keep it from the others.
 */
export class AccountPauses {
  readonly #worker: string
  readonly #pacers: readonly string[]
  readonly #clock: Clock
  readonly #log: Log
  readonly #store: PauseStore
  /** Noted by this process: it keeps them also when the store cannot. By origin, and by our own clock. */
  readonly #localPauses = new Map<string, { readonly notedAt: number; readonly until: number }>()
  /** Origins whose pause the store does not have yet. */
  readonly #unstoredOrigins = new Set<string>()
  #cachedPauses: { readonly at: number; readonly pauses: Promise<PauseList> } | null = null

  constructor({ worker, pacers }: SyncPlan, { clock, log }: { readonly clock: Clock; readonly log: Log }, store: PauseStore) {
    this.#worker = worker
    this.#pacers = pacers.map(({ name }) => name)
    this.#clock = clock
    this.#log = log
    this.#store = store
  }

  /** Throws a PauseError inside a pause; the last moments of one are waited for. Null for a request whose origin is not known. */
  async check(origin: string | null, signal: AbortSignal): Promise<void> {
    for (;;) {
      const { origin: paused, ms } = await this.#findLongestPause(origin)
      if (ms <= 0) return
      if (ms > INLINE_WAIT_MAX_MS) throw new PauseError(paused, ms, this.#clock.now())
      await this.#clock.sleep(ms, signal)
    }
  }

  /** Keeps the pause that an answer announces by its status and headers, whatever the connector makes of it. */
  async recordResponse(origin: string, { status, headers }: Response): Promise<void> {
    const ms = announcedPauseMs(status, headers, this.#clock.now())
    if (ms !== undefined) await this.#record(origin, ms)
  }

  /** Keeps the pause that only the connector has understood, from a body or a client library of its own. */
  async recordError(origin: string | null, error: SyncError): Promise<void> {
    if (error.code !== 'RATE_LIMITED' || error instanceof PauseError) return
    const ms = waitHintMs(error)
    if (ms > 0) await this.#record(origin ?? '', ms)
  }

  /**
   * For the last try of a page: a limit that the source did not say the length of. Many count refusals too, so that whoever asks
   * next, in whatever process, must not begin to ask at once. Returns the error with the end of the pause.
   */
  async recordFinalFailure(origin: string | null, error: SyncError): Promise<SyncError> {
    if (error.code !== 'RATE_LIMITED' || waitHintMs(error) > 0) return withRetryTime(error, this.#clock.now())
    await this.#record(origin ?? '', DEFAULT_PAUSE_MS)
    const until = formatPauseEnd(this.#clock.now(), DEFAULT_PAUSE_MS)
    return new SyncError(error.code, `${error.message} It did not say how long to wait; nothing is sent until ${until}.`, { cause: error, retryAfterMs: DEFAULT_PAUSE_MS })
  }

  async #record(origin: string, ms: number): Promise<void> {
    const now = this.#clock.now()
    this.#localPauses.set(origin, { notedAt: now, until: now + Math.max(ms, this.#localPauseMs(origin)) })
    await this.#store.recordPause({ worker: this.#worker, pacers: this.#pacers, origin, ms, at: now }).then(() => this.#unstoredOrigins.delete(origin), (problem: unknown) => {
      this.#unstoredOrigins.add(origin)
      this.#log.warn('a pause of the source could not be stored; this process keeps it', { origin, ms, code: classifyError(problem).code })
    })
  }

  /** At the end of a cycle: stores what the store could not take before, so that the pause holds for other processes too. */
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
    const stored = pauses.filter((pause) => this.#appliesToPacer(pause.pacer)).map((pause) => ({ origin: pause.origin, ms: pause.until - now }))
    const own = [...this.#localPauses.keys()].map((paused) => ({ origin: paused, ms: this.#localPauseMs(paused) }))
    return [...stored, ...own].filter((pause) => pause.origin === '' || pause.origin === origin)
      .reduce((longest, pause) => (pause.ms > longest.ms ? pause : longest), { origin: '', ms: 0 })
  }

  /**
   * An answer of the store is used for a moment: the first request of a page need not wait until the store, which is just
   * landing the page before, has time for a question again.
   */
  #readStoredPauses(): Promise<PauseList> {
    const at = this.#clock.now()
    if (this.#cachedPauses !== null && at >= this.#cachedPauses.at && at - this.#cachedPauses.at < CACHE_TTL_MS) return this.#cachedPauses.pauses
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

/** Less than the shortest backoff: a page need not fail for it. */
const INLINE_WAIT_MAX_MS = 500

/** Of a source that kept refusing and did not say for how long; as long as the first backoff between cycles. */
const DEFAULT_PAUSE_MS = 60_000

/** The same error, with the end of the wait that it asks for in its message. */
export function withRetryTime(error: SyncError, now: number): SyncError {
  const ms = waitHintMs(error)
  if (ms <= 0 || error instanceof PauseError) return error
  return new SyncError(error.code, `${error.message} It asked to wait until ${formatPauseEnd(now, ms)}.`, { cause: error, retryAfterMs: ms })
}

/** Empty for text that is not a URL; the transport refuses it. */
export function parseOrigin(input: string | URL): string {
  return URL.canParse(String(input)) ? new URL(input).origin : ''
}

function formatPauseEnd(now: number, ms: number): string {
  return `${new Date(now + ms).toISOString().replace(/\.\d+Z$/, 'Z')} (in ${formatDuration(Math.ceil(ms / 1_000) * 1_000)})`
}
