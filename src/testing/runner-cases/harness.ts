import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { JsonObject, Store, SyncRef } from '../../contract/index.ts'
import { listDeclaredSyncs } from '../../runner/declared-sync.ts'
import { readStatus, type SyncStatus } from '../../runner/status.ts'
import { parseJson } from '../../values/json.ts'
import type { SourceServerFixture } from './source-server-fixture.ts'
import { createFixtureWorker, type FixtureWorkerOptions } from './fixture-worker.ts'
import { required } from '../../values/required.ts'

/** A runner seen from outside: the interface does not depend on where a cycle runs. */
export interface RunnerHarness {
  /** The store that holds its checkpoints, opened on a separate connection; initially empty. */
  readonly store: Store
  /** Starts this many processes that run `createFixtureWorker(…)`; resolves when they are running. */
  start(options: StartOptions): Promise<void>
  trigger(sync: string, tenant?: string): Promise<void>
  pause(sync: string): Promise<void>
  resume(sync: string): Promise<void>
  /** Stops all processes gracefully: current pages land and leases are released. Resolves when they have exited. */
  stop(): Promise<void>
  /** Kills one process without warning and returns its name as the fixture knows it. Resolves when it has exited. */
  kill(): Promise<string>
  /** Stops everything that still runs. */
  close(): Promise<void>
}

/** The processes, tenants and syncs that a runner case needs. */
export interface StartOptions extends Omit<FixtureWorkerOptions, 'url' | 'process'> {
  readonly processes: number
  /** Concurrent cycles in each process. */
  readonly concurrency: number
  readonly tenants: readonly string[]
}

/** A case of the conformance suite of runners. */
export interface RunnerCase {
  readonly name: string
  run(scene: RunnerCaseFixture): Promise<void>
}

export function rule(name: string, run: RunnerCase['run']): RunnerCase {
  return { name, run }
}

/** A runner with its source fixture, and the operations that cases need. */
export class RunnerCaseFixture {
  readonly harness: RunnerHarness
  readonly source: SourceServerFixture

  constructor(harness: RunnerHarness, stage: SourceServerFixture) {
    this.harness = harness
    this.source = stage
  }

  get store(): Store {
    return this.harness.store
  }

  /** Two processes by default, with leases that outlast any stall of the machine. */
  async start(options: Partial<StartOptions> = {}): Promise<void> {
    await this.harness.start({
      processes: 2,
      concurrency: 3,
      leaseMs: 30_000,
      tenants: [this.store.tenant],
      ...options,
    })
  }

  async status(sync: string): Promise<SyncStatus> {
    const syncs = listDeclaredSyncs(createFixtureWorker({ url: '', process: '', leaseMs: 1 })).filter(
      ({ plan }) => plan.sync === sync,
    )
    return required((await readStatus({ store: this.store, syncs, now: Date.now() }))[0], 'the result of readStatus[0]')
  }

  async version(sync: string, store = this.store): Promise<number> {
    return (await store.readCheckpoint(syncRef(sync))).version
  }

  /** Committed rows. */
  async rows(database = 'rows'): Promise<Record<string, unknown>> {
    const rows = await this.store.rows({ database, limit: 100_000 })
    return Object.fromEntries(rows.map(({ key, text }) => [key, (parseJson(text) as JsonObject)['value']]))
  }

  /** Records a cycle at that time: the runner finds it in the registry, as after a restart. */
  async recordCycleAt(sync: string, at: number): Promise<void> {
    const { store } = this
    const taken = await store.acquire(syncRef(sync), { holder: 'before', ttlMs: 60_000, at: Date.now() })
    if (taken.kind === 'held') assert.fail(`${sync} is held by ${taken.holder}`)
    const {
      lease,
      checkpoint: { version },
    } = taken
    const {
      inflight: { cycle },
    } = required(
      await store.beginCycle(lease, {
        at,
        mode: 'incremental',
        trigger: 'schedule',
        fresh: false,
        databases: ['rows'],
      }),
      'the result of beginCycle',
    )
    const outcome = await store.commit({
      lease,
      version,
      at,
      owner: 'stage',
      landings: [],
      quarantined: [],
      columns: {},
      readAtSequence: 0,
      upstreamToleranceMs: 0,
      transition: { kind: 'complete', cycle, page: 1, state: '{"after":0}', tidemark: null, scope: null, sweep: null },
    })
    assert.equal(outcome.kind, 'landed')
    const counts = { created: 0, updated: 0, deleted: 0, swept: 0, unchanged: 0, stale: 0, missing: 0, quarantined: 0 }
    await store.release(lease, {
      cycle,
      stopReason: 'complete',
      endedAt: at,
      pages: 1,
      counts,
      retries: 0,
      waitedMs: 0,
      error: null,
      retryAt: null,
    })
  }

  async waitUntil(what: string, condition: () => boolean | Promise<boolean>, limitMs = 40_000): Promise<void> {
    const deadline = performance.now() + limitMs
    while (!(await condition())) {
      if (performance.now() > deadline) assert.fail(`timed out waiting for ${what}. ${await this.#describeFailures()}`)
      await sleep(25)
    }
  }

  async #describeFailures(): Promise<string> {
    const { syncs } = await this.store.listSyncStatus({ at: Date.now(), recent: 1 })
    const failed = syncs.filter(({ checkpoint }) => checkpoint.lastError !== null)
    return failed
      .map(
        ({ sync, checkpoint: { lastError } }) =>
          `${sync}: ${required(lastError, 'lastError').code} ${required(lastError, 'lastError').message}`,
      )
      .join('; ')
  }
}

export function syncRef(sync: string): SyncRef {
  return { worker: 'stage', sync }
}
