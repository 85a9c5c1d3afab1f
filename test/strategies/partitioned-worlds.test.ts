import { describe, expect, test } from 'vitest'
import type { Execute, Mode } from '../../src/contract/index.ts'
import { EngineFixture } from '../engine/engine-fixture.ts'
import { PartitionWorld } from './partitioned-world.ts'
import { iso, runOn } from './run-strategy.ts'

/** Partitions appear, vanish and change while they are read; requests fail, and runs are broken off after any page. */
const WORLDS = Number(process.env['TIDEMARK_PARTITION_WORLDS'] ?? 10)

interface Choices {
  readonly mode: Mode
  build?(world: PartitionWorld): Execute<any>
}

async function play(seed: number, { mode, build }: Choices): Promise<PartitionWorld> {
  const scene = await EngineFixture.open()
  const world = new PartitionWorld(scene.clock, seed)
  const concurrency = 1 + world.roll(4)
  const execute = build?.(world) ?? world.execute({ concurrency, fails: 6 })
  for (let round = 0; round < 12; round++) {
    await runOn(scene, execute, {
      mode,
      afterMs: world.roll(3) * 1_000,
      ...(world.roll(2) === 0 && { pagesMax: 1 + world.roll(4) }),
      allowDeletes: true,
    })
    await checkTidemark(scene, world, `world ${seed}, round ${round}`)
  }
  world.isCalm = true
  for (let round = 0; round < 2; round++) {
    const result = await runOn(scene, execute, { mode, allowDeletes: true })
    expect(result.stopReason, `world ${seed}: ${result.error?.message ?? ''}`).toBe('complete')
  }
  const copy = await scene.rows()
  // Without deletions, an incremental sync keeps the rows of partitions that vanished.
  if (mode === 'replace') expect(copy, `world ${seed}`).toEqual(world.truth())
  else expect(copy, `world ${seed}`).toMatchObject(world.truth())
  const rows = await scene.store.partitions({ worker: 'shop', sync: 'sync' }, { limit: 1_000 })
  expect(
    rows.map(({ key }) => key),
    `world ${seed}`,
  ).toEqual([...world.partitions.keys()].toSorted())
  await scene.close()
  return world
}

/** Invariant 12: no row of the source at or before the tidemark is missing or older. */
async function checkTidemark(scene: EngineFixture, world: PartitionWorld, where: string): Promise<void> {
  const { tidemark } = await scene.checkpoint()
  if (tidemark === null) return
  const copy = await scene.rows()
  for (const { id, at, version } of world.rows()) {
    if (iso(at) > tidemark.replace(/(\.\d{3})\d*Z$/, '$1Z')) continue
    const row = copy[id] as { version: number } | undefined
    expect(row, `${where}: ${id} of ${iso(at)} is missing at ${tidemark}`).toBeDefined()
    expect(row?.version, `${where}: ${id}`).toBeGreaterThanOrEqual(version)
  }
}

describe.each(['incremental', 'replace'] as const)('worlds of partitions, %s', (mode) => {
  test('invariant 12: no row is missed, the tidemark is true after every run, and vanished partitions are removed', async () => {
    let openMax = 0
    for (let seed = 1; seed <= WORLDS; seed++) {
      const world = await play(seed, { mode })
      openMax = Math.max(openMax, world.openMax)
    }
    expect(openMax).toBeGreaterThan(2)
  })
})

test('with a global cursor, no row of any partition is missed and no state of a partition is kept', async () => {
  for (let seed = 1; seed <= WORLDS; seed++) {
    await play(seed, {
      mode: 'incremental',
      build: (world) =>
        world.execute({
          concurrency: 2,
          fails: 6,
          partitionsMax: 5,
          globalState: (since) => ({ after: [Date.parse(since), ''] }),
        }),
    })
  }
})
