import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { salesforce, type SalesforceOptions } from '../../src/sources/salesforce/source.ts'
import { parseBulkRecords } from '../../src/sources/salesforce/bulk-records.ts'
import type { Page, SyncContext } from '../../src/contract/index.ts'
import { SalesforceSimulator } from '../../simulators/src/index.ts'
import { toRangePlan } from '../../src/engine/range-plan.ts'
import { createSimulatorFetch } from '../../simulators/src/kit/simulator-fetch.ts'
import { MINUTE, planOf } from '../engine/engine-fixture.ts'
import { VendorFixture } from './vendor-fixture.ts'

let stage: VendorFixture<SalesforceSimulator>
let vendor: SalesforceSimulator

const TYPES = {
  Name: 'string',
  Amount: 'currency',
  Units: 'int',
  Open: 'boolean',
  Due: 'date',
  Called: 'datetime',
} as const

async function open(
  options: Partial<SalesforceOptions> = {},
  simulated: ConstructorParameters<typeof SalesforceSimulator>[1] = {},
  name = 'Deal',
): Promise<void> {
  await stage?.close()
  const objects = { Deal: TYPES, Site: { Name: 'string', Place: 'address' } } as const
  stage = await VendorFixture.open((ports) => new SalesforceSimulator(ports, { objects, ...simulated }))
  vendor = stage.vendor
  stage.track(source(options).object(name))
}
const source = (options: Partial<SalesforceOptions> = {}) =>
  salesforce({
    instanceUrl: 'https://example.my.salesforce.com',
    accessToken: 'SF_TOKEN',
    limit: 50,
    bulk: true,
    ...options,
  })
beforeEach(() => open())
afterEach(() => stage.close())

const fill = (count: number, type = 'Deal'): string[] =>
  Array.from({ length: count }, (_, n) =>
    vendor.create(type, {
      Name: n % 3 === 0 ? null : `line "${n}",\n`,
      Amount: n % 2 === 0 ? n : n / 8,
      Units: n,
      Open: n % 2 === 0,
      Due: '2026-02-03',
      Called: n % 4 === 0 ? null : 1_000 * n,
    }),
  )
/** The description, the limits and the creation. */
const CREATED_PAGES = 3
const truth = (): unknown => stage.truth('Deal', 'Id')
/** Without the request that reads the server's clock for the delta. */
const requests = (): string[] =>
  stage
    .asked()
    .map(({ method, path }) => `${method} ${path.replace(/^.*\/v60\.0/, '').replace(/750\w{15}/, '<job>')}`)
    .filter((line) => line !== 'GET /queryAll')
const polls = (list: readonly string[]): string[] => list.filter((line, at) => line !== list[at - 1])
const jobsCreated = (): number => requests().filter((line) => line === 'POST /jobs/query').length

describe('a backfill by a query job', () => {
  test('reads the records that the REST API returns, and deletes the job', async () => {
    fill(120)
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { created: 120 } })
    expect(polls(requests())).toEqual([
      'GET /sobjects/Deal/describe',
      'GET /limits',
      'POST /jobs/query',
      'GET /jobs/query/<job>',
      'GET /jobs/query/<job>/results',
      'GET /jobs/query/<job>',
      'DELETE /jobs/query/<job>',
    ])
    expect(await stage.rows()).toEqual(truth())
    expect(vendor.jobs.count).toBe(0)
    expect(await stage.state('sync-backfill')).toBeNull()
    // A record that REST returns later is the same.
    stage.track(source({ bulk: false }).object('Deal'))
    expect(await stage.backfill()).toMatchObject({ counts: { created: 0, updated: 0 } })
  })

  test('the pages have the types of the description', async () => {
    fill(1)
    const { backfill } = source().object('Deal')
    const pages: Page[] = []
    const execute = async (state: any, context: SyncContext) => {
      const page = await backfill(state, context)
      pages.push(page)
      return page
    }
    const plan = planOf({ execute, mode: 'replace' })
    expect(await stage.scene.run(plan, { fetch: createSimulatorFetch(vendor) })).toMatchObject({
      stopReason: 'complete',
    })
    expect(pages.find(({ changes }) => changes.length > 0)?.tables).toMatchObject([
      {
        key: ['Id'],
        columns: expect.arrayContaining([
          { name: 'SystemModstamp', type: 'timestamp' },
          { name: 'Amount', type: 'double' },
          { name: 'Units', type: 'bigint' },
          { name: 'Open', type: 'boolean' },
          { name: 'Due', type: 'date' },
        ]),
      },
    ])
  })

  test('an empty object is an empty result', async () => {
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { created: 0 } })
  })

  test('a cycle that is interrupted anywhere continues the same job', async () => {
    fill(230)
    expect(await stage.untilComplete('backfill')).toBeGreaterThan(5)
    expect(jobsCreated()).toBe(1)
    expect(await stage.rows()).toEqual(truth())
  })

  test('a job that ages out between two sets is created again, and no row is deleted', async () => {
    fill(120)
    await stage.backfill()
    stage.asked()
    vendor.faults.plan({ kind: 'expired-token' }, { on: (request) => request.url.includes('locator') })
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { swept: 0 } })
    expect(jobsCreated()).toBe(2)
    expect(await stage.rows()).toEqual(truth())
  })

  test.each(['Failed', 'Aborted'])('a job that ends as %s is created again', async (state) => {
    fill(20)
    let answers = 0
    const spoil = (body: any, { pathname }: URL): unknown =>
      pathname.includes('/jobs/query/') && ++answers === 1
        ? { ...body, state, errorMessage: "QUERY_TIMEOUT : the secret text 'x'" }
        : body
    expect(await stage.backfill({ spoil })).toMatchObject({ stopReason: 'complete', counts: { created: 20 } })
    expect(jobsCreated()).toBe(2)
  })

  test('a job that fails again ends the cycle with its error code, and the next cycle creates another', async () => {
    fill(20)
    const spoil = (body: any, { pathname }: URL): unknown =>
      pathname.includes('/jobs/query/')
        ? { ...body, state: 'Failed', errorMessage: "QUERY_TIMEOUT : secret 'x'" }
        : body
    const { error } = await stage.backfill({ spoil })
    expect(error).toMatchObject({ code: 'CURSOR_REJECTED', message: expect.stringContaining('QUERY_TIMEOUT.') })
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { created: 20 } })
  })

  test.each([
    ['more', 1],
    ['fewer', -1],
  ])('results of a job that counts %s records delete nothing', async (_, difference) => {
    const ids = fill(120)
    await stage.backfill()
    vendor.remove('Deal', ids[7]!)
    const spoil = (body: any, { pathname }: URL): unknown =>
      pathname.includes('/jobs/query/')
        ? { ...body, numberRecordsProcessed: body.numberRecordsProcessed + difference }
        : body
    const { error, counts } = await stage.backfill({ spoil, allowDeletes: true })
    expect(error).toMatchObject({ code: 'CURSOR_REJECTED', message: expect.stringMatching(/counts 1\d\d; nothing/) })
    expect(counts).toMatchObject({ swept: 0 })
    expect(Object.keys(await stage.rows())).toHaveLength(120)
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { swept: 1 } })
  })

  test('an end that is claimed too early is requested again', async () => {
    fill(230)
    for (const nth of [1, 2, 4]) {
      let sets = 0
      vendor.faults.plan(
        { kind: 'end-flag', value: 'end' },
        { on: ({ url }) => url.includes('/results') && ++sets === nth },
      )
      expect(await stage.backfill({ allowDeletes: true })).toMatchObject({
        stopReason: 'complete',
        counts: { swept: 0 },
      })
    }
    expect(jobsCreated()).toBe(3)
    expect(await stage.rows()).toEqual(truth())
  })

  test.each([
    ['the set before', { kind: 'duplicate-page' }],
    ['half a set', { kind: 'truncated', how: 'short' }],
    ['a set that breaks off', { kind: 'truncated', how: 'cut-off' }],
    ['a sign-in page', { kind: 'html' }],
    ['a short set', { kind: 'short-page' }],
    ['one set too many', { kind: 'end-flag', value: 'more' }],
  ] as const)('%s loses no record', async (_, fault) => {
    fill(120)
    let sets = 0
    vendor.faults.plan(fault, { on: ({ url }) => url.includes('/results') && ++sets === 3 })
    expect(await stage.backfill({ retriesMax: 3 })).toMatchObject({ stopReason: 'complete', counts: { created: 120 } })
    expect(await stage.rows()).toEqual(truth())
  })

  test('a set that lacks its last record is requested again, and the job continues', async () => {
    fill(120)
    const ask = createSimulatorFetch(vendor)
    let sets = 0
    const fetch = async (input: string | URL, init?: RequestInit): Promise<Response> => {
      const response = await ask(input, init)
      if (!new URL(input).pathname.endsWith('/results') || ++sets !== 1) return response
      const text = await response.text()
      return new Response(text.slice(0, text.lastIndexOf('\n"a00') + 1), response)
    }
    const plan = planOf({ execute: source().object('Deal').backfill, mode: 'replace', limits: { retriesMax: 2 } })
    expect(await stage.scene.run(plan, { fetch })).toMatchObject({ stopReason: 'complete', counts: { created: 120 } })
    expect(jobsCreated()).toBe(1)
  })

  test('a version that the job read before the delta does not replace the newer one of the same time', async () => {
    const ids = fill(20)
    await stage.backfill({ afterMs: 0, pagesMax: CREATED_PAGES })
    expect(vendor.jobs.count).toBe(1)
    for (const id of ids) vendor.update('Deal', id, { Name: 'second' })
    await stage.delta()
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { created: 0, updated: 0 } })
    expect(await stage.rows()).toEqual(truth())
  })

  test('a record that is deleted after the job has read it stays deleted', async () => {
    const ids = fill(20)
    await stage.backfill({ afterMs: 0, pagesMax: CREATED_PAGES })
    for (const id of ids) vendor.remove('Deal', id)
    await stage.delta()
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete' })
    expect(await stage.rows()).toEqual({})
  })
})

describe('when a job does not pay or is not possible', () => {
  test('auto counts the records, and creates a job only above the limit', async () => {
    await open({ bulk: 'auto', bulkAbove: 60 })
    fill(60)
    await stage.backfill()
    expect(polls(requests()).slice(0, 3)).toEqual(
      ['GET /sobjects/Deal/describe', 'GET /query', 'GET /query'].slice(0, 2),
    )
    expect(vendor.jobs.remaining).toBe(vendor.jobs.perDay)
    fill(1)
    await stage.backfill()
    expect(jobsCreated()).toBe(1)
    expect(await stage.rows()).toEqual(truth())
  })

  test('a count that the server cannot finish creates a job', async () => {
    await open({ bulk: 'auto' })
    fill(3)
    vendor.faults.plan({ kind: 'server-error' }, { on: ({ url }) => url.includes('COUNT') })
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete' })
    expect(jobsCreated()).toBe(1)
  })

  test.each([
    ['the object is not supported', {}, { notInBulk: ['Deal'] }],
    ['the day has no jobs left', {}, { dailyQueryJobs: 0 }],
    ['the description is refused', {}, { hidesDescriptions: true }],
    ['the types are not requested', { metadata: false }, {}],
    ['it is turned off', { bulk: false }, {}],
  ] as const)('the backfill reads page by page if %s', async (_, options, simulated) => {
    await open(options, simulated)
    fill(120)
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { created: 120 } })
    expect(await stage.rows()).toEqual(truth())
  })

  test('no job is requested on a day that has none left', async () => {
    await open({}, { dailyQueryJobs: 0 })
    fill(1)
    await stage.backfill()
    expect(jobsCreated()).toBe(0)
  })

  test('auto does not create a job for an object with a compound field, and reads the field', async () => {
    await open({ bulk: 'auto', bulkAbove: 0 }, {}, 'Site')
    vendor.create('Site', { Name: 'a', Place: { city: 'Oslo' } })
    await stage.backfill()
    expect(jobsCreated()).toBe(0)
    expect(await stage.rows()).toEqual(stage.truth('Site', 'Id'))
  })

  test('with bulk the backfill, the delta and the lookup leave out compound fields', async () => {
    await open({}, {}, 'Site')
    const id = vendor.create('Site', { Name: 'a', Place: { city: 'Oslo' } })
    await stage.backfill()
    expect(Object.keys((await stage.rows())[id] as object).toSorted()).toEqual([
      'CreatedDate',
      'Id',
      'IsDeleted',
      'LastModifiedDate',
      'Name',
      'SystemModstamp',
    ])
    vendor.update('Site', id, { Name: 'b' })
    await stage.delta()
    expect((await stage.rows())[id]).toMatchObject({ Name: 'b' })
    expect((await stage.rows())[id]).not.toHaveProperty('Place')
  })
})

describe('values', () => {
  const fields = [
    { name: 'Id', type: 'id' },
    { name: 'N', type: 'long' },
    { name: 'B', type: 'boolean' },
    { name: 'T', type: 'datetime' },
  ]
  const parse = (csv: string) =>
    parseBulkRecords(csv, fields, (record) => ({ type: 'upsert', key: String(record['Id']), record }))

  test('numbers beyond a double stay exact, and an empty value is null', () => {
    expect(
      parse('"Id","N","B","T"\n"a","9007199254740993","true","2024-04-16T19:00:00.000Z"\n"b","","false",""\n'),
    ).toEqual([
      {
        type: 'upsert',
        key: 'a',
        record: { Id: 'a', N: 9007199254740993n, B: true, T: '2024-04-16T19:00:00.000+0000' },
      },
      { type: 'upsert', key: 'b', record: { Id: 'b', N: null, B: false, T: null } },
    ])
  })

  test('a value of another type is quarantined with its record', () => {
    expect(parse('"Id","N","B","T"\n"a","many","true",""\n')).toEqual([
      {
        type: 'invalid',
        key: 'a',
        reason: 'Field `N` is not of type long.',
        raw: { Id: 'a', N: 'many', B: 'true', T: '' },
      },
    ])
  })

  test.each([
    ['"Id","N"\n"a","1"\n', 'CURSOR_REJECTED'],
    ['', 'CURSOR_REJECTED'],
    ['"Id","N","B","T"\n"a","1"\n', 'SOURCE_INVALID'],
    ['"Id","N","B","T"\n"a","1","true","20', 'SOURCE_INVALID'],
  ])('%j is refused as %s, without its values', (csv, code) => {
    expect(() => parse(csv)).toThrow(expect.objectContaining({ code, message: expect.not.stringContaining('"a"') }))
  })
})

describe('start dates and ranges', () => {
  test('records that were last modified before the start date are not read', async () => {
    const old = fill(3)
    stage.pass(MINUTE)
    const since = new Date(stage.scene.clock.now()).toISOString()
    for (const bulk of [true, false]) {
      await open({ bulk, since })
      const before = fill(3)
      stage.pass(MINUTE)
      const after = fill(2)
      vendor.update('Deal', before[0]!, { Name: 'changed' })
      await stage.backfill()
      expect(Object.keys(await stage.rows()).toSorted()).toEqual([before[0]!, ...after].toSorted())
    }
    expect(old).toHaveLength(3)
  })

  test('a range reads the records that were modified in it, up to its end', async () => {
    for (const bulk of [true, false]) {
      await open({ bulk })
      fill(2)
      stage.pass(MINUTE)
      const from = new Date(stage.scene.clock.now()).toISOString()
      const inside = fill(60)
      stage.pass(MINUTE)
      const to = new Date(stage.scene.clock.now()).toISOString()
      fill(2)
      const plan = toRangePlan(planOf({ execute: source({ bulk }).object('Deal').backfill, mode: 'replace' }), {
        from,
        to,
      })
      stage.pass(MINUTE)
      const result = await stage.scene.run(plan, { fetch: createSimulatorFetch(vendor) })
      expect(result).toMatchObject({ stopReason: 'complete', counts: { created: 60 } })
      expect(Object.keys(await stage.rows()).toSorted()).toEqual(inside.toSorted())
    }
  })
})

test('pages have 2,000 records, or 200 when all fields are read', async () => {
  for (const [fields, limit] of [
    [undefined, 200],
    [['Name'], 2_000],
  ] as const) {
    await open()
    const options = { instanceUrl: 'https://example.my.salesforce.com', accessToken: 'SF_TOKEN' }
    stage.track(salesforce(options).object('Deal', fields === undefined ? {} : { fields }))
    fill(1)
    await stage.backfill()
    const [query] = stage.asked().filter(({ query: { q } }) => q?.includes('ORDER BY'))
    expect(query?.query['q']).toMatch(new RegExp(`LIMIT ${limit}$`))
  }
})

test('a backfill of 8,000 records by Bulk takes less than half of the requests of the REST API', async () => {
  const REQUEST_MS = 300
  const measure = async (bulk: boolean): Promise<{ requests: number; ms: number; created: number }> => {
    await open({ bulk, limit: 2_000 })
    fill(8_000)
    const { clock } = stage.scene
    const before = clock.now()
    const { counts, stopReason } = await stage.backfill({ afterMs: 0, onRequest: () => clock.step(REQUEST_MS) })
    expect(stopReason).toBe('complete')
    return { requests: stage.asked().length, ms: clock.now() - before, created: counts.created }
  }
  const [rest, job] = [await measure(false), await measure(true)]
  console.log(
    `Salesforce, 8,000 records, ${REQUEST_MS} ms per request: REST ${rest.requests} requests and ${rest.ms} ms, Bulk ${job.requests} and ${job.ms} ms; ratio ${(rest.requests / job.requests).toFixed(2)} and ${(rest.ms / job.ms).toFixed(2)}`,
  )
  expect([rest.created, job.created]).toEqual([8_000, 8_000])
  expect(rest.requests).toBeGreaterThan(2 * job.requests)
})
