import type { Execute, Page, SyncContext, TableShape } from '../../contract/index.ts'

export interface PageColumnTypesOptions {
  /** As log lines name the records: an object, a table. */
  readonly name: string
  /** What holds for all records of the vendor, whatever its metadata says. */
  readonly knownShape: TableShape
  /** Reads the types of the vendor's metadata; null when the vendor refuses to show it. Undefined to ask for none. */
  readonly readShape: ((context: SyncContext) => Promise<TableShape | null>) | undefined
  /** What the account needs to be shown the metadata. */
  readonly requiredPermission: string
}

/** The types of one kind of records, read once per cycle that has any. */
export class PageColumnTypes {
  readonly #options: PageColumnTypesOptions
  /** By cycle. Syncs of several tenants may take turns. */
  readonly #shapeByCycle = new Map<string, TableShape>()
  /** Cycles whose request for the types failed. It is then made before the page, so that every request brings the cycle further. */
  readonly #unresolvedCycles = new Set<string>()
  #isRefusalLogged = false

  constructor(options: PageColumnTypesOptions) {
    this.#options = options
  }

  /** The same reads, whose pages with records have the types too. An idle cycle asks for none. */
  attachTo<Read extends Execute<any>>(execute: Read): Read {
    const typed = async (state: unknown, context: SyncContext): Promise<Page> => {
      if (this.#unresolvedCycles.has(getCycleKey(context))) await this.#resolveShape(context)
      const page = await execute(state, context)
      return page.changes.some(({ type }) => type === 'upsert') ? { ...page, tables: [await this.#resolveShape(context)] } : page
    }
    return Object.assign(typed, execute) as unknown as Read
  }

  async #resolveShape(context: SyncContext): Promise<TableShape> {
    const cycle = getCycleKey(context)
    const cached = this.#shapeByCycle.get(cycle)
    if (cached !== undefined) return cached
    const { name, knownShape: known, readShape: read, requiredPermission: needs } = this.#options
    if (read === undefined) return known
    if (this.#unresolvedCycles.size === CYCLES_MAX) this.#unresolvedCycles.clear()
    this.#unresolvedCycles.add(cycle)
    const shape = await read(context)
    this.#unresolvedCycles.delete(cycle)
    if (shape === null && !this.#isRefusalLogged) {
      this.#isRefusalLogged = true
      context.log.warn('the source refuses its metadata; the types of the columns follow from values', { name, needs })
    }
    const own = new Set(known.columns.map((column) => column.name))
    const merged = { ...known, columns: [...known.columns, ...(shape?.columns ?? []).filter((column) => !own.has(column.name))] }
    if (this.#shapeByCycle.size === CYCLES_MAX) this.#shapeByCycle.clear()
    this.#shapeByCycle.set(cycle, merged)
    return merged
  }
}

const CYCLES_MAX = 64

function getCycleKey({ cycle }: SyncContext): string {
  return `${cycle.id} ${cycle.startedAt}`
}
