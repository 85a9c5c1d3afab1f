import type {
  Change,
  Execute,
  JsonObject,
  LandingCounts,
  LogEntry,
  Log,
  Page,
  Ports,
  Random,
  Store,
  SyncContext,
  SyncRef,
} from '../../src/contract/index.ts'
import { runCycle } from '../../src/engine/cycle.ts'
import type { CycleOptions, CycleResult } from '../../src/engine/cycle-options.ts'
import { DEFAULT_LIMITS, DEFAULT_SWEEP, type SyncLimits, type SyncPlan } from '../../src/engine/sync-plan.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { parseJson } from '../../src/values/json.ts'
import { FakeClock } from './fake-clock.ts'

export const WORKER = 'shop'
export const DATABASE = 'things'
export const SECOND = 1_000
export const MINUTE = 60_000
export const HOUR = 60 * MINUTE

/** One in-memory store, one clock, and any number of cycles on them. */
export class EngineFixture {
  readonly clock = new FakeClock()
  readonly store: Store
  /** All log output, as text. */
  readonly logged: string[] = []
  readonly ports: Ports

  private constructor(store: Store) {
    this.store = store
    const log = (message: string, fields?: object): void =>
      void this.logged.push(`${message} ${JSON.stringify(fields)}`)
    this.ports = {
      clock: this.clock,
      random: HALF,
      log: { debug: log, info: log, warn: log, error: log } satisfies Log,
    }
  }

  static async open(): Promise<EngineFixture> {
    return new EngineFixture(await openSqliteStore({ file: ':memory:' }))
  }

  /** Runs a cycle to its end, advancing the clock as needed. */
  run(plan: SyncPlan, options: Partial<CycleOptions> = {}): Promise<CycleResult> {
    return this.clock.drive(this.start(plan, options))
  }

  /** Only starts a cycle; for a cycle inside or beside another. */
  start(plan: SyncPlan, options: Partial<CycleOptions> = {}): Promise<CycleResult> {
    return runCycle(plan, {
      store: this.store,
      ports: this.ports,
      fetch: noFetch,
      secrets: { get: (name) => name },
      holder: 'process-1',
      trigger: 'test',
      ...options,
    })
  }

  checkpoint(sync = 'sync'): ReturnType<Store['readCheckpoint']> {
    return this.store.readCheckpoint(ref(sync))
  }

  /** Key and record of every live row. */
  async rows(database = DATABASE): Promise<Record<string, unknown>> {
    const rows = await this.store.rows({ database, limit: 100_000 })
    return Object.fromEntries(rows.map((row) => [row.key, parseJson(row.text)]))
  }

  async keys(database = DATABASE): Promise<string[]> {
    return (await this.store.rows({ database, limit: 100_000 })).map((row) => row.key)
  }

  feed(): Promise<LogEntry[]> {
    return this.store.changes({ after: 0, limit: 100_000 })
  }

  close(): Promise<void> {
    return this.store.close()
  }
}

export function ref(sync = 'sync'): SyncRef {
  return { worker: WORKER, sync }
}

type PlanOptions = Partial<Omit<SyncPlan, 'limits'>> & { execute: Execute<any>; limits?: Partial<SyncLimits> }

/** An incremental sync of one database by default. */
export function planOf({ limits, ...options }: PlanOptions): SyncPlan {
  const sync = options.sync ?? 'sync'
  return {
    worker: WORKER,
    sync,
    mode: 'incremental',
    databases: [{ name: DATABASE }],
    owner: `${WORKER}/${sync}`,
    pacers: [],
    limits: { ...DEFAULT_LIMITS, ...limits },
    sweep: DEFAULT_SWEEP,
    scope: null,
    upstreamToleranceMs: 0,
    ...options,
  }
}

type Answer = Page | Error | ((state: any, context: SyncContext) => Page | Promise<Page>)

/** A source that returns one answer per call, and records the states it was called with. */
export function createScriptedSource(...answers: Answer[]): {
  execute: Execute
  asked: unknown[]
  contexts: SyncContext[]
} {
  const asked: unknown[] = []
  const contexts: SyncContext[] = []
  return {
    asked,
    contexts,
    async execute(state, context) {
      contexts.push(context)
      const answer = answers[asked.push(state) - 1]
      if (answer === undefined)
        throw new Error(`asked ${asked.length} times, and only ${answers.length} answers are scripted`)
      if (answer instanceof Error) throw answer
      return typeof answer === 'function' ? answer(state, context) : answer
    },
  }
}

/** Always returns everything, in pages of the given keys; each record contains its key. */
export function listing(...pages: string[][]): Execute<number> {
  return async (state = 0) => ({
    changes: pages[state]!.map((key) => upsert(key)),
    hasMore: state + 1 < pages.length,
    nextState: state + 1,
  })
}

export function upsert(
  key: string,
  record: JsonObject = { of: key },
  more: { at?: string; cursor?: string; database?: string } = {},
): Change {
  const { at, ...rest } = more
  return { type: 'upsert', key, record, ...rest, ...(at === undefined ? {} : { upstreamUpdatedAt: at }) }
}

export function remove(key: string, at?: string): Change {
  return { type: 'delete', key, ...(at === undefined ? {} : { upstreamUpdatedAt: at }) }
}

export function counts(some: Partial<LandingCounts>): LandingCounts {
  return { created: 0, updated: 0, deleted: 0, swept: 0, unchanged: 0, stale: 0, missing: 0, quarantined: 0, ...some }
}

/** The store with some of its methods replaced. */
export function storeWith(store: Store, changed: Partial<Store>): Store {
  return { ...store, ...changed }
}

/** The middle of the jitter, so that waits equal the declared values. */
export const HALF: Random = { next: () => 0.5 }

const noFetch = (): Promise<Response> => Promise.reject(new Error('no network here'))
