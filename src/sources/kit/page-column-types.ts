import type { Execute, Page, SyncContext, TableShape } from '../../contract/index.ts'

export interface PageColumnTypesOptions {
  /** The name of the object or table in log lines. */
  readonly name: string
  /** Types that all records of the vendor have. They take precedence over its metadata. */
  readonly knownShape: TableShape
  /** Reads the types from the vendor's metadata; returns null if access is denied. Undefined skips the metadata. */
  readonly readShape: ((context: SyncContext) => Promise<TableShape | null>) | undefined
  /** The permission that the account needs to read the metadata. */
  readonly requiredPermission: string
}

/** Adds column types to pages. Reads them once per cycle, and only if the cycle has records. */
export class PageColumnTypes {
  readonly #options: PageColumnTypesOptions
  /** By cycle, because syncs of several tenants may alternate. */
  readonly #shapeByCycle = new Map<string, TableShape>()
  /** Cycles whose metadata request failed. It is retried before the page is read, so every request makes progress. */
  readonly #unresolvedCycles = new Set<string>()
  #isRefusalLogged = false

  constructor(options: PageColumnTypesOptions) {
    this.#options = options
  }

  /** Wraps the reads so that pages with records have types. An idle cycle makes no metadata request. */
  attachTo<Read extends Execute<any>>(execute: Read): Read {
    const typed = async (state: any, context: SyncContext): Promise<Page<any>> => {
      if (this.#unresolvedCycles.has(getCycleKey(context))) await this.#resolveShape(context)
      const page = await execute(state, context)
      return page.changes.some(({ type }) => type === 'upsert')
        ? { ...page, tables: [await this.#resolveShape(context)] }
        : page
    }
    return Object.assign(typed, execute)
  }

  async #resolveShape(context: SyncContext): Promise<TableShape> {
    const cycle = getCycleKey(context)
    const cached = this.#shapeByCycle.get(cycle)
    if (cached !== undefined) return cached
    const { name, knownShape, readShape, requiredPermission } = this.#options
    if (readShape === undefined) return knownShape
    if (this.#unresolvedCycles.size === CYCLES_MAX) this.#unresolvedCycles.clear()
    this.#unresolvedCycles.add(cycle)
    const shape = await readShape(context)
    this.#unresolvedCycles.delete(cycle)
    if (shape === null && !this.#isRefusalLogged) {
      this.#isRefusalLogged = true
      context.log.warn('the source denies access to its metadata; column types are inferred from values', {
        name,
        requiredPermission,
      })
    }
    const own = new Set(knownShape.columns.map((column) => column.name))
    const merged = {
      ...knownShape,
      columns: [...knownShape.columns, ...(shape?.columns ?? []).filter((column) => !own.has(column.name))],
    }
    if (this.#shapeByCycle.size === CYCLES_MAX) this.#shapeByCycle.clear()
    this.#shapeByCycle.set(cycle, merged)
    return merged
  }
}

const CYCLES_MAX = 64

function getCycleKey({ cycle }: SyncContext): string {
  return `${cycle.id} ${cycle.startedAt}`
}
