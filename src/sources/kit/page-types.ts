import type { Execute, Page, SyncContext, TableShape } from '../../contract/index.ts'

export interface PageTypesOptions {
  /** As log lines name the records: an object, a table. */
  readonly name: string
  /** What holds for all records of the vendor, whatever its metadata says. */
  readonly known: TableShape
  /** Reads the types of the vendor's metadata; null when the vendor refuses to show it. Undefined to ask for none. */
  readonly read: ((context: SyncContext) => Promise<TableShape | null>) | undefined
  /** What the account needs to be shown the metadata. */
  readonly needs: string
}

/** The types of one kind of records, read once per cycle that has any. */
export class PageTypes {
  readonly #options: PageTypesOptions
  /** By cycle. Syncs of several tenants may take turns. */
  readonly #shapes = new Map<string, TableShape>()
  /** Cycles whose request for the types failed. It is then made before the page, so that every request brings the cycle further. */
  readonly #owed = new Set<string>()
  #isRefusalLogged = false

  constructor(options: PageTypesOptions) {
    this.#options = options
  }

  /** The same reads, whose pages with records have the types too. An idle cycle asks for none. */
  add<Read extends Execute<any>>(execute: Read): Read {
    const typed = async (state: unknown, context: SyncContext): Promise<Page> => {
      if (this.#owed.has(cycleOf(context))) await this.#shapeIn(context)
      const page = await execute(state, context)
      return page.changes.some(({ type }) => type === 'upsert') ? { ...page, tables: [await this.#shapeIn(context)] } : page
    }
    return Object.assign(typed, execute) as unknown as Read
  }

  async #shapeIn(context: SyncContext): Promise<TableShape> {
    const cycle = cycleOf(context)
    const cached = this.#shapes.get(cycle)
    if (cached !== undefined) return cached
    const { name, known, read, needs } = this.#options
    if (read === undefined) return known
    if (this.#owed.size === CYCLES_MAX) this.#owed.clear()
    this.#owed.add(cycle)
    const shape = await read(context)
    this.#owed.delete(cycle)
    if (shape === null && !this.#isRefusalLogged) {
      this.#isRefusalLogged = true
      context.log.warn('the source refuses its metadata; the types of the columns follow from values', { name, needs })
    }
    const own = new Set(known.columns.map((column) => column.name))
    const merged = { ...known, columns: [...known.columns, ...(shape?.columns ?? []).filter((column) => !own.has(column.name))] }
    if (this.#shapes.size === CYCLES_MAX) this.#shapes.clear()
    this.#shapes.set(cycle, merged)
    return merged
  }
}

const CYCLES_MAX = 64

function cycleOf({ cycle }: SyncContext): string {
  return `${cycle.id} ${cycle.startedAt}`
}
