import type { Execute, Mode } from '../../src/contract/index.ts'
import type { CycleResult } from '../../src/engine/cycle-options.ts'
import type { SyncLimits } from '../../src/engine/sync-plan.ts'
import { MINUTE, planOf, ref, EngineFixture } from '../engine/engine-fixture.ts'

interface CycleChoices {
  readonly sync?: string
  readonly mode?: Mode
  /** How long after whatever came before. */
  readonly afterMs?: number
  /** A run of so many pages; the cycle is taken up again by the next run, as after a crash. */
  readonly pagesMax?: number
  readonly limits?: Partial<SyncLimits>
  readonly allowDeletes?: boolean
  /** Discards the unfinished cycle. */
  readonly fresh?: boolean
}

/** A cycle of the production engine, five minutes after the one before. */
export async function runOn(
  scene: EngineFixture,
  execute: Execute<any>,
  choices: CycleChoices = {},
): Promise<CycleResult> {
  const {
    sync = 'sync',
    mode = 'incremental',
    afterMs = 5 * MINUTE,
    pagesMax,
    limits,
    allowDeletes = false,
    fresh = false,
  } = choices
  scene.clock.step(afterMs)
  return scene.run(
    planOf({
      sync,
      execute,
      mode,
      owner: 'shop',
      limits: { retriesMax: 0, ...(pagesMax !== undefined && { pagesMax }), ...limits },
    }),
    { allowDeletes, fresh },
  )
}

/** Until the sync has nothing more to say; it must get there. */
export async function runToEnd(
  scene: EngineFixture,
  execute: Execute<any>,
  choices: CycleChoices = {},
): Promise<CycleResult[]> {
  const results: CycleResult[] = []
  for (let run = 0; run < 200; run++) {
    const result = await runOn(scene, execute, choices)
    results.push(result)
    if (result.stopReason === 'complete') return results
    if (result.stopReason !== 'max_pages')
      throw new Error(`stopped: ${result.stopReason} ${result.error?.message ?? ''}`)
  }
  throw new Error('it does not end')
}

export async function stateOn<State>(scene: EngineFixture, sync = 'sync'): Promise<State | null> {
  return JSON.parse((await scene.checkpoint(sync)).committed ?? 'null') as State | null
}

/** The hand of an operator. */
export async function setState(scene: EngineFixture, value: unknown, sync = 'sync'): Promise<void> {
  const taken = await scene.store.acquire(ref(sync), { holder: 'operator', ttlMs: 1_000, at: scene.clock.now() })
  if (taken.kind !== 'acquired') throw new Error('held')
  await scene.store.commit({
    lease: taken.lease,
    version: taken.checkpoint.version,
    at: scene.clock.now(),
    transition: { kind: 'set', state: value === null ? null : JSON.stringify(value), actor: 'test', reason: 'test' },
    owner: 'shop',
    landings: [],
    quarantined: [],
    columns: {},
    readAtSequence: 0,
    upstreamToleranceMs: 0,
  })
  await scene.store.release(taken.lease)
}

export function iso(ms: number): string {
  return new Date(ms).toISOString()
}
