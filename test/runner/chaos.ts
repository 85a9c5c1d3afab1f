import type { ChildProcess } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { expect } from 'vitest'
import type { JsonObject, LogEntry, Store } from '../../src/contract/index.ts'
import type { SourceServerFixture } from '../../src/testing/runner-cases/source-server-fixture.ts'
import { parseJson } from '../../src/values/json.ts'
import type { FrozenCommit, FleetHarness } from './fleet-harness.ts'

/** A busy machine is slow, which is no failure; no progress for this long is one. */
const STILL_MS = 90_000
const TRIED_MAX_MS = 10 * 60_000
/** A process is not killed this soon after it was resumed, so that its behaviour after the wake-up is observed. */
const SPARED_MS = 1_000

/** Suspends processes at arbitrary points and resumes them, some of them just before they commit a page. */
export class ProcessFreezer {
  readonly frozen = new Set<number>()
  count = 0
  /** The file with the outcome of every commit. */
  readonly commits: string
  /** The process that removes this file suspends itself: one at a time, so that the others can take over. */
  readonly freezing: string
  readonly #database: string
  readonly #stale: string[] = []
  readonly #thawing: Array<Promise<void>> = []
  #isFreezing = false
  /** Number of processes waiting to be taken over. */
  #waiting = 0

  constructor(fleet: FleetHarness, database: string, folder: string) {
    this.#database = database
    this.commits = join(folder, 'commits.ndjson')
    this.freezing = join(folder, 'freezing')
    writeFileSync(this.commits, '')
    fleet.onFrozen = ({ pid }, commit) =>
      this.hold(pid!, this.#overtaken(commit), () => {
        this.#waiting--
        writeFileSync(`${this.freezing}.${pid}`, '')
        if (this.#isFreezing) writeFileSync(this.freezing, '')
      })
  }

  /** How many were overtaken so far. */
  get stale(): number {
    return this.#stale.length
  }

  begin(): void {
    this.#isFreezing = true
    writeFileSync(this.freezing, '')
  }

  freeze(member: ChildProcess, until: Promise<unknown>): void {
    member.kill('SIGSTOP')
    this.hold(member.pid!, until, () => member.kill('SIGCONT'))
  }

  /** Keeps the process suspended until then. */
  hold(pid: number, until: Promise<unknown>, thaw: () => void): void {
    this.count++
    this.frozen.add(pid)
    this.#thawing.push(
      until
        .then(() => {})
        .finally(async () => {
          thaw()
          await sleep(SPARED_MS)
          this.frozen.delete(pid)
        }),
    )
  }

  /** Resolves when no process is suspended and a stale commit was attempted. */
  async end(): Promise<void> {
    for (
      const end = performance.now() + TRIED_MAX_MS;
      this.#outcomes().tried.length === 0 && performance.now() < end;
      await sleep(1_000)
    ) {
      // The process that took it may have been killed before it was suspended.
      if (this.#waiting === 0) writeFileSync(this.freezing, '')
    }
    this.#isFreezing = false
    rmSync(this.freezing, { force: true })
    for (let all = 0; all < this.#thawing.length;)
      await Promise.all(this.#thawing.slice(all, (all = this.#thawing.length)))
  }

  /** Expects that every commit after a takeover was rejected, and that there were some. */
  expectRefused(): { commits: number; stale: number; refused: number } {
    const { outcomes, refused, tried } = this.#outcomes()
    expect(
      outcomes.filter(({ outcome, ...commit }) => outcome !== 'fenced' && this.#stale.includes(nameOf(commit))),
    ).toEqual([])
    expect(tried).not.toEqual([])
    return { commits: outcomes.length, stale: tried.length, refused: refused.size }
  }

  /** A process that was killed while waking up attempted nothing. */
  #outcomes(): { outcomes: Outcome[]; refused: Set<string>; tried: string[] } {
    const outcomes = readFileSync(this.commits, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Outcome)
    const refused = new Set(outcomes.filter(({ outcome }) => outcome === 'fenced').map(nameOf))
    return { outcomes, refused, tried: this.#stale.filter((name) => refused.has(name)) }
  }

  async #overtaken(commit: FrozenCommit): Promise<void> {
    this.#waiting++
    for (const end = performance.now() + STILL_MS; performance.now() < end; await sleep(200)) {
      if ((await this.#epochOf(commit.sync)) > commit.epoch) return void this.#stale.push(nameOf(commit))
    }
  }

  /** The epoch of the newest lease. */
  async #epochOf(sync: string): Promise<number> {
    const client = new pg.Client({ connectionString: this.#database, options: '-c tidemark.tenant=default' })
    await client.connect()
    try {
      const { rows } = await client.query<{ epoch: string }>(
        'select epoch from tidemark.registry where stream_id = $1',
        [sync],
      )
      return Number(rows[0]!.epoch)
    } finally {
      await client.end()
    }
  }
}

interface Outcome extends FrozenCommit {
  readonly outcome: string
}

function nameOf({ sync, epoch, page }: FrozenCommit): string {
  return `${sync}, lease ${epoch}, page ${page}`
}

/** Waits until the rows equal those of the source and returns the time it took. `describe` reports on stuck syncs. */
export async function expectLanded(
  store: Store,
  stage: SourceServerFixture,
  syncs: readonly string[],
  describe: (stuck: readonly string[]) => Promise<string> = () => describeFailures(store),
): Promise<number> {
  const landed = async (): Promise<Record<string, unknown>> => {
    const rows = await store.rows({ database: 'rows', limit: 1_000_000 })
    return Object.fromEntries(rows.map(({ key, text }) => [key, (parseJson(text) as JsonObject)['value']]))
  }
  const startedAt = performance.now()
  const differing = async (): Promise<string[]> => {
    const rows = await landed()
    const wanted = truthOf(stage, syncs)
    return [...new Set([...Object.keys(rows), ...Object.keys(wanted)])].filter((key) => rows[key] !== wanted[key])
  }
  await untilNone(async () => (await differing()).length)
  const ms = performance.now() - startedAt
  const stuck = [...new Set((await differing()).map((key) => key.slice(0, key.lastIndexOf('-'))))]
  expect(sorted(await landed()), await describe(stuck)).toEqual(sorted(truthOf(stage, syncs)))
  return ms
}

/**
 * The replayed log gives the source's rows without duplicates, and the pages of a cycle were committed in order, each
 * in one commit.
 */
export async function expectLog(
  store: Store,
  stage: SourceServerFixture,
  syncs: readonly string[],
): Promise<LogEntry[]> {
  const log = await store.changes({ after: 0, limit: 10_000_000 })
  expect(sorted(replayed(log))).toEqual(sorted(truthOf(stage, syncs)))
  const last = new Map<number, { page: number; committedAt: number }>()
  const texts = new Map<string, string | null>()
  for (const { cycle, page, committedAt, key, text, sequence } of log) {
    expect(text, `entry ${sequence}`).not.toBe(texts.get(key) ?? null)
    texts.set(key, text)
    const before = last.get(cycle)
    if (before !== undefined && before.committedAt !== committedAt)
      expect(page, `cycle ${cycle}`).toBeGreaterThan(before.page)
    last.set(cycle, { page, committedAt })
  }
  return log
}

/** Nothing was committed under an older lease after a newer one. Returns the newest epoch of each sync. */
export async function expectLeasesInOrder(store: Store): Promise<Map<string, number>> {
  const epochs = new Map<string, number>()
  for (const { sync, epoch } of (await store.auditChain({ after: 0, limit: 10_000_000 })).entries) {
    expect(epoch, sync!).toBeGreaterThanOrEqual(epochs.get(sync!) ?? 0)
    epochs.set(sync!, epoch)
  }
  return epochs
}

/** Fails only when the count has not decreased for a while. */
export async function untilNone(count: () => Promise<number>): Promise<void> {
  let least = Infinity
  let movedAt = performance.now()
  for (let now = await count(); now > 0 && performance.now() - movedAt < STILL_MS; now = await count()) {
    if (now < least) movedAt = performance.now()
    least = Math.min(least, now)
    await sleep(250)
  }
}

async function describeFailures(store: Store): Promise<string> {
  const { syncs } = await store.listSyncStatus({ at: Date.now(), recent: 1 })
  const failed = syncs.filter(({ checkpoint }) => checkpoint.lastError !== null)
  return failed
    .map(
      ({ sync, checkpoint: { lastError, failures } }) =>
        `${sync}: ${failures} × ${lastError!.code} ${lastError!.message}`,
    )
    .join('; ')
}

function truthOf(stage: SourceServerFixture, syncs: readonly string[]): Record<string, number> {
  return Object.assign({}, ...syncs.map((sync) => stage.table(sync).rows)) as Record<string, number>
}

function sorted(rows: Record<string, unknown>): Array<[string, unknown]> {
  return Object.entries(rows).toSorted(([a], [b]) => (a < b ? -1 : 1))
}

function replayed(log: readonly LogEntry[]): Record<string, unknown> {
  const rows: Record<string, unknown> = {}
  for (const { key, text } of log) {
    if (text === null) delete rows[key]
    else rows[key] = (parseJson(text) as JsonObject)['value']
  }
  return rows
}
