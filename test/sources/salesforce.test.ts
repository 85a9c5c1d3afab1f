import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { salesforce } from '../../src/sources/salesforce/source.ts'
import type { KeysetState } from '../../src/strategies/index.ts'
import { churn, SalesforceSimulator } from '../../simulators/src/index.ts'
import { RandomStream } from '../../src/testing/simulation/random-stream.ts'
import { planOf, SECOND } from '../engine/engine-fixture.ts'
import { VendorFixture } from './vendor-fixture.ts'

let stage: VendorFixture<SalesforceSimulator>
let vendor: SalesforceSimulator

async function open(options: ConstructorParameters<typeof SalesforceSimulator>[1] = {}): Promise<void> {
  stage = await VendorFixture.open((ports) => new SalesforceSimulator(ports, options))
  vendor = stage.vendor
  stage.track(
    salesforce({
      instanceUrl: 'https://example.my.salesforce.com',
      accessToken: 'SF_TOKEN',
      limit: 100,
      bulk: false,
    }).object('Account'),
  )
}
beforeEach(() => open())
afterEach(() => stage.close())

const fill = (count: number): string[] =>
  Array.from({ length: count }, (_, n) => vendor.create('Account', { Name: `a${n}` }))
const queries = (): string[] =>
  stage
    .asked()
    .filter(({ path }) => !path.endsWith('/describe'))
    .map(({ path, query }) => `${path.split('/').at(-1)}: ${query.q}`)
const truth = (): unknown => stage.truth('Account', 'Id')
const literal = (ms: number): string => new Date(ms).toISOString()

describe('the backfill', () => {
  test('N20 N21 N22 N27 N28: reads by creation time and id, also if many were created at once', async () => {
    fill(230)
    const at = stage.scene.clock.now()
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { created: 230 } })
    const [, first, again, second, third, confirming, ...more] = queries()
    expect(again).toBe(first)
    expect(first).toBe('query: SELECT FIELDS(ALL) FROM Account ORDER BY CreatedDate ASC, Id ASC LIMIT 100')
    const [, id] = /Id > '(\w{18})'/.exec(second!)!
    expect(second).toBe(
      `query: SELECT FIELDS(ALL) FROM Account WHERE (CreatedDate > ${literal(at)} OR (CreatedDate = ${literal(at)} AND Id > '${id}')) ORDER BY CreatedDate ASC, Id ASC LIMIT 100`,
    )
    expect(third).toContain('Id > ')
    expect(confirming).toContain('Id > ')
    expect(more).toEqual([])
    expect(await stage.rows()).toEqual(truth())
    expect(await stage.state('sync-backfill')).toBeNull()
  })

  test.each([
    ['end', 200],
    ['more', 150],
  ] as const)('N27: a flag that says "%s" does not end the list alone', async (says, count) => {
    fill(count)
    vendor.faults.plan({ kind: 'end-flag', value: says }, { on: (request) => request.url.includes('CreatedDate') })
    await stage.backfill()
    expect(await stage.rows()).toEqual(truth())
  })

  test('N27: an empty page that is not done continues by its locator, or by the query after the locator expired', async () => {
    const record = {
      attributes: {},
      Id: '0015g0000000001AAA',
      CreatedDate: '2026-02-01T00:00:00.000+0000',
      SystemModstamp: '2026-02-01T00:00:00.000+0000',
      IsDeleted: false,
    }
    const asked: string[] = []
    const answers = [
      { totalSize: 1, done: false, records: [], nextRecordsUrl: '/services/data/v60.0/query/01g-100' },
      null,
      { totalSize: 1, done: false, records: [], nextRecordsUrl: '/services/data/v60.0/query/01g-200' },
      { totalSize: 1, done: true, records: [record] },
      { totalSize: 0, done: true, records: [] },
      { totalSize: 0, done: true, records: [] },
    ]
    const fetch = async (input: string | URL): Promise<Response> => {
      asked.push(new URL(input).pathname)
      const answer = answers[asked.length - 1]
      return answer === null
        ? Response.json([{ errorCode: 'INVALID_QUERY_LOCATOR' }], { status: 400 })
        : Response.json(answer)
    }
    const { backfill } = salesforce({
      instanceUrl: 'https://example.my.salesforce.com',
      accessToken: 'SF_TOKEN',
      metadata: false,
    }).object('Account')
    const result = await stage.scene.run(planOf({ execute: backfill, mode: 'replace', limits: { retriesMax: 0 } }), {
      fetch,
    })
    expect(result).toMatchObject({ stopReason: 'complete', counts: { created: 1 } })
    expect(asked).toEqual([
      '/services/data/v60.0/query',
      '/services/data/v60.0/query/01g-100',
      '/services/data/v60.0/query',
      '/services/data/v60.0/query/01g-200',
      '/services/data/v60.0/query',
      '/services/data/v60.0/query',
    ])
  })

  test('N27: an exhausted locator is replaced by the query, so that the cycle ends', async () => {
    const record = {
      attributes: {},
      Id: '0015g0000000001AAA',
      IsDeleted: false,
      CreatedDate: '2026-01-01T00:00:00.000+0000',
      SystemModstamp: '2026-01-01T00:00:00.000+0000',
    }
    const asked: string[] = []
    const empty = { totalSize: 0, done: true, records: [] }
    const answers = [
      { totalSize: 1, done: false, records: [], nextRecordsUrl: '/services/data/v60.0/query/01g-1' },
      { totalSize: 1, done: true, records: [] },
      { totalSize: 1, done: true, records: [record] },
    ]
    const fetch = async (input: string | URL): Promise<Response> => {
      asked.push(new URL(input).pathname)
      return Response.json(answers[asked.length - 1] ?? empty)
    }
    const { backfill } = salesforce({
      instanceUrl: 'https://example.my.salesforce.com',
      accessToken: 'SF_TOKEN',
      metadata: false,
    }).object('Account')
    const result = await stage.scene.run(planOf({ execute: backfill, mode: 'replace', limits: { retriesMax: 0 } }), {
      fetch,
    })
    expect(result).toMatchObject({ stopReason: 'complete', counts: { created: 1 } })
    expect(asked.slice(0, 3)).toEqual([
      '/services/data/v60.0/query',
      '/services/data/v60.0/query/01g-1',
      '/services/data/v60.0/query',
    ])
  })

  test('T7: `done` with fewer records than `totalSize` is not an end, and no row is swept', async () => {
    fill(60)
    await stage.backfill()
    for (const share of [0, 0.5]) {
      let asked = 0
      const { error } = await stage.backfill({
        allowDeletes: true,
        spoil: (body, { search }) =>
          search.includes('CreatedDate') && ++asked === 1
            ? { ...body, done: true, records: body.records.slice(0, Math.floor(body.records.length * share)) }
            : body,
      })
      expect(error).toMatchObject({ code: 'SOURCE_INVALID', message: expect.stringMatching(/of 60 records/) })
      expect(await stage.rows()).toEqual(truth())
      await stage.backfill()
    }
  })

  test('T7: an empty response with `done` does not end a backfill', async () => {
    fill(150)
    await stage.backfill()
    for (const nth of [1, 2, 3]) {
      let asked = 0
      await stage.backfill({
        allowDeletes: true,
        spoil: (body, { search }) =>
          search.includes('CreatedDate') && ++asked === nth ? { totalSize: 0, done: true, records: [] } : body,
      })
      expect(await stage.rows()).toEqual(truth())
    }
  })

  test('NX8: a locator to another host is not followed', async () => {
    const fetch = async (): Promise<Response> =>
      Response.json({
        totalSize: 1,
        done: false,
        records: [],
        nextRecordsUrl: 'https://evil.example/services/data/v60.0/query/1',
      })
    const { backfill } = salesforce({
      instanceUrl: 'https://example.my.salesforce.com',
      accessToken: 'SF_TOKEN',
      metadata: false,
    }).object('Account')
    const result = await stage.scene.run(planOf({ execute: backfill, mode: 'replace', limits: { retriesMax: 0 } }), {
      fetch,
    })
    expect(result.error).toMatchObject({ code: 'SOURCE_INVALID' })
  })

  test('reads only the requested fields', async () => {
    stage.track(
      salesforce({
        instanceUrl: 'https://example.my.salesforce.com',
        accessToken: 'SF_TOKEN',
        limit: 100,
        bulk: false,
      }).object('Account', {
        fields: ['Name'],
      }),
    )
    fill(1)
    await stage.backfill()
    expect(Object.keys(Object.values(await stage.rows())[0] as object).toSorted()).toEqual([
      'CreatedDate',
      'Id',
      'IsDeleted',
      'Name',
      'SystemModstamp',
    ])
    expect(() =>
      salesforce({ instanceUrl: 'https://x.example', accessToken: 'T' }).object('Account', {
        fields: ['Name FROM User--'],
      }),
    ).toThrow(/not a valid Salesforce object or field name/)
  })
})

describe('the delta', () => {
  test('NX13: alone applies changes and deletions made during the backfill', async () => {
    fill(230)
    await stage.backfill({
      onRequest(request) {
        if (request === 1) return
        stage.pass(2 * SECOND)
        churn(vendor, {
          type: 'Account',
          writes: 25,
          random: new RandomStream(request, 'churn'),
          fields: (n) => ({ Name: `r${request}-${n}` }),
          updates: 0.5,
          deletes: 0.2,
        })
      },
    })
    await stage.delta()
    expect(await stage.rows()).toEqual(truth())
  })

  test('N23 N24 N29 N30: reads by modification time up to the lag, which is part of the query', async () => {
    fill(3)
    await stage.backfill()
    stage.pass(SECOND)
    fill(150)
    stage.asked()
    await stage.delta()
    const until = literal(stage.scene.clock.now() - 16 * SECOND)
    const [first, again, second, ...more] = queries()
    expect(again).toBe(first)
    expect(first).toMatch(
      /^queryAll: SELECT FIELDS\(ALL\) FROM Account WHERE SystemModstamp >= \S+ AND SystemModstamp <= (\S+) ORDER BY SystemModstamp ASC, Id ASC LIMIT 100$/,
    )
    expect(first).toContain(`<= ${until}`)
    expect(second).toMatch(
      /WHERE \(SystemModstamp > (\S+) OR \(SystemModstamp = \1 AND Id > '\w{18}'\)\) AND SystemModstamp <= /,
    )
    expect(more).toEqual([])
    expect(await stage.rows()).toEqual(truth())
    const { answeredMs: _, ...before } = (await stage.state()) as KeysetState
    fill(5)
    await stage.delta({ afterMs: 10 * SECOND })
    expect(await stage.state()).toMatchObject(before)
    await stage.delta()
    expect(await stage.rows()).toEqual(truth())
  })

  test.each([
    ['empty', () => []],
    ['the end of another one', (records: unknown[]) => records.slice(-1)],
  ])('T7: a first answer that is %s passes nothing over', async (_, spoiled) => {
    fill(3)
    await stage.backfill()
    for (let n = 0; n < 5; n++) {
      stage.pass(SECOND)
      fill(1)
    }
    let asked = 0
    await stage.delta({
      spoil: (body) => {
        if (++asked !== 1) return body
        const records = spoiled(body.records)
        return { totalSize: records.length, done: true, records }
      },
    })
    expect(await stage.rows()).toEqual(truth())
  })

  test('N25: late index entries are not skipped', async () => {
    await stage.close()
    await open({ lag: { share: 0.5, maxMs: 14 * SECOND } })
    fill(20)
    await stage.backfill()
    for (let round = 0; round < 25; round++) {
      churn(vendor, {
        type: 'Account',
        writes: 12,
        random: new RandomStream(round, 'late'),
        fields: (n) => ({ Name: `${round}-${n}` }),
        updates: 0.5,
        deletes: 0.2,
      })
      await stage.delta({ afterMs: 1_700 })
    }
    await stage.delta({ afterMs: 60 * SECOND })
    expect(await stage.rows()).toEqual(truth())
  })

  test('N22: more rows of one second than a page holds are neither skipped nor read twice', async () => {
    fill(1)
    await stage.backfill()
    stage.pass(SECOND)
    fill(350)
    expect((await stage.delta()).counts).toMatchObject({ created: 350 })
    expect(await stage.rows()).toEqual(truth())
  })
})

describe('faults', () => {
  test.each([
    ['a server error', { kind: 'server-error', status: 503 }],
    ['a body cut off', { kind: 'truncated', how: 'cut-off' }],
    ['half a body', { kind: 'truncated', how: 'short' }],
    ['a page of HTML', { kind: 'html' }],
  ] as const)('%s is asked again, and nothing is lost', async (_, fault) => {
    fill(150)
    vendor.faults.plan(fault, { times: 2 })
    expect(await stage.backfill({ retriesMax: 5 })).toMatchObject({ stopReason: 'complete' })
    stage.pass(SECOND)
    churn(vendor, {
      type: 'Account',
      writes: 60,
      random: new RandomStream(3, 'churn'),
      fields: (n) => ({ Name: `x${n}` }),
      deletes: 0.3,
      updates: 0.3,
    })
    vendor.faults.plan(fault, { times: 2 })
    expect(await stage.delta({ retriesMax: 5 })).toMatchObject({ stopReason: 'complete' })
    expect(await stage.rows()).toEqual(truth())
  })

  test('NX2: an exhausted budget is a rate limit, whatever the status', async () => {
    fill(1)
    vendor.faults.plan({ kind: 'rate-limit' }, { times: 9 })
    expect((await stage.backfill()).error).toMatchObject({ code: 'RATE_LIMITED' })
  })

  test('a run that is interrupted anywhere is resumed', async () => {
    fill(450)
    expect(await stage.untilComplete('backfill')).toBeGreaterThan(4)
    expect(await stage.rows()).toEqual(truth())
    stage.pass(SECOND)
    fill(350)
    expect(await stage.untilComplete('delta')).toBeGreaterThan(3)
    expect(await stage.rows()).toEqual(truth())
  })
})
