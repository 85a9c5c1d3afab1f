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

export interface ODataOptions {
  /** The service's root, below which `$metadata` and the entity sets lie. */
  readonly url: string
  readonly auth?: Auth
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>
  /** In every query of ours: `{ 'sap-client': '100' }`. */
  readonly query?: Readonly<Record<string, string>>
}

export interface EntitySetOptions {
  /** What tells entities apart; the key that the service declares unless given. */
  readonly key?: readonly string[]
  /** The properties to read, besides those needed to read at all; all unless given. */
  readonly select?: readonly string[]
  /** A condition of OData that holds for all that is read: `CompanyCode eq '1010'`. */
  readonly filter?: string
  /** A property that says that the entity is gone: true, or anything but null, false, 0 and ''. */
  readonly deleted?: string
  /** 1,000 unless given; the service may give fewer at a time. */
  readonly pageSize?: number
}

export interface CursorOptions extends EntitySetOptions {
  /** The property that every change raises: a moment or a day. */
  readonly cursor: string
  /** How long after its moment a change may become visible; 30 seconds unless given. A second is added, for moments without fractions. */
  readonly lagMs?: number
  /** Every cycle reads so much again, such as `PT5M`: for clocks that differ, and moments that clients set. */
  readonly safetyWindow?: string
  /** Where a sync without state begins. At the first entity unless given. */
  readonly since?: string
  /** Whether answers show every digit of the cursor. Told from `$metadata` unless given. */
  readonly exactCursor?: boolean
  /** Ask with a bare `gt` and with no upper bound. Entities that share the last cursor's value, or become visible late, are then never read. */
  readonly strict?: boolean
}

export interface ODataStream<DeltaState = KeysetState> {
  readonly backfill: Execute<TokenState>
  readonly delta: Execute<DeltaState>
  readonly anchor: (context: SyncContext) => Promise<DeltaState | undefined>
  /** How long a change may take to show in the backfill. */
  readonly lagMs?: number
}

/** It begins at the first entity, so it needs no anchor. */
export type StrictStream = Omit<ODataStream<WatermarkState>, 'anchor'>

export interface ODataSource {
  /** Followed by its cursor: `worker.track('accounts', { database, source: erp.entitySet('GLAccounts', { cursor: 'LastUpdated' }) })`. */
  entitySet(name: string, options: CursorOptions & { readonly strict: true }): StrictStream
  entitySet(name: string, options: CursorOptions): ODataStream
  /** Followed by the delta links of the service, which tell of deletions too: `worker.track('people', { database, source: erp.tracked('People') })`. */
  tracked(name: string, options?: Omit<EntitySetOptions, 'deleted'>): ODataStream<TokenState>
  /** All of it each time; what is no longer there is swept: `worker.sync('countries', { database, ...erp.listing('Countries') })`. */
  listing(name: string, options?: EntitySetOptions): { readonly mode: 'replace'; readonly execute: Execute<TokenState> }
}

/** Entity sets of OData services, versions 4 and 2. */
export function odata(options: ODataOptions): ODataSource {
  const service = new ODataService(options)
  /** Each half of a sync reads by a plan of its own. */
  const shaped = <Read extends Execute<any>>(name: string, given: EntitySetOptions & Partial<CursorOptions>, make: (set: EntitySet) => Read): Read => {
    const set = new EntitySet(service, name, given)
    return withTableShape(set, make(set))
  }
  function entitySet(name: string, given: CursorOptions & { readonly strict: true }): StrictStream
  function entitySet(name: string, given: CursorOptions): ODataStream
  function entitySet(name: string, given: CursorOptions): ODataStream | StrictStream {
    const backfill = shaped(name, given, createListing)
    const { lagMs = LAG_MS } = given
    if (given.strict === true) return { backfill, delta: shaped(name, given, (set) => createAfterCursorDelta(set, given)), lagMs }
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
