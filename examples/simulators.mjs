import { ACCOUNTS, fillAccount, StripeSimulator } from '@tidemark/simulators'

/**
 * A simulated account for each example: the environment of the worker, the initial records and the changes to them.
 * `databases` maps each database to a record type.
 */
export const SIMULATORS = {
  salesforce: {
    ...account('salesforce'),
    env: (url) => ({ SALESFORCE_URL: url, SALESFORCE_TOKEN: 'simulated' }),
    databases: { accounts: 'Account' },
    key: 'Id',
    change: (vendor) => someOf(vendor, 'Account', { Name: 'Renamed' }),
    syncs: ['accounts'],
  },
  stripe: {
    createSimulator: (ports) => new StripeSimulator(ports),
    env: (url) => ({ STRIPE_URL: `${url}/v1`, STRIPE_KEY: 'simulated' }),
    databases: { customers: 'customer', prices: 'price' },
    fill(vendor) {
      const customers = many(250, (n) =>
        vendor.create('customer', { email: `c${n}@example.com`, name: `Customer ${n}` }),
      )
      const prices = many(3, (n) => vendor.create('price', { unit_amount: 100 * (n + 1) }))
      many(20, (n) =>
        vendor.create('subscription', {
          customer: customers[n],
          items: many(n + 1, (item) => ({ price: prices[item % 3], quantity: item })),
        }),
      )
    },
    change: (vendor) => someOf(vendor, 'customer', { name: 'Renamed' }),
    syncs: ['customers'],
  },
  hubspot: {
    ...account('hubspot'),
    env: (url) => ({ HUBSPOT_URL: url, HUBSPOT_TOKEN: 'simulated' }),
    databases: { contacts: 'contacts', companies: 'companies' },
    change: (vendor) => someOf(vendor, 'contacts', { lastname: 'Renamed' }),
    syncs: ['contacts'],
  },
  servicenow: {
    ...account('servicenow'),
    env: (url) => ({ SERVICENOW_URL: url, SERVICENOW_USER: 'simulated', SERVICENOW_PASSWORD: 'simulated' }),
    databases: { incidents: 'incident' },
    key: 'sys_id',
    change: (vendor) => someOf(vendor, 'incident', { state: '6' }),
    syncs: ['incidents'],
  },
  github: {
    ...account('github'),
    env: (url) => ({ GITHUB_URL: url, GITHUB_TOKEN: 'simulated' }),
    databases: { repositories: 'repository', issues: 'issue' },
    change: (vendor) => someOf(vendor, 'issue', { title: 'Renamed' }),
    syncs: ['issues'],
  },
  linear: {
    ...account('linear'),
    env: (url) => ({ LINEAR_URL: url, LINEAR_KEY: 'simulated' }),
    databases: { teams: 'team', issues: 'issue' },
    change: (vendor) => someOf(vendor, 'issue', { title: 'Renamed' }),
    syncs: ['issues'],
  },
  airtable: {
    ...account('airtable'),
    env: (url) => ({
      AIRTABLE_URL: `${url}/v0`,
      AIRTABLE_BASE: 'appSimulated00001',
      AIRTABLE_TABLE: 'Tasks',
      AIRTABLE_TOKEN: 'simulated',
    }),
    databases: { tasks: 'Tasks' },
    change: (vendor) => someOf(vendor, 'Tasks', { Name: 'Renamed' }),
    syncs: ['tasks'],
  },
  rest: {
    createSimulator: (ports) => new StripeSimulator(ports),
    env: (url) => ({ STRIPE_URL: `${url}/v1`, STRIPE_KEY: 'simulated' }),
    databases: { customers: 'customer' },
    fill: (vendor) =>
      many(250, (n) => vendor.create('customer', { email: `c${n}@example.com`, name: `Customer ${n}` })),
    change: (vendor) => someOf(vendor, 'customer', { name: 'Renamed' }),
    syncs: ['customers'],
  },
}

/** The account that the templates of `tidemark init` also use. */
function account(name) {
  return { createSimulator: ACCOUNTS[name].createSimulator, fill: (vendor) => fillAccount(vendor, ACCOUNTS[name]) }
}

function many(count, make) {
  return Array.from({ length: count }, (_, n) => make(n))
}

/** Updates five records, creates two and deletes three. */
function someOf(vendor, type, changes) {
  const records = vendor.records.current(type)
  for (const { id } of records.slice(0, 5)) vendor.update(type, id, changes)
  for (const { fields } of records.slice(5, 7)) vendor.create(type, fields)
  for (const { id } of records.slice(7, 10)) vendor.remove(type, id)
}
