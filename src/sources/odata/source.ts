import type { Execute, SyncContext } from '../../contract/index.ts'
import type { KeysetState, TokenState, WatermarkState } from '../../strategies/index.ts'
import type { Auth } from '../kit/auth.ts'
import { createCursorDelta, LAG_MS } from './cursor-delta.ts'
import { EntitySet } from './entity-set.ts'
import { createListing } from './listing.ts'
import { ODataService } from './service.ts'
import { createAfterCursorDelta } from './after-cursor.ts'
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
  /** Where a sync without state begins; at the first entity by default. */
  readonly since?: string
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
  tracked(name: string, options?: Omit<EntitySetOptions, 'deleted'>): ODataStream<TokenState>
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
  ): Read => {
    const set = new EntitySet(service, name, given)
    return withTableShape(set, make(set))
  }
  function entitySet(name: string, given: CursorOptions & { readonly strict: true }): StrictStream
  function entitySet(name: string, given: CursorOptions): ODataStream
  function entitySet(name: string, given: CursorOptions): ODataStream | StrictStream {
    const { lagMs = LAG_MS } = given
    const backfill = Object.assign(shaped(name, given, createListing), { lagMs })
    if (given.strict === true)
      return { backfill, delta: shaped(name, given, (set) => createAfterCursorDelta(set, given)), lagMs }
    const delta = shaped(name, given, (set) => createCursorDelta(set, given))
    return { backfill, delta, anchor: delta.anchor, lagMs }
  }
  return {
    entitySet,
    tracked(name, given = {}) {
      const delta = shaped(name, given, createDeltaLinkDelta)
      return { backfill: shaped(name, given, createListing), delta, anchor: delta.anchor }
    },
    listing: (name, given = {}) => ({ mode: 'replace', execute: shaped(name, given, createListing) }),
  }
}
