import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, inject, test } from 'vitest'
import { SourceServerFixture } from '../../src/testing/runner-cases/source-server-fixture.ts'
import { seededRandom } from '../../src/testing/store-cases/harness.ts'
import { createDatabase, dropDatabase } from '../setup/postgres-server.ts'
import { expectLanded, expectLeasesInOrder, expectLog, ProcessFreezer } from './chaos.ts'
import { FleetHarness } from './fleet-harness.ts'

const server = inject('postgresUrl')
/** `npm run chaos:fleet` runs the long version. */
const SECONDS = Number(process.env['TIDEMARK_CHAOS_SECONDS'] ?? 8)
const SYNCS = Number(process.env['TIDEMARK_CHAOS_SYNCS'] ?? 24)
const SEED = Number(process.env['TIDEMARK_CHAOS_SEED'] ?? Date.now() % 1e9)
const PROCESSES = 4
const LEASE_MS = 3_000

describe.skipIf(server === '')('a fleet whose processes are killed and frozen at random', () => {
  test(
    'XA11, XB1: loses and duplicates nothing, never queries a source twice for one sync, and rejects stale commits',
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'tidemark-chaos-'))
      const database = await createDatabase(server)
      const stage = await SourceServerFixture.open()
      const fleet = await FleetHarness.open(database, stage.url)
      const freezer = new ProcessFreezer(fleet, database, folder)
      const random = seededRandom(SEED)
      const pick = (count: number): number => Math.floor(random() * count)
      const options = {
        concurrency: 8,
        leaseMs: LEASE_MS,
        tenants: ['default'],
        continuous: SYNCS,
        manual: 0,
        commits: freezer.commits,
        freezing: freezer.freezing,
      }
      const names = Array.from({ length: SYNCS }, (_, i) => `c${i}`)
      const counts = { kills: 0, changes: 0 }
      const starting: Array<Promise<void>> = []
      try {
        stage.setBehaviour({ pageMs: 15 })
        for (const name of names) for (let row = 0; row < 15; row++) stage.table(name).put(row, 0)
        await fleet.start({ ...options, processes: PROCESSES })
        freezer.begin()

        const end = performance.now() + SECONDS * 1_000
        for (let turn = 1; performance.now() < end; turn++) {
          for (let i = 0; i < SYNCS / 8; i++, counts.changes++)
            stage.table(names[pick(SYNCS)]!).put(pick(20), random() < 0.2 ? null : turn * 1_000 + i)
          await sleep(300 + pick(1_200))
          const member = [...fleet.members].filter(({ pid }) => !freezer.frozen.has(pid!))[
            pick(PROCESSES - freezer.frozen.size)
          ]
          if (member === undefined) continue
          if (turn > 1 && random() < 0.5) {
            counts.kills++
            await fleet.kill(member)
            starting.push(fleet.start({ ...options, processes: 1 }))
          } else freezer.freeze(member, sleep(LEASE_MS * (0.3 + 1.7 * random())))
        }
        await freezer.end()
        await Promise.all(starting)

        const convergedMs = await expectLanded(fleet.store, stage, names)
        await fleet.stop()
        expect(stage.overlaps).toEqual([])
        const log = await expectLog(fleet.store, stage, names)
        const leases = await expectLeasesInOrder(fleet.store)
        const { commits, stale, refused } = freezer.expectRefused()
        console.info(
          `seed ${SEED}: ${PROCESSES} processes, ${SYNCS} syncs, ${SECONDS} s: ${counts.kills} killed, ${freezer.count} frozen, ${stage.requests.length} requests, ` +
            `${commits} commits, ${stale} tried after a take-over, ${refused} refused as stale, ${log.length} entries in the log of ${counts.changes + SYNCS * 15} changes, ` +
            `${Math.max(...leases.values())} leases of one sync at most, all equal ${(convergedMs / 1_000).toFixed(1)} s after the last thaw`,
        )
      } catch (error) {
        throw new Error(`seed ${SEED}: ${error instanceof Error ? error.message : String(error)} ${fleet.errors}`, {
          cause: error,
        })
      } finally {
        for (const member of fleet.members) member.kill('SIGCONT')
        await fleet.close()
        await stage.close()
        await dropDatabase(server, database)
        rmSync(folder, { recursive: true, force: true })
      }
    },
    30 * 60_000,
  )
})
