import { describe, expect, test } from 'vitest'
import {
  AirtableSimulator,
  createSimulatorFetch,
  GithubSimulator,
  HubspotSimulator,
  LinearSimulator,
  ManualClock,
  OdataSimulator,
  SalesforceSimulator,
  serve,
  ServicenowSimulator,
  StripeSimulator,
  type Simulator,
  type SimulatorPorts,
} from '../../simulators/src/index.ts'
import { createHttpClient } from '../../src/sources/kit/http-client.ts'
import { bearer, type RestStream } from '../../src/sources/rest/source.ts'
import { probeStream, type ListReport } from '../../src/probe/probe-list.ts'
import type { Topic } from '../../src/probe/fact.ts'
import { RandomStream } from '../../src/testing/simulation/random-stream.ts'
import { createProbeContext } from './probe-context.ts'

const BUDGET = 25
const BASE = 'appSimulated00001'
const PAIRS = 12

interface World<Vendor extends Simulator> {
  readonly vendor: Vendor
  readonly clock: ManualClock
}

function open<Vendor extends Simulator>(create: (ports: SimulatorPorts) => Vendor): World<Vendor> {
  const clock = new ManualClock()
  return { vendor: create({ clock, random: new RandomStream(7, 'probe') }), clock }
}

/** Two records at a time, a time every five minutes and a bit. */
function fill({ clock }: { readonly clock: ManualClock }, create: (index: number) => void): void {
  for (let pair = 0; pair < PAIRS; pair++) {
    clock.advance(300_000 + 137)
    create(2 * pair)
    create(2 * pair + 1)
  }
  clock.advance(60_000)
}

interface Probed {
  readonly report: ListReport
  readonly facts: Readonly<Partial<Record<Topic, readonly string[]>>>
}

/** Over a real socket. The requests that arrive are those of the journal. */
async function probe({ vendor, clock }: World<Simulator>, stream: RestStream): Promise<Probed> {
  await using served = await serve(vendor)
  const client = createHttpClient({ baseUrl: served.url, auth: bearer('TOKEN') })
  const report = await probeStream(stream, client, createProbeContext({ clock }), { requestsMax: BUDGET })
  expect(served.requests).toBe(report.requests.length)
  expect(report.requests.length).toBeLessThanOrEqual(BUDGET)
  const facts: Partial<Record<Topic, string[]>> = {}
  for (const { topic, value } of report.facts) (facts[topic] ??= []).push(value)
  return { report, facts }
}

describe('RX12 the facts are those of the simulator', () => {
  const stripe = (since: string): RestStream => ({
    name: 'customers',
    path: '/v1/customers',
    records: 'data',
    key: 'id',
    updatedAt: 'created',
    time: 's',
    page: {
      kind: 'token',
      parameter: 'starting_after',
      next: { last: 'id' },
      more: 'has_more',
      size: { parameter: 'limit', value: 20 },
    },
    follow: {
      kind: 'window',
      since,
      until: 'created[lte]',
      page: { kind: 'token', parameter: 'starting_after', next: { last: 'id' }, more: 'has_more' },
    },
    lookup: { path: '/v1/customers/{key}' },
  })

  test('stripe: newest first, whole seconds, at most 100 rows, deleted by key only', async () => {
    const world = open((ports) => new StripeSimulator(ports))
    fill(world, () => world.vendor.create('customer', {}))
    const { facts } = await probe(world, stripe('created[gte]'))
    expect(facts).toMatchObject({
      'time-format': ['s'],
      'time-precision': ['second'],
      'lower-bound': ['inclusive'],
      'upper-bound': ['inclusive'],
      order: ['descending', 'ties-by-id-descending'],
      'page-size': ['refused'],
      'page-border': ['ties-kept'],
      stability: ['stable'],
      ids: ['unique'],
      lookup: ['found', '404'],
      deletes: ['no-flag', 'filter-refused:deleted', 'filter-refused:include_deleted'],
      'rate-limit': ['none'],
    })
    expect((await probe(world, stripe('created[gt]'))).facts['lower-bound']).toEqual(['exclusive'])
  })

  const servicenow = (operator: string): RestStream => ({
    name: 'incident',
    path: '/api/now/table/incident',
    records: 'result',
    key: 'sys_id',
    updatedAt: 'sys_updated_on',
    query: { sysparm_query: `sys_updated_on${operator}{since}^ORDERBYsys_updated_on^ORDERBYsys_id` },
    defaults: { since: '2000-01-01 00:00:00' },
    page: { kind: 'link', size: { parameter: 'sysparm_limit', value: 20 } },
    follow: { kind: 'window', since: 'since', page: { kind: 'link' } },
    lookup: { path: '/api/now/table/incident/{key}', record: 'result' },
  })

  test('servicenow: times without a zone, sorted, with links and a rate limit', async () => {
    const world = open((ports) => new ServicenowSimulator(ports, { requestsPerHour: 500 }))
    fill(world, () => world.vendor.create('incident', {}))
    const { facts } = await probe(world, servicenow('>='))
    expect(facts).toMatchObject({
      'time-format': ['text-without-zone'],
      'lower-bound': ['inclusive'],
      order: ['ascending', 'ties-by-id'],
      'page-size': ['honoured'],
      'page-border': ['ties-kept'],
      lookup: ['found', '404'],
    })
    expect(facts['rate-limit']).toContain('x-ratelimit-limit:500')
    expect((await probe(world, servicenow('>'))).facts['lower-bound']).toEqual(['exclusive'])
  })

  const hubspot = (operator: string): RestStream => ({
    name: 'contacts',
    path: '/crm/v3/objects/contacts/search',
    method: 'POST',
    body: {
      json: {
        filterGroups: [{ filters: [{ propertyName: 'lastmodifieddate', operator, value: '{since}' }] }],
        sorts: [{ propertyName: 'lastmodifieddate', direction: 'ASCENDING' }],
        limit: '{limit}',
        after: '{after}',
      },
    },
    defaults: { since: '2000-01-01T00:00:00Z' },
    records: 'results',
    key: 'id',
    updatedAt: 'updatedAt',
    page: { kind: 'token', parameter: 'after', next: 'paging.next.after', size: { parameter: 'limit', value: 20 } },
    follow: {
      kind: 'window',
      since: 'since',
      page: { kind: 'token', parameter: 'after', next: 'paging.next.after' },
    },
    lookup: { path: '/crm/v3/objects/contacts/{key}' },
  })

  test('hubspot: a search with POST that refuses more than 200 rows, and has an archived flag', async () => {
    const world = open((ports) => new HubspotSimulator(ports))
    fill(world, () => world.vendor.create('contacts', {}))
    const { facts, report } = await probe(world, hubspot('GTE'))
    expect(facts).toMatchObject({
      'time-precision': ['millisecond'],
      'lower-bound': ['inclusive'],
      order: expect.arrayContaining(['ascending']),
      'page-size': ['refused'],
      'page-border': ['ties-kept'],
      lookup: ['found', '404'],
      deletes: ['flag-unset:archived'],
    })
    expect(report.requests.map(({ method }) => method)).toContain('POST')
    expect((await probe(world, hubspot('GT'))).facts['lower-bound']).toEqual(['exclusive'])
  })

  const salesforce = (operator: string, batchSize = 4): RestStream => ({
    name: 'accounts',
    path: '/services/data/v65.0/queryAll',
    query: {
      q: `SELECT Id, IsDeleted, SystemModstamp FROM Account WHERE SystemModstamp ${operator} {since} ORDER BY SystemModstamp, Id`,
    },
    headers: { 'sforce-query-options': `batchSize=${batchSize}` },
    defaults: { since: '2000-01-01T00:00:00Z' },
    records: 'records',
    key: 'Id',
    updatedAt: 'SystemModstamp',
    page: { kind: 'link', next: 'nextRecordsUrl' },
    follow: { kind: 'window', since: 'since', page: { kind: 'link', next: 'nextRecordsUrl' } },
  })

  test('salesforce: links without a page size, deleted rows with a flag, a daily budget in a header', async () => {
    const world = open((ports) => new SalesforceSimulator(ports, { batchSizeMin: 4 }))
    const ids: string[] = []
    fill(world, () => ids.push(world.vendor.create('Account', { Name: 'A' })))
    const { facts } = await probe(world, salesforce('>='))
    expect(facts).toMatchObject({
      'lower-bound': ['inclusive'],
      order: ['ascending', 'ties-by-id'],
      paging: ['link'],
      lookup: ['unknown'],
    })
    expect(facts['rate-limit']?.[0]).toMatch(/^sforce-limit-info:/)
    expect((await probe(world, salesforce('>'))).facts['lower-bound']).toEqual(['exclusive'])
    world.vendor.remove('Account', ids[0]!)
    world.vendor.remove('Account', ids[1]!)
    const { facts: afterDelete } = await probe(world, salesforce('>=', 40))
    expect(afterDelete['deletes']).toContain('flag:IsDeleted')
  })

  test('github: numbered links, whole seconds, the direction reversed', async () => {
    const world = open((ports) => new GithubSimulator(ports))
    const repository = world.vendor.create('repository', { name: 'engine', owner: 'octo' })
    fill(world, (index) => world.vendor.create('issue', { repository, title: `Issue ${index}` }))
    const page = { kind: 'link', size: { parameter: 'per_page', value: 20 } } as const
    const { facts } = await probe(world, {
      name: 'issues',
      path: '/repos/octo/engine/issues',
      key: 'id',
      updatedAt: 'updated_at',
      query: { state: 'all', sort: 'updated', direction: 'asc' },
      page,
      follow: { kind: 'window', since: 'since', page },
      lookup: { path: '/repos/octo/engine/issues/{key}' },
    })
    expect(facts).toMatchObject({
      'time-precision': ['second'],
      'lower-bound': ['inclusive'],
      order: ['ascending', 'ties-by-id'],
      paging: ['link'],
      'page-size': ['honoured'],
      'page-border': ['ties-kept'],
      lookup: ['none'],
    })
    expect(facts['rate-limit']?.some((value) => value === 'x-ratelimit-remaining:counts')).toBe(true)
  })

  test('airtable: a formula as filter, pages of 100 at most, in no order of time', async () => {
    const world = open((ports) => new AirtableSimulator(ports))
    fill(world, (index) => world.vendor.create('Tasks', { Name: `Task ${(index * 7) % 24}` }))
    const formula = 'IS_BEFORE(IF(LAST_MODIFIED_TIME(), LAST_MODIFIED_TIME(), CREATED_TIME()), DATETIME_PARSE('
    const page = {
      kind: 'token',
      parameter: 'offset',
      next: 'offset',
      size: { parameter: 'pageSize', value: 20 },
    } as const
    const { facts } = await probe(world, {
      name: 'tasks',
      path: `/v0/${BASE}/Tasks`,
      records: 'records',
      key: 'id',
      updatedAt: 'createdTime',
      query: { filterByFormula: `NOT(${formula}'{since}')))`, 'sort[0][field]': 'Name' },
      defaults: { since: '2000-01-01T00:00:00.000Z' },
      page,
      follow: { kind: 'window', since: 'since', page },
      lookup: { path: `/v0/${BASE}/Tasks/{key}` },
    })
    expect(facts).toMatchObject({
      'lower-bound': ['inclusive'],
      order: expect.arrayContaining(['unsorted']),
      'page-size': ['refused'],
      lookup: ['found', '404'],
    })
  })

  test('linear: a connection of GraphQL, newest first', async () => {
    const world = open((ports) => new LinearSimulator(ports))
    const team = world.vendor.create('team', { key: 'SHIP', name: 'Shipping' })
    fill(world, (index) => world.vendor.create('issue', { team, title: `Issue ${index}` }))
    const linear = (operator: string): RestStream => ({
      name: 'issues',
      path: '/graphql',
      graphql: {
        query: `query ($first: Int, $after: String, $since: DateTimeOrDuration) { issues(first: $first, after: $after, orderBy: updatedAt, filter: { updatedAt: { ${operator}: $since } }) { nodes { id updatedAt archivedAt } pageInfo { hasNextPage endCursor } } }`,
      },
      records: 'data.issues',
      key: 'id',
      updatedAt: 'updatedAt',
      defaults: { since: '2000-01-01T00:00:00.000Z' },
      page: { kind: 'relay', size: { parameter: 'first', value: 20 } },
      follow: { kind: 'window', since: 'since', page: { kind: 'relay' } },
    })
    const { facts } = await probe(world, linear('gte'))
    expect(facts).toMatchObject({
      'lower-bound': ['inclusive'],
      order: expect.arrayContaining(['descending']),
      paging: ['relay'],
      'page-border': ['ties-kept'],
      deletes: ['flag-unset:archivedAt'],
    })
    expect((await probe(world, linear('gt'))).facts['lower-bound']).toEqual(['exclusive'])
  })

  test('odata: ge and gt, server-driven pages of a fixed size', async () => {
    const sets = { Orders: { key: ['Id'], properties: { Id: 'Edm.Int32', ModifiedAt: 'Edm.DateTimeOffset' } } } as const
    const world = open((ports) => new OdataSimulator(ports, { version: 4, sets, pageSizeMax: 7 }))
    fill(world, (index) =>
      world.vendor.put('Orders', { Id: index + 1, ModifiedAt: new Date(world.clock.now()).toISOString() }),
    )
    const odata = (operator: string): RestStream => ({
      name: 'Orders',
      path: '/odata/Orders',
      records: ['value'],
      key: 'Id',
      updatedAt: 'ModifiedAt',
      query: { $filter: `ModifiedAt ${operator} {since}`, $orderby: 'ModifiedAt,Id' },
      defaults: { since: '2000-01-01T00:00:00Z' },
      page: { kind: 'link', next: ['@odata.nextLink'] },
      follow: { kind: 'window', since: 'since', page: { kind: 'link', next: ['@odata.nextLink'] } },
      lookup: { path: '/odata/Orders({key})' },
    })
    const { facts } = await probe(world, odata('ge'))
    expect(facts).toMatchObject({
      'lower-bound': ['inclusive'],
      order: ['ascending', 'ties-by-id'],
      paging: ['link'],
      lookup: ['found', '404'],
    })
    expect((await probe(world, odata('gt'))).facts['lower-bound']).toEqual(['exclusive'])
  })
})

describe('faults of a simulated vendor', () => {
  test('a rate limit ends the probe, and the facts say why the rest is unknown', async () => {
    const world = open((ports) => new StripeSimulator(ports))
    fill(world, () => world.vendor.create('customer', {}))
    world.vendor.faults.plan({ kind: 'rate-limit', retryAfter: '7' }, { on: ({ url }) => url.includes('limit=1000') })
    const page = {
      kind: 'token',
      parameter: 'starting_after',
      next: { last: 'id' },
      more: 'has_more',
      size: { parameter: 'limit', value: 20 },
    } as const
    const { report, facts } = await probe(world, {
      name: 'customers',
      path: '/v1/customers',
      records: 'data',
      key: 'id',
      updatedAt: 'created',
      page,
      follow: { kind: 'window', since: 'created[gte]', page },
    })
    expect(report.endedBy).toMatch(/answered 429/)
    expect(facts['lower-bound']).toEqual(['unknown'])
    expect(facts['rate-limit']).toContain('reached')
  })

  test('late rows of an index are seen by reading twice', async () => {
    const world = open((ports) => new HubspotSimulator(ports))
    fill(world, () => world.vendor.create('contacts', {}))
    world.vendor.records.lag = { share: 1, maxMs: 120_000 }
    world.vendor.create('contacts', {})
    world.vendor.records.lag = { share: 0, maxMs: 0 }
    world.clock.advance(1_000)
    world.vendor.create('contacts', {})
    const ask = createSimulatorFetch(world.vendor)
    const context = createProbeContext({
      clock: world.clock,
      fetch: async (input, init) => {
        world.clock.advance(10_000)
        return ask(input, init)
      },
    })
    const client = createHttpClient({ baseUrl: 'https://api.hubapi.com', auth: bearer('TOKEN') })
    const { facts } = await probeStream(hubspotSearch(), client, context, { requestsMax: BUDGET })
    const late = facts.find(({ topic }) => topic === 'late-rows')
    expect(late?.certainty).toBe('shown')
    expect(Number(late?.value)).toBeGreaterThan(0)
    expect(late?.evidence.rows).toHaveLength(1)
  })
})

function hubspotSearch(): RestStream {
  const page = {
    kind: 'token',
    parameter: 'after',
    next: 'paging.next.after',
    size: { parameter: 'limit', value: 100 },
  } as const
  return {
    name: 'contacts',
    path: '/crm/v3/objects/contacts/search',
    method: 'POST',
    body: {
      json: {
        filterGroups: [{ filters: [{ propertyName: 'lastmodifieddate', operator: 'GTE', value: '{since}' }] }],
        sorts: [{ propertyName: 'lastmodifieddate', direction: 'ASCENDING' }],
        limit: '{limit}',
        after: '{after}',
      },
    },
    defaults: { since: '2000-01-01T00:00:00Z' },
    records: 'results',
    key: 'id',
    updatedAt: 'updatedAt',
    page,
    follow: { kind: 'window', since: 'since', page },
  }
}
