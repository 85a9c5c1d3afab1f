import { SyncError, type Clock, type Log, type Pauses, type Random, type Store } from '../contract/index.ts'
import { duration } from '../values/duration.ts'
import { announcedPauseMs } from '../values/retry-after.ts'
import { classify } from './classify.ts'
import { storeDelayMs, waitHintMs } from './retry.ts'
import type { SyncPlan } from './sync-plan.ts'

export type PauseStore = Pick<Store, 'notePause' | 'pauses'>

/** Where there is no store: pauses are kept as long as somebody asks. */
export const NO_PAUSES: PauseStore = { notePause: async () => {}, pauses: async ({ at }) => ({ now: at, pauses: [] }) }

/** A pause of the account kept a request from being sent. */
export class PauseError extends SyncError {
  constructor(origin: string, ms: number, now: number) {
    super('RATE_LIMITED', `${origin === '' ? 'The source' : origin} asked for a pause until ${untilText(now, ms)}. Nothing was sent.`, { retryAfterMs: ms })
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
  readonly #own = new Map<string, { readonly notedAt: number; readonly until: number }>()
  /** Origins whose pause the store does not have yet. */
  readonly #unstored = new Set<string>()
  #stored: { readonly at: number; readonly pauses: Promise<Pauses> } | null = null

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
      const { origin: paused, ms } = await this.#longest(origin)
      if (ms <= 0) return
      if (ms > WAITED_FOR_MS) throw new PauseError(paused, ms, this.#clock.now())
      await this.#clock.sleep(ms, signal)
    }
  }

  /** Keeps the pause that an answer announces by its status and headers, whatever the connector makes of it. */
  async noteAnswer(origin: string, { status, headers }: Response): Promise<void> {
    const ms = announcedPauseMs(status, headers, this.#clock.now())
    if (ms !== undefined) await this.#note(origin, ms)
  }

  /** Keeps the pause that only the connector has understood, from a body or a client library of its own. */
  async noteError(origin: string | null, error: SyncError): Promise<void> {
    if (error.code !== 'RATE_LIMITED' || error instanceof PauseError) return
    const ms = waitHintMs(error)
    if (ms > 0) await this.#note(origin ?? '', ms)
  }

  /**
   * For the last try of a page: a limit that the source did not say the length of. Many count refusals too, so that whoever asks
   * next, in whatever process, must not begin to ask at once. Returns the error with the end of the pause.
   */
  async noteGivenUp(origin: string | null, error: SyncError): Promise<SyncError> {
    if (error.code !== 'RATE_LIMITED' || waitHintMs(error) > 0) return withEndOfWait(error, this.#clock.now())
    await this.#note(origin ?? '', UNTOLD_PAUSE_MS)
    const until = untilText(this.#clock.now(), UNTOLD_PAUSE_MS)
    return new SyncError(error.code, `${error.message} It did not say how long to wait; nothing is sent until ${until}.`, { cause: error, retryAfterMs: UNTOLD_PAUSE_MS })
  }

  async #note(origin: string, ms: number): Promise<void> {
    const now = this.#clock.now()
    this.#own.set(origin, { notedAt: now, until: now + Math.max(ms, this.#ownMs(origin)) })
    await this.#store.notePause({ worker: this.#worker, pacers: this.#pacers, origin, ms, at: now }).then(() => this.#unstored.delete(origin), (problem: unknown) => {
      this.#unstored.add(origin)
      this.#log.warn('a pause of the source could not be stored; this process keeps it', { origin, ms, code: classify(problem).code })
    })
  }

  /** At the end of a cycle: stores what the store could not take before, so that the pause holds for other processes too. */
  async keep(random: Random): Promise<void> {
    for (let attempt = 1; this.#unstored.size > 0 && attempt <= KEEP_ATTEMPTS_MAX; attempt++) {
      if (attempt > 1) await this.#clock.sleep(storeDelayMs(attempt, random))
      for (const origin of this.#unstored) {
        const ms = this.#ownMs(origin)
        if (ms <= 0) this.#unstored.delete(origin)
        else await this.#note(origin, ms)
      }
    }
  }

  async #longest(origin: string | null): Promise<{ origin: string; ms: number }> {
    const { now, pauses } = await this.#read()
    const stored = pauses.filter((pause) => this.#isOurs(pause.pacer)).map((pause) => ({ origin: pause.origin, ms: pause.until - now }))
    const own = [...this.#own.keys()].map((paused) => ({ origin: paused, ms: this.#ownMs(paused) }))
    return [...stored, ...own].filter((pause) => pause.origin === '' || pause.origin === origin)
      .reduce((longest, pause) => (pause.ms > longest.ms ? pause : longest), { origin: '', ms: 0 })
  }

  /**
   * An answer of the store is used for a moment: the first request of a page need not wait until the store, which is just
   * landing the page before, has time for a question again.
   */
  #read(): Promise<Pauses> {
    const at = this.#clock.now()
    if (this.#stored !== null && at >= this.#stored.at && at - this.#stored.at < FRESH_MS) return this.#stored.pauses
    const pauses = this.#store.pauses({ worker: this.#worker, at })
    this.#stored = { at, pauses }
    pauses.catch(() => (this.#stored = null))
    return pauses
  }

  #isOurs(pacer: string): boolean {
    return pacer === '' || this.#pacers.length === 0 || this.#pacers.includes(pacer)
  }

  #ownMs(origin: string): number {
    const { notedAt, until } = this.#own.get(origin) ?? { notedAt: 0, until: 0 }
    return Math.min(until - this.#clock.now(), until - notedAt)
  }
}

const FRESH_MS = 20
const KEEP_ATTEMPTS_MAX = 6

/** Less than the shortest backoff: a page need not fail for it. */
const WAITED_FOR_MS = 500

/** Of a source that kept refusing and did not say for how long; as long as the first backoff between cycles. */
const UNTOLD_PAUSE_MS = 60_000

/** The same error, with the end of the wait that it asks for in its message. */
export function withEndOfWait(error: SyncError, now: number): SyncError {
  const ms = waitHintMs(error)
  if (ms <= 0 || error instanceof PauseError) return error
  return new SyncError(error.code, `${error.message} It asked to wait until ${untilText(now, ms)}.`, { cause: error, retryAfterMs: ms })
}

/** Empty for text that is not a URL; the transport refuses it. */
export function originOf(input: string | URL): string {
  return URL.canParse(String(input)) ? new URL(input).origin : ''
}

function untilText(now: number, ms: number): string {
  return `${new Date(now + ms).toISOString().replace(/\.\d+Z$/, 'Z')} (in ${duration(Math.ceil(ms / 1_000) * 1_000)})`
}
