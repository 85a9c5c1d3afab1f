import { spawnSync } from 'node:child_process'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { loadWorker } from '../../src/worker/load-worker.ts'
import type { WorkerLike } from '../../src/worker/worker.ts'
import type { Store } from '../../src/contract/index.ts'
import { openStore, runCycle } from '../../src/index.ts'
import { simulateWorker } from '../../src/testing/simulation/simulate-worker.ts'
import { ROOT } from '../cli/package.ts'
import { FakeClock } from '../engine/fake-clock.ts'
import { Api } from './api.ts'
import { EMPTY, FULL, NOTHING } from './things.ts'

const WORKERS = join(import.meta.dirname, 'workers')

async function load(name: string, api?: Api): Promise<WorkerLike> {
  if (api !== undefined) process.env['API_URL'] = api.url
  return (await loadWorker(join(WORKERS, `${name}.ts`))).worker
}

async function open(): Promise<Store> {
  const store = await openStore('sqlite::memory:')
  onTestFinished(() => store.close())
  return store
}

afterEach(() => void delete process.env['API_URL'])

test('the workers of these tests compile as their users compile them', () => {
  const { stdout, status } = spawnSync(
    process.execPath,
    [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', WORKERS],
    { encoding: 'utf8' },
  )
  expect({ status, stdout }).toEqual({ status: 0, stdout: '' })
})

describe('what is declared', () => {
  test('N14 N17 databases, pacers, modes and schedules come from the manifest', async () => {
    const { manifest } = await load('tasks')
    expect(manifest).toMatchObject({
      name: 'tasks',
      databases: [
        { name: 'projects', schema: 'json' },
        { name: 'tasks', schema: 'json' },
      ],
      pacers: [{ name: 'api', allowedRequests: 100, intervalMs: 1_000 }],
      notRun: [],
    })
    expect(
      manifest.syncs.map(({ name, mode, schedule, databases, owner }) => [name, mode, schedule, databases, owner]),
    ).toEqual([
      ['projectsSync', 'replace', { kind: 'interval', intervalMs: 3_600_000 }, ['projects'], 'tasks/projectsSync'],
      ['tasksBackfill', 'replace', { kind: 'manual' }, ['tasks'], 'tasks/tasksBackfill'],
      ['tasksDelta', 'incremental', { kind: 'interval', intervalMs: 300_000 }, ['tasks'], 'tasks/tasksDelta'],
    ])
    expect((await load('events')).manifest.syncs[0]!.schedule).toEqual({ kind: 'continuous' })
    expect((await load('library')).manifest.syncs.map(({ schedule }) => schedule)).toEqual([
      { kind: 'manual' },
      { kind: 'manual' },
      { kind: 'interval', intervalMs: 1_800_000 },
    ])
  })
})

// ── what lands ───────────────────────────────────────────────────────────────────────────────────────────────────────

describe('every kind of property', () => {
  test('NX11 lands as a plain column, null where nothing was said', async () => {
    const store = await open()
    expect(await runCycle(await load('every-kind'), 'thingsSync', { store })).toMatchObject({
      stopReason: 'complete',
      counts: { created: 3, quarantined: 0 },
    })
    const rows = (await store.rows({ database: 'things', limit: 9 })).map(({ key, text }) => [
      key,
      { ...NOTHING, ...(JSON.parse(text!) as object) },
    ])
    expect(Object.fromEntries(rows)).toEqual({
      full: FULL,
      empty: EMPTY,
      sparse: { ...NOTHING, Name: 'Sparse', ID: 'sparse', Amount: Number(9007199254740993n) },
    })
    expect((await store.rows({ database: 'things', limit: 9 })).find(({ key }) => key === 'sparse')!.text).toContain(
      '"Amount":9007199254740993',
    )
  })
})

describe('several databases from one sync', () => {
  test('N10 N16 invariant 5: what a delta brought is swept by the backfill of its own database, and by no other', async () => {
    const named = (id: string) => ({ id, name: id.toUpperCase() })
    const api = await Api.start({
      authors: [named('a1'), named('a2'), named('a3')],
      works: ['w1', 'w2', 'w3'].map((id) => ({ ...named(id), author: 'a1' })),
      'new-authors': [named('a4'), named('a5')],
      'new-works': ['w4', 'w5'].map((id) => ({ ...named(id), author: 'a4' })),
    })
    const worker = await load('library', api)
    const store = await open()
    const run = async (sync: string) => (await runCycle(worker, sync, { store })).counts
    const keys = async (database: string) => (await store.rows({ database, limit: 99 })).map(({ key }) => key)
    await run('authorsList')
    await run('worksList')
    expect(await run('news')).toMatchObject({ created: 4 })
    // Dropped before a backfill ever saw them.
    api.drop('new-works', 'w4')
    api.tables['works']!.push({ ...named('w5'), author: 'a4' })
    api.tables['authors']!.push(named('a4'))
    // The delta's works are not the authors' to sweep, nor the other way round.
    expect(await run('authorsList')).toMatchObject({ swept: 1 })
    expect([await keys('authors'), await keys('works')]).toEqual([
      ['a1', 'a2', 'a3', 'a4'],
      ['w1', 'w2', 'w3', 'w4', 'w5'],
    ])
    expect(await run('worksList')).toMatchObject({ swept: 1 })
    expect([await keys('authors'), await keys('works')]).toEqual([
      ['a1', 'a2', 'a3', 'a4'],
      ['w1', 'w2', 'w3', 'w5'],
    ])
  })
})

// ── time ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

describe('a pacer', () => {
  test('NX1 is ours: syncs that share it stay within what is allowed, side by side, on the engine’s clock', async () => {
    const clock = new FakeClock()
    const times: Record<string, number[]> = { left: [], right: [], rare: [] }
    noteRequests((sync) => times[sync]!.push(clock.now()))
    const worker = await load('paced')
    const store = await open()
    const started = clock.now()
    const results = await clock.drive(
      Promise.all(
        ['left', 'right', 'rare'].map((sync) => runCycle(worker, sync, { store, clock, random: { next: () => 0.5 } })),
      ),
    )
    expect(results.map(({ stopReason, error }) => [stopReason, error])).toEqual([
      ['complete', null],
      ['complete', null],
      ['complete', null],
    ])
    // Six a second, of two who both want more than that.
    const every = (ms: number, count: number) => Array.from({ length: count }, (_, n) => started + n * ms)
    expect([...times['left']!, ...times['right']!].toSorted((a, b) => a - b)).toEqual(every(167, 18))
    expect(times['rare']).toEqual(every(20_000, 9))
  })

  test('stops waiting immediately when the cycle is stopped', async () => {
    const asked: string[] = []
    const stopping = new AbortController()
    noteRequests((sync) => {
      asked.push(sync)
      // The next turn is a minute away.
      setImmediate(() => stopping.abort())
    })
    const result = await runCycle(await load('paced'), 'rare', { store: await open(), signal: stopping.signal })
    expect(result).toMatchObject({ stopReason: 'cancelled' })
    expect(asked).toEqual(['rare'])
  })

  test('outside a cycle waits as the package does', async () => {
    const asked: string[] = []
    noteRequests((sync) => asked.push(sync))
    const jiti = await import('jiti')
    const { default: worker } = await jiti
      .createJiti(import.meta.url)
      .import<{ default: { run(key: string, context: object, options: object): Promise<object> } }>(
        join(WORKERS, 'paced.ts'),
      )
    expect(await worker.run('left', {}, { concreteOutput: true })).toMatchObject({ hasMore: true })
    expect(asked).toEqual(['left', 'left', 'left'])
  })
})

describe('an API that is not there', () => {
  test('is distinguished from a fault of the worker by the wrapped error', async () => {
    const closed = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => closed.once('listening', resolve))
    const { port } = closed.address() as AddressInfo
    await new Promise((resolve) => closed.close(resolve))
    process.env['API_URL'] = `http://127.0.0.1:${port}`
    const worker = await load('unreachable')
    const { error } = await runCycle(
      {
        ...worker,
        manifest: worker.manifest,
        plan: (name) => worker.plan(name, { limits: { retriesMax: 0 } }),
        plans: () => [],
      },
      'unreachable',
      { store: await open() },
    )
    expect(error).toMatchObject({ code: 'SOURCE_UNAVAILABLE', message: 'fetch failed (ECONNREFUSED)' })
  })
})

describe('the simulation', () => {
  test('lands the same rows through crashes, lost answers and refusals', async () => {
    const at = '2026-01-01T00:00:00Z'
    const tasks = Array.from({ length: 11 }, (_, n) => ({
      id: `t${n + 10}`,
      name: `Task ${n}`,
      status: 'Open',
      project: 'p1',
      updatedAt: at,
    }))
    const api = await Api.start({ projects: [{ id: 'p1', name: 'One' }], tasks })
    const worker = await load('tasks', api)
    const report = await simulateWorker(worker.plans(), { seeds: 12, fetch, secrets: { get: () => '' } })
    expect(report.syncs.map(({ sync, rows, failure }) => [sync, rows, failure])).toEqual([
      ['projectsSync', 1, null],
      ['tasksBackfill', 11, null],
      ['tasksDelta', 11, null],
    ])
    expect(report.syncs[1]!.faults['crash']).toBeGreaterThan(0)
  })
})

function noteRequests(note: (sync: string) => void): void {
  const place = globalThis as { noteRequest?: (sync: string) => void }
  place.noteRequest = note
  onTestFinished(() => void delete place.noteRequest)
}
