import { AirtableSimulator, GithubSimulator, HubspotSimulator, LinearSimulator, SalesforceSimulator, ServicenowSimulator, StripeSimulator } from 'tidemark/testing'

/**
 * A simulated account for each example: what to set so that the worker reads it, something in it, and something that happens to it.
 * `databases` says which of its records land where.
 */
export const SIMULATORS = {
  salesforce: {
    make: (ports) => new SalesforceSimulator(ports),
    env: (url) => ({ SALESFORCE_URL: url, SALESFORCE_TOKEN: 'simulated' }),
    databases: { accounts: 'Account' },
    key: 'Id',
    fill: (vendor) => many(250, (n) => vendor.create('Account', { Name: `Account ${n}`, Industry: ['Energy', 'Media', 'Shipping'][n % 3] })),
    change: (vendor) => someOf(vendor, 'Account', { Name: 'Renamed' }),
    syncs: ['accounts'],
  },
  stripe: {
    make: (ports) => new StripeSimulator(ports),
    env: (url) => ({ STRIPE_URL: `${url}/v1`, STRIPE_KEY: 'simulated' }),
    databases: { customers: 'customer', prices: 'price' },
    fill(vendor) {
      const customers = many(250, (n) => vendor.create('customer', { email: `c${n}@example.com`, name: `Customer ${n}` }))
      const prices = many(3, (n) => vendor.create('price', { unit_amount: 100 * (n + 1) }))
      many(20, (n) => vendor.create('subscription', { customer: customers[n], items: many(n + 1, (item) => ({ price: prices[item % 3], quantity: item })) }))
    },
    change: (vendor) => someOf(vendor, 'customer', { name: 'Renamed' }),
    syncs: ['customers'],
  },
  hubspot: {
    make: (ports) => new HubspotSimulator(ports),
    env: (url) => ({ HUBSPOT_URL: url, HUBSPOT_TOKEN: 'simulated' }),
    databases: { contacts: 'contacts', companies: 'companies' },
    fill(vendor) {
      many(250, (n) => vendor.create('contacts', { email: `c${n}@example.com`, firstname: `First ${n}`, lastname: `Last ${n}` }))
      many(40, (n) => vendor.create('companies', { name: `Company ${n}`, domain: `c${n}.example.com` }))
    },
    change: (vendor) => someOf(vendor, 'contacts', { lastname: 'Renamed' }),
    // What was archived is read every other time.
    syncs: ['contacts', 'contacts'],
  },
  servicenow: {
    make: (ports) => new ServicenowSimulator(ports),
    env: (url) => ({ SERVICENOW_URL: url, SERVICENOW_USER: 'simulated', SERVICENOW_PASSWORD: 'simulated' }),
    databases: { incidents: 'incident' },
    key: 'sys_id',
    fill: (vendor) => many(250, (n) => vendor.create('incident', { number: `INC${n}`, short_description: `Incident ${n}`, state: '1', active: 'true' })),
    change: (vendor) => someOf(vendor, 'incident', { state: '6' }),
    syncs: ['incidents', 'incidents'],
  },
  github: {
    make: (ports) => new GithubSimulator(ports, { pointsPerHour: 5_000_000 }),
    env: (url) => ({ GITHUB_URL: url, GITHUB_TOKEN: 'simulated' }),
    databases: { repositories: 'repository', issues: 'issue' },
    fill(vendor) {
      const repositories = many(5, (n) => vendor.create('repository', { name: `repository-${n}` }))
      many(300, (n) => vendor.create('issue', { repository: repositories[n % 2 === 0 ? 0 : n % 5], title: `Issue ${n}` }))
    },
    change: (vendor) => someOf(vendor, 'issue', { title: 'Renamed' }),
    syncs: ['issues'],
  },
  linear: {
    make: (ports) => new LinearSimulator(ports),
    env: (url) => ({ LINEAR_URL: url, LINEAR_KEY: 'simulated' }),
    databases: { teams: 'team', issues: 'issue' },
    fill(vendor) {
      const team = vendor.create('team', { key: 'SHIP', name: 'Shipping' })
      many(250, (n) => vendor.create('issue', { team, title: `Issue ${n}` }))
    },
    change: (vendor) => someOf(vendor, 'issue', { title: 'Renamed' }),
    syncs: ['issues'],
  },
  airtable: {
    make: (ports) => new AirtableSimulator(ports),
    env: (url) => ({ AIRTABLE_URL: `${url}/v0`, AIRTABLE_BASE: 'appSimulated00001', AIRTABLE_TABLE: 'Tasks', AIRTABLE_TOKEN: 'simulated' }),
    databases: { tasks: 'Tasks' },
    fill: (vendor) => many(250, (n) => vendor.create('Tasks', { Name: `Task ${n}`, Points: n % 13 })),
    change: (vendor) => someOf(vendor, 'Tasks', { Name: 'Renamed' }),
    syncs: ['tasks'],
  },
  rest: {
    make: (ports) => new StripeSimulator(ports),
    env: (url) => ({ STRIPE_URL: `${url}/v1`, STRIPE_KEY: 'simulated' }),
    databases: { customers: 'customer' },
    fill: (vendor) => many(250, (n) => vendor.create('customer', { email: `c${n}@example.com`, name: `Customer ${n}` })),
    change: (vendor) => someOf(vendor, 'customer', { name: 'Renamed' }),
    syncs: ['customers'],
  },
}

function many(count, make) {
  return Array.from({ length: count }, (_, n) => make(n))
}

/** Five records are changed, two made and three deleted. */
function someOf(vendor, type, changes) {
  const records = vendor.records.current(type)
  for (const { id } of records.slice(0, 5)) vendor.update(type, id, changes)
  for (const { fields } of records.slice(5, 7)) vendor.create(type, fields)
  for (const { id } of records.slice(7, 10)) vendor.remove(type, id)
}

/** A machine's clock, behind by what it is told: what happened in the meantime need not be waited for. */
export class BehindClock {
  behindMs = 3_600_000

  now() {
    return Date.now() - this.behindMs
  }

  sleep(ms) {
    return new Promise((resolve) => setTimeout(resolve, ms))
  }
}
