import { Client } from '@hubspot/api-client'
import { describe, expect, test } from 'vitest'
import { createSimulatorFetch } from '../../simulators/src/kit/simulator-fetch.ts'
import { serve } from '../../simulators/src/kit/serve.ts'
import { DOCUMENTED_LIMITS, HubspotSimulator, type HubspotOptions } from '../../simulators/src/hubspot/simulator.ts'
import { portsOf } from './ports.ts'

interface Results {
  total: number
  results: Array<{ id: string; properties: Record<string, string>; archived: boolean }>
  paging?: { next: { after: string } }
}

const SORT = [{ propertyName: 'lastmodifieddate', direction: 'ASCENDING' }]

function open(options: HubspotOptions = {}, seed = 1) {
  const ports = portsOf(seed)
  const simulator = new HubspotSimulator(ports, options)
  const fetch = createSimulatorFetch(simulator)
  const get = (path: string) =>
    fetch(`https://api.hubapi.com/crm/v3/objects/${path}`, { headers: { authorization: 'Bearer t' } })
  const post = (body: unknown, type = 'contacts') =>
    fetch(`https://api.hubapi.com/crm/v3/objects/${type}/search`, {
      method: 'POST',
      headers: { authorization: 'Bearer t', 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  const search = async (body: unknown) => (await (await post(body)).json()) as Results
  return { ...ports, simulator, get, post, search }
}

describe('the hubspot client against the simulator', () => {
  test('the client reads every contact of a list, page by page', async () => {
    const { simulator } = open()
    for (let n = 0; n < 25; n++) simulator.create('contacts', { email: `c${n}@example.com` })
    await using server = await serve(simulator)
    const client = new Client({ accessToken: 'token', basePath: server.url })
    const all = await client.crm.contacts.getAll(10, undefined, ['email'])
    expect(all.map((contact) => contact.properties['email'])).toEqual(
      Array.from({ length: 25 }, (_, n) => `c${n}@example.com`),
    )
    expect(all[0]!.createdAt).toBeInstanceOf(Date)
    expect(server.requests).toBe(3)
  })

  test('the client lists archived records separately', async () => {
    const { simulator } = open()
    simulator.create('contacts')
    const gone = simulator.create('contacts')
    simulator.remove('contacts', gone)
    await using server = await serve(simulator)
    const client = new Client({ accessToken: 'token', basePath: server.url })
    const page = await client.crm.contacts.basicApi.getPage(10, undefined, undefined, undefined, undefined, true)
    expect(page.results.map((contact) => [contact.id, contact.archived])).toEqual([[gone, true]])
  })

  test('the client searches by last change and pages by offset', async () => {
    const { simulator, clock } = open()
    simulator.create('contacts')
    clock.advance(1_000)
    const since = clock.now()
    const ids = Array.from({ length: 5 }, () => {
      clock.advance(1)
      return simulator.create('contacts')
    })
    await using server = await serve(simulator)
    const client = new Client({ accessToken: 'token', basePath: server.url })
    const ask = (after: string) =>
      client.crm.contacts.searchApi.doSearch({
        filterGroups: [
          { filters: [{ propertyName: 'lastmodifieddate', operator: 'GTE' as never, value: String(since) }] },
        ],
        sorts: ['lastmodifieddate'],
        properties: ['email'],
        limit: 3,
        after,
      })
    const first = await ask('0')
    const second = await ask(first.paging!.next!.after)
    expect([...first.results, ...second.results].map((contact) => contact.id)).toEqual(ids)
    expect([first.total, second.paging]).toEqual([5, undefined])
  })

  test('the client surfaces a rate limit with its policy', async () => {
    const { simulator } = open()
    simulator.faults.plan({ kind: 'rate-limit' })
    await using server = await serve(simulator)
    const client = new Client({ accessToken: 'token', basePath: server.url })
    await expect(client.crm.contacts.basicApi.getPage()).rejects.toMatchObject({
      code: 429,
      body: { category: 'RATE_LIMITS', policyName: 'TEN_SECONDLY_ROLLING' },
    })
  })
})

describe('the rules of hubspot search', () => {
  test('ties come in any order, and in another with every request', async () => {
    const { simulator, search } = open()
    for (let n = 0; n < 30; n++) simulator.create('contacts')
    const order = async () => (await search({ sorts: SORT })).results.map((contact) => contact.id)
    const [first, second] = [await order(), await order()]
    expect(first).not.toEqual(second)
    expect(new Set(first)).toEqual(new Set(second))
  })

  test('ids compare as numbers and can be sorted by', async () => {
    const { simulator, search } = open()
    for (let n = 0; n < 2_200; n++) simulator.create('contacts')
    const ids = simulator.truth('contacts').map((contact) => String(contact['id']))
    expect(ids.some((id) => id.length === 5)).toBe(true)
    const after = ids.findLast((id) => id.length === 4)!
    const found = await search({
      filterGroups: [{ filters: [{ propertyName: 'hs_object_id', operator: 'GT', value: after }] }],
      sorts: [{ propertyName: 'hs_object_id', direction: 'ASCENDING' }],
      limit: 5,
    })
    expect(found.results.map((contact) => contact.id)).toEqual(ids.slice(ids.indexOf(after) + 1).slice(0, 5))
  })

  test('groups are joined by OR, filters of a group by AND, and milliseconds count', async () => {
    const { simulator, clock, search } = open()
    const ids = Array.from({ length: 4 }, () => {
      clock.advance(1)
      return simulator.create('contacts')
    })
    const at = clock.now() - 2
    const filter = (operator: string, value: number) => ({
      propertyName: 'lastmodifieddate',
      operator,
      value: String(value),
    })
    const found = await search({
      filterGroups: [{ filters: [filter('EQ', at)] }, { filters: [filter('GT', at), filter('LTE', at + 1)] }],
      sorts: SORT,
    })
    expect(found.results.map((contact) => contact.id)).toEqual([ids[1], ids[2]])
    const between = await search({
      filterGroups: [
        {
          filters: [
            { propertyName: 'lastmodifieddate', operator: 'BETWEEN', value: String(at), highValue: String(at + 1) },
          ],
        },
      ],
    })
    expect(between.total).toBe(2)
  })

  test('a query with more than 10,000 results announces a page beyond them and refuses to serve it', async () => {
    const { simulator, post, search } = open()
    for (let n = 0; n < 10_050; n++) simulator.create('contacts')
    const last = await search({ limit: 200, after: '9800' })
    expect([last.total, last.results.length, last.paging]).toEqual([10_050, 200, { next: { after: '10000' } }])
    const refused = await post({ limit: 200, after: '10000' })
    expect(refused.status).toBe(400)
    expect(await refused.json()).toMatchObject({
      status: 'error',
      category: 'VALIDATION_ERROR',
      correlationId: expect.any(String) as string,
    })
  })

  test.each([
    ['a limit above 200', { limit: 201 }],
    ['two sorts', { sorts: [{ propertyName: 'createdate' }, { propertyName: 'hs_object_id' }] }],
    ['six groups', { filterGroups: Array.from({ length: 6 }, () => ({ filters: [] })) }],
    ['an unknown operator', { filterGroups: [{ filters: [{ propertyName: 'email', operator: 'OVER', value: '1' }] }] }],
    [
      'an unknown property',
      { filterGroups: [{ filters: [{ propertyName: 'hs_lastmodifieddate', operator: 'GT', value: '1' }] }] },
    ],
    ['a cursor that is not an offset', { after: 'abc' }],
  ])('%s is refused', async (_what, body) => {
    expect((await open().post(body)).status).toBe(400)
  })

  test('the index shows a late write after its delay; the list shows it at once', async () => {
    const { simulator, clock, get, search } = open({ lag: { share: 1, maxMs: 10_000 } })
    simulator.create('contacts')
    expect((await search({})).total).toBe(0)
    expect(((await (await get('contacts')).json()) as Results).results).toHaveLength(1)
    clock.advance(10_000)
    expect((await search({})).total).toBe(1)
  })

  test('the default page holds 100 results', async () => {
    const { simulator, search } = open()
    for (let n = 0; n < 150; n++) simulator.create('contacts')
    expect((await search({})).results).toHaveLength(100)
  })
})

describe('the hubspot simulator', () => {
  test('companies and contacts use different properties for the last change', async () => {
    const { simulator } = open()
    simulator.create('companies', { name: 'Acme' })
    expect(Object.keys((simulator.truth('companies')[0] as { properties: object }).properties)).toContain(
      'hs_lastmodifieddate',
    )
  })

  test('a list without further pages has no paging, and its limit is at most 100', async () => {
    const { simulator, get } = open()
    simulator.create('contacts')
    expect((await (await get('contacts?limit=100')).json()) as Results).not.toHaveProperty('paging')
    expect((await get('contacts?limit=101')).status).toBe(400)
    expect((await get('contacts?after=xyz')).status).toBe(400)
  })

  test('the documented limits: five searches a second without headers, lists with headers', async () => {
    const { clock, get, post } = open(DOCUMENTED_LIMITS)
    const statuses: number[] = []
    for (let n = 0; n < 6; n++) statuses.push((await post({})).status)
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429])
    clock.advance(1_000)
    const found = await post({})
    expect([found.status, found.headers.get('x-hubspot-ratelimit-max')]).toEqual([200, null])
    expect((await get('contacts')).headers.get('x-hubspot-ratelimit-remaining')).toBe('189')
  })
})
