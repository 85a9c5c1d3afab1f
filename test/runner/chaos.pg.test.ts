import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { describe, expect, inject, test } from 'vitest'
import type { JsonObject } from '../../src/contract/index.ts'
import { Stage } from '../../src/testing/runner-cases/stage.ts'
import { chance } from '../../src/testing/store-cases/harness.ts'
import { parseJson } from '../../src/values/json.ts'
import { createDatabase, dropDatabase } from '../setup/postgres-server.ts'
import { StageFleet, type FrozenCommit } from './stage-fleet.ts'

const server = inject('postgresUrl')
/** `npm run chaos:fleet` is the long one. */
const SECONDS = Number(process.env['TIDEMARK_CHAOS_SECONDS'] ?? 8)
const SYNCS = Number(process.env['TIDEMARK_CHAOS_SYNCS'] ?? 24)
const SEED = Number(process.env['TIDEMARK_CHAOS_SEED'] ?? Date.now() % 1e9)
const PROCESSES = 4
const LEASE_MS = 3_000
/** How long a process that froze itself waits at most for another to take over. */
const FROZEN_LEASES_MAX = 6
/** A busy machine is slow and no reason to fail; one on which nothing moves for so long is. */
const STILL_MS = 90_000

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
    // Whoever takes this file away freezes: one at a time, so that the others are there to take over.
    const freezing = join(folder, 'freezing')
    const options = { concurrency: 8, leaseMs: LEASE_MS, tenants: ['default'], continuous: SYNCS, manual: 0, commits, freezing }
    const names = Array.from({ length: SYNCS }, (_, i) => `c${i}`)
    const counts = { kills: 0, freezes: 0, changes: 0 }
    const later: Array<Promise<void>> = []
    const frozen = new Set<number>()
    const freeze = (member: ChildProcess, until: Promise<unknown>): Promise<void> => {
      counts.freezes++
      frozen.add(member.pid!)
      const thawed = until.then(() => {
        member.kill('SIGCONT')
        frozen.delete(member.pid!)
      })
      later.push(thawed)
      return thawed
    }
    /** Commits that were tried after another had taken the sync over. */
    const stale: string[] = []
    const stayFrozen = async (commit: FrozenCommit): Promise<void> => {
      for (const end = performance.now() + FROZEN_LEASES_MAX * LEASE_MS; performance.now() < end; await sleep(200)) {
        if ((await epochOf(database, commit.sync)) > commit.epoch) return void stale.push(nameOf(commit))
      }
    }
    let isChaos = true
    try {
      fleet.onFrozen = (member, commit) => void freeze(member, stayFrozen(commit)).then(() => isChaos && writeFileSync(freezing, ''))
      stage.behave({ pageMs: 15 })
      for (const name of names) for (let row = 0; row < 15; row++) stage.table(name).put(row, 0)
      await fleet.start({ ...options, processes: PROCESSES })
      writeFileSync(freezing, '')

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
          void freeze(member, sleep(LEASE_MS * (0.3 + 1.7 * random())))
        }
      }
      isChaos = false
      rmSync(freezing, { force: true })
      for (let all = 0; all < later.length; ) await Promise.all(later.slice(all, (all = later.length)))

      const truth = (): Record<string, number> => Object.assign({}, ...names.map((name) => stage.table(name).rows)) as Record<string, number>
      const landed = async (): Promise<Record<string, unknown>> => {
        const rows = await fleet.store.rows({ database: 'rows', limit: 1_000_000 })
        return Object.fromEntries(rows.map(({ key, text }) => [key, (parseJson(text) as JsonObject)['value']]))
      }
      const astray = async (): Promise<number> => {
        const rows = await landed()
        const wanted = truth()
        return new Set([...Object.keys(rows), ...Object.keys(wanted)].filter((key) => rows[key] !== wanted[key])).size
      }
      const quietAt = performance.now()
      await untilNone(astray)
      const convergedMs = performance.now() - quietAt
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
      const outcomes = readFileSync(commits, 'utf8').trim().split('\n').map((line) => JSON.parse(line) as FrozenCommit & { outcome: string })
      const refused = new Set(outcomes.filter(({ outcome }) => outcome === 'fenced').map(nameOf))
      expect(stale).not.toEqual([])
      expect(stale.filter((name) => !refused.has(name))).toEqual([])
      console.info(`seed ${SEED}: ${PROCESSES} processes, ${SYNCS} syncs, ${SECONDS} s: ${counts.kills} killed, ${counts.freezes} frozen, ${stage.log.length} requests, `
        + `${outcomes.length} commits, ${stale.length} tried after a take-over, ${refused.size} refused as stale, ${log.length} entries in the log of ${counts.changes + SYNCS * 15} changes, `
        + `${Math.max(...epochs.values())} leases of one sync at most, all equal ${(convergedMs / 1_000).toFixed(1)} s after the last thaw`)
    } catch (error) {
      throw new Error(`seed ${SEED}: ${error instanceof Error ? error.message : String(error)} ${fleet.errors}`, { cause: error })
    } finally {
      for (const member of fleet.members) member.kill('SIGCONT')
      await fleet.close()
      await stage.close()
      await dropDatabase(server, database)
      rmSync(folder, { recursive: true, force: true })
    }
  }, 30 * 60_000)
})

/** Of the newest lease. */
async function epochOf(database: string, sync: string): Promise<number> {
  const client = new pg.Client({ connectionString: database, options: '-c tidemark.tenant=default' })
  await client.connect()
  try {
    const { rows } = await client.query<{ epoch: string }>("select epoch from tidemark.registry where stream_id = $1", [sync])
    return Number(rows[0]!.epoch)
  } finally {
    await client.end()
  }
}

function nameOf({ sync, epoch, page }: FrozenCommit): string {
  return `${sync}, lease ${epoch}, page ${page}`
}

/** Gives up only when it has not become less for a while. */
async function untilNone(count: () => Promise<number>): Promise<void> {
  let least = Infinity
  let movedAt = performance.now()
  for (let now = await count(); now > 0 && performance.now() - movedAt < STILL_MS; now = await count()) {
    if (now < least) movedAt = performance.now()
    least = Math.min(least, now)
    await sleep(250)
  }
}

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
