import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { hubspot } from '../../src/sources/hubspot/source.ts'
import { churn, HubspotSimulator } from '../../simulators/src/index.ts'
import { RandomStream } from '../../src/testing/simulation/random-stream.ts'
import { MINUTE, SECOND } from '../engine/engine-fixture.ts'
import { VendorFixture } from './vendor-fixture.ts'

let stage: VendorFixture<HubspotSimulator>
let vendor: HubspotSimulator

async function open(options: ConstructorParameters<typeof HubspotSimulator>[1] = {}): Promise<void> {
  stage = await VendorFixture.open((ports) => new HubspotSimulator(ports, options))
  vendor = stage.vendor
  stage.track(hubspot({ accessToken: 'HUBSPOT_TOKEN' }).contacts)
}
beforeEach(() => open())
afterEach(() => stage.close())

const fill = (count: number): string[] =>
  Array.from({ length: count }, (_, n) => vendor.create('contacts', { email: `c${n}@example.com` }))
const bodies = (): any[] =>
  stage
    .asked()
    .filter(({ method }) => method === 'POST')
    .map(({ body }) => JSON.parse(body))
const both = async (choices?: Parameters<typeof stage.delta>[0]): Promise<void> => {
  for (let half = 0; half < 2; half++) expect(await stage.delta(choices)).toMatchObject({ stopReason: 'complete' })
}

/** The requests since the last call. */
const kinds = (): string[] =>
  stage
    .asked()
    .map(({ method, query }) => (method === 'POST' ? 'search' : query.archived === 'true' ? 'archive' : 'list'))

describe('the backfill', () => {
  test('N45 N46 N47: sends tokens back unchanged until there is no paging', async () => {
    fill(250)
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { created: 250 } })
    const lists = stage.asked().filter(({ method }) => method === 'GET')
    expect(lists).toHaveLength(3)
    expect(lists[0]!.path).toBe('/crm/v3/objects/contacts')
    expect(lists[0]!.query).toEqual({
      limit: '100',
      properties: 'email,firstname,lastname,createdate,lastmodifieddate,hs_object_id',
    })
    expect(lists[1]!.query.after).toMatch(/./)
    expect(await stage.rows()).toEqual(stage.truth('contacts'))
  })

  test('T7: the last page of another listing does not end a list, and no row is swept', async () => {
    stage.list({ mode: 'replace', execute: hubspot({ accessToken: 'HUBSPOT_TOKEN' }).contacts.backfill })
    fill(150)
    await stage.backfill()
    let asked = 0
    const result = await stage.backfill({
      allowDeletes: true,
      spoil: (body) => (++asked === 1 ? { results: body.results.slice(-50) } : body),
    })
    expect(result).toMatchObject({ stopReason: 'complete', counts: { swept: 0 } })
    expect(await stage.rows()).toEqual(stage.truth('contacts'))
  })

  test('T7: a page of archived objects is not accepted as a page of active ones', async () => {
    const [first] = fill(3)
    await stage.backfill()
    vendor.remove('contacts', first!)
    await stage.delta()
    const { error } = await stage.backfill({
      spoil: (body) => ({ ...body, results: body.results.map((item: object) => ({ ...item, archived: true })) }),
    })
    expect(error).toMatchObject({ code: 'SOURCE_INVALID' })
    expect(await stage.rows()).toEqual(stage.truth('contacts'))
  })

  test('other types have another modification property', async () => {
    stage.track(hubspot({ accessToken: 'HUBSPOT_TOKEN' }).companies)
    vendor.create('companies', { name: 'A' })
    await stage.backfill()
    vendor.create('companies', { name: 'B' })
    stage.asked()
    await stage.delta()
    expect(bodies()[0].sorts).toEqual([{ propertyName: 'hs_lastmodifieddate', direction: 'ASCENDING' }])
    expect(await stage.rows()).toEqual(stage.truth('companies'))
  })
})

describe('the delta', () => {
  test('N48 N50 N51: without a state searches from five minutes to ten seconds ago, inclusive, in milliseconds', async () => {
    fill(3)
    await stage.delta({ afterMs: MINUTE })
    const now = stage.scene.clock.now()
    const [first, again, ...more] = bodies()
    expect(again.filterGroups[0].filters[0]).toEqual(first.filterGroups[0].filters[0])
    expect(more).toEqual([])
    expect(first).toEqual({
      filterGroups: [
        {
          filters: [
            { propertyName: 'lastmodifieddate', operator: 'GTE', value: String(now - 5 * MINUTE) },
            { propertyName: 'lastmodifieddate', operator: 'LTE', value: String(now - 10 * SECOND) },
          ],
        },
      ],
      sorts: [{ propertyName: 'lastmodifieddate', direction: 'ASCENDING' }],
      properties: ['email', 'firstname', 'lastname', 'createdate', 'lastmodifieddate', 'hs_object_id'],
      limit: 100,
    })
    expect(await stage.rows()).toEqual(stage.truth('contacts'))
  })

  test('NX13: alone applies changes and deletions made during the backfill', async () => {
    fill(230)
    await stage.backfill({
      onRequest(request) {
        if (request === 1) return
        stage.pass(2 * SECOND)
        churn(vendor, {
          type: 'contacts',
          writes: 25,
          random: new RandomStream(request, 'churn'),
          fields: (n) => ({ email: `r${request}-${n}@example.com` }),
          updates: 0.5,
          deletes: 0.2,
        })
      },
    })
    await both()
    expect(await stage.rows()).toEqual(stage.truth('contacts'))
  })

  test('N49 N52: continues from the newest time of a full page and ends with a short one', async () => {
    fill(1)
    await stage.backfill()
    for (let n = 0; n < 150; n++) {
      stage.pass(10)
      fill(1)
    }
    stage.asked()
    await stage.delta()
    const [, second, ...more] = bodies()
    expect(more).toEqual([])
    const times = vendor.records.current('contacts').map(({ modifiedAtMs }) => modifiedAtMs)
    expect(times).toContain(Number(second.filterGroups[0].filters[0].value))
    expect(await stage.rows()).toEqual(stage.truth('contacts'))
    expect((await stage.state()).states.changes).toEqual({ phase: 'delta', cursorMs: Math.max(...times) })
  })

  test.each([100, 250])(
    'N53 N54 N55 N56 N57: %i records of one millisecond are read by ascending id',
    async (count) => {
      fill(5)
      await stage.backfill()
      stage.pass(SECOND)
      fill(count)
      const tieMs = stage.scene.clock.now()
      stage.pass(SECOND)
      fill(3)
      stage.asked()
      await stage.delta()
      const asked = bodies()
      const tied = asked.filter(({ sorts }) => sorts[0].propertyName === 'hs_object_id')
      expect(tied[0].filterGroups[0].filters).toEqual([
        { propertyName: 'lastmodifieddate', operator: 'EQ', value: String(tieMs) },
        { propertyName: 'hs_object_id', operator: 'GT', value: '0' },
      ])
      // The tie ends when a page has the count that the previous page left; a single page has no previous one.
      expect(tied).toHaveLength(Math.max(2, Math.ceil(count / 100)))
      expect(asked.at(-1).filterGroups[0].filters[0].value).toBe(String(tieMs + 1))
      expect(await stage.rows()).toEqual(stage.truth('contacts'))
    },
  )

  test('N58: a short page with a single time is not a tie', async () => {
    fill(1)
    await stage.backfill()
    stage.pass(SECOND)
    fill(98)
    stage.asked()
    await stage.delta()
    expect(bodies().filter(({ sorts }) => sorts[0].propertyName === 'hs_object_id')).toEqual([])
    expect(await stage.rows()).toEqual(stage.truth('contacts'))
  })

  test('N59: an interrupted tie is resumed', async () => {
    fill(1)
    await stage.backfill()
    stage.pass(SECOND)
    fill(350)
    expect(await stage.untilComplete('delta')).toBeGreaterThan(4)
    expect(await stage.rows()).toEqual(stage.truth('contacts'))
  })

  test('N9: late index entries are not skipped, and stale ones do not revive a record', async () => {
    await stage.close()
    await open({ lag: { share: 0.5, maxMs: 9 * SECOND } })
    fill(20)
    await stage.backfill()
    for (let round = 0; round < 25; round++) {
      churn(vendor, {
        type: 'contacts',
        writes: 12,
        random: new RandomStream(round, 'late'),
        fields: (n) => ({ email: `${round}-${n}@example.com` }),
        updates: 0.5,
        deletes: 0.2,
      })
      await stage.delta({ afterMs: 1_700 })
    }
    await both({ afterMs: 6 * MINUTE })
    expect(await stage.rows()).toEqual(stage.truth('contacts'))
  })

  test('a cycle searches for changes and lists the archive', async () => {
    const [first] = fill(3)
    await stage.backfill()
    vendor.remove('contacts', first!)
    stage.asked()
    await stage.delta()
    // A list of one page is requested twice.
    expect(kinds()).toEqual(['search', 'search', 'archive', 'archive'])
    expect(await stage.rows()).toEqual(stage.truth('contacts'))
  })

  test('SOURCE_INVALID a search response without a total is rejected', async () => {
    fill(150)
    await both()
    const { error } = await stage.delta({ spoil: (body) => ({ ...body, total: undefined }) })
    expect(error).toMatchObject({ code: 'SOURCE_INVALID', message: expect.stringContaining('total') })
  })

  test('T7: the last page of another listing of the archive does not move the tidemark past a deletion', async () => {
    const ids = fill(150)
    await stage.backfill()
    await stage.delta()
    for (const id of ids.slice(0, 120)) vendor.remove('contacts', id)
    let asked = 0
    const result = await stage.delta({
      afterMs: 10 * MINUTE,
      // The last page of the previous listing, before anything was archived.
      spoil: (body, { searchParams }) =>
        searchParams.get('archived') === 'true' && ++asked === 1 ? { results: [] } : body,
    })
    expect(result).toMatchObject({ stopReason: 'complete', counts: { deleted: 120 } })
    expect(Date.parse(result.tidemark!)).toBe(result.startedAt - 10 * SECOND - 1)
    expect(await stage.rows()).toEqual(stage.truth('contacts'))
  })

  test('T7: a first page of the archive without a next page is requested again', async () => {
    const ids = fill(150)
    await stage.backfill()
    await stage.delta()
    for (const id of ids.slice(0, 120)) vendor.remove('contacts', id)
    let asked = 0
    const result = await stage.delta({
      afterMs: 10 * MINUTE,
      spoil: (body, { searchParams }) =>
        searchParams.get('archived') === 'true' && ++asked === 1 ? { results: body.results.slice(-20) } : body,
    })
    expect(result).toMatchObject({ stopReason: 'complete', counts: { deleted: 120 } })
    expect(await stage.rows()).toEqual(stage.truth('contacts'))
  })

  test('the archive is listed at most every `archivedEveryMs`, and the tidemark stays at the last listing', async () => {
    const [first, second] = fill(3)
    await stage.backfill()
    await stage.delta()
    const listed = (await stage.state()).states.deletes.listedMs
    vendor.remove('contacts', first!)
    stage.asked()
    for (let n = 0; n < 4; n++) expect(Date.parse((await stage.delta({ afterMs: MINUTE })).tidemark!)).toBe(listed)
    expect(kinds()).toEqual(Array.from({ length: 8 }, () => 'search'))
    expect(Object.keys(await stage.rows())).toContain(first)
    vendor.update('contacts', second!, { firstname: 'changed' })
    const { tidemark, startedAt } = await stage.delta({ afterMs: MINUTE })
    expect(kinds()).toEqual(['search', 'search', 'archive', 'archive'])
    expect(Date.parse(tidemark!)).toBe(startedAt - 10 * SECOND - 1)
    expect(await stage.rows()).toEqual(stage.truth('contacts'))
  })

  test('an interrupted listing of the archive is resumed and dated from its start', async () => {
    const ids = fill(350)
    await stage.backfill()
    for (const id of ids.slice(0, 310)) vendor.remove('contacts', id)
    stage.asked()
    await stage.untilComplete('delta')
    // Every attempt lands its page, and the next one continues from there.
    const pages = stage
      .asked()
      .filter(({ query }) => query.archived === 'true')
      .map(({ query }) => query.after ?? null)
    expect(new Set(pages).size).toBe(4)
    expect(pages.length).toBeLessThanOrEqual(2 * 4)
    expect(await stage.rows()).toEqual(stage.truth('contacts'))
  })

  test('the state of an earlier release, which alternated between streams, is resumed without a gap', async () => {
    const [first, second] = fill(3)
    await stage.backfill()
    await stage.delta()
    const { states } = await stage.state()
    await stage.setState({ phase: 'deletes', deltaCursor: states.changes, deletesCursor: { cursor: null } })
    vendor.remove('contacts', first!)
    vendor.update('contacts', second!, { firstname: 'changed' })
    await stage.delta()
    expect(await stage.rows()).toEqual(stage.truth('contacts'))
  })
})

test.each([
  ['a rate limit', { kind: 'rate-limit', retryAfter: '3' }],
  ['a server error', { kind: 'server-error', status: 502 }],
  ['a body cut off', { kind: 'truncated', how: 'cut-off' }],
  ['half a body', { kind: 'truncated', how: 'short' }],
  ['a page of HTML', { kind: 'html' }],
] as const)('%s is asked again, and nothing is lost', async (_, fault) => {
  fill(150)
  vendor.faults.plan(fault, { times: 2 })
  expect(await stage.backfill({ retriesMax: 5 })).toMatchObject({ stopReason: 'complete' })
  stage.pass(SECOND)
  churn(vendor, {
    type: 'contacts',
    writes: 60,
    random: new RandomStream(3, 'churn'),
    fields: (n) => ({ email: `x${n}@example.com` }),
    deletes: 0.3,
    updates: 0.3,
  })
  vendor.faults.plan(fault, { times: 2 })
  await both({ retriesMax: 5 })
  expect(await stage.rows()).toEqual(stage.truth('contacts'))
})
