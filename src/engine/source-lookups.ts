import { SyncError, type CycleFacts, type Landing, type Log } from '../contract/index.ts'
import { classifyError } from './classify-error.ts'
import type { PageReader } from './page-reader.ts'
import type { PageTransformer } from './page-transformer.ts'
import { PagePreparer } from './page-preparer.ts'
import { getLookupDatabase, type SyncPlan } from './sync-plan.ts'
import { required } from '../values/required.ts'

/** Contested keys of one page to look up; the next cycle decides the others. */
const CONTESTED_LOOKUPS_MAX = 50

/** Absent keys to look up first, spread over all of them: a listing that omitted many rows fails early. */
const SAMPLE_SIZE = 10

/** The lookup results for contested keys. Keys without a conclusive lookup are in neither list. */
export interface ContestedLookupResult {
  readonly database: string
  readonly confirmed: readonly string[]
  readonly refuted: readonly string[]
}

/** Looks up single records if a listing alone does not decide. */
export class SourceLookups {
  readonly #plan: SyncPlan
  readonly #reader: PageReader
  readonly #transformer: PageTransformer
  readonly #log: Log
  readonly #preparer: PagePreparer

  constructor(plan: SyncPlan, reader: PageReader, transformer: PageTransformer, log: Log) {
    this.#plan = plan
    this.#reader = reader
    this.#transformer = transformer
    this.#log = log
    this.#preparer = new PagePreparer(plan.sync, plan.databases, plan.limits)
  }

  /** Checks whether the source really has the listed versions of these keys. */
  async checkContested(
    cycle: CycleFacts,
    keys: readonly string[],
    landings: readonly Landing[],
  ): Promise<ContestedLookupResult> {
    const database = required(getLookupDatabase(this.#plan), 'lookup')
    const listed = new Map(
      landings.filter((landing) => landing.database === database).map((landing) => [landing.key, landing]),
    )
    const confirmed: string[] = []
    const refuted: string[] = []
    // If times are only bounds, any row of the page may differ, and the next cycle would know no more.
    const lookupKeys = keys.filter((key, at) => at < CONTESTED_LOOKUPS_MAX || hasReadTime(listed.get(key)))
    for (const key of lookupKeys) {
      const answer = await this.#lookUpLanding(cycle, key).catch((thrown: unknown) => {
        const error = classifyError(thrown)
        // The next cycle knows no more about a record whose time is only a bound, so this cycle cannot complete.
        if (error.code === 'CANCELLED' || error.code === 'LEASE_LOST' || hasReadTime(listed.get(key))) throw error
        this.#log.warn('a lookup failed; the next cycle decides the remaining rows', { code: error.code })
        return undefined
      })
      if (answer === undefined) break
      const isConfirmed = agreesWithListing(required(listed.get(key), 'contested landing'), answer)
      if (isConfirmed === true) confirmed.push(key)
      if (isConfirmed === false) refuted.push(key)
    }
    return { database, confirmed, refuted }
  }

  /** The first of these keys that the source still has although its listing omitted it; null if there is none. */
  async findPresent(cycle: CycleFacts, keys: readonly string[]): Promise<string | null> {
    for (const key of orderSampleFirst(keys)) {
      const answer = await this.#lookUpLanding(cycle, key).catch((thrown: unknown) => {
        const error = classifyError(thrown)
        const { code, retryAfterMs } = error
        if (code === 'CANCELLED' || code === 'LEASE_LOST') throw error
        throw new SyncError(
          code,
          `${this.#plan.sync}: a lookup to confirm a deletion failed, and nothing was deleted. ${error.message}`,
          {
            cause: error,
            ...(retryAfterMs !== undefined && { retryAfterMs }),
          },
        )
      })
      if (answer?.type === 'upsert') return key
    }
    return null
  }

  /** Null if the source has no record with the key. */
  async #lookUpLanding(cycle: CycleFacts, key: string): Promise<Landing | null> {
    const change = await this.#reader.callSource(cycle, (context) =>
      required(this.#plan.lookup, 'lookup')(key, context),
    )
    if (change === null || change === undefined) return null
    const { landings, quarantined } = await this.#preparer.prepare(await this.#transformer.transformChanges([change]))
    // A record that cannot be stored still exists in the source.
    if (quarantined.length > 0)
      return {
        type: 'upsert',
        database: required(getLookupDatabase(this.#plan), 'lookup'),
        key,
        text: '',
        hash: '',
        cursor: null,
        upstreamAt: null,
      }
    return required(landings[0], 'landing of the lookup')
  }
}

/** Undefined if the lookup result has no time and another form than the listing, so that it proves neither. */
function agreesWithListing(listed: Landing, answer: Landing | null): boolean | undefined {
  if (answer === null || answer.type === 'delete' || listed.type === 'delete')
    return (answer?.type ?? 'delete') === listed.type
  if (answer.hash === listed.hash) return true
  if (hasReadTime(listed)) return false
  return answer.upstreamAt === null ? undefined : answer.upstreamAt === listed.upstreamAt
}

/** The time of the landing is not the time of the record's last change. */
function hasReadTime(landing: Landing | undefined): boolean {
  return landing?.type === 'upsert' && landing.asOf === 'read'
}

function orderSampleFirst(keys: readonly string[]): string[] {
  const step = Math.ceil(keys.length / SAMPLE_SIZE)
  return [...keys.filter((_, at) => at % step === 0), ...keys.filter((_, at) => at % step !== 0)]
}
