import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** One request of a runner, as the source saw it. */
export interface Asked {
  readonly tenant: string
  readonly sync: string
  readonly process: string
  readonly cycle: number
  readonly at: number
  /** Null while it is being answered. */
  endedAt: number | null
}

/** How the source behaves towards one sync. */
export interface Behaviour {
  readonly pageMs?: number
  readonly fails?: boolean
}

/**
 * The source of every sync of a stage worker: one HTTP server outside of all runners, whose own log of requests is the
 * witness. Each sync has a table that grows, changes and shrinks, and a log of what happened to it.
 */
export class Stage {
  readonly log: Asked[] = []
  /** Requests for a sync that another process was in the middle of a request for. There must be none. */
  readonly overlaps: string[] = []
  readonly #server: Server
  readonly #open = new Map<string, Asked>()
  readonly #tables = new Map<string, Table>()
  readonly #behaviours = new Map<string, Behaviour>()

  private constructor() {
    this.#server = createServer((request, response) => void this.#answer(request, response))
  }

  static async open(): Promise<Stage> {
    const stage = new Stage()
    await new Promise<void>((resolve) => stage.#server.listen(0, '127.0.0.1', resolve))
    return stage
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** From now on. Without a name: all that have no behaviour of their own. */
  behave(behaviour: Behaviour, sync = ''): void {
    this.#behaviours.set(sync, behaviour)
  }

  asked(sync: string, tenant = 'default'): Asked[] {
    return this.log.filter((asked) => asked.sync === sync && asked.tenant === tenant)
  }

  /** The truth of a sync. */
  table(sync: string, tenant = 'default'): Table {
    const name = `${tenant}/${sync}`
    let table = this.#tables.get(name)
    if (table === undefined) this.#tables.set(name, (table = new Table(sync)))
    return table
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url!, this.url)
    const [, tenant = '', rows = '', what = ''] = url.pathname.split('/')
    const sync = String(request.headers['x-sync'])
    const { pageMs = 0, fails = false } = this.#behaviours.get(sync) ?? this.#behaviours.get('') ?? {}
    const asked: Asked = { tenant, sync, process: String(request.headers['x-process']), cycle: Number(request.headers['x-cycle']), at: Date.now(), endedAt: null }
    const name = `${tenant}/${sync}`
    const other = this.#open.get(name)
    if (other !== undefined) this.overlaps.push(`${name}: ${asked.process} asked in cycle ${asked.cycle} while ${other.process} was being answered in cycle ${other.cycle}`)
    this.#open.set(name, asked)
    this.log.push(asked)
    const end = (): void => {
      asked.endedAt ??= Date.now()
      if (this.#open.get(name) === asked) this.#open.delete(name)
    }
    // A caller that was killed is in the middle of nothing.
    response.once('close', end)
    if (pageMs > 0) await sleep(pageMs)
    const after = Number(url.searchParams.get('after') ?? 0)
    const table = this.table(rows, tenant)
    const body = what === 'position' ? table.position : what === 'list' ? table.list(after) : table.changes(after)
    response.statusCode = fails ? 500 : 200
    end()
    response.end(JSON.stringify(body))
  }
}

export interface StageChange {
  readonly key: string
  readonly value: number | null
}

export interface StagePage {
  readonly rows: readonly StageChange[]
  readonly next: number
  readonly more: boolean
}

const PAGE = 10

/** Rows with numbers, and the order in which they changed. */
export class Table {
  readonly #prefix: string
  readonly #rows = new Map<number, number>()
  readonly #log: StageChange[] = []

  constructor(prefix: string) {
    this.#prefix = prefix
  }

  /** Null deletes. */
  put(row: number, value: number | null): void {
    if (value === null) this.#rows.delete(row)
    else this.#rows.set(row, value)
    this.#log.push({ key: this.#key(row), value })
  }

  get position(): number {
    return this.#log.length
  }

  get rows(): Record<string, number> {
    return Object.fromEntries([...this.#rows].map(([row, value]) => [this.#key(row), value]))
  }

  /** From this row on, in their order: what comes and goes meanwhile shifts nothing. */
  list(from: number): StagePage {
    const found = [...this.#rows.keys()].filter((row) => row >= from).toSorted((a, b) => a - b)
    const page = found.slice(0, PAGE)
    return { rows: page.map((row) => ({ key: this.#key(row), value: this.#rows.get(row)! })), next: (page.at(-1) ?? from) + 1, more: found.length > PAGE }
  }

  changes(after: number): StagePage {
    const rows = this.#log.slice(after, after + PAGE)
    return { rows, next: after + rows.length, more: this.#log.length > after + rows.length }
  }

  #key(row: number): string {
    return `${this.#prefix}-${row}`
  }
}
