/** What a project can be made for, in the order in which it is offered. */
export interface InitSource {
  readonly title: string
  /** What stands in `.env`: names, and what to put there. */
  readonly settings: Readonly<Record<string, string>>
  /** What to look at first. */
  readonly database: string
  readonly sync: string
  /** Runs before anything is set: against a simulated account, or files that come with it. */
  readonly runsAtOnce: boolean
  /** Packages it needs besides. */
  readonly packages?: Readonly<Record<string, string>>
}

const simulated = (title: string, database: string, settings: InitSource['settings'], sync = database): InitSource => ({ title, settings, database, sync, runsAtOnce: true })

export const INIT_SOURCES = {
  harbour: { title: 'Nothing yet: a small harbour inside the worker', settings: { HARBOUR_TOKEN: 'what your API is asked with' }, database: 'vessels', sync: 'vessel-moves', runsAtOnce: true },
  rest: simulated('Any HTTP API, described', 'customers', { API_TOKEN: 'the token of the API' }),
  stripe: simulated('Stripe', 'customers', { STRIPE_KEY: 'a secret key, or a restricted one that may read customers, products and events' }),
  hubspot: simulated('HubSpot', 'contacts', { HUBSPOT_TOKEN: 'the access token of a private app' }),
  salesforce: simulated('Salesforce', 'accounts', { SALESFORCE_TOKEN: 'an access token; the address of the org is in worker.ts' }),
  servicenow: simulated('ServiceNow', 'incidents', { SERVICENOW_USER: 'an account that may read the table and sys_audit', SERVICENOW_PASSWORD: 'its password; the address of the instance is in worker.ts' }),
  github: simulated('GitHub repositories and issues', 'issues', { GITHUB_TOKEN: 'a token that may read them' }),
  'github-stars': simulated('GitHub stars', 'stars', { GITHUB_TOKEN: 'a token of whose stars they are' }),
  linear: simulated('Linear', 'issues', { LINEAR_KEY: 'a personal API key' }),
  airtable: simulated('Airtable', 'tasks', { AIRTABLE_TOKEN: 'a personal access token; base and table are in worker.ts' }),
  bookmarks: simulated('X bookmarks', 'bookmarks', { X_TOKEN: 'a user’s access token; the user is in worker.ts' }),
  kraken: simulated('Kraken', 'ledgers', { KRAKEN_KEY: 'an API key that may query ledgers and trades', KRAKEN_SECRET: 'its private key' }),
  evm: { title: 'Transfers of an account on an EVM chain', settings: {}, database: 'transfers', sync: 'transfers', runsAtOnce: false },
  sql: { title: 'Tables of PostgreSQL, MySQL, MariaDB or SQLite', settings: { SOURCE_URL: 'postgres://…, mysql://…, mariadb://… or sqlite:path' }, database: 'customers', sync: 'customers', runsAtOnce: false },
  'postgres-cdc': { title: 'PostgreSQL by its log (CDC)', settings: { SOURCE_URL: 'postgres://…' }, database: 'orders', sync: 'orders', runsAtOnce: false },
  files: { title: 'A folder of files', settings: {}, database: 'orders', sync: 'orders', runsAtOnce: true },
  odata: { title: 'An OData service', settings: { ODATA_USER: 'the user', ODATA_PASSWORD: 'the password' }, database: 'accounts', sync: 'accounts', runsAtOnce: false },
  kafka: { title: 'Kafka topics', settings: {}, database: 'orders', sync: 'orders', runsAtOnce: false, packages: { kafkajs: '^2' } },
  singer: { title: 'Any Singer tap', settings: { GITHUB_TOKEN: 'what the tap asks with' }, database: 'issues', sync: 'issues', runsAtOnce: false },
} as const satisfies Record<string, InitSource>

export type InitSourceName = keyof typeof INIT_SOURCES
