import { Worker } from '../../src/worker/worker.ts'
import type { TrackSource } from '../../src/worker/track-options.ts'
import type { Execute, Mode, TimeRange } from '../../src/contract/index.ts'
import type { CycleResult, CycleProgress } from '../../src/engine/cycle-options.ts'
import { toRangePlan } from '../../src/engine/range-plan.ts'
import type { SyncLimits, SyncPlan } from '../../src/engine/sync-plan.ts'
import {
  createSimulatorFetch,
  type ApiSimulator,
  type Fields,
  type LoggedRequest,
  type SimulatorPorts,
} from '../../simulators/src/index.ts'
import { toRequestError } from '../../src/platform/request-error.ts'
import { RandomStream } from '../../src/testing/simulation/random-stream.ts'
import { DATABASE, MINUTE, ref, EngineFixture, WORKER } from '../engine/engine-fixture.ts'

interface RunOverrides {
  /** The time since the previous run. */
  readonly afterMs?: number
  /** Ends the run after this many pages; the next run resumes the cycle, as after a crash. */
  readonly pagesMax?: number
  readonly retriesMax?: number
  /** Called before each request reaches the vendor, to change data or to throw. */
  readonly onRequest?: (request: number) => void
  readonly onProgress?: (progress: CycleProgress) => void
  /** Replaces the body of a JSON response. */
  readonly spoil?: (body: any, url: URL, headers: Headers) => unknown
  readonly allowDeletes?: boolean
}

/** The simulated vendor, which knows the expected data. */
type VendorWithTruth = ApiSimulator & { truth(type: string): Fields[] }

/** A simulated vendor behind fetch, and the production engine on an in-memory store, on one clock. */
export class VendorFixture<Vendor extends VendorWithTruth> {
  readonly scene: EngineFixture
  readonly vendor: Vendor
  #plans: { backfill: SyncPlan; delta: SyncPlan } | null = null
  #list: SyncPlan | null = null

  private constructor(scene: EngineFixture, vendor: Vendor) {
    this.scene = scene
    this.vendor = vendor
  }

  static async open<Vendor extends VendorWithTruth>(
    make: (ports: SimulatorPorts) => Vendor,
    seed = 1,
  ): Promise<VendorFixture<Vendor>> {
    const scene = await EngineFixture.open()
    return new VendorFixture(scene, make({ clock: scene.clock, random: new RandomStream(seed, 'vendor') }))
  }

  track(source: TrackSource, databases: readonly string[] = []): this {
    const worker = new Worker({ name: WORKER })
    const handles = databases.map((name) => worker.database(name))
    const { backfill, delta } = worker.track('sync', {
      database: worker.database(DATABASE),
      databases: handles,
      source,
    })
    this.#plans = { backfill: worker.plan(backfill), delta: worker.plan(delta) }
    return this
  }

  list(source: { readonly mode: Mode; readonly execute: Execute<any> }, databases: readonly string[] = []): this {
    const worker = new Worker({ name: WORKER })
    const handles = databases.map((name) => worker.database(name))
    worker.sync('sync', { database: worker.database(DATABASE), databases: handles, ...source })
    this.#list = worker.plan('sync')
    return this
  }

  backfill(choices: RunOverrides = {}): Promise<CycleResult> {
    return this.#run(this.#list ?? this.#plans!.backfill, choices)
  }

  /** Reads a range of times again. */
  range(range: TimeRange, choices: RunOverrides = {}): Promise<CycleResult> {
    return this.#run(toRangePlan(this.#list ?? this.#plans!.backfill, range), choices)
  }

  delta(choices: RunOverrides = {}): Promise<CycleResult> {
    return this.#run(this.#plans!.delta, choices)
  }

  /** Repeats runs that fail on their second request until one completes; returns their number. */
  async untilComplete(half: 'backfill' | 'delta'): Promise<number> {
    for (let runs = 1; runs < 50; runs++) {
      const result = await this[half]({
        onRequest(request) {
          if (request > 1) throw new Error('broken off')
        },
      })
      if (result.stopReason === 'complete') return runs
    }
    throw new Error('it does not end')
  }

  async #run(
    plan: SyncPlan,
    {
      afterMs = 5 * MINUTE,
      pagesMax = 1_000,
      retriesMax = 0,
      onRequest,
      onProgress,
      spoil,
      allowDeletes = false,
    }: RunOverrides,
  ): Promise<CycleResult> {
    this.scene.clock.step(afterMs)
    const ask = createSimulatorFetch(this.vendor)
    let requests = 0
    const fetch = async (input: string | URL, init?: RequestInit): Promise<Response> => {
      onRequest?.(++requests)
      const response =
        spoil === undefined
          ? await ask(input, init)
          : await corruptResponse(await ask(input, init), (body, headers) => spoil(body, new URL(input), headers))
      return response.body === null ? response : new Response(failing(response.body, new URL(input)), response)
    }
    const limits: SyncLimits = { ...plan.limits, retriesMax, pagesMax }
    return this.scene.run({ ...plan, limits }, { fetch, allowDeletes, ...(onProgress !== undefined && { onProgress }) })
  }

  /** The requests since the last call. */
  asked(): LoggedRequest[] {
    return this.vendor.requests.entries.splice(0)
  }

  async state(sync = 'sync'): Promise<any> {
    return JSON.parse((await this.scene.checkpoint(sync)).committed ?? 'null')
  }

  /** Sets a state as another release would have left it. */
  async setState(state: unknown, sync = 'sync'): Promise<void> {
    const { store, clock } = this.scene
    const taken = await store.acquire(ref(sync), { holder: 'operator', ttlMs: MINUTE, at: clock.now() })
    if (taken.kind !== 'acquired') throw new Error('the sync is held')
    await store.commit({
      lease: taken.lease,
      version: taken.checkpoint.version,
      at: clock.now(),
      owner: 'operator',
      landings: [],
      quarantined: [],
      columns: {},
      readAtSequence: 0,
      upstreamToleranceMs: 0,
      transition: { kind: 'set', state: JSON.stringify(state), actor: 'operator', reason: 'test' },
    })
    await store.release(taken.lease)
  }

  rows(database?: string): Promise<Record<string, unknown>> {
    return this.scene.rows(database)
  }

  /** The records of the vendor, by key. */
  truth(type: string, key = 'id'): Record<string, Fields> {
    return Object.fromEntries(this.vendor.truth(type).map((record) => [String(record[key]), record]))
  }

  /** Advances the clock. */
  pass(ms: number): void {
    this.scene.clock.step(ms)
  }

  close(): Promise<void> {
    return this.scene.close()
  }
}

/** An interrupted body fails like in the production fetch. */
function failing(body: ReadableStream<Uint8Array>, url: URL): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (done) controller.close()
        else controller.enqueue(value)
      } catch (error) {
        controller.error(toRequestError(error, url, null, 'body'))
      }
    },
  })
}

async function corruptResponse(
  response: Response,
  spoil: (body: unknown, headers: Headers) => unknown,
): Promise<Response> {
  if (response.headers.get('content-type')?.includes('json') !== true) return response
  const headers = new Headers(response.headers)
  headers.delete('content-length')
  return new Response(JSON.stringify(spoil(await response.json(), headers)), { status: response.status, headers })
}
