import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { ROOT } from '../cli/package.ts'
import { Project, Running } from '../cli/project.ts'
import { json, serve } from '../sources/kit/loopback.ts'
import { Api } from './api.ts'

// Each test is half a dozen processes.
vi.setConfig({ testTimeout: 180_000 })
const WORKERS = join(import.meta.dirname, 'workers')

/** They only read the store, so a process of their own would show nothing more. */
const IN_PROCESS: ReadonlySet<string> = new Set(['query', 'state', 'why'])

/** The command line on one of the workers, with a store of its own. */
class Stand {
  readonly project = new Project()
  readonly #file: string
  readonly #env: Record<string, string>

  constructor(worker: string, env: Record<string, string> = {}) {
    this.#file = join(WORKERS, `${worker}.ts`)
    this.#env = { TIDEMARK_STORE: `sqlite:${join(this.project.folder, 'store.db')}`, ...env }
  }

  text(...args: string[]): ReturnType<Project['run']> {
    return this.project.run(...args, '--file', this.#file, { env: this.#env })
  }

  start(...args: string[]): Running {
    return new Running(this.project, [...args, '--file', this.#file], { env: this.#env })
  }

  /** Every line of the answer must be JSON: the last one is the document. */
  async json(...args: string[]): Promise<Record<string, any>> {
    const { stdout } = IN_PROCESS.has(args[0]!)
      ? await this.project.ask(...args, '--json', '--file', this.#file, { env: this.#env })
      : await this.text(...args, '--json')
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    return lines.at(-1)!
  }

  async rows(sql: string): Promise<Record<string, unknown>[]> {
    return ((await this.json('query', sql)) as { rows: Record<string, unknown>[] }).rows
  }
}

const at = (minute: number): string => `2026-01-01T00:${String(minute).padStart(2, '0')}:00Z`

describe('a worker written on @notionhq/workers, under the command', () => {
  test('N10 N11 a paginated listing lands every page, and what it no longer lists is swept', async () => {
    const book = (id: string, price: number) => ({ id, title: `Book ${id}`, price, inPrint: price > 10 })
    const api = await Api.start({ books: [book('a', 5), book('b', 12.5), book('c', 20), book('d', 7), book('e', 8)] })
    const stand = new Stand('books', { API_URL: api.url })
    expect(await stand.json('preview', 'booksSync')).toMatchObject({ sync: 'booksSync', has_more: true })
    expect(await stand.json('run')).toMatchObject({
      ok: true,
      worker: 'books',
      syncs: [{ sync: 'booksSync', pages: 3, counts: { created: 5 } }],
    })
    expect(await stand.rows('select * from books order by _key limit 2')).toEqual([
      expect.objectContaining({
        _key: 'a',
        Title: 'Book a',
        ISBN: 'a',
        Price: 5,
        'In print': 0,
        _icon: '📖',
        _content: '# Book a',
      }),
      expect.objectContaining({ _key: 'b', Title: 'Book b', ISBN: 'b', Price: 12.5, 'In print': 1 }),
    ])
    api.drop('books', 'b')
    api.put('books', book('c', 21))
    expect(await stand.json('run')).toMatchObject({ syncs: [{ counts: { updated: 1, swept: 1, unchanged: 3 } }] })
    expect(await stand.rows('select _key as k, Price as p from books order by 1')).toEqual([
      { k: 'a', p: 5 },
      { k: 'c', p: 21 },
      { k: 'd', p: 7 },
      { k: 'e', p: 8 },
    ])
    expect(await stand.json('status')).toMatchObject({
      syncs: [
        {
          sync: 'booksSync',
          mode: 'replace',
          health: 'HEALTHY',
          schedule: { kind: 'interval', interval_ms: 3_600_000 },
        },
      ],
    })
    expect(await stand.json('why', 'books', 'c')).toMatchObject({ key: 'c' })
  })

  test('N5 N6 N7 a delta continues from its state across processes, and never reads before it', async () => {
    const ticket = (id: string, minute: number, state = 'open') => ({
      id,
      summary: `Ticket ${id}`,
      state,
      updatedAt: at(minute),
    })
    const api = await Api.start({ tickets: [ticket('1', 1), ticket('2', 1), ticket('3', 2)] })
    const stand = new Stand('tickets', { API_URL: api.url })
    expect(await stand.json('run')).toMatchObject({
      ok: true,
      syncs: [{ counts: { created: 3 }, tidemark: '2026-01-01T00:02:00.000000Z' }],
    })
    expect(await stand.json('state', 'get', 'ticketsDelta', '--reveal')).toMatchObject({
      committed: { value: { since: at(2), after: '3' } },
    })
    api.requests.length = 0
    api.put('tickets', ticket('1', 3, 'closed'))
    api.drop('tickets', '2')
    expect(await stand.json('run')).toMatchObject({ syncs: [{ counts: { updated: 1, created: 0, swept: 0 } }] })
    expect(api.requests).toEqual([`/tickets/changed?size=2&since=${encodeURIComponent(at(2))}&after=3`])
    expect(await stand.rows('select _key as k, State as s from tickets order by 1')).toEqual([
      { k: '1', s: 'closed' },
      { k: '2', s: 'open' },
      { k: '3', s: 'open' },
    ])
    // The other way round: started over on request, an older fact comes again and changes nothing.
    api.put('tickets', ticket('1', 0))
    await stand.json('state', 'reset', 'ticketsDelta', '--reason', 'a test', '--yes')
    expect(await stand.json('run')).toMatchObject({ syncs: [{ counts: { stale: 1, unchanged: 1 } }] })
    expect(await stand.rows("select State as s from tickets where _key = '1'")).toEqual([{ s: 'closed' }])
  })

  test('N14 N15 N16 a backfill and its delta keep one database together beside another, related one', async () => {
    const task = (id: string, minute: number, project = 'p1') => ({
      id,
      name: `Task ${id}`,
      status: 'Open',
      project,
      updatedAt: at(minute),
    })
    const api = await Api.start({
      projects: [
        { id: 'p1', name: 'One' },
        { id: 'p2', name: 'Two' },
      ],
      tasks: ['a', 'b', 'c', 'd', 'e'].map((id) => task(id, 1)),
    })
    const stand = new Stand('tasks', { API_URL: api.url })
    expect(await stand.json('run')).toMatchObject({ ok: true })
    expect(
      await stand.rows(
        'select t._key as k, p."Project Name" as n from tasks t join projects p on p._key = t.Project ->> 0 order by 1 limit 1',
      ),
    ).toEqual([{ k: 'a', n: 'One' }])
    // Between two backfills the delta adds a record that the source then drops without an event: the backfill detects it.
    api.put('tasks', task('f', 5, 'p2'))
    api.put('tasks', task('g', 5, 'p2'))
    expect(await stand.json('run', 'tasksDelta')).toMatchObject({ syncs: [{ counts: { created: 2, unchanged: 0 } }] })
    api.drop('tasks', 'f')
    expect(await stand.json('run', 'tasksDelta')).toMatchObject({
      syncs: [{ counts: { created: 0, deleted: 0, swept: 0 } }],
    })
    expect(await stand.json('run', 'tasksBackfill')).toMatchObject({ syncs: [{ counts: { swept: 1, unchanged: 6 } }] })
    expect((await stand.rows('select _key as k from tasks order by 1')).map(({ k }) => k)).toEqual([
      'a',
      'b',
      'c',
      'd',
      'e',
      'g',
    ])
    expect(await stand.rows('select count(*) as n from projects')).toEqual([{ n: 2 }])
    expect(await stand.json('status')).toMatchObject({
      syncs: [
        { sync: 'projectsSync' },
        { sync: 'tasksBackfill', schedule: { kind: 'manual' } },
        { sync: 'tasksDelta', mode: 'incremental' },
      ],
    })
  })

  test('N13 NX2 a feed of events fills two databases and empties them again, waiting when it is requested', async () => {
    const api = await Api.start()
    const happened = (table: string, key: string, name: string | null): void =>
      void api.events.push({ table, key, name, at: at(api.events.length) })
    for (const n of [1, 2, 3]) happened('people', `p${n}`, `Person ${n}`)
    for (const n of [1, 2, 3]) happened('rooms', `r${n}`, `Room ${n}`)
    happened('people', 'p2', null)
    const stand = new Stand('events', { API_URL: api.url })
    api.refusals = 1
    const {
      syncs: [first],
    } = (await stand.json('run')) as { syncs: Record<string, any>[] }
    expect(first).toMatchObject({ stop_reason: 'complete', retries: 1, counts: { created: 6, deleted: 1 } })
    expect(first!['waited_ms']).toBeGreaterThanOrEqual(1_000)
    happened('rooms', 'r1', null)
    happened('people', 'p2', 'Person 2 again')
    expect(await stand.json('run')).toMatchObject({ syncs: [{ counts: { created: 1, deleted: 1, unchanged: 0 } }] })
    expect((await stand.rows('select Name as n from people order by 1')).map(({ n }) => n)).toEqual([
      'Person 1',
      'Person 2 again',
      'Person 3',
    ])
    expect((await stand.rows('select Name as n from rooms order by 1')).map(({ n }) => n)).toEqual(['Room 2', 'Room 3'])
  })

  test('N17 under start a continuous sync runs again and again, one with an interval once, a manual one not at all', async () => {
    const api = await Api.start({ projects: [{ id: 'p1', name: 'One' }], tasks: [] })
    const continuous = new Stand('events', { API_URL: api.url }).start('start')
    await until(() => api.requests.length >= 3)
    const others = new Stand('tasks', { API_URL: api.url }).start('start')
    await until(() => ['/projects', '/tasks'].every((path) => api.requests.some((request) => request.startsWith(path))))
    for (const { process } of [continuous, others]) process.kill('SIGTERM')
    expect((await continuous.ended).stdout).toMatch(/events\s+incremental\s+continuous\s+people\n/)
    expect((await others.ended).stdout).toMatch(/tasksBackfill\s+replace\s+manual\s+tasks\n/)
    expect(new Set(api.requests)).toEqual(
      new Set(['/events?after=0&size=4', '/projects?size=100', '/tasks/changed?size=3&since=&after=']),
    )
  })

  test('other declarations of a worker are listed and not run; its environment is .env', async () => {
    let authorization: string | undefined
    const notion = await serve((request, response) => {
      authorization = request.headers.authorization
      json(response, { object: 'list', results: [{ object: 'user' }], has_more: false, next_cursor: null })
    })
    const project = withPackage()
    // As the template lays it out: the file in src, the environment beside package.json.
    mkdirSync(join(project.folder, 'src'))
    project.write('package.json', '{ "name": "@acme/desk", "type": "module" }')
    project.write('src/index.ts', readFileSync(join(WORKERS, 'everything-else.ts'), 'utf8'))
    project.write(
      '.env',
      `GREETING=hello\nNOTION_API_TOKEN=ntn-1\nNOTION_API_BASE_URL=${notion}\nOAUTH_6769746875622D6F61757468_ACCESS_TOKEN=gho-1\n`,
    )
    const target = ['--file', 'src/index.ts', '--store', 'sqlite:store.db']
    const ran = await project.json('run', ...target)
    expect(ran).toMatchObject({
      ok: true,
      worker: 'acme-desk',
      syncs: [{ sync: 'secretsSync', counts: { created: 3 } }],
    })
    expect(ran['syncs']).toHaveLength(1)
    expect(ran['not_run']).toEqual([
      { kind: 'oauth', name: 'github', note: 'its token is read from OAUTH_6769746875622D6F61757468_ACCESS_TOKEN' },
      { kind: 'tool', name: 'greet', note: null },
      { kind: 'webhook', name: 'onPush', note: null },
      { kind: 'ai connector', name: 'chats', note: null },
      { kind: 'sync', name: 'tableSync', note: 'it does not write to a database' },
      { kind: 'credential', name: 'STRIPE_KEY', note: 'requests are sent without it' },
    ])
    expect(authorization).toBe('Bearer ntn-1')
    expect(
      (await project.json('query', 'select _key as k, "Value" as v from secrets order by 1', ...target))['rows'],
    ).toEqual([
      { k: 'greeting', v: 'hello' },
      { k: 'token', v: 'gho-1' },
      { k: 'users', v: '1' },
    ])
    expect((await project.run('status', ...target)).stderr).toContain(
      'Not run here: oauth github (its token is read from OAUTH_6769746875622D6F61757468_ACCESS_TOKEN), tool greet, webhook onPush,',
    )
    expect((await project.run('doctor', ...target)).stdout).toContain('not run here  oauth github')
  })
})

describe('a worker that goes wrong', () => {
  test('says which sync, what it did and what to do, and lands nothing of the page', async () => {
    const stand = new Stand('hostile')
    const { ok, syncs } = (await stand.json('run')) as {
      ok: boolean
      syncs: { sync: string; error: { code: string; message: string } | null }[]
    }
    expect(ok).toBe(false)
    expect(
      Object.fromEntries(
        syncs.map(({ sync, error }) => [sync, error === null ? null : `${error.code} ${error.message}`]),
      ),
    ).toEqual({
      throws: expect.stringMatching(/^CONNECTOR_FAILED no such table \(at hostile\.ts:\d+\)$/),
      throwsText: 'CONNECTOR_FAILED threw just words',
      noPage: expect.stringMatching(/^PAGE_INVALID noPage: `execute` returned/),
      noChanges: expect.stringMatching(/^PAGE_INVALID noChanges: `execute` returned/),
      noChange: expect.stringMatching(/^PAGE_INVALID noChange: `execute` returned/),
      noType: 'PAGE_INVALID noType: a change must have the type "upsert", "delete" or "invalid"; one has undefined.',
      elsewhere:
        'DATABASE_UNKNOWN elsewhere: a change names the database "nowhere", which this sync does not write to.',
      noPacer: 'PACER_UNKNOWN This sync does not use a pacer named "absent".',
      noState: expect.stringMatching(/^STATE_MISSING/),
      sameState: expect.stringMatching(/^CURSOR_STALLED/),
      mapState: expect.stringMatching(/^STATE_INVALID mapState: nextState.seen is Map/),
      badValues: null,
    })
    expect(await stand.rows('select _key as k from rows')).toEqual([{ k: 'good' }])
  })

  test('what does not fit the schema of the database is in quarantine, each with its reason', async () => {
    const stand = new Stand('hostile')
    expect(await stand.json('run', 'badValues')).toMatchObject({ syncs: [{ counts: { created: 1, quarantined: 7 } }] })
    const reasons = await stand.rows('select key as k, code as c, message as m from tidemark_quarantine order by key')
    expect(reasons).toEqual([
      { k: null, c: 'KEY_INVALID', m: 'the key is empty' },
      { k: 'amount', c: 'SCHEMA_MISMATCH', m: 'Amount: must be number,null' },
      { k: 'done', c: 'SCHEMA_MISMATCH', m: 'Done: must be boolean,null' },
      { k: 'none', c: 'RECORD_INVALID', m: 'the record is undefined, not an object' },
      { k: 'owners', c: 'SCHEMA_MISMATCH', m: 'Owners: must be array,null' },
      { k: 'undeclared', c: 'SCHEMA_MISMATCH', m: 'must NOT have additional properties ("Colour")' },
      { k: 'when', c: 'TIMESTAMP_INVALID', m: expect.stringContaining('RFC 3339') },
    ])
  })
})

describe('the package', () => {
  test('that is missing is named, with the command that installs it', async () => {
    const project = new Project()
    project.write('package.json', '{}')
    project.write('worker.ts', readFileSync(join(WORKERS, 'books.ts'), 'utf8'))
    const { code, stderr } = await project.run('run')
    expect({ code, stderr }).toMatchObject({
      code: 3,
      stderr: expect.stringContaining(
        `PACKAGE_UNFIT  worker.ts needs @notionhq/workers, which is not installed for it. Run \`npm install @notionhq/workers@0.9.2 @notionhq/client\` in ${project.folder}.`,
      ),
    })
  })

  test.each([
    ['0.4', 'notion-workers-0.4'],
    ['0.8', 'notion-workers-0.8'],
    ['0.9', '@notionhq/workers'],
  ])('of release %s runs a worker with databases, pacers, states and a cron schedule', async (series, name) => {
    const project = new Project()
    mkdirSync(join(project.folder, 'node_modules/@notionhq'), { recursive: true })
    symlinkSync(join(ROOT, 'node_modules', name), join(project.folder, 'node_modules/@notionhq/workers'))
    project.write(
      'worker.ts',
      `
      import { Worker } from '@notionhq/workers'
      import * as Builder from '@notionhq/workers/builder'
      import * as Schema from '@notionhq/workers/schema'
      const worker = new Worker()
      const books = worker.database('books', { type: 'managed', initialTitle: 'Books', primaryKeyProperty: 'Id', schema: { properties: { Title: Schema.title(), Id: Schema.richText() } } })
      const pacer = worker.pacer('shelf', { allowedRequests: 100, intervalMs: 1000 })
      worker.sync('all', {
        database: books, mode: 'incremental', schedule: { cron: '0 3 * * *', zone: 'Europe/Berlin' },
        execute: async (state) => {
          await pacer.wait()
          const n = (state?.n ?? 0) + 1
          return { changes: [{ type: 'upsert', key: 'b' + n, properties: { Title: Builder.title('Book ' + n), Id: Builder.richText('b' + n) } }], hasMore: n % 2 === 1, nextState: { n } }
        },
      })
      export default worker
    `,
    )
    expect(JSON.parse(readFileSync(join(ROOT, 'node_modules', name, 'package.json'), 'utf8'))).toMatchObject({
      version: expect.stringContaining(`${series}.`),
    })
    for (const keys of [
      ['b1', 'b2'],
      ['b1', 'b2', 'b3', 'b4'],
    ]) {
      expect(await project.run('run')).toMatchObject({ code: 0 })
      expect((await project.json('query', 'select _key, "Title" from books order by _key'))['rows']).toEqual(
        keys.map((key) => ({ _key: key, Title: `Book ${key.slice(1)}` })),
      )
    }
    expect((await project.json('status'))['syncs']).toMatchObject([
      { sync: 'all', schedule: { kind: 'cron', cron: '0 3 * * *', zone: 'Europe/Berlin' } },
    ])
  })

  test('in an unknown release is refused, and the error names the tested releases', async () => {
    const project = new Project()
    const folder = join(project.folder, 'node_modules/@notionhq/workers')
    mkdirSync(folder, { recursive: true })
    writeFileSync(
      join(folder, 'package.json'),
      '{"name":"@notionhq/workers","version":"0.10.0","type":"module","exports":{".":"./index.js","./pacer":"./pacer.js"}}',
    )
    writeFileSync(
      join(folder, 'index.js'),
      'export class Worker { manifest = { sdkVersion: "0.10.0" }; run() {} tool() {} sync() {} pacer() {} }',
    )
    writeFileSync(join(folder, 'pacer.js'), 'export const Pacer = { wait() {} }')
    project.write('worker.ts', 'import { Worker } from "@notionhq/workers"\nexport default new Worker()\n')
    const { code, stderr } = await project.run('run')
    expect({ code, stderr }).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('@notionhq/workers "0.10.0", but only 0.4.x, 0.8.x, 0.9.x are supported.'),
    })
  })

  test('that cannot be loaded does not affect a worker that does not use it', async () => {
    const project = new Project()
    const folder = join(project.folder, 'node_modules/@notionhq/workers')
    mkdirSync(folder, { recursive: true })
    writeFileSync(
      join(folder, 'package.json'),
      '{"name":"@notionhq/workers","version":"0.9.2","type":"module","exports":{".":"./index.js","./pacer":"./index.js"}}',
    )
    writeFileSync(join(folder, 'index.js'), 'import "@notionhq/client"\n')
    project.write('worker.ts', 'import { Worker } from "tidemark"\nexport default new Worker()\n')
    expect(await project.run('run')).toMatchObject({ code: 0 })
    project.write('worker.ts', 'import { Worker } from "@notionhq/workers"\nexport default new Worker()\n')
    expect(await project.run('run')).toMatchObject({
      code: 3,
      stderr: expect.stringContaining(
        'needs @notionhq/client, which is not installed for it. Run `npm install @notionhq/client`',
      ),
    })
  })
})

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => void setTimeout(resolve, 20))
}

function withPackage(): Project {
  const project = new Project()
  symlinkSync(join(ROOT, 'node_modules'), join(project.folder, 'node_modules'))
  return project
}
