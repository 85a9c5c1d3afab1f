import { describe, expect, test } from 'vitest'
import { Project } from './project.ts'

/** A pair whose source has ten people, one a day; `wrong` names are those of the first load. */
const WORKER = `
import { readFileSync, appendFileSync } from 'node:fs'
import { partitioned, Worker } from 'tidemark'

const worker = new Worker({ name: 'team' })
const people = worker.database('people')
const facts = () => JSON.parse(readFileSync(new URL('./source.json', import.meta.url), 'utf8'))
const read = (range = {}) => async (state = 0, context) => {
  const { people: all, pageSize, slowMs } = facts()
  appendFileSync(new URL('./asked.log', import.meta.url), JSON.stringify({ ...range, state }) + '\\n')
  if (slowMs > 0) await context.clock.sleep(slowMs, context.signal)
  const inside = all.filter(({ updatedAt }) => updatedAt >= (range.from ?? '') && updatedAt < (range.to ?? '9'))
  const changes = inside.slice(state, state + pageSize).map((record) => ({
    type: 'upsert', key: record.id, record, upstreamUpdatedAt: record.updatedAt,
  }))
  const hasMore = state + pageSize < inside.length
  return hasMore ? { changes, hasMore, nextState: state + pageSize } : { changes, hasMore }
}
worker.track('people', {
  database: people,
  source: {
    backfill: Object.assign(read(), { range: read }),
    delta: async () => ({ changes: [], hasMore: false, nextState: { cursor: 1 } }),
  },
})
worker.sync('events', { database: worker.database('events'), mode: 'incremental', schedule: 'manual',
  execute: async () => ({ changes: [], hasMore: false, nextState: 1 }) })
worker.sync('tasks', { database: worker.database('tasks'), mode: 'replace', schedule: 'manual', execute: partitioned({
  rows: { field: 'project', value: ({ key }) => key, isFixed: true },
  list: async () => ({ partitions: ['a', 'b'].map((key) => ({ key, value: null })) }),
  read: async ({ key }) => ({ hasMore: false, changes: (facts().tasks ?? []).filter(({ project }) => project === key)
    .map((record) => ({ type: 'upsert', key: record.id, record })) }),
}) })
export default worker
`

const days = (name: string, count = 30) =>
  Array.from({ length: count }, (_, at) => {
    const day = String(at + 1).padStart(2, '0')
    return { id: `p${day}`, name: `${name} ${day}`, updatedAt: `2026-01-${day}T00:00:00.000000Z` }
  })

async function loaded(): Promise<Project> {
  const project = new Project()
  project.write('worker.ts', WORKER)
  project.source({ people: days('old'), pageSize: 3 })
  expect((await project.run('run', 'people')).code).toBe(0)
  return project
}

const RANGE = ['backfill', 'people', '--from', '2026-01-05', '--to', '2026-01-20'] as const
const NAMES = 'select id, name from people order by id'

describe('tidemark backfill of a range', () => {
  test('shows a plan with what it reads, and reads nothing without --yes', async () => {
    const project = await loaded()
    const refused = await project.ask(...RANGE)
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain('Plan for people~range:')
    expect(refused.stderr).toContain(
      'reads     the records with a time from 2026-01-05T00:00:00.000000Z to before 2026-01-20T00:00:00.000000Z',
    )
    expect(refused.stderr).toContain('the copy  has 15 rows of it, about 1s')
    expect(refused.stderr).toContain('deletes   nothing')
    expect(refused.stderr).toContain('CONFIRMATION_NEEDED')

    const planned = await project.ask(...RANGE, '--dry-run', '--json')
    expect(planned.code).toBe(0)
    expect(JSON.parse(planned.stdout)).toMatchObject({
      event: 'plan',
      sync: 'people~range',
      range: { from: '2026-01-05T00:00:00.000000Z', to: '2026-01-20T00:00:00.000000Z' },
      rows: 15,
      sweeps: false,
      resumes: null,
      abandons: null,
    })
    expect((await project.ask(...RANGE, '--dry-run', '--yes')).stdout).toContain('Plan for people~range:')
    expect((await project.json('state', 'get', 'people'))['version']).toBeGreaterThan(0)
    expect((await project.ask('state', 'get', 'people~range')).code).toBe(2)
  })

  test('after kill -9 the next call continues behind the last committed page', async () => {
    const project = await loaded()
    const before = [
      await project.json('state', 'get', 'people', '--reveal'),
      await project.json('state', 'get', 'people-backfill', '--reveal'),
    ]
    project.source({ people: days('new'), pageSize: 3, slowMs: 200 })
    const running = project.start(...RANGE, '--yes', '--json')
    await running.says('"page":2')
    running.process.kill('SIGKILL')
    await running.ended

    expect((await project.run('status')).stdout).toMatch(/people~range .*range read/)
    project.source({ people: days('new'), pageSize: 3 })
    const again = await project.ask(...RANGE, '--dry-run')
    expect(again.stdout).toMatch(/resumes {3}cycle \d+ after page [23]/)
    const done = await project.run(...RANGE, '--yes', '--json')
    expect(done.code).toBe(0)
    expect(JSON.parse(done.stdout.trim().split('\n').at(-1) ?? '')).toMatchObject({
      event: 'result',
      ok: true,
      syncs: [{ sync: 'people~range', resumed: true, stop_reason: 'complete' }],
    })
    const rows = (await project.json('query', NAMES))['rows'] as { id: string; name: string }[]
    expect(rows.map(({ name }) => name)).toEqual(
      days('').map(({ id }, at) => `${at >= 4 && at < 19 ? 'new' : 'old'} ${id.slice(1)}`),
    )
    expect([
      await project.json('state', 'get', 'people', '--reveal'),
      await project.json('state', 'get', 'people-backfill', '--reveal'),
    ]).toEqual(before)
    expect((await project.run('status')).stdout).not.toContain('people~range')
  })

  test('runs beside a running delta, whose lease it does not take', async () => {
    const project = await loaded()
    project.source({ people: days('new'), pageSize: 3 })
    const service = project.start('start', '--no-api')
    try {
      await service.says('people')
      expect((await project.run(...RANGE, '--yes')).code).toBe(0)
    } finally {
      service.process.kill('SIGINT')
      await service.ended
    }
    const rows = (await project.json('query', NAMES))['rows'] as { name: string }[]
    expect(rows.filter(({ name }) => name.startsWith('new'))).toHaveLength(15)
  })

  test('bad input ends with exit code 2 and the alternative', async () => {
    const project = await loaded()
    const attempts: [string[], string][] = [
      [['people', '--from', 'yesterday'], '`from` is "yesterday"'],
      [['people', '--from', '2026-02-01', '--to', '2026-01-01'], 'not after its start'],
      [['peple', '--from', '2026-01-01'], 'Did you mean "people"?'],
      [['events', '--from', '2026-01-01'], 'tidemark state reset events'],
      [['events'], 'so it has no backfill'],
    ]
    for (const [args, message] of attempts) {
      const { code, stderr } = await project.ask('backfill', ...args, '--yes')
      expect([code, stderr]).toEqual([2, expect.stringContaining(message)])
    }
  })
})

test('without a range, the backfill of the pair runs now and sweeps', async () => {
  const project = await loaded()
  project.source({ people: days('new').slice(1), pageSize: 3 })
  const plan = await project.run('backfill', 'people', '--dry-run')
  expect(plan.stdout).toContain('Plan for people-backfill:')
  expect(plan.stdout).toContain('deletes   rows that the source no longer returns')
  const { code, stdout } = await project.run('backfill', 'people', '--yes')
  expect([code, stdout]).toEqual([0, expect.stringContaining('1 swept')])
})

test('a run runs parents before their children, and status shows what a child waits for', async () => {
  const project = new Project()
  project.write(
    'worker.ts',
    `
import { Worker } from 'tidemark'
const worker = new Worker({ name: 'order' })
const database = worker.database('rows')
const execute = (name, ms) => async (_, context) => {
  await context.clock.sleep(ms, context.signal)
  console.error('ran ' + name)
  return { changes: [], hasMore: false }
}
worker.sync('grandchild', { database, execute: execute('grandchild', 1), after: 'child' })
worker.sync('child', { database, execute: execute('child', 1), after: ['parent'] })
worker.sync('parent', { database, execute: execute('parent', 300) })
export default worker
`,
  )
  const waiting = await project.json('status')
  expect(waiting['syncs'][0]).toMatchObject({
    sync: 'grandchild',
    after: ['child'],
    next: { at: null, why: 'after', waiting_for: ['child'] },
  })
  expect((await project.run('status')).stdout).toContain('waiting for parent')
  const { stderr, code } = await project.run('run')
  expect(code).toBe(0)
  expect([...stderr.matchAll(/ran (\w+)/g)].map(([, name]) => name)).toEqual(['parent', 'child', 'grandchild'])
})

test('tidemark backfill --partition reads one partition again, and deletes rows of it alone', async () => {
  const project = new Project()
  project.write('worker.ts', WORKER)
  const tasks = (...ids: string[]): object[] => ids.map((id) => ({ id, project: id[0] }))
  project.write('source.json', JSON.stringify({ tasks: tasks('a1', 'a2', 'a3', 'b1', 'b2', 'b3') }))
  expect((await project.run('run', 'tasks')).code).toBe(0)
  project.write('source.json', JSON.stringify({ tasks: tasks('a1', 'a3', 'a4', 'b1') }))
  const refused = await project.ask('backfill', 'tasks', '--partition', 'a')
  expect(refused.code).toBe(2)
  expect(refused.stderr).toContain('reads     the partition a')
  expect(refused.stderr).toContain('deletes   rows of these partitions')
  const planned = JSON.parse((await project.ask('backfill', 'tasks', '--partition', 'a', '--dry-run', '--json')).stdout)
  expect(planned).toMatchObject({ range: null, partitions: ['a'], sweeps: true, rows: null })
  expect((await project.ask('backfill', 'tasks', '--partition', 'a', '--yes')).code).toBe(0)
  const ids = async (): Promise<string[]> =>
    ((await project.json('query', 'select id from tasks order by id'))['rows'] as { id: string }[]).map(({ id }) => id)
  expect(await ids()).toEqual(['a1', 'a3', 'a4', 'b1', 'b2', 'b3'])
  const blocked = await project.ask('backfill', 'tasks', '--partition', 'b', '--yes')
  expect([blocked.code, blocked.stdout]).toEqual([1, expect.stringContaining('MASS_DELETE')])
  expect((await project.ask('backfill', 'tasks', '--partition', 'b', '--yes', '--allow-deletes')).code).toBe(0)
  expect(await ids()).toEqual(['a1', 'a3', 'a4', 'b1'])
  expect((await project.ask('backfill', 'tasks', '--partition', 'a', '--from', '2026-01-01')).stderr).toContain(
    'excludes',
  )
})
