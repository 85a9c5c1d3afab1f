import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { servicenow } from '../../src/sources/servicenow/source.ts'
import { churn, ServicenowSimulator } from '../../simulators/src/index.ts'
import { RandomStream } from '../../src/testing/simulation/random-stream.ts'
import { SECOND } from '../engine/engine-fixture.ts'
import { VendorFixture } from './vendor-fixture.ts'

let stage: VendorFixture<ServicenowSimulator>
let vendor: ServicenowSimulator

async function open(options: ConstructorParameters<typeof ServicenowSimulator>[1] = {}): Promise<void> {
  stage = await VendorFixture.open((ports) => new ServicenowSimulator(ports, options))
  vendor = stage.vendor
  stage.track(table())
}
const table = () =>
  servicenow({ instanceUrl: 'https://example.service-now.com', user: 'SN_USER', password: 'SN_PASSWORD' }).table(
    'incident',
  )
beforeEach(() => open())
afterEach(() => stage.close())

const fill = (count: number): string[] =>
  Array.from({ length: count }, (_, n) => vendor.create('incident', { short_description: `i${n}` }))
const queries = (): string[] =>
  stage
    .asked()
    .filter(({ path }) => !/sys_(?:db_object|dictionary)$/.test(path))
    .map(({ path, query }) => `${path.split('/').at(-1)}: ${query.sysparm_query}`)
const truth = (): unknown => stage.truth('incident', 'sys_id')
const literal = (ms: number): string => new Date(ms).toISOString().slice(0, 19).replace('T', ' ')
const both = async (choices?: Parameters<typeof stage.delta>[0]): Promise<void> => {
  for (let half = 0; half < 2; half++) expect(await stage.delta(choices)).toMatchObject({ stopReason: 'complete' })
}

describe('a start date and a range', () => {
  const reading = (since?: string) =>
    servicenow({
      instanceUrl: 'https://example.service-now.com',
      user: 'SN_USER',
      password: 'SN_PASSWORD',
      ...(since !== undefined && { since }),
    }).table('incident')

  test('limit the backfill, the first delta and the lookup to rows that changed since', async () => {
    const [old, changed] = fill(3)
    stage.pass(60 * SECOND)
    const since = new Date(stage.scene.clock.now()).toISOString()
    vendor.update('incident', changed!, { short_description: 'changed' })
    vendor.create('incident', { short_description: 'new' })
    stage.pass(60 * SECOND)
    stage.track(reading(since))
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { created: 2 } })
    expect(queries()[1]).toContain(`sys_updated_on>=${since.slice(0, 19).replace('T', ' ')}`)
    expect(Object.keys(await stage.rows())).not.toContain(old)
    expect((await stage.scene.checkpoint('sync-backfill')).scope).toBe(`since ${since.slice(0, -1)}000Z`)

    stage.list({ mode: 'incremental', execute: reading(since).delta })
    await stage.backfill()
    expect(queries().join('\n')).not.toContain('incident: ORDERBY')
    expect(Object.keys(await stage.rows())).not.toContain(old)
  })

  test('a range is read again in the order of creation, and other rows are left', async () => {
    const ids = fill(5)
    await stage.backfill()
    stage.pass(60 * SECOND)
    const from = new Date(stage.scene.clock.now()).toISOString()
    vendor.update('incident', ids[1]!, { short_description: 'changed' })
    stage.pass(60 * SECOND)
    const to = new Date(stage.scene.clock.now()).toISOString()
    vendor.update('incident', ids[2]!, { short_description: 'later' })
    stage.pass(60 * SECOND)
    queries()
    expect(await stage.range({ from, to })).toMatchObject({
      stopReason: 'complete',
      counts: { updated: 1, swept: 0 },
    })
    expect(queries()[0]).toBe(
      `incident: sys_updated_on>=${literal(Date.parse(from))}^sys_updated_on<${literal(Date.parse(to))}^ORDERBYsys_created_on^ORDERBYsys_id`,
    )
  })
})

describe('the backfill', () => {
  test('N66 N70: reads by creation time and id as two queries in one, until two consecutive responses are empty', async () => {
    fill(230)
    const at = literal(stage.scene.clock.now())
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { created: 230 } })
    const asked = queries().slice(1)
    expect(asked).toHaveLength(6)
    expect(asked[0]).toBe('incident: ORDERBYsys_created_on^ORDERBYsys_id')
    expect(asked[1]).toBe(asked[0])
    const [, id] = /sys_id>(\w{32})/.exec(asked[2]!)!
    expect(asked[2]).toBe(
      `incident: sys_created_on>${at}^NQsys_created_on=${at}^sys_id>${id}^ORDERBYsys_created_on^ORDERBYsys_id`,
    )
    expect(await stage.rows()).toEqual(truth())
  })

  test('T7: a row whose timestamp goes back during the read is not swept', async () => {
    const ids = fill(230)
    stage.list({ mode: 'replace', execute: table().backfill })
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { created: 230 } })
    const result = await stage.backfill({
      onRequest(request) {
        if (request !== 2) return
        // The clock of the instance is corrected by an hour, then a row changes that was not listed yet.
        vendor.records.clockBackMs = 3_600_000
        vendor.update('incident', ids.toSorted().at(-1)!, { short_description: 'changed' })
      },
    })
    expect(result).toMatchObject({ stopReason: 'complete', counts: { swept: 0 } })
    expect(Object.keys(await stage.rows())).toHaveLength(230)
  })

  test('T7: a listing started by a release that read by modification time is restarted', async () => {
    const [oldest] = fill(1)
    stage.pass(SECOND)
    fill(230)
    stage.pass(60 * SECOND)
    vendor.update('incident', oldest!, { short_description: 'changed' })
    stage.list({ mode: 'replace', execute: table().backfill })
    await stage.backfill()
    // Half-way: rows up to this cursor were read by modification time, so the oldest one was not.
    const execute = async () => ({
      changes: [],
      hasMore: true,
      nextState: { cursorTimestamp: new Date(stage.scene.clock.now()).toISOString(), cursorId: 'f' },
    })
    stage.list({ mode: 'replace', execute })
    await stage.backfill({ pagesMax: 1 })
    stage.list({ mode: 'replace', execute: table().backfill })
    expect(await stage.backfill({ allowDeletes: true })).toMatchObject({ stopReason: 'complete', counts: { swept: 0 } })
    expect(await stage.rows()).toEqual(truth())
  })

  test('a column requested for the order only is not part of the record', async () => {
    fill(3)
    const { backfill } = servicenow({
      instanceUrl: 'https://example.service-now.com',
      user: 'SN_USER',
      password: 'SN_PASSWORD',
    }).table('incident', { fields: ['state'] })
    stage.list({ mode: 'replace', execute: backfill })
    await stage.backfill()
    for (const row of Object.values(await stage.rows()))
      expect(Object.keys(row as object).toSorted()).toEqual(['state', 'sys_id', 'sys_updated_on'])
  })

  test('each page reports how many rows remain', async () => {
    fill(230)
    const left: unknown[] = []
    await stage.backfill({ onProgress: (progress) => progress.kind === 'landed' && void left.push(progress.left) })
    expect(left).toEqual([130, 130, 30, 0, 0, 0])
  })

  test('T7: a page with fewer rows than the count allows is read again, and no row is swept', async () => {
    fill(30)
    await stage.backfill()
    let asked = 0
    await stage.backfill({
      allowDeletes: true,
      spoil: (body, { pathname }) =>
        pathname.endsWith('/incident') && ++asked === 2 ? { result: body.result.slice(20) } : body,
    })
    expect(await stage.rows()).toEqual(truth())
    const { error } = await stage.backfill({
      allowDeletes: true,
      spoil: ({ result }) => {
        const lost = ++asked % 7
        return { result: result.filter((_: unknown, at: number) => at % 7 !== lost) }
      },
    })
    expect(error).toMatchObject({ code: 'SOURCE_INVALID', message: expect.stringMatching(/fewer rows than its count/) })
    expect(await stage.rows()).toEqual(truth())
  })

  test('T7: two empty responses do not skip rows that the instance counts', async () => {
    fill(230)
    let asked = 0
    const isNext = ({ pathname, searchParams }: URL): boolean =>
      pathname.endsWith('/incident') && searchParams.get('sysparm_query')!.includes('sys_id>')
    const result = await stage.backfill({ spoil: (body, url) => (isNext(url) && ++asked <= 2 ? { result: [] } : body) })
    expect(asked).toBeGreaterThan(2)
    expect(result).toMatchObject({ stopReason: 'complete', counts: { created: 230 } })
    expect(await stage.rows()).toEqual(truth())
  })

  test('XD6 a query that timed out is an error, not an end, and deletes nothing', async () => {
    fill(101)
    await stage.backfill()
    // Half of one row is none.
    vendor.faults.plan(
      { kind: 'partial' },
      { on: (request) => request.url.includes('sys_id') && request.url.includes('/incident') },
    )
    expect(await stage.backfill()).toMatchObject({
      stopReason: 'error',
      error: { code: 'SOURCE_INVALID' },
      counts: { swept: 0 },
    })
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { swept: 0 } })
    expect(await stage.rows()).toEqual(truth())
  })

  test('rows without access do not end the list, even if they fill a page', async () => {
    await stage.close()
    await open({ hidden: (table, row) => table === 'incident' && row.state === 'secret' })
    fill(50)
    stage.pass(SECOND)
    for (let n = 0; n < 320; n++) vendor.create('incident', { state: 'secret' })
    stage.pass(SECOND)
    fill(50)
    await stage.backfill()
    expect(Object.keys(await stage.rows())).toHaveLength(100)
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
          type: 'incident',
          writes: 25,
          random: new RandomStream(request, 'churn'),
          fields: (n) => ({ short_description: `r${request}-${n}` }),
          updates: 0.5,
          deletes: 0.2,
        })
      },
    })
    await both()
    expect(await stage.rows()).toEqual(truth())
  })

  test('N67 N71: reads by the same keyset up to the lag and ends with a page that is not full', async () => {
    fill(3)
    await stage.backfill()
    stage.pass(SECOND)
    fill(150)
    stage.asked()
    await stage.delta()
    const until = literal(stage.scene.clock.now() - 15 * SECOND)
    const [first, again, second, ...more] = queries().filter((query) => query.startsWith('incident'))
    expect(again).toBe(first)
    expect(first).toMatch(
      new RegExp(
        `^incident: sys_updated_on>=[^^]+\\^sys_updated_on<=${until}\\^ORDERBYsys_updated_on\\^ORDERBYsys_id$`,
      ),
    )
    expect(second).toMatch(
      new RegExp(
        `^incident: sys_updated_on>([^^]+)\\^sys_updated_on<=${until}\\^NQsys_updated_on=\\1\\^sys_id>\\w{32}\\^sys_updated_on<=${until}\\^ORDERBYsys_updated_on\\^ORDERBYsys_id$`,
      ),
    )
    expect(more).toEqual([])
    expect(await stage.rows()).toEqual(truth())
  })

  test('an anchor is a whole second like the timestamps of the rows, so that no row of that second is skipped', async () => {
    const { anchor } = servicenow({
      instanceUrl: 'https://example.service-now.com',
      user: 'SN_USER',
      password: 'SN_PASSWORD',
    }).table('incident')
    const startedAt = stage.scene.clock.now() + 700
    // Without a Date header the horizon is the runner's clock, which has milliseconds.
    const context = {
      signal: new AbortController().signal,
      cycle: { startedAt },
      clock: { now: () => startedAt, sleep: () => Promise.resolve() },
      secrets: { get: () => 'x' },
      fetch: () => Promise.resolve(Response.json({ result: [] })),
    } as unknown as Parameters<typeof anchor>[0]
    const { changes, deletes } = (await anchor(context))!.states
    expect(Date.parse(changes!.cursorTimestamp!) % SECOND).toBe(0)
    expect(Date.parse(changes!.cursorTimestamp!)).toBe(startedAt - 700 - 15 * SECOND)
    expect(deletes).toEqual(changes)
  })

  test('N68 N69 N72: a cycle reads changes, then deletions from the audit, each from its own cursor', async () => {
    const [first] = fill(3)
    await stage.backfill()
    stage.pass(SECOND)
    vendor.remove('incident', first!)
    stage.asked()
    await stage.delta()
    const asked = queries()
    expect(asked.map((query) => query.split(':')[0])).toEqual(['incident', 'incident', 'sys_audit', 'sys_audit'])
    expect(asked[2]).toMatch(
      /^sys_audit: sys_created_on>=[^^]+\^tablename=incident\^fieldname=DELETED\^sys_created_on<=[^^]+\^ORDERBYsys_created_on\^ORDERBYsys_id$/,
    )
    expect(await stage.state()).toEqual({
      states: { changes: expect.any(Object), deletes: expect.any(Object) },
      tidemarks: expect.any(Object),
    })
    expect(await stage.rows()).toEqual(truth())
  })

  test('the state of an earlier release, which alternated between streams, is resumed without a gap', async () => {
    const [first, second] = fill(3)
    await stage.backfill()
    stage.pass(SECOND)
    await stage.delta()
    const { states } = (await stage.state()) as { states: Record<string, unknown> }
    await stage.setState({ phase: 'deletes', deltaCursor: states.changes, deletesCursor: states.deletes })
    stage.pass(SECOND)
    vendor.remove('incident', first!)
    vendor.update('incident', second!, { short_description: 'changed' })
    await stage.delta()
    expect(await stage.rows()).toEqual(truth())
  })

  test.each([
    ['empty', () => ({ result: [] }), '0'],
    ['the end of another list', ({ result }: { result: unknown[] }) => ({ result: result.slice(-1) }), '1'],
  ])(
    'T7: a first answer that is %s passes nothing over, and states no tidemark that is not true',
    async (_, spoiled, total) => {
      fill(3)
      await stage.backfill()
      stage.pass(SECOND)
      for (let n = 0; n < 5; n++) {
        fill(1)
        stage.pass(SECOND)
      }
      let asked = 0
      await stage.delta({
        spoil: (body, { pathname }, headers) => {
          if (!pathname.endsWith('/incident') || ++asked !== 1) return body
          headers.set('x-total-count', total)
          return spoiled(body)
        },
      })
      expect(await stage.rows()).toEqual(truth())
    },
  )

  test('T7: a response whose count differs from the previous page is not accepted as the next page', async () => {
    for (let n = 0; n < 350; n++) {
      fill(1)
      stage.pass(SECOND)
    }
    stage.list({ mode: 'replace', execute: table().backfill })
    await stage.backfill()
    let asked = 0
    let ahead: any
    const result = await stage.backfill({
      allowDeletes: true,
      spoil: (body, { pathname }, headers) => {
        // The fourth request is for the third hundred; a cache returns the last fifty.
        if (!pathname.endsWith('/incident') || ++asked !== 4) return body
        headers.set('x-total-count', '50')
        ahead = { result: body.result.slice(-50) }
        return ahead
      },
    })
    expect(ahead.result).toHaveLength(50)
    expect(result).toMatchObject({ stopReason: 'complete', counts: { swept: 0 } })
  })

  test('N9: late rows are not skipped', async () => {
    await stage.close()
    await open({ lag: { share: 0.5, maxMs: 13 * SECOND } })
    fill(20)
    await stage.backfill({ afterMs: 60 * SECOND })
    for (let round = 0; round < 25; round++) {
      churn(vendor, {
        type: 'incident',
        writes: 12,
        random: new RandomStream(round, 'late'),
        fields: (n) => ({ short_description: `${round}-${n}` }),
        updates: 0.5,
        deletes: 0.2,
      })
      await stage.delta({ afterMs: 1_700 })
    }
    await both({ afterMs: 60 * SECOND })
    expect(await stage.rows()).toEqual(truth())
  })
})

describe('faults', () => {
  test.each([
    ['a rate limit', { kind: 'rate-limit', retryAfter: '3' }],
    ['a server error', { kind: 'server-error', status: 500 }],
    ['a body cut off', { kind: 'truncated', how: 'cut-off' }],
    ['half a body', { kind: 'truncated', how: 'short' }],
    ['a page of HTML', { kind: 'html' }],
  ] as const)('%s is asked again, and nothing is lost', async (_, fault) => {
    fill(150)
    vendor.faults.plan(fault, { times: 2 })
    expect(await stage.backfill({ retriesMax: 5 })).toMatchObject({ stopReason: 'complete' })
    stage.pass(SECOND)
    churn(vendor, {
      type: 'incident',
      writes: 60,
      random: new RandomStream(3, 'churn'),
      fields: (n) => ({ short_description: `x${n}` }),
      deletes: 0.3,
      updates: 0.3,
    })
    vendor.faults.plan(fault, { times: 2 })
    await both({ retriesMax: 5 })
    expect(await stage.rows()).toEqual(truth())
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
