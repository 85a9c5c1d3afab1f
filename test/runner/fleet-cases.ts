import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openStore } from '../../src/stores/open-store.ts'
import type { Store } from '../../src/contract/index.ts'
import { Fleet, overlaps } from './fleet.ts'

const PROCESSES = 3
const CONTINUOUS = 8
const MANUAL = 12
/** Long where no process is killed: a machine that stalls for seconds must not look like a crash. */
const LEASE_MS = 30_000
const SHORT_LEASE_MS = 4_000

/** The requirements for several real processes on one real store, the same for every store. */
export function describeFleet(kind: string, openUrl: (folder: string) => Promise<string>): void {
  describe(`several processes on one ${kind}`, () => {
    let fleet: Fleet
    let url: string
    let store: Store

    beforeEach(async () => {
      fleet = new Fleet()
      url = await openUrl(fleet.folder)
      store = await openStore(url)
    })
    afterEach(async () => {
      await fleet.stop()
      await store.close()
      fleet.remove()
    })

    const versions = (names: readonly string[]): Promise<number[]> =>
      Promise.all(names.map(async (sync) => (await store.readCheckpoint({ worker: 'fleet', sync })).version))
    const continuous = Array.from({ length: CONTINUOUS }, (_, i) => `c${i}`)
    const manual = Array.from({ length: MANUAL }, (_, i) => `m${i}`)

    test('XB1: never query the source twice for one sync at once, and every sync makes progress', async () => {
      await fleet.start(PROCESSES, { store: url, continuous: CONTINUOUS, manual: 0, pageMs: 15, leaseTtlMs: LEASE_MS })
      await fleet.until('five cycles of every sync', async () =>
        (await versions(continuous)).every((version) => version >= 5),
      )
      await fleet.until('every process at work', () => askers(fleet) === PROCESSES)
      const codes = await fleet.stop()
      const lines = fleet.lines()
      expect(overlaps(lines)).toEqual([])
      expect(lines.filter(({ kind }) => kind === 'failed')).toEqual([])
      expect(codes).toEqual([0, 0, 0])
      // XA10: a stopped process has released its leases.
      for (const sync of continuous)
        expect(await store.readCheckpoint({ worker: 'fleet', sync })).toMatchObject({ heldBy: null })
    })

    test('N17, XB18: run each triggered sync once, however many processes see the trigger', async () => {
      await fleet.start(PROCESSES, { store: url, continuous: 0, manual: MANUAL, pageMs: 5, leaseTtlMs: LEASE_MS })
      for (let round = 1; round <= 3; round++) {
        await Promise.all(
          manual.map((sync) =>
            store.signalSync({ worker: 'fleet', sync }, { kind: 'trigger', actor: 'test', at: Date.now() }),
          ),
        )
        await fleet.until('a cycle of every sync', async () =>
          (await versions(manual)).every((version) => version >= round),
        )
        // Long enough for a second process to repeat it, if it would.
        await new Promise((resolve) => setTimeout(resolve, 400))
        expect(await versions(manual)).toEqual(Array(MANUAL).fill(round))
      }
      expect(await store.cycles(null, { limit: 1_000 })).toHaveLength(3 * MANUAL)
      expect(overlaps(fleet.lines())).toEqual([])
    })

    test('XB1: take over the syncs of a killed process within its lease, and continue after the last committed page', async () => {
      await fleet.start(PROCESSES, {
        store: url,
        continuous: CONTINUOUS,
        manual: 0,
        pageMs: 150,
        leaseTtlMs: SHORT_LEASE_MS,
      })
      await fleet.until('every process at work', () => askers(fleet) === PROCESSES)
      await fleet.until('the first in the middle of a page', () => openCalls(fleet, fleet.pid(0)).length > 0)
      const pid = await fleet.kill(0)
      const orphans = openCalls(fleet, pid)
      await fleet.until('everything of the dead one taken over', () => {
        const lines = fleet.lines()
        const after = lines.slice(lines.findIndex(({ kind }) => kind === 'killed'))
        return orphans.every((sync) => after.some((line) => line.kind === 'ask' && line.sync === sync))
      })
      const before = await versions(continuous)
      await fleet.until('two more cycles of every sync', async () =>
        (await versions(continuous)).every((version, i) => version >= before[i]! + 2),
      )
      await fleet.stop()
      const lines = fleet.lines()
      expect(overlaps(lines)).toEqual([])
      expect(pagesMissed(lines.filter(({ kind }) => kind === 'ask'))).toEqual([])
      expect(lines.filter(({ kind }) => kind === 'failed')).toEqual([])
    })
  })
}

function askers(fleet: Fleet): number {
  return new Set(
    fleet
      .lines()
      .filter(({ kind }) => kind === 'ask')
      .map(({ pid }) => pid),
  ).size
}

/** Syncs whose last call was not answered before the process was killed. */
function openCalls(fleet: Fleet, pid: number): string[] {
  const open = new Map<string, number>()
  for (const line of fleet.lines()) {
    if (line.kind === 'ask') open.set(line.sync, line.pid)
    if (line.kind === 'answer') open.delete(line.sync)
  }
  return [...open].filter(([, asker]) => asker === pid).map(([sync]) => sync)
}

/** After a crash a page may be read again; none is ever skipped. */
function pagesMissed(asks: ReadonlyArray<{ sync: string; page: number }>): string[] {
  const last = new Map<string, number>()
  return asks.flatMap(({ sync, page }) => {
    const previous = last.get(sync) ?? 0
    last.set(sync, Math.max(previous, page))
    return page > previous + 1 ? [`${sync}: page ${page} after ${previous}`] : []
  })
}
