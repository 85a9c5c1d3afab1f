import { describe, expect, test } from 'vitest'
import {
  AirtableSimulator,
  createSimulatorFetch,
  churn,
  GithubSimulator,
  GithubStarsSimulator,
  HubspotSimulator,
  LinearSimulator,
  SalesforceSimulator,
  ServicenowSimulator,
  StripeSimulator,
  XSimulator,
  type ApiFault,
  type SimulatorPorts,
  type VendorOptions,
  type VendorSimulator,
} from '../../simulators/src/index.ts'
import { portsOf } from './ports.ts'

interface Vendor {
  readonly name: string
  readonly open: (ports: SimulatorPorts, options: VendorOptions) => VendorSimulator
  readonly type: string
  /** A request that lists everything, and the records in its response. */
  readonly request: readonly [url: string, body?: object]
  readonly records: (answer: any) => unknown[]
  /** How it refuses temporarily: by status, or in the body. */
  readonly limitedStatus: number
  readonly limitedText: string
}

const VENDORS: readonly Vendor[] = [
  {
    name: 'salesforce',
    open: (ports, options) => new SalesforceSimulator(ports, options),
    type: 'Account',
    request: ['https://x.test/services/data/v65.0/query?q=SELECT%20Id,SystemModstamp%20FROM%20Account'],
    records: (answer) => answer.records,
    limitedStatus: 403,
    limitedText: 'REQUEST_LIMIT_EXCEEDED',
  },
  {
    name: 'stripe',
    open: (ports, options) => new StripeSimulator(ports, options),
    type: 'customer',
    request: ['https://x.test/v1/customers?limit=100'],
    records: (answer) => answer.data,
    limitedStatus: 429,
    limitedText: 'rate_limit',
  },
  {
    name: 'hubspot',
    open: (ports, options) => new HubspotSimulator(ports, options),
    type: 'contacts',
    request: ['https://x.test/crm/v3/objects/contacts/search', { limit: 200 }],
    records: (answer) => answer.results,
    limitedStatus: 429,
    limitedText: 'RATE_LIMITS',
  },
  {
    name: 'github',
    open: (ports, options) => new GithubSimulator(ports, options),
    type: 'repository',
    request: [
      'https://x.test/graphql',
      { query: '{ viewer { repositories(first: 100) { nodes { id updatedAt } } } }' },
    ],
    records: (answer) => answer.data.viewer.repositories.nodes,
    limitedStatus: 200,
    limitedText: 'RATE_LIMITED',
  },
  {
    name: 'servicenow',
    open: (ports, options) => new ServicenowSimulator(ports, options),
    type: 'incident',
    request: ['https://x.test/api/now/table/incident'],
    records: (answer) => answer.result,
    limitedStatus: 429,
    limitedText: 'Rate limit exceeded',
  },
  {
    name: 'linear',
    open: (ports, options) => new LinearSimulator(ports, options),
    type: 'team',
    request: ['https://x.test/graphql', { query: '{ teams(first: 200) { nodes { id updatedAt } } }' }],
    records: (answer) => answer.data.teams.nodes,
    limitedStatus: 400,
    limitedText: 'RATELIMITED',
  },
  {
    name: 'airtable',
    open: (ports, options) => new AirtableSimulator(ports, options),
    type: 'Tasks',
    request: ['https://x.test/v0/appSimulated00001/Tasks'],
    records: (answer) => answer.records,
    limitedStatus: 429,
    limitedText: 'RATE_LIMIT_REACHED',
  },
  {
    name: 'github stars',
    open: (ports, options) => new GithubStarsSimulator(ports, options),
    type: 'star',
    request: ['https://x.test/user/starred?per_page=100'],
    records: (answer) => answer,
    limitedStatus: 403,
    limitedText: 'API rate limit exceeded',
  },
  {
    name: 'x',
    open: (ports, options) => new XSimulator(ports, options),
    type: 'bookmark',
    request: ['https://x.test/2/users/2244994945/bookmarks?max_results=100'],
    records: (answer) => answer.data,
    limitedStatus: 429,
    limitedText: 'Too Many Requests',
  },
]

function ask(vendor: Vendor, simulator: VendorSimulator, authorization = 'Bearer secret'): Promise<Response> {
  const [url, body] = vendor.request
  return createSimulatorFetch(simulator)(url, {
    headers: { authorization },
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
  })
}

describe.each(VENDORS)('$name', (vendor) => {
  test('shows every record that exists and none that was deleted', async () => {
    const { clock, random } = portsOf(5)
    const simulator = vendor.open({ clock, random }, {})
    churn(simulator, { type: vendor.type, writes: 120, random, fields: () => ({}), updates: 0.3, deletes: 0.2 })
    const shown = vendor.records(await (await ask(vendor, simulator)).json())
    expect(shown).toHaveLength(simulator.truth(vendor.type).length)
    expect(shown.length).toBeLessThan(100)
  })

  test('one seed gives one run, to the last byte, with late writes and faults', async () => {
    const run = async () => {
      const { clock, random } = portsOf(11)
      const simulator = vendor.open({ clock, random }, { lag: { share: 0.3, maxMs: 20_000 } })
      const faults: ApiFault[] = [
        { kind: 'rate-limit' },
        { kind: 'server-error' },
        { kind: 'truncated', how: 'short' },
        { kind: 'duplicate-page' },
        { kind: 'short-page' },
        { kind: 'html' },
        { kind: 'end-flag', value: 'more' },
      ]
      simulator.faults.injectAtRates(faults.map((fault) => [fault, 0.08]))
      const answers: string[] = []
      for (let n = 0; n < 30; n++) {
        churn(simulator, { type: vendor.type, writes: 3, random, fields: () => ({}) })
        clock.advance(700)
        const response = await ask(vendor, simulator)
        answers.push(`${response.status} ${JSON.stringify([...response.headers])} ${await response.text()}`)
      }
      return { answers, log: simulator.requests.entries }
    }
    const first = await run()
    expect(await run()).toEqual(first)
    expect(new Set(first.log.map((entry) => entry.status)).size).toBeGreaterThan(1)
  })

  test('refuses temporarily in its own format, and refuses wrong credentials', async () => {
    const simulator = vendor.open(portsOf(), { token: 'secret' })
    simulator.faults.plan({ kind: 'rate-limit' })
    const limited = await ask(vendor, simulator)
    expect([limited.status, (await limited.text()).includes(vendor.limitedText)]).toEqual([vendor.limitedStatus, true])
    expect((await ask(vendor, simulator, 'Bearer other')).status).toBe(401)
    expect((await ask(vendor, simulator)).status).toBe(200)
    expect(simulator.requests.entries.map((entry) => entry.status)).toEqual([vendor.limitedStatus, 401, 200])
  })
})
