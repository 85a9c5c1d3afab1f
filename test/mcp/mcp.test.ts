import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { runSelect } from '../../src/stores/run-select.ts'
import type { Store } from '../../src/contract/index.ts'
import type { ToolContext } from '../../src/mcp/tool-context.ts'
import { buildQuerySql } from '../../src/mcp/query-tool.ts'
import { fitItems } from '../../src/mcp/fit-items.ts'
import { readTools } from '../../src/mcp/read-tools.ts'
import { SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { locateStore } from '../../src/stores/drivers.ts'
import { people, Project } from '../cli/project.ts'
import { openHarness } from '../stores/sqlite-harness.ts'
import { connect } from './agent.ts'

/** In the state and the cursors of the worker in fixtures/. */
const CANARY = 'kestrel-7731'

test('an agent looks at the databases, the changes and the syncs of one tenant, and changes nothing', async () => {
  const project = Project.withWorker({ people: people(5) })
  expect((await project.run('run', '--tenant', 'acme')).code).toBe(0)
  project.source({ people: [...people(3), { id: "o'brien", name: '\\x27; drop table x; --' }] })
  for (let n = 0; n < 3; n++) expect((await project.run('run')).code).toBe(0)
  const before = contentOf(project)
  const { agent, call, raw } = await connect(project)

  const tools = (await agent.listTools()).tools
  expect(tools.map(({ name }) => name)).toEqual([
    'list_databases',
    'get_record',
    'read_changes',
    'status',
    'why',
    'query_records',
  ])
  expect(tools.every(({ annotations }) => annotations?.readOnlyHint === true)).toBe(true)
  expect(agent.getServerVersion()).toMatchObject({ name: 'tidemark' })

  expect((await call('list_databases'))['databases']).toEqual([
    { name: 'people', rows: 4, columns: ['id: string', 'name: string'] },
    { name: 'rooms', rows: 3, columns: ['floor: integer'] },
  ])
  expect(await call('get_record', { database: 'people', key: "o'brien" })).toMatchObject({
    key: "o'brien",
    record: { id: "o'brien" },
  })
  expect(await call('get_record', { database: 'people', key: 'p0005' })).toMatchObject({ record: null })

  // Questions, with values that would break out of their quotes if they could.
  const rows = async (given: object): Promise<Record<string, unknown>[]> =>
    (await call('query_records', { database: 'people', ...given }))['rows'] as Record<string, unknown>[]
  expect((await rows({})).map((row) => row['_key'])).toEqual(["o'brien", 'p0001', 'p0002', 'p0003'])
  expect(
    await rows({
      columns: ['name'],
      where: [{ column: '_key', is: 'in', value: ['p0001', "o'brien"] }],
      order_by: [{ column: 'name' }],
    }),
  ).toEqual([{ name: 'Person 1' }, { name: '\\x27; drop table x; --' }])
  expect(
    await rows({ columns: ['_key'], where: [{ column: 'name', is: '=', value: '\\x27; drop table x; --' }] }),
  ).toEqual([{ _key: "o'brien" }])
  expect(await rows({ columns: ['_key'], where: [{ column: 'name', is: 'contains', value: 'son 2' }] })).toEqual([
    { _key: 'p0002' },
  ])
  expect(await rows({ where: [{ column: 'name', is: '=', value: "' or 1=1 --" }] })).toEqual([])
  expect(
    await rows({ aggregates: [{ function: 'count' }], where: [{ column: '_key', is: '>=', value: 'p' }] }),
  ).toEqual([{ count: 3 }])
  expect(
    (
      await call('query_records', {
        database: 'rooms',
        aggregates: [
          { function: 'sum', column: 'floor' },
          { function: 'max', column: 'floor' },
        ],
      })
    )['rows'],
  ).toEqual([{ 'sum floor': 6, 'max floor': 3 }])
  expect(await call('query_records', { database: 'people', limit: 2 })).toMatchObject({
    truncated: true,
    rows: [{}, {}],
  })
  expect(await raw('query_records', { database: 'people', columns: ['state"; select 1'] })).toMatchObject({
    isError: true,
    text: expect.stringMatching(
      /^ARGUMENT_INVALID: people has no column .* it has: _key, _sequence, .*, id, name\.$/,
    ) as unknown,
  })
  expect(await raw('query_records', { database: 'tidemark_checkpoints' })).toMatchObject({
    isError: true,
    text: expect.stringContaining('The databases are: people, rooms') as unknown,
  })
  expect(await raw('query_records', { database: 'people', limit: 5_000 })).toMatchObject({
    isError: true,
    text: expect.stringContaining('limit must be <= 500') as unknown,
  })

  // The changes, page by page, are all of them.
  const all: unknown[] = []
  for (let [after, more] = [0, true]; more;) {
    const page = await call('read_changes', { after, limit: 3 })
    all.push(...(page['changes'] as unknown[]))
    ;[after, more] = [page['next'] as number, page['more'] as boolean]
  }
  expect(all).toHaveLength(7)
  expect((await call('read_changes', { limit: 1 }))['changes']).toEqual(all.slice(-1))
  expect((await call('read_changes', { after: 0, databases: ['rooms'] }))['changes']).toHaveLength(3)

  const status = await call('status')
  expect(status).toMatchObject({
    tenant: 'default',
    syncs: [
      { worker: 'office', sync: 'people-list', health: 'HEALTHY', lastCycle: { stopReason: 'complete' } },
      { sync: 'room-changes', tidemark: '2026-01-03T00:00:00.000000Z' },
    ],
  })
  const why = await call('why', { database: 'rooms', key: 'r1' })
  expect(why).toMatchObject({
    history: [{ action: 'created', worker: 'office', sync: 'room-changes', page: 1, changed: ['floor'] }],
  })

  // The tools that change something do not exist, and no secret was returned.
  await expect(agent.callTool({ name: 'pause', arguments: { sync: 'people-list' } })).rejects.toThrow(/--allow-writes/)
  await expect(agent.callTool({ name: 'drop', arguments: {} })).rejects.toThrow(/Unknown tool "drop"/)
  expect(
    JSON.stringify([all, status, why, await call('get_record', { database: 'rooms', key: 'r1' }), await rows({})]),
  ).not.toContain(CANARY)
  await agent.close()
  expect(contentOf(project)).toBe(before)
})

test('with --allow-writes an agent triggers, pauses and resumes, on record; without a store the error says that there are no databases', async () => {
  const project = Project.withWorker({ people: people(2) })
  const { agent, call, raw } = await connect(project, '--allow-writes')
  expect(await call('list_databases')).toEqual({ databases: [], truncated: false })
  expect(await call('status')).toMatchObject({
    syncs: [{ sync: 'people-list', note: 'never ran' }, { sync: 'room-changes' }],
  })
  expect(await raw('query_records', { database: 'people' })).toMatchObject({
    isError: true,
    text: expect.stringContaining('none yet') as unknown,
  })
  expect(await raw('pause', { sync: 'peple' })).toMatchObject({
    isError: true,
    text: expect.stringMatching(/^SYNC_UNKNOWN: .*office\/people-list/) as unknown,
  })
  expect(project.has('.tidemark/tidemark.db')).toBe(false)

  expect(await call('pause', { sync: 'people-list' })).toEqual({
    worker: 'office',
    sync: 'people-list',
    paused: true,
    triggeredAt: null,
  })
  expect(await call('trigger', { sync: 'people-list' })).toMatchObject({
    paused: true,
    triggeredAt: expect.stringMatching(/^20\d\d-/) as unknown,
  })
  expect(await call('resume', { sync: 'people-list' })).toMatchObject({ paused: false })
  const log = await project.json('state', 'log', 'people-list')
  expect(JSON.stringify(log)).toMatch(
    /"actor":"mcp:[^"]+".*"action":"(pause|resume)"|"action":"(pause|resume)".*"actor":"mcp:/,
  )
  // Rows that land meanwhile are visible.
  expect((await project.run('run', 'people-list')).code).toBe(0)
  expect((await call('query_records', { database: 'people', aggregates: [{ function: 'count' }] }))['rows']).toEqual([
    { count: 2 },
  ])
  await agent.close()
})

test('a tidemark that is not a time is state and is not shown; nor is the cursor of a change', async () => {
  const { store, close } = await openHarness()
  onTestFinished(close)
  const driver = await SyncDriver.acquire(store)
  await driver.begin()
  await driver.complete([upsert('k', { n: 1 }, { cursor: CANARY })], {
    tidemark: CANARY,
    state: `{"token":"${CANARY}"}`,
  })
  const answers = await Promise.all(
    readTools.map((tool) => tool.run(deskOf(store), { database: 'things', key: 'k', limit: 10 })),
  )
  expect(answers).toMatchObject([
    { databases: [{ name: 'things' }] },
    { record: { n: 1 } },
    { changes: [{ key: 'k' }] },
    { syncs: [{ sync: 'delta', tidemark: null, health: 'HEALTHY' }] },
    { history: [{ action: 'created' }] },
  ])
  expect(JSON.stringify(answers)).not.toContain(CANARY)
})

test('changes that do not fit into one result come with the next, without gaps', async () => {
  const { store, close } = await openHarness()
  onTestFinished(close)
  const driver = await SyncDriver.acquire(store)
  await driver.begin()
  await driver.page(
    Array.from({ length: 40 }, (_, n) => upsert(`k${String(n).padStart(2, '0')}`, { text: 'x'.repeat(3_500) })),
  )
  const readChanges = readTools.find(({ name }) => name === 'read_changes')!
  const keys: string[] = []
  let calls = 0
  for (let [after, more] = [0, true]; more; calls++) {
    const page = (await readChanges.run(deskOf(store), { after, limit: 200 })) as {
      changes: { key: string }[]
      next: number
      more: boolean
    }
    keys.push(...page.changes.map(({ key }) => key))
    ;({ next: after, more } = page)
  }
  expect(keys).toEqual(Array.from({ length: 40 }, (_, n) => `k${String(n).padStart(2, '0')}`))
  expect(calls).toBeGreaterThan(2)
})

test('without the SDK the command says what to install', async () => {
  const project = Project.withWorker()
  // The same build, where the package is hidden.
  const hidden = `data:text/javascript,${encodeURIComponent("export async function resolve(name, context, next) { if (name.startsWith('@modelcontextprotocol/')) throw Object.assign(new Error('gone'), { code: 'ERR_MODULE_NOT_FOUND' }); return next(name, context) }")}`
  project.write('hide.mjs', `import { register } from 'node:module'\nregister(${JSON.stringify(hidden)})\n`)
  const { code, stdout } = await project.run('mcp', '--json', {
    env: { NODE_OPTIONS: `--import=${join(project.folder, 'hide.mjs')}` },
  })
  expect(code).toBe(3)
  expect(JSON.parse(stdout.trim())).toMatchObject({
    error: {
      code: 'PACKAGE_UNFIT',
      message: expect.stringContaining('npm install @modelcontextprotocol/sdk') as unknown,
    },
  })
})

const SQLITE = locateStore('sqlite::memory:', '/').syntax
const POSTGRES = locateStore('postgres://host/database', '/').syntax

test('names come from the view and values are quoted, for both databases', () => {
  const known = ['_key', 'a"b', 'n']
  const question = {
    database: 'd',
    where: [
      { column: 'a"b', is: '=', value: "x'y\\" },
      { column: 'n', is: 'in', value: [1, true] },
      { column: 'n', is: 'not null' },
    ],
    order_by: [{ column: 'n', descending: true }],
    limit: 5,
  } as const
  expect(buildQuerySql(question, '"d"', known, SQLITE)).toBe(
    `select * from "d" where tidemark_in_time() and "a""b" = 'x''y\\' and "n" in (1, true) and "n" is not null order by "n" desc limit 6`,
  )
  expect(buildQuerySql(question, 's.d', known, POSTGRES)).toBe(
    `select * from s.d where "a""b" = E'x''y\\\\' and "n" in (1, true) and "n" is not null order by "n" desc limit 6`,
  )
  expect(
    buildQuerySql(
      {
        database: 'd',
        group_by: ['n'],
        aggregates: [{ function: 'count' }],
        order_by: [{ column: 'count', descending: true }],
        limit: 1,
      },
      '"d"',
      known,
      SQLITE,
    ),
  ).toBe(
    'select "n", count(*) as "count" from "d" where tidemark_in_time() group by "n" order by count(*) desc limit 2',
  )
  for (const wrong of [
    { columns: ['x'] },
    { group_by: ['n'] },
    { aggregates: [{ function: 'sum' }] },
    { where: [{ column: 'n', is: '=' }] },
    { where: [{ column: 'n', is: '<', value: [1] }] },
    { where: [{ column: 'n', is: '=', value: 'a\0b' }] },
  ]) {
    expect(
      () => buildQuerySql({ database: 'd', limit: 1, ...wrong } as never, '"d"', known, SQLITE),
      JSON.stringify(wrong),
    ).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
  }
})

test('a query that takes too long is cancelled', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-mcp-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const location = locateStore('sqlite:store.db', folder)
  await (await location.open({ tenant: 'default' })).close()
  const endless =
    '(with recursive n(i) as (select 1 union all select i + 1 from n where i < 1e12) select i as "_key" from n)'
  for (const question of [
    { aggregates: [{ function: 'count' }] },
    { order_by: [{ column: '_key', descending: true }] },
    { where: [{ column: '_key', is: '<', value: 0 }] },
  ] as const) {
    await expect(
      runSelect(location, buildQuerySql({ database: 'd', limit: 1, ...question }, endless, ['_key'], SQLITE), {
        limit: 1,
        tenant: 'default',
        deadlineMs: 50,
      }),
    ).rejects.toMatchObject({ code: 'QUERY_TOO_LONG', message: 'The query took longer than 0.05 s.' })
  }
  expect(
    await runSelect(location, 'select 1 as one where tidemark_in_time()', {
      limit: 1,
      tenant: 'default',
      deadlineMs: 50,
    }),
  ).toMatchObject({ rows: [[1]] })
})

test('a result is never larger than an agent can read, and marks omissions', () => {
  const long = {
    key: 'k',
    record: { text: 'x'.repeat(100_000), list: Array.from({ length: 10_000 }, (_, n) => n), n: 12345678901234567890n },
  }
  const one = fitItems([long])
  expect(one).toMatchObject({
    truncated: false,
    items: [
      {
        key: 'k',
        record: {
          n: 12345678901234567890n,
          text: expect.stringMatching(/^x{4000}… \(96000 more characters\)$/) as unknown,
        },
      },
    ],
  })
  const many = fitItems(Array.from({ length: 100 }, () => long))
  expect(many.truncated).toBe(true)
  expect(many.items.length).toBeGreaterThan(2)
  expect(many.items.length).toBeLessThan(10)
  const wide = fitItems([
    { record: Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`m${n}`, 'y'.repeat(1_000)])) },
  ])
  expect(Object.keys((wide.items[0] as { record: object }).record).length).toBeLessThan(45)
})

/** The bytes of the file: a reader leaves them as they are. */
function contentOf(project: Project): string {
  return createHash('sha256')
    .update(readFileSync(join(project.folder, '.tidemark/tidemark.db')))
    .digest('hex')
}

function deskOf(store: Store): ToolContext {
  return {
    tenant: 'default',
    openExistingStore: async () => store,
    openOrCreateStore: async () => store,
    syncs: [],
    select: () => Promise.reject(new Error('not asked')),
    syntax: SQLITE,
    clock: { now: () => 0, sleep: async () => {} },
    actor: 'mcp:test',
  }
}
