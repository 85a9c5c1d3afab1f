import { SyncError, type Execute, type SyncContext, type TimeRange } from '../../contract/index.ts'
import type { KeysetState, TokenState, WatermarkState } from '../../strategies/index.ts'
import type { Auth } from '../kit/auth.ts'
import { limitRange, parseSince, withoutRange, withSinceScope } from '../kit/since.ts'
import { createCursorDelta, LAG_MS } from './cursor-delta.ts'
import { EntitySet } from './entity-set.ts'
import { createListing } from './listing.ts'
import { ODataService } from './service.ts'
import { createAfterCursorDelta } from './after-cursor.ts'
import { trimFraction } from './query.ts'
import { withTableShape } from './table-shape.ts'
import { createDeltaLinkDelta } from './delta-links.ts'

export { apiKey, basic, bearer, type Auth } from '../kit/auth.ts'
export { clientCredentials, refreshToken } from '../kit/oauth.ts'
export { discover, type DiscoveredStream } from './discover.ts'

/** The address and authentication of an OData service. */
export interface ODataOptions {
  /** The service root, which contains `$metadata` and the entity sets. */
  readonly url: string
  readonly auth?: Auth
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>
  /** Added to every query: `{ 'sap-client': '100' }`. */
  readonly query?: Readonly<Record<string, string>>
  /** The start date of every entity set; see `since` of an entity set. */
  readonly since?: string
}

/** Selects the entities and properties to read. */
export interface EntitySetOptions {
  /** Properties that identify an entity; the declared key by default. */
  readonly key?: readonly string[]
  /** Properties to read in addition to the required ones; all by default. */
  readonly select?: readonly string[]
  /** An OData condition applied to every read: `CompanyCode eq '1010'`. */
  readonly filter?: string
  /** The property that marks a deleted entity: true, or any value other than null, false, 0 and ''. */
  readonly deleted?: string
  /** The property that every change increases: a timestamp or a date. */
  readonly cursor?: string
  /** The start date: only entities whose `cursor` is at or after it are read. */
  readonly since?: string
  /** 1,000 by default; the service may return fewer per page. */
  readonly pageSize?: number
}

/** Options of an entity set that is followed by a cursor property. */
export interface CursorOptions extends EntitySetOptions {
  /** The property that every change increases: a timestamp or a date. */
  readonly cursor: string
  /**
   * Maximum delay before a change becomes visible; 30 seconds by default. One second is added for timestamps without
   * fractions.
   */
  readonly lagMs?: number
  /** Every cycle re-reads this much, such as `PT5M`: for clock skew and timestamps set by clients. */
  readonly safetyWindow?: string
  /** Whether responses contain every digit of the cursor; derived from `$metadata` by default. */
  readonly exactCursor?: boolean
  /**
   * Query with a bare `gt` and no upper bound. Entities that share the last cursor value, or become visible late, are
   * never read.
   */
  readonly strict?: boolean
}

/** One entity set. Pass it to `worker.track`. */
export interface ODataStream<DeltaState = KeysetState> {
  readonly backfill: Execute<TokenState>
  readonly delta: Execute<DeltaState>
  readonly anchor: (context: SyncContext) => Promise<DeltaState | undefined>
  /** Maximum delay before a change is visible to the backfill. */
  readonly lagMs?: number
}

/** Starts at the first entity, so it needs no anchor. */
export type StrictStream = Omit<ODataStream<WatermarkState>, 'anchor'>

/** The entity sets of an OData service. */
export interface ODataSource {
  /**
   * Follows a cursor: `worker.track('accounts', { database, source: erp.entitySet('GLAccounts', { cursor: 'LastUpdated'
   * }) })`.
   */
  entitySet(name: string, options: CursorOptions & { readonly strict: true }): StrictStream
  entitySet(name: string, options: CursorOptions): ODataStream
  /**
   * Follows the service's delta links, which include deletions: `worker.track('people', { database, source:
   * erp.tracked('People') })`.
   */
  tracked(name: string, options?: Omit<EntitySetOptions, 'deleted' | 'cursor' | 'since'>): ODataStream<TokenState>
  /**
   * Reads everything each time and sweeps missing rows: `worker.sync('countries', { database,
   * ...erp.listing('Countries') })`.
   */
  listing(name: string, options?: EntitySetOptions): { readonly mode: 'replace'; readonly execute: Execute<TokenState> }
}

/** Reads entity sets of OData services, versions 4 and 2. */
export function odata(options: ODataOptions): ODataSource {
  const service = new ODataService(options)
  /** Each half of a sync has its own plan. */
  const shaped = <Read extends Execute<any>>(
    name: string,
    given: EntitySetOptions & Partial<CursorOptions>,
    make: (set: EntitySet) => Read,
    range: TimeRange = {},
  ): Read => {
    const set = new EntitySet(service, name, given, range)
    return withTableShape(set, make(set))
  }
  /** With a range if the cursor is known. */
  const list = (name: string, given: EntitySetOptions): Execute<TokenState> => {
    const since = parseSince(given.since)
    const listRange = (range: TimeRange): Execute<TokenState> =>
      shaped(name, given, createListing, limitRange(range, since))
    const listing = withSinceScope(listRange({}), since)
    return given.cursor === undefined
      ? withoutRange(listing, 'without `cursor` the entities have no times')
      : Object.assign(listing, { range: listRange })
  }
  const withDefaults = <Given extends EntitySetOptions>(name: string, given: Given): Given => {
    const since = parseSince(given.since ?? options.since)
    if (since !== undefined && given.cursor === undefined)
      throw new SyncError(
        'SYNC_INVALID',
        `${name}: \`since\` needs a \`cursor\`. Name the property that every change increases, or set \`since\` of single entity sets only.`,
      )
    return since === undefined ? given : { ...given, since: trimFraction(since) }
  }
  function entitySet(name: string, given: CursorOptions & { readonly strict: true }): StrictStream
  function entitySet(name: string, given: CursorOptions): ODataStream
  function entitySet(name: string, chosen: CursorOptions): ODataStream | StrictStream {
    const given = withDefaults(name, chosen)
    const { lagMs = LAG_MS } = given
    const backfill = Object.assign(list(name, given), { lagMs })
    if (given.strict === true)
      return { backfill, delta: shaped(name, given, (set) => createAfterCursorDelta(set, given)), lagMs }
    const delta = shaped(name, given, (set) => createCursorDelta(set, given))
    return { backfill, delta, anchor: delta.anchor, lagMs }
  }
  return {
    entitySet,
    tracked(name, given = {}) {
      const options = withDefaults<EntitySetOptions>(name, given)
      const delta = shaped(name, options, createDeltaLinkDelta)
      return { backfill: list(name, options), delta, anchor: delta.anchor }
    },
    listing: (name, given = {}) => ({ mode: 'replace', execute: list(name, withDefaults(name, given)) }),
  }
}
