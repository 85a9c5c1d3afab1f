import { SyncError, type CycleFacts, type Landing, type Log } from '../contract/index.ts'
import { classifyError } from './classify-error.ts'
import type { PageReader } from './page-reader.ts'
import { PagePreparer } from './page-preparer.ts'
import type { SyncPlan } from './sync-plan.ts'

/** Contested keys of one page that are asked for; those beyond are decided by the next cycle. */
const CONTESTED_LOOKUPS_MAX = 50

/** Absent keys that are asked for first, spread over all of them: a listing that left out many rows fails early. */
const SAMPLE_SIZE = 10

/** What a source said of contested keys. Keys that it could not be asked for are in neither list. */
export interface ContestedLookupResult {
  readonly database: string
  readonly confirmed: readonly string[]
  readonly refuted: readonly string[]
}

/** Asks the source for single records where a listing alone does not decide. */
export class SourceLookups {
  readonly #plan: SyncPlan
  readonly #reader: PageReader
  readonly #log: Log
  readonly #preparer: PagePreparer

  constructor(plan: SyncPlan, reader: PageReader, log: Log) {
    this.#plan = plan
    this.#reader = reader
    this.#log = log
    this.#preparer = new PagePreparer(plan.sync, plan.databases, plan.limits)
  }

  /** The database that can be asked for; null when the source has no lookup. */
  get database(): string | null {
    return this.#plan.lookup == null ? null : this.#plan.databases[0]!.name
  }

  /** Whether the source really has what its listing showed under these keys. */
  async checkContested(cycle: CycleFacts, keys: readonly string[], landings: readonly Landing[]): Promise<ContestedLookupResult> {
    const database = this.database!
    const shown = new Map(landings.filter((landing) => landing.database === database).map((landing) => [landing.key, landing]))
    const confirmed: string[] = []
    const refuted: string[] = []
    // Where times are only bounds, any row of the page may differ, and the next cycle would know no more.
    const asked = keys.filter((key, at) => at < CONTESTED_LOOKUPS_MAX || hasReadTime(shown.get(key)!))
    for (const key of asked) {
      const answer = await this.#lookUpLanding(cycle, key).catch((thrown: unknown) => {
        const error = classifyError(thrown)
        // The next cycle knows no more of a record whose time is only a bound: this one is not complete.
        if (error.code === 'CANCELLED' || error.code === 'LEASE_LOST' || hasReadTime(shown.get(key)!)) throw error
        this.#log.warn('a lookup failed; the next cycle decides about the rows that are left', { code: error.code })
        return undefined
      })
      if (answer === undefined) break
      const isConfirmed = agreesWithListing(shown.get(key)!, answer)
      if (isConfirmed === true) confirmed.push(key)
      if (isConfirmed === false) refuted.push(key)
    }
    return { database, confirmed, refuted }
  }

  /** The first of these keys that the source still has, although its listing did not show it; null when it has none. */
  async findPresent(cycle: CycleFacts, keys: readonly string[]): Promise<string | null> {
    for (const key of orderSampleFirst(keys)) {
      const answer = await this.#lookUpLanding(cycle, key).catch((thrown: unknown) => {
        const error = classifyError(thrown)
        const { code, retryAfterMs } = error
        if (code === 'CANCELLED' || code === 'LEASE_LOST') throw error
        throw new SyncError(code, `${this.#plan.sync}: a lookup that confirms a deletion failed, and nothing was deleted. ${error.message}`, {
          cause: error, ...(retryAfterMs !== undefined && { retryAfterMs }),
        })
      })
      if (answer?.type === 'upsert') return key
    }
    return null
  }

  /** Null when the source has nothing under the key. */
  async #lookUpLanding(cycle: CycleFacts, key: string): Promise<Landing | null> {
    const change = await this.#reader.callSource(cycle, (context) => this.#plan.lookup!(key, context))
    if (change === null || change === undefined) return null
    const { landings, quarantined } = await this.#preparer.prepare([change])
    // A record that cannot be stored is still there.
    if (quarantined.length > 0) return { type: 'upsert', database: this.database!, key, text: '', hash: '', cursor: null, upstreamAt: null }
    return landings[0]!
  }
}

/** Undefined when the answer has no time and another form than the listing, so that it proves neither. */
function agreesWithListing(shown: Landing, answer: Landing | null): boolean | undefined {
  if (answer === null || answer.type === 'delete' || shown.type === 'delete') return (answer?.type ?? 'delete') === shown.type
  if (answer.hash === shown.hash) return true
  if (hasReadTime(shown)) return false
  return answer.upstreamAt === null ? undefined : answer.upstreamAt === shown.upstreamAt
}

/** Its time does not say when the record changed. */
function hasReadTime(landing: Landing): boolean {
  return landing.type === 'upsert' && landing.asOf === 'read'
}

function orderSampleFirst(keys: readonly string[]): string[] {
  const step = Math.ceil(keys.length / SAMPLE_SIZE)
  return [...keys.filter((_, at) => at % step === 0), ...keys.filter((_, at) => at % step !== 0)]
}
