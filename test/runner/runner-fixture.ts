import { Worker } from '../../src/worker/worker.ts'
import type { SyncOptions } from '../../src/worker/sync-options.ts'
import type { Page, Ports, Random, Store, SyncContext, SyncRef } from '../../src/contract/index.ts'
import type { SyncLimits } from '../../src/engine/sync-plan.ts'
import { listDeclaredSyncs, type DeclaredSync } from '../../src/runner/declared-sync.ts'
import { Runner } from '../../src/runner/runner.ts'
import type { RunnerEvent, RunnerOptions } from '../../src/runner/runner-options.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { FakeClock } from '../engine/fake-clock.ts'

export const WORKER = 'shop'
export const SECOND = 1_000
export const MINUTE = 60_000
export const HOUR = 60 * MINUTE

type Declaration = Partial<SyncOptions<any>>

/** A store in memory, a virtual clock, and any number of runners. */
export class RunnerFixture {
  readonly time: FakeClock
  readonly store: Store
  readonly events: RunnerEvent[] = []
  readonly #runners: Runner[] = []

  static async open(start?: string): Promise<RunnerFixture> {
    return new RunnerFixture(new FakeClock(start), await openSqliteStore({ file: ':memory:' }))
  }

  private constructor(time: FakeClock, store: Store) {
    this.time = time
    this.store = store
  }

  runner(syncs: readonly DeclaredSync[], options: Partial<RunnerOptions> = {}): Runner {
    const runner = new Runner({
      store: this.store,
      syncs,
      ports: this.ports(),
      fetch: noFetch,
      secrets: { get: (name) => name },
      holder: `process-${this.#runners.length + 1}`,
      onEvent: (event) => this.events.push(event),
      ...options,
    })
    this.#runners.push(runner)
    return runner
  }

  ports(): Ports {
    return { clock: this.time, random: HALF, log: SILENT }
  }

  trigger(sync: string, store = this.store): Promise<void> {
    return store.signalSync(ref(sync), { kind: 'trigger', actor: 'test', at: this.time.now() })
  }

  pause(sync: string): Promise<void> {
    return this.store.signalSync(ref(sync), { kind: 'pause', actor: 'test', at: this.time.now() })
  }

  resume(sync: string): Promise<void> {
    return this.store.signalSync(ref(sync), { kind: 'resume', actor: 'test', at: this.time.now() })
  }

  /** The `ended` events of a sync. */
  ended(sync: string): Array<Extract<RunnerEvent, { kind: 'ended' }>> {
    return this.events.filter((event) => event.kind === 'ended').filter((event) => event.sync === sync)
  }

  async close(): Promise<void> {
    for (const runner of this.#runners) await Promise.all([runner.stop({ graceMs: 1 }), this.time.advance(10)])
    await this.store.close()
  }
}

export function ref(sync: string): SyncRef {
  return { worker: WORKER, sync }
}

/** Declares syncs of one worker, all into one database. */
export function declare(declarations: Record<string, Declaration>, limits: Partial<SyncLimits> = {}): DeclaredSync[] {
  const worker = new Worker({ name: WORKER })
  const database = worker.database('rows')
  for (const [name, options] of Object.entries(declarations)) {
    worker.sync(name, { database, mode: 'incremental', execute: emptyPage, ...options })
  }
  return listDeclaredSyncs(worker, { limits })
}

export async function emptyPage(): Promise<Page> {
  return { changes: [], hasMore: false }
}

/** Returns one new row per call. */
export function oneRow(): () => Promise<Page> {
  let count = 0
  return async () => ({
    changes: [{ type: 'upsert', key: String(++count), record: { count } }],
    hasMore: false,
    nextState: { count },
  })
}

/** Takes a while and records the time of each call in seconds since `start`. */
export function recordRequestTimes(
  asked: number[],
  start: number,
  ms = 0,
): (state: unknown, context: SyncContext) => Promise<Page> {
  return async (_, { clock, signal }) => {
    asked.push((clock.now() - start) / SECOND)
    if (ms > 0) await clock.sleep(ms, signal)
    return { changes: [], hasMore: false }
  }
}

/** Jitter in the middle, so that delays are round numbers. */
export const HALF: Random = { next: () => 0.5 }
export const SILENT = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
const noFetch = (): Promise<Response> => Promise.reject(new Error('no network here'))
