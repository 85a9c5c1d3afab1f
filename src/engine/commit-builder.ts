import type { Commit, ListingContext, StateTransition } from '../contract/index.ts'
import type { CheckedPage } from './check-page.ts'
import type { CycleContext } from './cycle-context.ts'
import type { OpenCycle } from './open-cycle.ts'
import type { FetchedPage } from './page-reader.ts'
import {
  buildCommitColumnRules,
  buildCommitDeletes,
  buildCommitOwners,
  buildCommitSchemaModes,
  findConcurrentListings,
  getLookupDatabase,
} from './sync-plan.ts'

/** Builds the commits of one run. */
export class CommitBuilder {
  readonly #context: CycleContext

  constructor(context: CycleContext) {
    this.#context = context
  }

  build(
    open: OpenCycle,
    { request, checked, prepared }: FetchedPage,
    transition: StateTransition,
    drift: readonly string[],
  ): Commit {
    const { plan, options, lease } = this.#context
    const text = open.driftDetector.formatMessages(drift)
    return {
      lease,
      version: open.checkpoint.version,
      at: options.ports.clock.now(),
      transition,
      owner: plan.owner,
      owners: buildCommitOwners(plan),
      landings: prepared.landings,
      quarantined: prepared.quarantined,
      columns: prepared.columns,
      ...(prepared.shapes.length > 0 && { shapes: prepared.shapes }),
      historyDays: Object.fromEntries(plan.databases.map(({ name, historyDays = null }) => [name, historyDays])),
      readAtSequence: request.readAtSequence,
      upstreamToleranceMs: plan.upstreamToleranceMs,
      ...(plan.mode === 'replace' && { listing: this.#buildListingContext(open, checked) }),
      ...(text !== null && { drift: text }),
      ...(checked.partitions.length > 0 && { partitions: checked.partitions }),
      ...buildCommitDeletes(plan),
      ...buildCommitSchemaModes(plan),
      ...buildCommitColumnRules(plan),
    }
  }

  /** A lookup cannot confirm an entry of a log: only a second read of the log decides. */
  #buildListingContext({ settledSequence }: OpenCycle, { isLog }: CheckedPage): ListingContext {
    const database = getLookupDatabase(this.#context.plan)
    return { settledSequence, ...(!isLog && database !== null && { lookupDatabase: database }) }
  }

  /**
   * A listing's page may be older than the records that this sync reads concurrently. A record that changed and changed
   * back is logged even though it is equal: the listing, which saw it in between, must be ordered before it.
   */
  async orderAgainstListings(
    { inflight }: OpenCycle,
    { request, checked: { isLog }, prepared: { landings } }: FetchedPage,
  ): Promise<Partial<Commit>> {
    if (isLog && this.#context.plan.mode === 'replace')
      return { readAtSequence: inflight.startSequence, isHistoricalLog: true }
    const listingStart = await this.#findLatestListingStart()
    if (listingStart === null) return {}
    // Without a time, only an entry made after this page was requested is newer than every page of the listing.
    const isTimeless = !isLog && landings.some(({ upstreamAt }) => upstreamAt === null)
    return { forceLogSince: isTimeless ? Math.max(listingStart, request.readAtSequence) : listingStart }
  }

  /**
   * The start of the latest running listing. Queried after the page was read: a listing that begins now reads later
   * than the page.
   */
  async #findLatestListingStart(): Promise<number | null> {
    const { plan, retryingStore } = this.#context
    let listingStart: number | null = null
    for (const sync of findConcurrentListings(plan)) {
      const { inflight } = await retryingStore.call((store) => store.readCheckpoint({ worker: plan.worker, sync }))
      if (inflight !== null) listingStart = Math.max(listingStart ?? 0, inflight.startSequence)
    }
    return listingStart
  }
}
