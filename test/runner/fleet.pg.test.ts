import pg from 'pg'
import { afterAll, afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import { openStore } from '../../src/stores/open-store.ts'
import type { Store } from '../../src/contract/index.ts'
import { createDatabase, dropDatabase } from '../setup/postgres-server.ts'
import { describeFleet } from './fleet-cases.ts'
import { Fleet, overlaps } from './fleet.ts'

const server = inject('postgresUrl')
const made: string[] = []

describe.skipIf(server === '')('PostgreSQL', () => {
  afterAll(async () => {
    for (const url of made) await dropDatabase(server, url)
  })
  const openUrl = async (): Promise<string> => {
    const url = await createDatabase(server)
    made.push(url)
    return url
  }
  describeFleet('PostgreSQL database', openUrl)

  describe('a fleet on one PostgreSQL', () => {
    let fleet: Fleet
    let url: string
    let store: Store
    beforeEach(async () => {
      fleet = new Fleet()
      url = await openUrl()
      store = await openStore(url)
    })
    afterEach(async () => {
      await fleet.stop()
      await store.close()
      fleet.remove()
    })
    const trigger = (sync: string): Promise<void> =>
      store.signalSync({ worker: 'fleet', sync }, { kind: 'trigger', actor: 'test', at: Date.now() })
    const cyclesOf = async (sync: string): Promise<number> => (await store.cycles({ worker: 'fleet', sync })).length
    const HOUR = 3_600_000
    const NEVER_POLL = { continuous: 0, manual: 1, pageMs: 5, leaseTtlMs: 30_000, pollMs: 600_000 }

    test('XB2 uses the database clock: a machine an hour ahead takes no slot early, one an hour behind takes over in time', async () => {
      const options = { store: url, continuous: 6, manual: 0, slots: 2, pageMs: 50, leaseTtlMs: 3_000 }
      await fleet.start(1, { ...options, clockAheadMs: HOUR })
      await fleet.start(1, { ...options, clockAheadMs: -HOUR })
      await fleet.until(
        'both at work',
        () =>
          new Set(
            fleet
              .lines()
              .filter(({ kind }) => kind === 'ask')
              .map(({ pid }) => pid),
          ).size === 2,
      )
      await fleet.until('every slot taken', async () => (await cyclesOf('i0')) > 0 && (await cyclesOf('i1')) > 0)
      const pid = await fleet.kill(0)
      await fleet.until('all go on', () => {
        const lines = fleet.lines()
        const after = lines.slice(lines.findIndex((line) => line.kind === 'killed' && line.pid === pid))
        return (
          new Set(after.filter(({ kind, sync }) => kind === 'ask' && sync.startsWith('c')).map(({ sync }) => sync))
            .size === 6
        )
      })
      expect([await cyclesOf('i0'), await cyclesOf('i1')]).toEqual([1, 1])
      const [cycle] = await store.cycles(null, { limit: 1 })
      expect(Math.abs(cycle!.startedAt - Date.now())).toBeLessThan(HOUR / 2)
      expect(overlaps(fleet.lines())).toEqual([])
    })

    test('is woken by a trigger at once, although the next poll is ten minutes away', async () => {
      await fleet.start(2, { store: url, ...NEVER_POLL })
      for (let round = 1; round <= 3; round++) {
        await trigger('m0')
        await fleet.until(
          'a cycle',
          async () => (await store.readCheckpoint({ worker: 'fleet', sync: 'm0' })).version === round,
        )
      }
      expect(await cyclesOf('m0')).toBe(3)
    })

    test('receives notifications again after its connection was cut, including changes made meanwhile', async () => {
      await fleet.start(1, { store: url, ...NEVER_POLL })
      await trigger('m0')
      await fleet.until(
        'a first cycle',
        async () => (await store.readCheckpoint({ worker: 'fleet', sync: 'm0' })).version === 1,
      )
      const client = new pg.Client({ connectionString: url })
      await client.connect()
      try {
        const cut = await client.query(
          "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'tidemark listening' and datname = current_database()",
        )
        expect(cut.rowCount).toBe(1)
      } finally {
        await client.end()
      }
      await trigger('m0')
      await fleet.until(
        'another',
        async () => (await store.readCheckpoint({ worker: 'fleet', sync: 'm0' })).version === 2,
      )
    })
  })
})
