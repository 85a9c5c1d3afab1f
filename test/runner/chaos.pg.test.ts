import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, inject, test } from 'vitest'
import type { JsonObject } from '../../src/contract/index.ts'
import { Stage } from '../../src/testing/runner-cases/stage.ts'
import { chance } from '../../src/testing/store-cases/harness.ts'
import { parseJson } from '../../src/values/json.ts'
import { createDatabase, dropDatabase } from '../setup/postgres-server.ts'
import { StageFleet } from './stage-fleet.ts'

const server = inject('postgresUrl')
/** `npm run chaos:fleet` is the long one. */
const SECONDS = Number(process.env['TIDEMARK_CHAOS_SECONDS'] ?? 8)
const SYNCS = Number(process.env['TIDEMARK_CHAOS_SYNCS'] ?? 24)
const SEED = Number(process.env['TIDEMARK_CHAOS_SEED'] ?? Date.now() % 1e9)
/** For what was left behind; a busy machine is no reason to fail. */
const QUIET_SECONDS = 60 + 2 * SECONDS
const PROCESSES = 4
const LEASE_MS = 3_000

describe.skipIf(server === '')('a fleet whose processes are killed and frozen at random', () => {
  test('XA11, XB1: loses and doubles nothing, never asks for one sync twice at once, and has stale commits refused', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tidemark-chaos-'))
    const commits = join(folder, 'commits.ndjson')
    writeFileSync(commits, '')
    const database = await createDatabase(server)
    const stage = await Stage.open()
    const fleet = await StageFleet.open(database, stage.url)
    const random = chance(SEED)
    const pick = (count: number): number => Math.floor(random() * count)
    const freezing = join(folder, 'freezing')
    writeFileSync(freezing, '')
    const options = { concurrency: 8, leaseMs: LEASE_MS, tenants: ['default'], continuous: SYNCS, manual: 0, commits, freezing, freezeEvery: SECONDS < 60 ? 10 : 40 }
    const names = Array.from({ length: SYNCS }, (_, i) => `c${i}`)
    const counts = { kills: 0, freezes: 0, changes: 0 }
    const later: Array<Promise<void>> = []
    const frozen = new Set<number>()
    const freeze = (member: ChildProcess, leases: number): void => {
      counts.freezes++
      frozen.add(member.pid!)
      later.push(sleep(LEASE_MS * leases).then(() => {
        member.kill('SIGCONT')
        frozen.delete(member.pid!)
      }))
    }
    try {
      fleet.onFrozen = (member) => freeze(member, 1.8)
      stage.behave({ pageMs: 15 })
      for (const name of names) for (let row = 0; row < 15; row++) stage.table(name).put(row, 0)
      await fleet.start({ ...options, processes: PROCESSES })

      const end = performance.now() + SECONDS * 1_000
      for (let turn = 1; performance.now() < end; turn++) {
        for (let i = 0; i < SYNCS / 8; i++, counts.changes++) stage.table(names[pick(SYNCS)]!).put(pick(20), random() < 0.2 ? null : turn * 1_000 + i)
        await sleep(300 + pick(1_200))
        const member = [...fleet.members].filter(({ pid }) => !frozen.has(pid!))[pick(PROCESSES - frozen.size)]
        if (member === undefined) continue
        if (turn > 1 && random() < 0.5) {
          counts.kills++
          await fleet.kill(member)
          later.push(fleet.start({ ...options, processes: 1 }))
        } else {
          member.kill('SIGSTOP')
          freeze(member, 0.3 + 1.7 * random())
        }
      }
      rmSync(freezing)
      for (let all = 0; all < later.length; ) await Promise.all(later.slice(all, (all = later.length)))

      const truth = (): Record<string, number> => Object.assign({}, ...names.map((name) => stage.table(name).rows)) as Record<string, number>
      const landed = async (): Promise<Record<string, unknown>> => {
        const rows = await fleet.store.rows({ database: 'rows', limit: 1_000_000 })
        return Object.fromEntries(rows.map(({ key, text }) => [key, (parseJson(text) as JsonObject)['value']]))
      }
      const deadline = performance.now() + QUIET_SECONDS * 1_000
      while (JSON.stringify(sorted(await landed())) !== JSON.stringify(sorted(truth())) && performance.now() < deadline) await sleep(250)
      expect(sorted(await landed()), await troubles(fleet)).toEqual(sorted(truth()))
      await fleet.stop()

      expect(stage.overlaps).toEqual([])
      const log = await fleet.store.changes({ after: 0, limit: 10_000_000 })
      expect(sorted(replayed(log))).toEqual(sorted(truth()))
      // A cycle's pages land in their order, each in one commit, whoever lands them.
      const last = new Map<number, { page: number; committedAt: number }>()
      for (const { cycle, page, committedAt } of log) {
        const before = last.get(cycle)
        if (before !== undefined && before.committedAt !== committedAt) expect(page, `cycle ${cycle}`).toBeGreaterThan(before.page)
        last.set(cycle, { page, committedAt })
      }
      // Nothing under an older lease was written after something under a newer one.
      const epochs = new Map<string, number>()
      for (const { sync, epoch } of (await fleet.store.trail({ after: 0, limit: 10_000_000 })).entries) {
        expect(epoch, sync!).toBeGreaterThanOrEqual(epochs.get(sync!) ?? 0)
        epochs.set(sync!, epoch)
      }
      const outcomes = readFileSync(commits, 'utf8').trim().split('\n').map((line) => (JSON.parse(line) as { outcome: string }).outcome)
      const refused = outcomes.filter((outcome) => outcome === 'fenced').length
      if (SECONDS >= 60) expect(refused).toBeGreaterThan(0)
      console.info(`seed ${SEED}: ${PROCESSES} processes, ${SYNCS} syncs, ${SECONDS} s: ${counts.kills} killed, ${counts.freezes} frozen, ${stage.log.length} requests, `
        + `${outcomes.length} commits, ${refused} refused as stale, ${log.length} entries in the log of ${counts.changes + SYNCS * 15} changes, ${Math.max(...epochs.values())} leases of one sync at most`)
    } catch (error) {
      throw new Error(`seed ${SEED}: ${error instanceof Error ? error.message : String(error)} ${fleet.errors}`, { cause: error })
    } finally {
      for (const member of fleet.members) member.kill('SIGCONT')
      await fleet.close()
      await stage.close()
      await dropDatabase(server, database)
      rmSync(folder, { recursive: true, force: true })
    }
  }, (SECONDS + QUIET_SECONDS + 90) * 1_000)
})

async function troubles({ store }: StageFleet): Promise<string> {
  const { syncs } = await store.standings({ at: Date.now(), recent: 1 })
  const failed = syncs.filter(({ checkpoint }) => checkpoint.lastError !== null)
  return failed.map(({ sync, checkpoint: { lastError, failures } }) => `${sync}: ${failures} × ${lastError!.code} ${lastError!.message}`).join('; ')
}

function sorted(rows: Record<string, unknown>): Array<[string, unknown]> {
  return Object.entries(rows).toSorted(([a], [b]) => (a < b ? -1 : 1))
}

function replayed(log: ReadonlyArray<{ readonly key: string; readonly text: string | null }>): Record<string, unknown> {
  const rows: Record<string, unknown> = {}
  for (const { key, text } of log) {
    if (text === null) delete rows[key]
    else rows[key] = (parseJson(text) as JsonObject)['value']
  }
  return rows
}
