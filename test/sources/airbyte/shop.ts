import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ImportedState, JsonObject, TimeRange } from '../../../src/contract/index.ts'
import type { CycleResult } from '../../../src/engine/cycle-options.ts'
import { toRangePlan } from '../../../src/engine/range-plan.ts'
import { applyStateTransition } from '../../../src/runner/state-transition.ts'
import { airbyte, type AirbyteSource, type AirbyteStreamOptions } from '../../../src/sources/airbyte/source.ts'
import { EngineFixture, planOf } from '../../engine/engine-fixture.ts'

export const BASE = 'https://shop.example/api'

/** A request as the API saw it. */
export interface ShopRequest {
  readonly method: string
  readonly path: string
  readonly query: Record<string, string>
  readonly headers: Record<string, string>
  readonly body: string | null
  readonly at: number
}

type Answer = (asked: ShopRequest) => unknown

/** An API in memory on the clock of the test, the manifest that reads it, and a store. */
export class Shop {
  readonly scene: EngineFixture
  readonly asked: ShopRequest[] = []
  answers: Record<string, Answer> = {}
  #source: AirbyteSource

  private constructor(scene: EngineFixture, source: AirbyteSource) {
    this.scene = scene
    this.#source = source
  }

  static async open(manifest: string, config: JsonObject = {}): Promise<Shop> {
    return new Shop(await EngineFixture.open(), openSource(manifest, config))
  }

  readonly fetch = async (input: string | URL, init?: RequestInit): Promise<Response> => {
    const url = new URL(input)
    const asked: ShopRequest = {
      method: init?.method ?? 'GET',
      path: url.pathname.replace('/api', ''),
      query: Object.fromEntries(url.searchParams),
      headers: Object.fromEntries(new Headers(init?.headers)),
      body: typeof init?.body === 'string' ? init.body : null,
      at: this.scene.clock.now(),
    }
    this.asked.push(asked)
    const answer = this.answers[asked.path]?.(asked)
    if (answer instanceof Response) return answer
    return answer === undefined ? Response.json({ message: 'not found' }, { status: 404 }) : Response.json(answer)
  }

  /** Runs one cycle of a stream. The clock moves on by itself while the source waits. */
  async run(
    name: string,
    options: AirbyteStreamOptions = {},
    secrets = { SHOP_KEY: 'canary-key' },
  ): Promise<CycleResult> {
    const { mode, execute, limits } = this.#source.stream(name, { lagMs: 0, ...options })
    return this.scene.run(planOf({ mode, execute, limits: { retriesMax: 2, ...limits } }), {
      fetch: this.fetch,
      secrets: { get: (secret: string) => secrets[secret as keyof typeof secrets] },
    })
  }

  /** Reads a range again, as `tidemark backfill --from --to` does. */
  async readRange(name: string, range: TimeRange, options: AirbyteStreamOptions = {}): Promise<CycleResult> {
    const { mode, execute, limits } = this.#source.stream(name, { lagMs: 0, ...options })
    const plan = toRangePlan(planOf({ mode, execute, limits: { retriesMax: 2, ...limits } }), range)
    return this.scene.run(plan, { fetch: this.fetch })
  }

  /** Stores an imported state, as `tidemark state import` does. */
  async setState(name: string, { state, partitions = [] }: ImportedState): Promise<void> {
    const { mode, execute, limits } = this.#source.stream(name, { lagMs: 0 })
    const plan = planOf({ mode, execute, limits: { retriesMax: 2, ...limits } })
    await applyStateTransition(
      this.scene.store,
      { worker: plan.worker, sync: plan.sync },
      {
        state: JSON.stringify(state),
        reason: 'imported',
        owner: plan.owner,
        version: 0,
        partitions: partitions.map(({ key, state: own }) => ({ key, state: JSON.stringify(own) })),
      },
      { clock: this.scene.clock, actor: 'test', holder: 'test', isDead: () => false },
    )
  }

  /** Returns and clears the requests. */
  taken(): ShopRequest[] {
    return this.asked.splice(0)
  }
}

export function openSource(manifest: string, config: JsonObject = {}): AirbyteSource {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-airbyte-'))
  writeFileSync(join(folder, 'manifest.yaml'), manifest)
  return airbyte({ manifest: 'manifest.yaml', folder, config })
}

/** A manifest with the given streams, one line of YAML each. */
export function manifestOf(streams: string, more = ''): string {
  return `version: 4.5.0
type: DeclarativeSource
check: { type: CheckStream, stream_names: [items] }
definitions:
  requester: &requester
    type: HttpRequester
    url_base: ${BASE}
    http_method: GET
  records: { type: RecordSelector, extractor: { type: DpathExtractor, field_path: [data] } }
${more}
streams:
${streams}
spec:
  type: Spec
  connection_specification:
    type: object
    properties:
      api_key: { type: string, airbyte_secret: true }
      start_date: { type: string, default: '2026-02-01T00:00:00Z' }
      page_size: { type: integer, default: 2 }
`
}
