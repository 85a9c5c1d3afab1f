import type { SyncContext } from '../../contract/index.ts'
import { planOf, rowOf, type Row, type SetPlan } from './plan.ts'
import { targetOf, type Question } from './query.ts'
import type { EntityPage, Service } from './service.ts'
import type { CursorOptions, SetOptions } from './source.ts'

/** A page of an entity set, with the key and the cursor of each entity at hand. */
export interface RowPage {
  readonly rows: readonly Row[]
  readonly nextLink: string | null
  /** The answer they came with. */
  readonly page: EntityPage
  /** Whether entities of it were left for the next page. */
  readonly isCut?: boolean
}

const PAGE_SIZE = 1_000

/** One entity set of a service, as one half of a sync reads it. */
export class EntitySet {
  readonly name: string
  readonly limit: number
  readonly service: Service
  readonly #options: SetOptions & Partial<CursorOptions>
  #plan: { readonly cycle: string; readonly plan: SetPlan } | null = null

  constructor(service: Service, name: string, options: SetOptions & Partial<CursorOptions>) {
    this.name = name
    this.limit = options.pageSize ?? PAGE_SIZE
    this.service = service
    this.#options = options
  }

  /** Asked for once a cycle: what a service says of itself may be as long as a page, and changes when it is upgraded. */
  async plan(context: SyncContext): Promise<SetPlan> {
    const cycle = `${context.cycle.id} ${context.cycle.startedAt}`
    if (this.#plan?.cycle !== cycle) this.#plan = { cycle, plan: planOf(this.name, await this.service.metadata(context), this.#options) }
    return this.#plan.plan
  }

  /** The plan that a cycle has asked for; null before the first. */
  get knownPlan(): SetPlan | null {
    return this.#plan?.plan ?? null
  }

  async ask(plan: SetPlan, question: Question, context: SyncContext): Promise<RowPage> {
    const page = await this.service.page(targetOf(plan, question), plan.metadata.version, context, { prefer: [`odata.maxpagesize=${this.limit}`] })
    return rowPage(page!, plan)
  }

  /** A link of an earlier answer; null when it is no longer any good. */
  async follow(plan: SetPlan, link: string, context: SyncContext): Promise<RowPage | null> {
    const page = await this.service.page(link, plan.metadata.version, context, { prefer: [`odata.maxpagesize=${this.limit}`], answers: [400, 404, 410] })
    return page === null ? null : rowPage(page, plan)
  }

  /** Where to go on after an empty page that is not the end; null where there is something else to go on from. */
  locator({ rows, nextLink, page }: RowPage, context: SyncContext): string | null {
    return rows.length > 0 || nextLink === null ? null : this.service.link(nextLink, page, context)
  }
}

function rowPage(page: EntityPage, plan: SetPlan): RowPage {
  return { rows: page.entities.map((entity) => rowOf(entity, plan)), nextLink: page.nextLink, page }
}
