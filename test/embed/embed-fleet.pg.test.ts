import { fileURLToPath } from 'node:url'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import type { Store } from '../../src/contract/index.ts'
import { openStore } from '../../src/stores/open-store.ts'
import { Fleet, overlaps, type Line } from '../runner/fleet.ts'
import { createDatabase, dropDatabase } from '../setup/postgres-server.ts'

const MEMBER = fileURLToPath(new URL('embed-member.mjs', import.meta.url))
const server = inject('postgresUrl')

describe.skipIf(server === '')('programs on one PostgreSQL', () => {
  test('three of them run every slot of every sync once, and go on when one is killed', async () => {
    const { fleet, store, versions } = await open()
    const syncs = names(12)
    await fleet.start(3, { store: store.url, syncs: syncs.length, pages: 4, pageMs: 40 })
    await fleet.until('every sync ran', async () => (await versions(syncs)).every((version) => version === 1))
    expect(new Set(asksOf(fleet.lines()).map(({ pid }) => pid)).size).toBeGreaterThan(1)

    await trigger(store, syncs)
    await fleet.until('a second slot began', () => asksOf(fleet.lines()).some(({ page }) => page > 4))
    const killed = fleet.lines().findLast(({ kind }) => kind === 'ask')!.pid
    await fleet.kill([0, 1, 2].find((index) => fleet.pid(index) === killed)!)
    await fleet.until('the others ran it', async () => (await versions(syncs)).every((version) => version === 2))
    await trigger(store, syncs)
    await fleet.until('and the next one', async () => (await versions(syncs)).every((version) => version === 3))
    expect(await fleet.stop()).toEqual([0, 0])

    await expectExactlyOnce(fleet, store, syncs, 3, 4)
  })

  test('ticks hand a cycle over: between two of them, and when the process of one is killed', async () => {
    const { fleet, store, versions } = await open()
    const syncs = names(2)
    // A cycle is several times as long as a tick.
    await fleet.start(3, { store: store.url, syncs: syncs.length, pages: 30, pageMs: 60, budgetMs: 400 })
    await fleet.until('a tick continued the cycle of another', () => holdersOf(fleet.lines(), 's0').size > 1)
    const killed = fleet.lines().findLast(({ kind }) => kind === 'ask')!.pid
    await fleet.kill([0, 1, 2].find((index) => fleet.pid(index) === killed)!)
    await fleet.until('the others completed it', async () => (await versions(syncs)).every((version) => version === 1))
    await fleet.stop()

    await expectExactlyOnce(fleet, store, syncs, 1, 30)
  })
})

async function open() {
  const url = await createDatabase(server)
  const fleet = new Fleet(MEMBER)
  const store = Object.assign(await openStore(url), { url })
  onTestFinished(async () => {
    fleet.remove()
    await store.close()
    await dropDatabase(server, url)
  })
  const versions = (syncs: readonly string[]): Promise<number[]> =>
    Promise.all(syncs.map(async (sync) => (await store.readCheckpoint({ worker: 'app', sync })).version))
  return { fleet, store, versions }
}

/** Every slot has one cycle with every page, which one process committed; no two processes read a sync at once. */
async function expectExactlyOnce(
  fleet: Fleet,
  store: Store,
  syncs: readonly string[],
  slots: number,
  pages: number,
): Promise<void> {
  const lines = fleet.lines()
  expect(overlaps(lines)).toEqual([])
  const landed = lines
    .filter(({ kind }) => kind === 'landed')
    .map(({ sync, cycle, page }) => `${sync} ${cycle} ${page}`)
  expect(new Set(landed).size).toBe(landed.length)
  for (const sync of syncs) {
    const cycles = await store.cycles({ worker: 'app', sync })
    expect(cycles.map(({ pages: read }) => read)).toEqual(Array.from({ length: slots }, () => pages))
  }
  const rows = await store.rows({ database: 'rows', limit: 10_000 })
  expect(rows.length).toBe(syncs.length * slots * pages)
  // Invariant 4: a page that was read twice changed nothing the second time.
  expect(await store.headSequence()).toBe(rows.length)
}

function names(count: number): string[] {
  return Array.from({ length: count }, (_, n) => `s${n}`)
}

function trigger(store: Store, syncs: readonly string[]): Promise<unknown> {
  const by = { kind: 'trigger', actor: 'test', at: Date.now() } as const
  return Promise.all(syncs.map((sync) => store.signalSync({ worker: 'app', sync }, by)))
}

function asksOf(lines: readonly Line[]): Line[] {
  return lines.filter(({ kind }) => kind === 'ask')
}

function holdersOf(lines: readonly Line[], of: string): Set<number> {
  return new Set(asksOf(lines).flatMap(({ sync, pid }) => (sync === of ? [pid] : [])))
}
