import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { required } from '../../values/required.ts'

/** One request of a runner, as the source received it. */
export interface SourceRequest {
  readonly tenant: string
  readonly sync: string
  readonly process: string
  readonly cycle: number
  readonly at: number
  /** Null while the response is pending. */
  endedAt: number | null
}

/** How the source behaves for one sync. */
export interface SourceBehaviour {
  readonly pageMs?: number
  readonly fails?: boolean
}

/**
 * The source of every sync of the fixture worker: one HTTP server outside all runners, whose request log is the
 * evidence. Each sync has a table that grows, changes and shrinks, and a log of its changes.
 */
export class SourceServerFixture {
  readonly requests: SourceRequest[] = []
  /** Requests for a sync that arrived while another process had one pending. Must be empty. */
  readonly overlaps: string[] = []
  readonly #server: Server
  readonly #open = new Map<string, SourceRequest>()
  readonly #tables = new Map<string, FixtureTable>()
  readonly #behaviours = new Map<string, SourceBehaviour>()

  private constructor() {
    this.#server = createServer((request, response) => void this.#respond(request, response))
  }

  static async open(): Promise<SourceServerFixture> {
    const stage = new SourceServerFixture()
    await new Promise<void>((resolve) => stage.#server.listen(0, '127.0.0.1', resolve))
    return stage
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Takes effect immediately. Without a name: applies to all syncs that have no behaviour of their own. */
  setBehaviour(behaviour: SourceBehaviour, sync = ''): void {
    this.#behaviours.set(sync, behaviour)
  }

  requestsOf(sync: string, tenant = 'default'): SourceRequest[] {
    return this.requests.filter((asked) => asked.sync === sync && asked.tenant === tenant)
  }

  /** The current rows of a sync. */
  table(sync: string, tenant = 'default'): FixtureTable {
    const name = `${tenant}/${sync}`
    let table = this.#tables.get(name)
    if (table === undefined) this.#tables.set(name, (table = new FixtureTable(sync)))
    return table
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(required(request.url, 'request.url'), this.url)
    const [, tenant = '', rows = '', what = ''] = url.pathname.split('/')
    const sync = String(request.headers['x-sync'])
    const { pageMs = 0, fails = false } = this.#behaviours.get(sync) ?? this.#behaviours.get('') ?? {}
    const asked: SourceRequest = {
      tenant,
      sync,
      process: String(request.headers['x-process']),
      cycle: Number(request.headers['x-cycle']),
      at: Date.now(),
      endedAt: null,
    }
    const name = `${tenant}/${sync}`
    const other = this.#open.get(name)
    if (other !== undefined)
      this.overlaps.push(
        `${name}: ${asked.process} sent a request in cycle ${asked.cycle} while one of ${other.process} was pending in cycle ${other.cycle}`,
      )
    this.#open.set(name, asked)
    this.requests.push(asked)
    const end = (): void => {
      asked.endedAt ??= Date.now()
      if (this.#open.get(name) === asked) this.#open.delete(name)
    }
    // A killed caller has no pending request.
    response.once('close', end)
    if (pageMs > 0) await sleep(pageMs)
    const after = Number(url.searchParams.get('after') ?? 0)
    const table = this.table(rows, tenant)
    const body =
      what === 'position' ? table.headSequence : what === 'list' ? table.listFrom(after) : table.changesAfter(after)
    response.statusCode = fails ? 500 : 200
    end()
    response.end(JSON.stringify(body))
  }
}

export interface FixtureChange {
  readonly key: string
  readonly value: number | null
}

export interface FixturePage {
  readonly rows: readonly FixtureChange[]
  readonly next: number
  readonly more: boolean
}

const PAGE_SIZE = 10

/** Numbered rows, and the order in which they changed. */
export class FixtureTable {
  readonly #prefix: string
  readonly #rows = new Map<number, number>()
  readonly #log: FixtureChange[] = []

  constructor(prefix: string) {
    this.#prefix = prefix
  }

  /** Null deletes. */
  put(row: number, value: number | null): void {
    if (value === null) this.#rows.delete(row)
    else this.#rows.set(row, value)
    this.#log.push({ key: this.#key(row), value })
  }

  get headSequence(): number {
    return this.#log.length
  }

  get rows(): Record<string, number> {
    return Object.fromEntries([...this.#rows].map(([row, value]) => [this.#key(row), value]))
  }

  /** In key order from this row on: concurrent inserts and deletes shift nothing. */
  listFrom(from: number): FixturePage {
    const found = [...this.#rows.keys()].filter((row) => row >= from).toSorted((a, b) => a - b)
    const page = found.slice(0, PAGE_SIZE)
    return {
      rows: page.map((row) => ({ key: this.#key(row), value: required(this.#rows.get(row), 'an entry of rows') })),
      next: (page.at(-1) ?? from) + 1,
      more: found.length > PAGE_SIZE,
    }
  }

  changesAfter(after: number): FixturePage {
    const rows = this.#log.slice(after, after + PAGE_SIZE)
    return { rows, next: after + rows.length, more: this.#log.length > after + rows.length }
  }

  #key(row: number): string {
    return `${this.#prefix}-${row}`
  }
}
