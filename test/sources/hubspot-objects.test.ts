import { afterEach, describe, expect, test } from 'vitest'
import { hubspot, type HubspotOptions } from '../../src/sources/hubspot/source.ts'
import { parseAssociationName } from '../../src/sources/hubspot/object-types.ts'
import { toRangePlan } from '../../src/engine/range-plan.ts'
import type { Page, SyncContext } from '../../src/contract/index.ts'
import { HubspotSimulator } from '../../simulators/src/index.ts'
import { createSimulatorFetch } from '../../simulators/src/kit/simulator-fetch.ts'
import { MINUTE, planOf } from '../engine/engine-fixture.ts'
import { VendorFixture } from './vendor-fixture.ts'

let stage: VendorFixture<HubspotSimulator>
let vendor: HubspotSimulator

async function open(options: ConstructorParameters<typeof HubspotSimulator>[1] = {}): Promise<void> {
  stage = await VendorFixture.open((ports) => new HubspotSimulator(ports, options))
  vendor = stage.vendor
}
afterEach(() => stage.close())

const source = (options: Partial<HubspotOptions> = {}) =>
  hubspot({ accessToken: 'HUBSPOT_TOKEN', limit: 10, ...options })
const fill = (count: number, type = 'contacts', fields: Record<string, unknown> = {}): string[] =>
  Array.from({ length: count }, () => vendor.create(type, fields))

describe('associations', () => {
  const openPairs = async (options: ConstructorParameters<typeof HubspotSimulator>[1] = {}): Promise<void> => {
    await open({ associationsMax: 3, ...options })
    stage.list(source().associations('contacts', 'companies'))
  }
  /** Contacts with 0 to 7 companies each. */
  const associate = (contacts: number): void => {
    for (const [n, contact] of fill(contacts).entries())
      for (const company of fill(n % 8, 'companies'))
        vendor.associate('contacts', contact, 'companies', company, `l${n}`)
  }
  const truth = (): unknown => stage.truth('contacts_companies')

  test('a listing reads all pairs with their labels, also of objects with more than a response holds', async () => {
    await openPairs()
    associate(25)
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { created: 84 } })
    expect(await stage.rows()).toEqual(truth())
    const [row] = Object.values(await stage.rows())
    expect(row).toMatchObject({
      id: expect.stringMatching(/^\d+-\d+$/),
      fromObjectId: expect.stringMatching(/^\d+$/),
      toObjectId: expect.stringMatching(/^\d+$/),
      associationTypes: [{ category: 'HUBSPOT_DEFINED' }, { category: 'USER_DEFINED', label: 'l1' }],
    })
  })

  test('pairs that are gone are deleted by the next listing', async () => {
    await openPairs()
    associate(25)
    await stage.backfill()
    for (const { id } of vendor.records.current('contacts_companies').slice(3, 8))
      vendor.remove('contacts_companies', id)
    expect(await stage.backfill()).toMatchObject({ counts: { swept: 5 } })
    expect(await stage.rows()).toEqual(truth())
  })

  test('a listing that is interrupted anywhere is resumed', async () => {
    await openPairs()
    associate(25)
    let runs = 0
    for (let result = 'none'; result !== 'complete' && runs < 50; runs++) {
      const { stopReason } = await stage.backfill({
        onRequest(request) {
          if (request > 2) throw new Error('broken off')
        },
      })
      result = stopReason
    }
    expect(runs).toBeGreaterThan(3)
    expect(await stage.rows()).toEqual(truth())
  })

  test.each([
    ['leaves out an object', (body: any) => ({ ...body, results: body.results.slice(1) })],
    ['has no results', (body: any) => ({ ...body, results: [] })],
    ['has no errors', (body: any) => ({ ...body, errors: undefined })],
    [
      'is of other objects',
      (body: any) => ({ ...body, results: body.results.map((one: object) => ({ ...one, from: { id: '1' } })) }),
    ],
    ['names an object twice', (body: any) => ({ ...body, results: [...body.results, body.results[0]] })],
  ])('a response that %s deletes nothing', async (_, spoiled) => {
    await openPairs()
    associate(25)
    await stage.backfill()
    const { error } = await stage.backfill({
      allowDeletes: true,
      spoil: (body, { pathname }) => (pathname.endsWith('/batch/read') ? spoiled(body) : body),
    })
    expect(error).toMatchObject({ code: 'SOURCE_INVALID' })
    expect(await stage.rows()).toEqual(truth())
  })

  test('a full page of objects that claims to be the last is requested again', async () => {
    await openPairs()
    associate(25)
    await stage.backfill()
    let lists = 0
    const result = await stage.backfill({
      allowDeletes: true,
      spoil: (body, { pathname }) =>
        pathname.endsWith('/contacts') && ++lists === 2 ? { ...body, paging: undefined } : body,
    })
    expect(result).toMatchObject({ stopReason: 'complete', counts: { swept: 0 } })
  })

  test.each([
    ['contacts_companies', ['contacts', 'companies']],
    ['line_items_deals', ['line_items', 'deals']],
    ['deals_line_items', ['deals', 'line_items']],
    ['deals_p7_cars', ['deals', 'p7_cars']],
    ['contacts', null],
    ['line_items', null],
    ['postal_mail', null],
    ['p7_cars', null],
    ['contacts_archive', null],
    ['contacts_toString', null],
    ['p7_cars_contacts', null],
  ])('the stream %s is of the types %j', (name, pair) => {
    expect(parseAssociationName(name)).toEqual(pair)
  })
})

describe('custom objects', () => {
  const types = { p1_cars: ['plate', 'color'] }

  test('all properties of the account are read, with one request for the schema in a cycle', async () => {
    await open({ types })
    stage.track(source().object('p1_cars'))
    fill(25, 'p1_cars', { plate: 'AB 1', color: 'red' })
    await stage.backfill()
    expect(await stage.rows()).toEqual(stage.truth('p1_cars'))
    const schemas = (): number => stage.asked().filter(({ path }) => path.includes('/schemas/')).length
    // One for the cursor of the delta, which is taken first.
    expect(schemas()).toBeLessThanOrEqual(2)
    vendor.update('p1_cars', Object.keys(await stage.rows())[0] ?? '', { color: 'blue' })
    await stage.delta()
    expect(schemas()).toBe(1)
    expect(await stage.rows()).toEqual(stage.truth('p1_cars'))
  })

  test('given properties replace those of the schema, which is then not read', async () => {
    await open({ types })
    stage.track(source({ properties: { p1_cars: ['plate'] } }).object('p1_cars'))
    fill(1, 'p1_cars', { plate: 'AB 1', color: 'red' })
    await stage.backfill()
    const [row] = Object.values(await stage.rows()) as { properties: object }[]
    expect(Object.keys(row?.properties ?? {})).not.toContain('color')
    expect(stage.asked().filter(({ path }) => path.includes('/schemas'))).toEqual([])
  })

  test('without access to the schema the objects are read with their system properties', async () => {
    await open({ types })
    stage.track(source().object('p1_cars'))
    fill(1, 'p1_cars', { plate: 'AB 1' })
    const ask = createSimulatorFetch(vendor)
    const fetch = (input: string | URL, init?: RequestInit): Promise<Response> =>
      new URL(input).pathname.includes('/schemas/')
        ? Promise.resolve(Response.json({ category: 'MISSING_SCOPES' }, { status: 403 }))
        : ask(input, init)
    const plan = planOf({ execute: source().object('p1_cars').backfill, mode: 'replace' })
    expect(await stage.scene.run(plan, { fetch })).toMatchObject({ stopReason: 'complete', counts: { created: 1 } })
  })
})

describe('the list of archived objects', () => {
  test('a list of many pages is read less often, and the deletions arrive with the next one', async () => {
    await open()
    stage.track(source().contacts)
    const ids = fill(1_200)
    for (const id of ids.slice(0, 1_000)) vendor.remove('contacts', id)
    await stage.backfill()
    const archivePages = (): number => stage.asked().filter(({ query }) => query.archived === 'true').length
    await stage.delta()
    const pages = archivePages()
    expect(pages).toBeGreaterThanOrEqual(100)
    vendor.remove('contacts', ids[1_100] ?? '')
    // Five minutes would be enough for a short list.
    await stage.delta({ afterMs: 6 * MINUTE })
    expect(archivePages()).toBe(0)
    await stage.delta({ afterMs: pages * 6_000 })
    expect(archivePages()).toBeGreaterThanOrEqual(100)
    expect(await stage.rows()).toEqual(stage.truth('contacts'))
  })

  test('an interrupted listing counts its pages over all runs', async () => {
    await open()
    stage.track(source().contacts)
    const ids = fill(60)
    for (const id of ids.slice(0, 45)) vendor.remove('contacts', id)
    await stage.backfill()
    for (let runs = 0; runs < 20; runs++)
      if ((await stage.delta({ afterMs: 0, pagesMax: 2 })).stopReason === 'complete') break
    expect((await stage.state()).states.deletes).toMatchObject({ pages: 5 })
  })
})

describe('start dates and ranges', () => {
  test('objects that were last modified before the start date are not kept', async () => {
    await open()
    const old = fill(25)
    stage.pass(MINUTE)
    stage.track(source({ since: new Date(stage.scene.clock.now()).toISOString() }).contacts)
    const later = fill(3)
    vendor.update('contacts', old[20] ?? '', { email: 'new@example.com' })
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { created: 4 } })
    expect(new Set(Object.keys(await stage.rows()))).toEqual(new Set([old[20], ...later]))
    vendor.update('contacts', old[3] ?? '', { email: 'newer@example.com' })
    await stage.delta()
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { swept: 0 } })
    expect(Object.keys(await stage.rows())).toHaveLength(5)
  })

  test('a range reads the objects that were modified in it, and ends without reading on', async () => {
    await open()
    fill(5)
    stage.pass(MINUTE)
    const from = new Date(stage.scene.clock.now()).toISOString()
    const inside = fill(12)
    stage.pass(1)
    inside.push(...fill(33))
    stage.pass(MINUTE)
    const to = new Date(stage.scene.clock.now()).toISOString()
    fill(40)
    stage.pass(MINUTE)
    const pages: Page[] = []
    const { backfill } = source().contacts
    const plan = toRangePlan(planOf({ execute: backfill, mode: 'replace' }), { from, to })
    const execute = async (state: any, context: SyncContext): Promise<Page> => {
      const page = await plan.execute(state, context)
      pages.push(page)
      return page
    }
    const result = await stage.scene.run({ ...plan, execute }, { fetch: createSimulatorFetch(vendor) })
    expect(result).toMatchObject({ stopReason: 'complete', counts: { created: 45 } })
    expect(Object.keys(await stage.rows()).toSorted()).toEqual(inside.toSorted())
    expect(pages.every(({ tidemark }) => tidemark === null)).toBe(true)
  })
})
