import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from '../../../src/worker/worker.ts'
import { runCycle } from '../../../src/worker/run-cycle.ts'
import type { Execute, Log, Mode, QuarantineEntry, Store } from '../../../src/contract/index.ts'
import type { CycleResult } from '../../../src/engine/cycle-options.ts'
import type { SyncLimits } from '../../../src/engine/sync-plan.ts'
import { singer, type SingerOptions, type SingerSource } from '../../../src/sources/singer/source.ts'
import { openSqliteStore } from '../../../src/stores/sqlite/store.ts'
import { parseJson } from '../../../src/values/json.ts'

export const TAP = join(import.meta.dirname, 'tap.mjs')
export const KEY = 'sk_live_4711/+"'

export interface TapData {
  streams: Record<string, { key?: string[]; schema?: object; rows: Array<Record<string, unknown>> }>
  [misbehaviour: string]: unknown
}

export interface TapInvocation {
  readonly args: readonly string[]
  readonly pid: number
  readonly folder: string
  readonly folderMode: string
  readonly modes: readonly string[]
  readonly environment: readonly string[]
  readonly state: string | null
  readonly config: Record<string, unknown>
}

/** The data of the tap, the tap itself as a source, and a store. */
export class TapFixture {
  readonly folder = mkdtempSync(join(tmpdir(), 'tidemark-tap-'))
  readonly file = join(this.folder, 'world.json')
  readonly logged: string[] = []
  readonly store: Store
  readonly #source: SingerSource
  #sync: { mode: Mode; execute: Execute<any> }

  private constructor(store: Store, options: Partial<SingerOptions>) {
    this.store = store
    this.#source = singer({
      command: [process.execPath, TAP],
      config: { world: this.file, api_key: '${TAP_KEY}' },
      ...options,
    })
    this.#sync = this.#source.stream('people')
  }

  static async open(options: Partial<SingerOptions> = {}): Promise<TapFixture> {
    return new TapFixture(await openSqliteStore({ file: ':memory:' }), options)
  }

  use(choose: (source: SingerSource) => { mode: Mode; execute: Execute<any> }): this {
    this.#sync = choose(this.#source)
    return this
  }

  serve(world: TapData): this {
    writeFileSync(this.file, JSON.stringify(world))
    return this
  }

  run(
    options: { signal?: AbortSignal; limits?: Partial<SyncLimits>; onLanded?: (page: number) => void } = {},
  ): Promise<CycleResult> {
    const worker = new Worker({ name: 'office' })
    const databases = ['notes', 'teams'].map((name) => worker.database(name))
    worker.sync('people', {
      database: worker.database('people'),
      databases,
      ...this.#sync,
      ...(options.limits !== undefined && { limits: options.limits }),
    })
    const log = (message: string, fields?: object): void =>
      void this.logged.push(`${message} ${JSON.stringify(fields)}`)
    return runCycle(worker, 'people', {
      store: this.store,
      secrets: { TAP_KEY: KEY },
      log: { debug: log, info: log, warn: log, error: log } satisfies Log,
      ...(options.signal !== undefined && { signal: options.signal }),
      onProgress: (progress) => (progress.kind === 'landed' ? options.onLanded?.(progress.page) : undefined),
    })
  }

  /** Every start of the tap, discoveries among them. */
  seen(): TapInvocation[] {
    return existsSync(`${this.file}.seen`)
      ? readFileSync(`${this.file}.seen`, 'utf8')
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line) as TapInvocation)
      : []
  }

  async rows(database = 'people'): Promise<Record<string, unknown>> {
    return Object.fromEntries(
      (await this.store.rows({ database, limit: 100_000 })).map(({ key, text }) => [key, parseJson(text)]),
    )
  }

  async state(): Promise<any> {
    return JSON.parse((await this.store.readCheckpoint({ worker: 'office', sync: 'people' })).committed ?? 'null')
  }

  async inflight(): Promise<any> {
    return JSON.parse((await this.store.readCheckpoint({ worker: 'office', sync: 'people' })).inflight?.state ?? 'null')
  }

  async logCount(): Promise<number> {
    return (await this.store.changes({ after: 0, limit: 100_000 })).length
  }

  quarantined(): Promise<QuarantineEntry[]> {
    return this.store.quarantineEntries()
  }

  async close(): Promise<void> {
    await this.store.close()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** People whose times go up, some sharing one. */
export function people(count: number, from = 1): Array<Record<string, unknown>> {
  return Array.from({ length: count }, (_, index) => ({
    id: from + index,
    name: `Person ${from + index}`,
    updated_at: `2026-01-01T00:${String(Math.floor((from + index) / 120)).padStart(2, '0')}:${String(Math.floor((from + index) / 2) % 60).padStart(2, '0')}Z`,
  }))
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Looks until it is so. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 20))
}
