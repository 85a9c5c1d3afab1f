import type { SyncContext } from '../../contract/index.ts'
import { buildPlan, toRow, type EntityRow, type EntitySetPlan } from './entity-set-plan.ts'
import { buildQueryPath, type EntityQuery } from './query.ts'
import type { EntityPage, ODataService } from './service.ts'
import type { CursorOptions, EntitySetOptions } from './source.ts'

/** A page of an entity set, with the key and the cursor of each entity at hand. */
export interface RowPage {
  readonly rows: readonly EntityRow[]
  readonly nextLink: string | null
  /** The answer they came with. */
  readonly page: EntityPage
  /** Whether entities of it were left for the next page. */
  readonly isTruncated?: boolean
}

const PAGE_SIZE = 1_000

/** One entity set of a service, as one half of a sync reads it. */
export class EntitySet {
  readonly name: string
  readonly limit: number
  readonly service: ODataService
  readonly #options: EntitySetOptions & Partial<CursorOptions>
  #plan: { readonly cycle: string; readonly plan: EntitySetPlan } | null = null

  constructor(service: ODataService, name: string, options: EntitySetOptions & Partial<CursorOptions>) {
    this.name = name
    this.limit = options.pageSize ?? PAGE_SIZE
    this.service = service
    this.#options = options
  }

  /** Asked for once a cycle: what a service says of itself may be as long as a page, and changes when it is upgraded. */
  async loadPlan(context: SyncContext): Promise<EntitySetPlan> {
    const cycle = `${context.cycle.id} ${context.cycle.startedAt}`
    if (this.#plan?.cycle !== cycle) this.#plan = { cycle, plan: buildPlan(this.name, await this.service.fetchMetadata(context), this.#options) }
    return this.#plan.plan
  }

  /** The plan that a cycle has asked for; null before the first. */
  get cachedPlan(): EntitySetPlan | null {
    return this.#plan?.plan ?? null
  }

  async query(plan: EntitySetPlan, question: EntityQuery, context: SyncContext): Promise<RowPage> {
    const page = await this.service.fetchPage(buildQueryPath(plan, question), plan.metadata.version, context, { prefer: [`odata.maxpagesize=${this.limit}`] })
    return toRowPage(page!, plan)
  }

  /** A link of an earlier answer; null when it is no longer any good. */
  async followLink(plan: EntitySetPlan, link: string, context: SyncContext): Promise<RowPage | null> {
    const page = await this.service.fetchPage(link, plan.metadata.version, context, { prefer: [`odata.maxpagesize=${this.limit}`], answers: [400, 404, 410] })
    return page === null ? null : toRowPage(page, plan)
  }

  /** Where to go on after an empty page that is not the end; null where there is something else to go on from. */
  getLocator({ rows, nextLink, page }: RowPage, context: SyncContext): string | null {
    return rows.length > 0 || nextLink === null ? null : this.service.resolveLink(nextLink, page, context)
  }
}

function toRowPage(page: EntityPage, plan: EntitySetPlan): RowPage {
  return { rows: page.entities.map((entity) => toRow(entity, plan)), nextLink: page.nextLink, page }
}
