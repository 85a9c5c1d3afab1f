import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { CycleResult } from '../../../src/engine/cycle-options.ts'
import { rest, type ListedStream, type RestStream, type TrackedStream } from '../../../src/sources/rest/source.ts'
import { EngineFixture, MINUTE, planOf, SECOND } from '../../engine/engine-fixture.ts'
import { BASE } from './api.ts'

let scene: EngineFixture
beforeEach(async () => {
  scene = await EngineFixture.open()
})
afterEach(() => scene.close())

interface Task {
  id: string
  project: string
  at: string
  n: number
}

/** Projects with tasks; the tasks of a project are listed under its path, two per page. */
class Tracker {
  readonly projects: Array<{ id: string; kind: string; gone?: boolean }> = []
  tasks: Task[] = []
  readonly asked: string[] = []
  answer: (url: URL) => Response | undefined = () => undefined

  add(project: string, id: string, n = 0, atMs = scene.clock.now() - MINUTE): void {
    this.tasks = [...this.tasks.filter((task) => task.id !== id), { id, project, n, at: new Date(atMs).toISOString() }]
  }

  readonly fetch = async (input: string | URL): Promise<Response> => {
    const url = new URL(input)
    this.asked.push(`${url.pathname}${url.search}`)
    const forced = this.answer(url)
    if (forced !== undefined) return forced
    const query = url.searchParams
    const page = <T extends { id: string }>(rows: readonly T[]): unknown => {
      const start = Number(query.get('after') ?? 0)
      return { items: rows.slice(start, start + 2), next: start + 2 < rows.length ? String(start + 2) : null }
    }
    if (url.pathname === '/projects') return Response.json(page(this.projects))
    const project = /^\/projects\/(\w+)\/tasks$/.exec(url.pathname)?.[1] ?? query.get('region')
    const [since, until] = [query.get('since') ?? '', query.get('until') ?? '9']
    const found = this.tasks.filter(
      (task) => (project === null || task.project === project) && task.at >= since && task.at < until,
    )
    return Response.json(page(found.toSorted((a, b) => (a.id < b.id ? -1 : 1))))
  }
}

const TOKEN = { kind: 'token', parameter: 'after', next: 'next' } as const
const PROJECTS = { name: 'projects', path: '/projects', key: 'id', records: 'items', page: TOKEN } as const
const TASKS = {
  name: 'tasks',
  path: '/projects/{parent.id}/tasks',
  key: 'id',
  records: 'items',
  page: TOKEN,
  partitions: { parent: 'projects' },
} as const

const open = (stream: Partial<RestStream> = {}, parent: Partial<RestStream> = {}): ListedStream & TrackedStream =>
  rest({ baseUrl: BASE, streams: [{ ...PROJECTS, ...parent } as RestStream, { ...TASKS, ...stream } as RestStream] })[
    'tasks'
  ] as ListedStream & TrackedStream

const list = (
  tracker: Tracker,
  source: ListedStream,
  { pagesMax = 1_000, allowDeletes = true } = {},
): Promise<CycleResult> =>
  scene.run(planOf({ mode: 'replace', execute: source.execute, limits: { retriesMax: 0, pagesMax } }), {
    fetch: tracker.fetch,
    allowDeletes,
  })

const follow = (tracker: Tracker, source: TrackedStream): Promise<CycleResult> =>
  scene.run(planOf({ execute: source.delta, limits: { retriesMax: 0 } }), { fetch: tracker.fetch })

function filled(projects = 5, tasks = 3): Tracker {
  const tracker = new Tracker()
  for (let p = 0; p < projects; p++) {
    tracker.projects.push({ id: `p${p}`, kind: p % 2 ? 'odd' : 'even' })
    for (let t = 0; t < tasks; t++) tracker.add(`p${p}`, `p${p}t${t}`)
  }
  return tracker
}

describe('the children of parents', () => {
  test('are read per parent, also those of a parent without any, and swept when all were read', async () => {
    const tracker = filled()
    tracker.projects.push({ id: 'empty', kind: 'even' })
    expect(await list(tracker, open())).toMatchObject({ stopReason: 'complete', counts: { created: 15 } })
    tracker.tasks = tracker.tasks.filter(({ id }) => id !== 'p2t1')
    tracker.projects.splice(0, 1)
    expect(await list(tracker, open())).toMatchObject({ stopReason: 'complete', counts: { swept: 4 } })
    expect(await scene.keys()).toHaveLength(11)
  })

  test('of a cycle that stops after every page are each read once, and none is swept before the end', async () => {
    const tracker = filled()
    await list(tracker, open())
    tracker.tasks = tracker.tasks.filter(({ id }) => id !== 'p4t2')
    for (let run = 0; run < 100; run++) {
      const { stopReason } = await list(tracker, open(), { pagesMax: 1 })
      if (stopReason === 'complete') break
      expect(await scene.keys()).toHaveLength(15)
    }
    expect(await scene.keys()).toEqual(tracker.tasks.map(({ id }) => id).toSorted())
  })

  test('have fields of the parent, also in the key', async () => {
    const tracker = new Tracker()
    for (const id of ['p0', 'p1']) tracker.projects.push({ id, kind: 'k' })
    tracker.answer = ({ pathname }) =>
      pathname === '/projects' ? undefined : Response.json({ items: [{ id: 'same' }], next: null })
    const include = { project_id: 'parent.id', kind: 'parent.kind' }
    await list(tracker, open({ key: ['project_id', 'id'], partitions: { parent: 'projects', include } }))
    expect(Object.values(await scene.rows())).toEqual([
      { id: 'same', project_id: 'p0', kind: 'k' },
      { id: 'same', project_id: 'p1', kind: 'k' },
    ])
  })

  test('of parents that a filter leaves out are not read', async () => {
    const tracker = filled()
    await list(tracker, open({}, { filter: [{ at: 'kind', are: ['odd'] }] }))
    expect(await scene.keys()).toEqual(['p1t0', 'p1t1', 'p1t2', 'p3t0', 'p3t1', 'p3t2'])
  })

  test('that fail for one parent sweep nothing', async () => {
    const tracker = filled()
    await list(tracker, open())
    tracker.tasks = tracker.tasks.filter(({ id }) => id !== 'p4t2')
    tracker.answer = ({ pathname }) => (pathname.includes('/p1/') ? Response.json({}, { status: 500 }) : undefined)
    expect((await list(tracker, open())).error).toMatchObject({ code: 'SOURCE_UNAVAILABLE' })
    expect(await scene.keys()).toHaveLength(15)
  })

  test('of a parent that is gone since it was listed may be ignored', async () => {
    const tracker = filled()
    tracker.answer = ({ pathname }) => (pathname.includes('/p1/') ? Response.json({}, { status: 404 }) : undefined)
    const result = await list(tracker, open({ errors: [{ status: [404], action: 'ignore' }] }))
    expect(result).toMatchObject({ stopReason: 'complete', counts: { created: 12 } })
  })

  test('are not swept when a page of the parents is ignored', async () => {
    const tracker = filled()
    const errors = [{ status: [403], action: 'ignore' }] as const
    await list(tracker, open({}, { errors }))
    tracker.answer = ({ pathname, searchParams }) =>
      pathname === '/projects' && searchParams.get('after') === '4' ? Response.json({}, { status: 403 }) : undefined
    expect(await list(tracker, open({}, { errors }), { allowDeletes: false })).toMatchObject({
      endReason: 'incomplete',
      counts: { swept: 0 },
    })
    expect(await scene.keys()).toHaveLength(15)
  })

  test('are not swept when the list of parents is empty once', async () => {
    const tracker = filled()
    await list(tracker, open())
    let answers = 0
    tracker.answer = ({ pathname }) =>
      pathname === '/projects' && ++answers === 1 ? Response.json({ items: [], next: null }) : undefined
    await list(tracker, open())
    expect(await scene.keys()).toHaveLength(15)
  })

  test('of parents that are listed by page numbers are all read', async () => {
    const tracker = filled(7, 1)
    tracker.answer = ({ pathname, searchParams }) => {
      if (pathname !== '/projects') return undefined
      const start = (Number(searchParams.get('page')) - 1) * 3
      return Response.json({ items: tracker.projects.slice(start, start + 3) })
    }
    await list(tracker, open({}, { page: { kind: 'pageNumber', parameter: 'page' } }))
    expect(await scene.keys()).toHaveLength(7)
  })

  test('of a parent without the field are an error, not a request for all children', async () => {
    const tracker = filled()
    const result = await list(tracker, open({ path: '/tasks', query: { project: '{parent.idd}' } }))
    expect(result.error).toMatchObject({ code: 'SOURCE_INVALID' })
    expect(result.error?.message).toContain('no text or number at `idd`')
  })

  test.each([
    [
      'an unknown parent',
      { partitions: { parent: 'project' } },
      /unknown parent "project"\. Did you mean "projects"\?/,
    ],
    ['no field of the parent', { path: '/tasks' }, /no request depends on its parent/],
    ['two kinds of partitions', { partitions: { parent: 'projects', values: ['a'] } }, /set one of/],
    [
      'an unknown included field',
      { partitions: { parent: 'projects', include: { a: 'partition' } } },
      /unknown parameter "partition"/,
    ],
    ['a placeholder without a partition', { partitions: undefined }, /\{parent\.id\}/],
  ])('with %s are refused when they are declared', (_, stream, message) => {
    expect(() => open(stream as never)).toThrow(message)
  })
})

describe('the changes of children', () => {
  const LAG = 10 * SECOND
  const stream = {
    updatedAt: 'at',
    lagMs: LAG,
    deletes: 'ignore',
    follow: { kind: 'window', since: 'since', until: 'until', page: TOKEN },
  } as const

  test('have a cursor per parent, and a new parent is read from its beginning', async () => {
    const tracker = filled(3, 2)
    await follow(tracker, open(stream))
    expect(await scene.keys()).toHaveLength(6)
    await scene.clock.drive(scene.clock.sleep(60 * MINUTE))
    // Its child is older than the cursors of the other parents.
    tracker.projects.push({ id: 'late', kind: 'odd' })
    tracker.add('late', 'old', 0, scene.clock.now() - 50 * MINUTE)
    tracker.add('p1', 'p1t0', 7)
    tracker.asked.length = 0
    expect(await follow(tracker, open(stream))).toMatchObject({ stopReason: 'complete' })
    expect(await scene.keys()).toHaveLength(7)
    expect((await scene.rows())['p1t0']).toMatchObject({ n: 7 })
    const requests = tracker.asked.filter((path) => path.includes('/tasks') && !path.includes('since='))
    expect(new Set(requests.map((path) => path.split('?')[0]))).toEqual(new Set(['/projects/late/tasks']))
  })

  test('of several parents at a time are the same', async () => {
    const tracker = filled(20, 3)
    await follow(tracker, open({ ...stream, partitions: { parent: 'projects', concurrency: 8 } }))
    expect(await scene.keys()).toHaveLength(60)
  })

  test('of a parent that fails keep its cursor, and the next cycle reads them', async () => {
    const tracker = filled(4, 1)
    await follow(tracker, open(stream))
    await scene.clock.drive(scene.clock.sleep(5 * MINUTE))
    for (const p of [0, 1, 2, 3]) tracker.add(`p${p}`, `p${p}t0`, 5)
    tracker.answer = ({ pathname }) => (pathname.includes('/p2/') ? Response.json({}, { status: 500 }) : undefined)
    expect((await follow(tracker, open(stream))).error).toMatchObject({ code: 'SOURCE_UNAVAILABLE' })
    await scene.clock.drive(scene.clock.sleep(5 * MINUTE))
    tracker.answer = () => undefined
    expect((await follow(tracker, open(stream))).error).toBe(null)
    expect(Object.values(await scene.rows()).map((row) => (row as Task).n)).toEqual([5, 5, 5, 5])
  })
})

describe('other partitions', () => {
  test('of a list of values are read per value', async () => {
    const tracker = filled(3, 3)
    const partitions = { values: ['p0', 'p2'], include: { region: 'partition' } }
    await list(tracker, open({ path: '/tasks', query: { region: '{partition}' }, partitions }))
    expect(await scene.keys()).toEqual(['p0t0', 'p0t1', 'p0t2', 'p2t0', 'p2t1', 'p2t2'])
    expect((await scene.rows())['p0t0']).toMatchObject({ region: 'p0' })
  })

  test('of time windows lose no record at a border, whether the ends are inclusive or not', async () => {
    const from = new Date(scene.clock.now() - 100 * 24 * 60 * MINUTE).toISOString()
    for (const [name, keep] of [
      ['inclusive', (at: string, since: string, until: string) => at >= since && at <= until],
      ['exclusive', (at: string, since: string, until: string) => at > since && at < until],
    ] as const) {
      const tracker = new Tracker()
      // Records exactly at the borders, and one that is newer than the start of the cycle.
      for (let n = 0; n <= 100; n++) tracker.add('p', `${name}${n}`, n, Date.parse(from) + n * 24 * 60 * MINUTE)
      tracker.answer = ({ searchParams: query }) =>
        Response.json({ items: tracker.tasks.filter(({ at }) => keep(at, query.get('since')!, query.get('until')!)) })
      const source = open({
        path: '/tasks',
        page: { kind: 'none' },
        partitions: { since: 'since', until: 'until', from, step: 'P7D' },
      })
      expect((await list(tracker, source)).error).toBe(null)
      expect(await scene.keys()).toHaveLength(101)
      expect(tracker.asked.length).toBeGreaterThanOrEqual(15)
    }
  })

  test('of time windows have a limit', async () => {
    const partitions = { since: 'a', until: 'b', from: '1970-01-01', step: 'PT1S' }
    expect((await list(new Tracker(), open({ path: '/tasks', partitions }))).error).toMatchObject({
      code: 'SYNC_INVALID',
    })
  })
})
