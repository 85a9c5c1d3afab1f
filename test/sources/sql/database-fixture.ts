import { runCycle } from '../../../src/worker/run-cycle.ts'
import { Worker } from '../../../src/worker/worker.ts'
import type { TrackSource } from '../../../src/worker/track-options.ts'
import type { Execute, Log, Mode, Store } from '../../../src/contract/index.ts'
import type { CycleResult } from '../../../src/engine/cycle-options.ts'
import type { SyncLimits } from '../../../src/engine/sync-plan.ts'
import { openSqliteStore } from '../../../src/stores/sqlite/store.ts'
import { parseJson } from '../../../src/values/json.ts'

/** A store in memory and the real clock: the servers that are read from have one of their own. */
export class DatabaseFixture {
  readonly store: Store
  readonly logged: string[] = []
  readonly #worker = new Worker({ name: 'office' })

  private constructor(store: Store) {
    this.store = store
  }

  static async open(): Promise<DatabaseFixture> {
    return new DatabaseFixture(await openSqliteStore({ file: ':memory:' }))
  }

  sync(name: string, mode: Mode, execute: Execute<any>, limits: Partial<SyncLimits> = {}): this {
    this.#worker.sync(name, {
      database: this.#worker.database(name),
      mode,
      execute,
      limits: { retriesMax: 0, ...limits },
    })
    return this
  }

  track(name: string, source: TrackSource, databases: readonly string[] = [], limits: Partial<SyncLimits> = {}): this {
    const [own, ...others] = [name, ...databases].map((database) => this.#worker.database(database))
    this.#worker.track(name, { database: own!, databases: others, source, limits: { retriesMax: 0, ...limits } })
    return this
  }

  run(sync: string, options: { fresh?: boolean; allowDeletes?: boolean } = {}): Promise<CycleResult> {
    const log = (message: string, fields?: object): void =>
      void this.logged.push(`${message} ${JSON.stringify(fields)}`)
    return runCycle(this.#worker, sync, {
      store: this.store,
      log: { debug: log, info: log, warn: log, error: log } satisfies Log,
      ...options,
    })
  }

  /** Fails with what went wrong. */
  async complete(sync: string, options: { fresh?: boolean; allowDeletes?: boolean } = {}): Promise<CycleResult> {
    const result = await this.run(sync, options)
    if (result.stopReason !== 'complete')
      throw new Error(`${sync} ended by ${result.stopReason}: ${JSON.stringify(result.error)}`)
    return result
  }

  async state(sync: string): Promise<any> {
    return JSON.parse((await this.store.readCheckpoint({ worker: 'office', sync })).committed ?? 'null')
  }

  async rows(database: string): Promise<Record<string, any>> {
    const rows = await this.store.rows({ database, limit: 1_000_000 })
    return Object.fromEntries(rows.map((row) => [row.key, parseJson(row.text)]))
  }

  close(): Promise<void> {
    return this.store.close()
  }
}
