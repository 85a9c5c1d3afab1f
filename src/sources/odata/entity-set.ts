import type { SyncContext, TimeRange } from '../../contract/index.ts'
import { required } from '../../values/required.ts'
import { buildPlan, toRow, type EntityRow, type EntitySetPlan } from './entity-set-plan.ts'
import { buildQueryPath, buildRangeConditions, type EntityQuery } from './query.ts'
import type { EntityPage, ODataService } from './service.ts'
import type { CursorOptions, EntitySetOptions } from './source.ts'

/** A page of an entity set, with the key and cursor of each entity. */
export interface RowPage {
  readonly rows: readonly EntityRow[]
  readonly nextLink: string | null
  /** The response with these entities. */
  readonly page: EntityPage
  /** Whether entities were left for the next page. */
  readonly isTruncated?: boolean
}

const PAGE_SIZE = 1_000

/** An entity set as read by one half of a sync. */
export class EntitySet {
  readonly name: string
  readonly limit: number
  readonly service: ODataService
  readonly #options: EntitySetOptions & Partial<CursorOptions>
  readonly #range: TimeRange
  #plan: { readonly cycle: string; readonly plan: EntitySetPlan } | null = null

  /** With a range, only entities whose cursor is inside it are read. */
  constructor(
    service: ODataService,
    name: string,
    options: EntitySetOptions & Partial<CursorOptions>,
    range: TimeRange = {},
  ) {
    this.name = name
    this.limit = options.pageSize ?? PAGE_SIZE
    this.service = service
    this.#options = options
    this.#range = range
  }

  /** Metadata is loaded once per cycle: it may be as large as a page, and changes with service upgrades. */
  async loadPlan(context: SyncContext): Promise<EntitySetPlan> {
    const cycle = `${context.cycle.id} ${context.cycle.startedAt}`
    if (this.#plan?.cycle !== cycle)
      this.#plan = { cycle, plan: buildPlan(this.name, await this.service.fetchMetadata(context), this.#options) }
    return this.#plan.plan
  }

  /** The plan of the last cycle; null before the first. */
  get cachedPlan(): EntitySetPlan | null {
    return this.#plan?.plan ?? null
  }

  async query(plan: EntitySetPlan, query: EntityQuery, context: SyncContext): Promise<RowPage> {
    const conditions = [...buildRangeConditions(plan, this.#range), ...query.conditions]
    const page = await this.service.fetchPage(
      buildQueryPath(plan, { ...query, conditions }),
      plan.metadata.version,
      context,
      {
        prefer: [`odata.maxpagesize=${this.limit}`],
      },
    )
    return toRowPage(required(page, 'the entity page'), plan)
  }

  /** Follows a link of an earlier response; returns null if the link has expired. */
  async followLink(plan: EntitySetPlan, link: string, context: SyncContext): Promise<RowPage | null> {
    const page = await this.service.fetchPage(link, plan.metadata.version, context, {
      prefer: [`odata.maxpagesize=${this.limit}`],
      answers: [400, 404, 410],
    })
    return page === null ? null : toRowPage(page, plan)
  }

  /** Where to continue after an empty page that is not the end; otherwise null. */
  getLocator({ rows, nextLink, page }: RowPage, context: SyncContext): string | null {
    return rows.length > 0 || nextLink === null ? null : this.service.resolveLink(nextLink, page, context)
  }
}

function toRowPage(page: EntityPage, plan: EntitySetPlan): RowPage {
  return { rows: page.entities.map((entity) => toRow(entity, plan)), nextLink: page.nextLink, page }
}
