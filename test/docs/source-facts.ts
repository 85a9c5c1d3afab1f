/**
 * The content of docs/reference/sources.md beyond the types: a default (null for none) and the meaning, with its
 * limits.
 */
type Option = readonly [fallback: string | null, meaning: string]

export interface OptionGroup {
  /** How the options are given. */
  readonly title: string
  readonly file: string
  readonly name: string
  readonly members: Readonly<Record<string, Option>>
}

export interface SourceFacts {
  /** Its folder in src/sources, which is also the import path. */
  readonly folder: string
  readonly title: string
  readonly call: string
  readonly auth: string
  readonly streams: readonly (readonly [name: string, mode: string, what: string])[]
  readonly lag: string
  readonly retention: string
  readonly deletions: string
  readonly pace: string
  /** The origin of column types, if not the values. */
  readonly types?: string
  readonly guide?: string
  readonly groups: readonly OptionGroup[]
}

const HTTP_PACE = 'No pacer of its own. Waits as long as a 429, or a 403 with an exhausted budget, requires.'
const AUTH: Option = [
  null,
  'Instead of a token or key: `bearer`, `basic`, `apiKey`, `clientCredentials` or `refreshToken` of `tidemark/connector`. Give exactly one of the two.',
]
const secret = (what: string): Option => [null, `${what}, or the name of the secret that holds it.`]
const LAG = (fallback: string): Option => [
  fallback,
  'Milliseconds that a change may take to become readable. A delta stays that far behind; not below 0.',
]
const SAFETY: Option = ['none', 'Every cycle reads this much again, as a duration such as `PT5M`.']

export const SOURCES: readonly SourceFacts[] = [
  {
    folder: 'airtable',
    title: 'Airtable',
    call: 'airtable(options)',
    auth: 'A personal access token with `data.records:read`; `schema.bases:read` for `discover`.',
    types:
      '`id` is text, `createdTime` a timestamp, and `fields`, which has the fields of the table, is JSON. `id` is not null and unique.',
    streams: [['airtable(options).table(idOrName)', 'replace', 'the records of one table; its id survives a new name']],
    lag: 'None assumed.',
    retention: 'No limit: every cycle reads the whole list.',
    deletions: 'Yes, by the sweep.',
    pace: 'No pacer of its own. Waits 30 seconds after a 429, as Airtable requires; declare a pacer of 5 requests a second for each base.',
    groups: [
      {
        title: 'airtable(options)',
        file: 'airtable/source.ts',
        name: 'AirtableOptions',
        members: {
          baseId: [null, 'The base, `app…`.'],
          token: secret('A personal access token'),
          auth: AUTH,
          baseUrl: ['`https://api.airtable.com/v0`', 'Base URL of the API.'],
        },
      },
    ],
  },
  {
    folder: 'bookmarks',
    title: 'X bookmarks',
    call: 'bookmarks(options)',
    guide: 'frontier.md',
    auth: 'A user access token with the scopes `bookmark.read`, `tweet.read` and `users.read`.',
    streams: [['bookmarks(options)', 'backfill and delta', 'the posts that the user has bookmarked, newest first']],
    lag: 'None assumed.',
    retention: 'No limit, but X lists the newest 800 only; a backfill of a fuller list fails and deletes nothing.',
    deletions: 'By the backfill.',
    pace: HTTP_PACE,
    groups: [
      {
        title: 'bookmarks(options)',
        file: 'bookmarks/source.ts',
        name: 'BookmarksOptions',
        members: {
          userId: [null, 'The account that granted the token.'],
          token: secret('The access token'),
          auth: AUTH,
          baseUrl: ['`https://api.x.com`', 'Base URL of the API.'],
          fields: [
            'author_id, created_at, conversation_id, lang, entities, referenced_tweets',
            'Fields of each post. Counts such as `public_metrics` change all the time and make every cycle a change.',
          ],
        },
      },
    ],
  },
  {
    folder: 'evm',
    title: 'EVM chains',
    call: 'evm(options)',
    guide: 'failover.md',
    auth: 'Depends on the provider: an API key of Etherscan, a node URL with or without `auth`.',
    streams: [
      ['evm(options).transfers', 'incremental', 'native and token transfers of one address, from several providers'],
    ],
    lag: '`confirmations` blocks.',
    retention: 'No limit: a chain keeps its history.',
    deletions: 'Transfers of replaced blocks, within `depth`.',
    pace: 'No pacer of its own. Waits as a 429 requires, and uses another provider meanwhile.',
    groups: [
      {
        title: 'evm(options)',
        file: 'evm/source.ts',
        name: 'EvmOptions',
        members: {
          address: [null, 'The account whose transfers are read: `0x` and 40 hexadecimal digits.'],
          providers: [null, 'One or more of `alchemy`, `etherscan` and `rpc`, in order of preference.'],
          operations: ['both', '`native`, `token`, or both.'],
          preferred: ['none', 'Name of the provider that is used before the others.'],
          chainId: ['any', 'The chain. A provider of another chain is refused.'],
          startBlock: ['0', 'Where the first cycle begins.'],
          confirmations: ['0', 'Newest blocks that are not read. 0 reads to the head and repairs reorganisations.'],
          depth: ['12', 'Newest blocks that may still be replaced.'],
          deadlineMs: ['that of `failover`', 'Milliseconds that one provider may take for a page.'],
        },
      },
      {
        title: 'alchemy(options)',
        file: 'evm/alchemy.ts',
        name: 'AlchemyOptions',
        members: {
          name: [null, 'Name of the provider in states and logs.'],
          url: [null, 'URL of the node, or `{ secret }` with the name of the secret that holds it.'],
          auth: ['none', 'Credentials beside the URL.'],
          confirmations: ['that of the source', 'See above.'],
          countMax: ['1000', 'Transfers of a page, up to 1,000.'],
        },
      },
      {
        title: 'etherscan(options)',
        file: 'evm/etherscan.ts',
        name: 'EtherscanOptions',
        members: {
          name: [null, 'Name of the provider in states and logs.'],
          apiKey: secret('The API key'),
          baseUrl: ['`https://api.etherscan.io/v2/api`', 'Base URL of the API.'],
          chainId: ['that of the source, else 1', 'The chain.'],
          confirmations: ['that of the source', 'See above.'],
          offset: ['1000', 'Rows of a page, up to 1,000.'],
          operations: ['both', 'Capabilities of this provider. Some servers with the same API have no logs.'],
        },
      },
      {
        title: 'rpc(options)',
        file: 'evm/rpc.ts',
        name: 'RpcOptions',
        members: {
          name: [null, 'Name of the provider in states and logs.'],
          url: [null, 'URL of the node, or `{ secret }` with the name of the secret that holds it.'],
          auth: ['none', 'Credentials beside the URL.'],
          logBlocksMax: ['2000', 'Blocks of a page of logs.'],
          wholeBlocksMax: ['25', 'Blocks of a page of native transfers, which are fetched one by one.'],
          confirmations: ['that of the source', 'See above.'],
        },
      },
    ],
  },
  {
    folder: 'files',
    title: 'Files',
    call: 'files(options)',
    guide: 'files.md',
    auth: 'None for a folder of this machine; the AWS client of S3 finds its own credentials, or takes `client`.',
    streams: [
      ['files(options)', 'incremental', 'the rows of CSV, TSV, NDJSON and Parquet files, also packed with gzip'],
    ],
    lag: '`settleMs`.',
    retention: 'No limit.',
    deletions: 'Rows that a new version of a file omits; deleted files, with `deletedFiles`.',
    pace: 'Not applicable to a folder; S3 by its client.',
    groups: [
      {
        title: 'files(options)',
        file: 'files/source.ts',
        name: 'FilesOptions',
        members: {
          folder: [null, 'Path of a folder, read with all below it; or `s3Folder(options)`.'],
          match: [
            'every `.csv`, `.tsv`, `.ndjson`, `.jsonl` (each also with `.gz`) and `.parquet`',
            'Which paths are read.',
          ],
          csv: ['none', 'See below.'],
          key: ['path and row number, `2026/orders.csv#17`', 'Columns that identify a row across all files.'],
          updatedAt: ['none', 'Column with the time of the last change: of two rows with one key, the newer stays.'],
          settleMs: ['10000', 'Milliseconds that a file must be unchanged before it is read.'],
          removedRows: [
            "`'delete'`",
            'What happens to a row that a new version of its file omits and no other file has. With `key`, the state remembers every key: about 300,000 UUIDs, or a few million sequential numbers.',
          ],
          deletedFiles: [
            "`'keep'`",
            "What happens to the rows of a deleted file. `'delete'` cannot be combined with `removedRows: 'keep'`.",
          ],
          pageSize: ['10000', 'Rows of a page. A page also ends at 32 MB, 1,000 files or 20 seconds.'],
        },
      },
      {
        title: 'csv',
        file: 'files/csv.ts',
        name: 'CsvOptions',
        members: {
          delimiter: ['a comma; a tab in `.tsv`', 'Between two fields.'],
          columns: ['the first line', 'Names of the columns, for files without a header.'],
        },
      },
      {
        title: 's3Folder(options)',
        file: 'files/s3-folder.ts',
        name: 'S3Options',
        members: {
          bucket: [null, 'The bucket.'],
          prefix: ['everything', 'Reads only objects below it, such as `sales/orders/`. Paths are shown without it.'],
          client: ["the client's own settings", 'Options of the AWS client: region, endpoint, credentials.'],
        },
      },
    ],
  },
  {
    folder: 'github',
    title: 'GitHub',
    call: 'github(options)',
    auth: 'A token that may read the repositories and their issues.',
    streams: [
      ['github(options).repositories', 'replace', 'repositories of the owner'],
      ['github(options).issues', 'replace', 'issues of all of them'],
    ],
    lag: '15 seconds.',
    retention: 'No limit: every cycle reads the whole list.',
    deletions: 'Yes, by the sweep.',
    pace: 'By the budget in GraphQL responses (`rateLimit`): requests are spread until it resets. Waits as both limits of GitHub require.',
    groups: [
      {
        title: 'github(options)',
        file: 'github/source.ts',
        name: 'GithubOptions',
        members: {
          token: secret('A token'),
          auth: AUTH,
          baseUrl: ['`https://api.github.com`', 'Of an Enterprise server: `https://github.example.com/api`.'],
          owner: ['the owner of the token', 'A user or an organization.'],
          repositoriesPerPage: ['20', 'Repositories in a request for issues, 1 to 100.'],
        },
      },
    ],
  },
  {
    folder: 'github-stars',
    title: 'GitHub stars',
    call: 'githubStars(options)',
    guide: 'frontier.md',
    auth: 'A token; for the stars of another user any token is sufficient.',
    streams: [
      ['githubStars(options)', 'backfill and delta', 'the repositories that the user has starred, newest first'],
    ],
    lag: 'None assumed.',
    retention: 'No limit.',
    deletions: 'By the backfill.',
    pace: HTTP_PACE,
    groups: [
      {
        title: 'githubStars(options)',
        file: 'github-stars/source.ts',
        name: 'GithubStarsOptions',
        members: {
          token: secret('A token'),
          auth: AUTH,
          baseUrl: ['`https://api.github.com`', 'Of an Enterprise server: `https://github.example.com/api/v3`.'],
          user: ['the owner of the token', 'The user whose stars are read.'],
        },
      },
    ],
  },
  {
    folder: 'hubspot',
    title: 'HubSpot',
    call: 'hubspot(options)',
    auth: 'The access token of a private app with read scopes of the objects.',
    streams: [
      ['hubspot(options).contacts', 'backfill and delta', 'contacts'],
      ['hubspot(options).companies', 'backfill and delta', 'companies'],
      ['hubspot(options).deals', 'backfill and delta', 'deals'],
      ['hubspot(options).tickets', 'backfill and delta', 'tickets'],
      ['hubspot(options).object(type)', 'backfill and delta', 'any other type of object, by its name or id'],
    ],
    lag: '`lagMs`, 10 seconds by default.',
    retention: '90 days: archived objects are listed that long.',
    deletions: 'By the delta, from the list of archived objects (`archivedEveryMs`), and by the backfill.',
    pace: HTTP_PACE,
    groups: [
      {
        title: 'hubspot(options)',
        file: 'hubspot/source.ts',
        name: 'HubspotOptions',
        members: {
          accessToken: secret('The token of a private app'),
          auth: AUTH,
          baseUrl: ['`https://api.hubapi.com`', 'Base URL of the API.'],
          properties: ['the usual ones of each type', 'Additional properties to read, by object type.'],
          lagMs: LAG('10000'),
          limit: ['100', 'Objects of a page, 1 to 100.'],
          archivedEveryMs: [
            '300000',
            'Minimum interval between listings of the archived objects; 0 for every cycle. The list can only be read whole, and the tidemark stays at the last one.',
          ],
        },
      },
    ],
  },
  {
    folder: 'kafka',
    title: 'Kafka',
    call: 'kafka(options)',
    guide: 'kafka.md',
    auth: 'None, TLS certificates, or SASL; the account needs Describe and Read on the topics.',
    streams: [
      ['kafka(options).topic(name, options)', 'backfill and delta', 'the last value of every key, by offsets'],
      ['kafka(options).listing(name, options)', 'replace', 'all messages that the topic retains'],
    ],
    lag: 'None: offsets are final.',
    retention: 'The retention of the topic; `tombstonesMs` for the deletions of a compacted one.',
    deletions: 'Messages without a value; with `listing` the sweep.',
    pace: 'By the quotas of the brokers.',
    groups: [
      {
        title: 'kafka(options)',
        file: 'kafka/connect.ts',
        name: 'KafkaOptions',
        members: {
          brokers: [
            null,
            '`host:port` of some brokers: a list, a text with commas, or the name of the secret that holds it.',
          ],
          ssl: ['false', 'TLS: true, or certificates as PEM.'],
          sasl: ['none', '`plain`, `scram-sha-256`, `scram-sha-512` or `oauthbearer`, with its secrets.'],
          clientId: ['`tidemark`', 'Name in the logs and quotas of the brokers.'],
        },
      },
      {
        title: 'topic(name, options), listing(name, options)',
        file: 'kafka/source.ts',
        name: 'TopicOptions',
        members: {
          tombstonesMs: [
            'no limit',
            '`delete.retention.ms` of a compacted topic: after a longer absence the topic is read from the beginning.',
          ],
          pageSize: ['10000', 'Messages of a page.'],
          pageBytes: ['8000000', 'Bytes of keys and values; a page ends with the message that exceeds it.'],
        },
      },
      {
        title: 'topic(name, options), the message',
        file: 'kafka/message.ts',
        name: 'MessageOptions',
        members: {
          include: ['none', 'Metadata to add to the record: `partition`, `offset`, `timestamp`, `headers`.'],
          decode: [
            'JSON',
            'Function from the bytes of a value to the record. An exception puts the message in quarantine.',
          ],
        },
      },
    ],
  },
  {
    folder: 'kraken',
    title: 'Kraken',
    call: 'kraken(options)',
    auth: 'An API key with "Query ledger entries" and "Query closed orders and trades", and its secret.',
    streams: [
      ['kraken(options).ledgers', 'incremental', 'entries of the ledger'],
      ['kraken(options).trades', 'incremental', 'trades'],
    ],
    lag: '`lagMs`, 10 seconds by default.',
    retention: 'No limit.',
    deletions: 'There are none: entries do not change.',
    pace: 'By the call counter that Kraken documents, for the `tier` of the account; 15 minutes after a lockout.',
    groups: [
      {
        title: 'kraken(options)',
        file: 'kraken/source.ts',
        name: 'KrakenOptions',
        members: {
          apiKey: secret('The API key'),
          apiSecret: secret('Its secret'),
          baseUrl: ['`https://api.kraken.com`', 'Base URL of the API.'],
          tier: ['`starter`', '`starter`, `intermediate` or `pro`: determines the call rate limit of the account.'],
          lagMs: LAG('10000'),
          overlapMs: ['60000', 'Milliseconds before its state that every cycle reads again.'],
        },
      },
    ],
  },
  {
    folder: 'linear',
    title: 'Linear',
    call: 'linear(options)',
    auth: 'A personal API key, or OAuth with the scope `read`.',
    streams: [
      ['linear(options).issues', 'replace', 'issues'],
      ['linear(options).teams', 'replace', 'teams'],
    ],
    lag: '15 seconds.',
    retention: 'No limit: every cycle reads the whole list.',
    deletions: 'Yes, by the sweep; archived records count as deleted.',
    pace: HTTP_PACE,
    groups: [
      {
        title: 'linear(options)',
        file: 'linear/source.ts',
        name: 'LinearOptions',
        members: {
          apiKey: secret('A personal API key'),
          auth: AUTH,
          baseUrl: ['`https://api.linear.app`', 'Base URL of the API.'],
          limit: ['100', 'Records of a page, 1 to 250.'],
        },
      },
    ],
  },
  {
    folder: 'odata',
    title: 'OData',
    call: 'odata(options)',
    guide: 'odata.md',
    auth: '`auth`, as the service requires; none for a public one.',
    streams: [
      ['odata(options).entitySet(name, options)', 'backfill and delta', 'an entity set by its `cursor`'],
      [
        'odata(options).tracked(name, options)',
        'backfill and delta',
        'an entity set by the delta links of the service (version 4)',
      ],
      ['odata(options).listing(name, options)', 'replace', 'all rows of an entity set'],
    ],
    lag: '`lagMs`, 30 seconds by default, and one second more.',
    retention: 'No limit by the cursor; a delta link as long as the service accepts it.',
    deletions: '`tracked` and `listing`; `entitySet` with `deleted`, else by the backfill.',
    pace: HTTP_PACE,
    groups: [
      {
        title: 'odata(options)',
        file: 'odata/source.ts',
        name: 'ODataOptions',
        members: {
          url: [null, 'Root of the service, the parent of `$metadata`.'],
          auth: ['none', 'Credentials.'],
          headers: ['none', 'Sent with every request.'],
          query: ['none', "Added to every query: `{ 'sap-client': '100' }`."],
        },
      },
      {
        title: 'entitySet, tracked (without `deleted`) and listing',
        file: 'odata/source.ts',
        name: 'EntitySetOptions',
        members: {
          key: ['as `$metadata` declares', 'Properties that identify an entity.'],
          select: ['all', 'Properties to read.'],
          filter: ['none', "Filter for all reads: `CompanyCode eq '1010'`."],
          deleted: ['none', "Property that marks a deleted entity: true, or anything but null, false, 0 and ''."],
          pageSize: ['1000', 'Entities of a page; the service may give fewer.'],
        },
      },
      {
        title: 'entitySet, additional options',
        file: 'odata/source.ts',
        name: 'CursorOptions',
        members: {
          cursor: [null, 'Property that every change increases: a timestamp or a date.'],
          lagMs: LAG('30000'),
          safetyWindow: SAFETY,
          since: ['the first entity', 'Where a sync without state begins.'],
          exactCursor: ['as `$metadata` says', 'Whether responses show every digit of the cursor.'],
          strict: [
            'false',
            'Queries with `gt` and without an upper bound. Entities with the value of the last cursor, or visible late, are never read. Not with `deleted` or `safetyWindow`.',
          ],
        },
      },
    ],
  },
  {
    folder: 'postgres-cdc',
    title: "PostgreSQL's log",
    call: 'postgresCdc(options)',
    guide: 'postgres-cdc.md',
    auth: 'An account with REPLICATION, and SELECT on the tables; `wal_level = logical`.',
    streams: [['postgresCdc(options)', 'backfill and delta', 'the rows of the tables, by a replication slot']],
    lag: 'None: the log is in commit order.',
    retention: 'As long as the slot holds the log; a missing or overtaken slot requests the backfill.',
    deletions: 'Yes.',
    pace: 'One connection; the server does not throttle.',
    groups: [
      {
        title: 'postgresCdc(options)',
        file: 'postgres-cdc/source.ts',
        name: 'PostgresCdcOptions',
        members: {
          url: secret('`postgres://…`'),
          tables: [null, 'At least one; see below.'],
          slot: ['`tidemark`', 'Replication slot of this sync alone: small letters, digits and `_`, up to 63.'],
          publication: ['`tidemark`', 'Created when it does not exist.'],
          pageSize: [
            '1000',
            'Changes of a page. A page ends with the transaction that fills it; one ten times as large is split.',
          ],
        },
      },
      {
        title: 'tables',
        file: 'postgres-cdc/replicated-tables.ts',
        name: 'CdcTable',
        members: {
          table: [null, '`schema.table`, or both names as a list.'],
          database: ['that of the sync', 'The database its rows are written to.'],
          key: ['the primary key', 'Columns that identify a row.'],
        },
      },
    ],
  },
  {
    folder: 'rest',
    title: 'REST',
    call: 'rest(options)',
    guide: 'manifests.md',
    auth: '`auth`, as the API requires.',
    streams: [['rest({ streams }).<name>', 'backfill and delta with `follow`, else replace', 'each declared stream']],
    lag: '`lagMs` of the stream, 30 seconds by default.',
    retention: '`retentionMs` of the stream, of `deletes`, or of the event log in `follow`.',
    deletions: 'By the sweep, by a field (`deleted`), by a list of deletions (`deletes`) or by events.',
    pace: HTTP_PACE,
    groups: [
      {
        title: 'rest(options)',
        file: 'rest/source.ts',
        name: 'RestOptions',
        members: { streams: [null, 'The streams; see below. An unknown field is an error.'] },
      },
      {
        title: 'rest(options), the requests',
        file: 'kit/http-client.ts',
        name: 'HttpClientOptions',
        members: {
          baseUrl: [null, 'Base URL of all paths; a function of the context where it depends on the tenant.'],
          auth: ['none', 'Credentials.'],
          headers: ['none', 'Sent with every request.'],
          limits: [
            '32 MB, 512 levels, 60 seconds, 24 hours',
            'Limits of a response (`bodyBytesMax`, `depthMax`, `bodyDeadlineMs`), and the longest wait that is accepted (`retryAfterMaxMs`).',
          ],
          classifyResponse: ['none', 'Function that recognises errors in responses with status 200.'],
        },
      },
      {
        title: 'A stream',
        file: 'rest/stream.ts',
        name: 'RestStream',
        members: {
          name: [null, 'Name of the stream.'],
          path: [null, 'Path below the base URL.'],
          query: ['none', 'Sent with every page: filters, fields, the order that `page` relies on.'],
          records: ['the whole response', 'Path of the list in a response.'],
          page: [
            null,
            'How the whole list is read: `none`, `token`, `link`, `pageNumber`, `offset`, `keyset` or `timestamp`.',
          ],
          follow: [
            'none',
            'How changes are read: `keyset`, `timestamp`, `window` or `events`. Without it every cycle reads the whole list.',
          ],
          lagMs: LAG('30000'),
          deletes: [
            'none; needed with `follow` unless `deleted` is given',
            "`'ignore'`, `'sweep'`, or where the source lists deletions; see below.",
          ],
          retentionMs: ['no limit', 'How long records that are marked as deleted are kept; at least 1.'],
          lookup: ['none', 'Endpoint of one record, with `{key}` in the path. Used before a sweep and by `why-not`.'],
        },
      },
      {
        title: 'A stream, the record',
        file: 'rest/record-mapping.ts',
        name: 'RecordMapping',
        members: {
          key: [null, 'Field, or fields, that identify a record.'],
          updatedAt: ['none', 'Time of the last change. Needed to follow by it.'],
          time: ["`'iso'`", "Format of times: `'iso'` (RFC 3339), `'ms'` or `'s'` since 1970."],
          deleted: ['none', 'Field that marks a deleted record.'],
        },
      },
      {
        title: 'deletes',
        file: 'rest/stream.ts',
        name: 'DeletesStream',
        members: {
          path: [null, 'Path of the list of deletions.'],
          query: ['none', 'Sent with every page.'],
          records: ['the whole response', 'Path of the list.'],
          key: [null, 'The key of the deleted record.'],
          updatedAt: [null, 'When it was deleted.'],
          time: ["`'iso'`", "Format of times: `'iso'` (RFC 3339), `'ms'` or `'s'` since 1970."],
          follow: [null, '`keyset`, `timestamp` or `window`.'],
          retentionMs: ['no limit', 'How long deletions are kept; at least 1.'],
        },
      },
      {
        title: 'page and follow: size',
        file: 'rest/stream.ts',
        name: 'PageSizeParameter',
        members: {
          parameter: [null, 'Parameter of the page size.'],
          value: [null, 'Records of a full page.'],
        },
      },
      {
        title: "page: { kind: 'none' }",
        file: 'rest/stream.ts',
        name: 'NoPaging',
        members: { kind: [null, 'One response is the whole list.'] },
      },
      {
        title: "page: { kind: 'token' }",
        file: 'rest/stream.ts',
        name: 'TokenPaging',
        members: {
          kind: [null, 'A response contains the token of the next page.'],
          parameter: [null, 'Parameter of the token.'],
          next: [null, 'Path of the token, in the response or in the last record.'],
          more: ['none', 'Whether more follows; needed with `last`.'],
          size: ['none', 'See above.'],
        },
      },
      {
        title: "page: { kind: 'link' }",
        file: 'rest/stream.ts',
        name: 'LinkPaging',
        members: {
          kind: [null, 'A response links to the next page.'],
          next: ['the header `Link`', 'Path of the link.'],
          size: ['none', 'See above.'],
        },
      },
      {
        title: "page: { kind: 'pageNumber' }",
        file: 'rest/stream.ts',
        name: 'PageNumberPaging',
        members: {
          kind: [null, 'Pages by number.'],
          parameter: [null, 'Parameter of the number.'],
          first: ['1', 'Number of the first page.'],
          size: ['none', 'See above.'],
          total: ['none', 'Path of the number of records.'],
          pages: ['none', 'Path of the number of pages.'],
          more: ['none', 'Whether more follows. Without any of these an empty page ends the list.'],
        },
      },
      {
        title: "page: { kind: 'offset' }",
        file: 'rest/stream.ts',
        name: 'OffsetPaging',
        members: {
          kind: [null, 'Pages by offset.'],
          parameter: [null, 'Parameter of the offset.'],
          size: [null, 'See above.'],
          total: ['none', 'Path of the number of records.'],
          more: ['none', 'Whether more follows.'],
        },
      },
      {
        title: "page or follow: { kind: 'keyset' }",
        file: 'rest/stream.ts',
        name: 'KeysetPaging',
        members: {
          kind: [null, 'Filtered and sorted by `updatedAt`, then by id.'],
          after: [null, 'Parameter of the timestamp.'],
          afterId: [null, 'Parameter of the id within that timestamp.'],
          until: ['none', 'Parameter of the latest timestamp.'],
          size: [null, 'See above.'],
          id: ['the key', 'Field of the id.'],
          ids: ["`'binary'`", "How the source sorts ids: `'binary'` or `'numeric'`."],
          more: ['none', 'Whether more follows; without it an empty page ends the list.'],
        },
      },
      {
        title: "page or follow: { kind: 'timestamp' }",
        file: 'rest/stream.ts',
        name: 'TimestampPaging',
        members: {
          kind: [null, 'Filtered and sorted by `updatedAt` alone.'],
          since: [null, 'Parameter of the timestamp.'],
          bound: ["`'from'`", "Whether the filter includes the timestamp: `'from'` does, `'above'` does not."],
          until: ['none', 'Parameter of the latest timestamp.'],
          size: [null, 'See above; at least 2.'],
        },
      },
      {
        title: "follow: { kind: 'window' }",
        file: 'rest/stream.ts',
        name: 'WindowPaging',
        members: {
          kind: [null, 'Everything since a timestamp, in any order.'],
          since: [null, 'Parameter of the timestamp.'],
          until: ['none', 'Parameter of the latest timestamp.'],
          page: [null, 'How the responses are paged: `none`, `token` or `link`.'],
          overlapMs: ['0', 'Milliseconds by which a window overlaps the end of the last one.'],
        },
      },
      {
        title: "follow: { kind: 'events' }",
        file: 'rest/stream.ts',
        name: 'EventPaging',
        members: {
          kind: [null, 'A log of events.'],
          path: [null, 'Path of the log.'],
          query: ['none', 'Sent with every page.'],
          records: ['the whole response', 'Path of the events.'],
          id: [null, 'Field of the id of an event.'],
          at: [null, 'When it happened.'],
          time: ['that of the records', 'Format of times.'],
          after: [null, 'Parameter of the id of the last event known.'],
          order: [null, "`'newest-first'` or `'oldest-first'`."],
          more: [null, 'Whether more follows.'],
          newest: [null, 'Query that returns the newest event alone.'],
          record: [null, 'Path of the record in an event.'],
          deletions: ['none', 'Which events are deletions: a value, or an ending such as `*.deleted`.'],
          only: ['all', 'Which events belong to this stream.'],
          retentionMs: ['no limit', 'How long the log keeps events; at least 1.'],
        },
      },
    ],
  },
  {
    folder: 'salesforce',
    title: 'Salesforce',
    call: 'salesforce(options)',
    auth: 'An access token, or OAuth (`clientCredentials`, `refreshToken`); the user needs "API Enabled" and read access to the objects.',
    types:
      'From the description of the object, requested once in each cycle that has records: `int` and `long` are `bigint`; `double`, `currency` and `percent` are `double`; `boolean`, `date` and `datetime` (`timestamp`) are of these types; `address`, `location`, `complexvalue` and `anyType` are `json`; all others are texts, also `time` and `base64` (the path of the blob). `Id` is not null and unique. If the description is refused, the types are inferred from the values, with a log message.',
    streams: [
      [
        'salesforce(options).object(name, options)',
        'backfill and delta',
        'the records of an object; `fields` (all) and `safetyWindow` (none) as options',
      ],
    ],
    lag: '`lagMs`, 15 seconds by default, and one second more.',
    retention: '15 days: the recycle bin keeps deleted records that long.',
    deletions: 'By the delta, from the recycle bin, and by the backfill.',
    pace: HTTP_PACE,
    groups: [
      {
        title: 'salesforce(options)',
        file: 'salesforce/source.ts',
        name: 'SalesforceOptions',
        members: {
          instanceUrl: [null, 'Of the org: `https://example.my.salesforce.com`.'],
          accessToken: secret('An access token'),
          auth: AUTH,
          apiVersion: ['`60.0`', 'Version of the API.'],
          limit: ['100', 'Records of a page, 1 to 2,000; at most 200 when all fields are read.'],
          lagMs: LAG('15000'),
          metadata: ['true', 'Whether the types of fields are requested.'],
        },
      },
    ],
  },
  {
    folder: 'servicenow',
    title: 'ServiceNow',
    call: 'servicenow(options)',
    auth: 'User and password, or `auth`; the user needs to read the tables and `sys_audit`; `sys_db_object` and `sys_dictionary` for types and `discover`.',
    types:
      'From `sys_dictionary`, requested once in each cycle that has records: `glide_date_time` and `due_date` are `datetime`, in UTC; `glide_date` is `date`; `integer`, `longint`, `decimal` and `percent_complete` are `decimal`; all others are texts, also booleans (`true`, `false`) and durations. An empty value is SQL null in a column that is not text. `sys_id` is not null and unique. If the dictionary may not be read, the types are inferred from the values, with a log message.',
    streams: [
      [
        'servicenow(options).table(name, options)',
        'backfill and delta',
        'the records of a table; `fields` (all) and `safetyWindow` (none) as options',
      ],
    ],
    lag: '`lagMs`, 15 seconds by default.',
    retention: '`auditRetentionMs`, 30 days by default.',
    deletions: 'By the delta, from `sys_audit`, and by the backfill.',
    pace: HTTP_PACE,
    groups: [
      {
        title: 'servicenow(options)',
        file: 'servicenow/source.ts',
        name: 'ServicenowOptions',
        members: {
          instanceUrl: [null, '`https://example.service-now.com`.'],
          user: secret('The user; with `password`'),
          password: secret('The password'),
          auth: AUTH,
          limit: ['100', 'Records of a page, 1 to 10,000.'],
          lagMs: [
            '15000',
            'Milliseconds that a change may take to become readable; not below one second, because times are whole seconds.',
          ],
          auditRetentionMs: ['2592000000', 'How long the instance keeps entries of `sys_audit`.'],
          metadata: ['true', 'Whether the types of columns are requested.'],
        },
      },
    ],
  },
  {
    folder: 'singer',
    title: 'Singer taps',
    call: 'singer(options)',
    guide: 'singer.md',
    auth: 'As the tap requires, by `config` and `environment`.',
    streams: [
      ['singer(options).stream(name, options)', 'incremental', 'a stream, resumed from the state of the tap'],
      ['singer(options).listing(name, options)', 'replace', 'all records of a stream; without `cursor` and `method`'],
      ['singer(options).streams(databases)', 'incremental', 'several streams with one run of the tap'],
    ],
    lag: 'Depends on the tap.',
    retention: 'Depends on the source of the tap; set `retentionMs` of the sync.',
    deletions: 'With `listing`, or as the tap marks them (`_sdc_deleted_at`).',
    pace: 'By the tap itself.',
    groups: [
      {
        title: 'singer(options)',
        file: 'singer/source.ts',
        name: 'SingerOptions',
        members: {
          command: [null, 'The program and its arguments. Never a secret: other users can read arguments.'],
          config: ['none', 'Configuration of the tap. `${NAME}` alone is replaced by a secret.'],
          catalog: ['requested from the tap in every cycle', 'The catalog, or `none`.'],
          catalogFlag: ['`--catalog`', '`--properties` for old taps.'],
          environment: [
            '`PATH`, `HOME`, language',
            'Additional environment variables of the tap; `${NAME}` alone is replaced by a secret.',
          ],
          folder: ['that of this process', 'Working directory.'],
          pageSize: ['1000', 'Records after which the next STATE ends a page; without any, ten times as many.'],
          quietMaxMs: ['900000', 'A tap that writes nothing for this long is stopped.'],
        },
      },
      {
        title: 'stream(name, options), listing(name, options)',
        file: 'singer/source.ts',
        name: 'TapStreamOptions',
        members: {
          key: ['as the tap declares', 'Fields that identify a record; `hash` for the whole record.'],
          updatedAt: ['none', 'Field with the time of the last change.'],
        },
      },
      {
        title: 'stream(name, options), additional options',
        file: 'singer/catalog.ts',
        name: 'StreamSelection',
        members: {
          cursor: ['as the tap does', 'The replication key.'],
          method: ['as the tap does', '`INCREMENTAL` or `LOG_BASED`.'],
        },
      },
    ],
  },
  {
    folder: 'sql',
    title: 'SQL databases',
    call: 'sql(options)',
    guide: 'sql.md',
    auth: 'A URL of PostgreSQL, MySQL, MariaDB or SQLite; the account needs SELECT.',
    streams: [
      ['sql(options).table(name, options)', 'backfill and delta', 'a table by its `cursor`'],
      ['sql(options).listing(name, options)', 'replace', 'all rows of a table'],
    ],
    lag: '`lagMs`, 30 seconds by default; open transactions are also waited for.',
    retention: 'No limit.',
    deletions: '`listing`; `table` with `deleted`, else by the backfill.',
    pace: 'None: one query at a time.',
    groups: [
      {
        title: 'sql(options)',
        file: 'sql/source.ts',
        name: 'SqlOptions',
        members: { url: secret('`postgres://…`, `mysql://…`, `mariadb://…` or `sqlite:path`') },
      },
      {
        title: 'table(name, options), listing(name, options)',
        file: 'sql/source.ts',
        name: 'TableOptions',
        members: {
          key: ['the primary key', 'Columns that identify a row; none may be null.'],
          cursor: ['none', 'Column that every change increases: a timestamp, a date or an integer.'],
          columns: ['all', 'Columns to read, in addition to key and cursor.'],
          deleted: ['none', 'Column that marks a deleted row: true, or anything but null, false and 0.'],
          pageSize: ['10000', 'Rows of a page; a page also ends at 32 MB.'],
        },
      },
      {
        title: 'table(name, options), additional options',
        file: 'sql/source.ts',
        name: 'CursorOptions',
        members: {
          cursor: [null, 'As above; needed here.'],
          lagMs: LAG('30000'),
          safetyWindow: SAFETY,
          since: ['the first row', 'Where a sync without state begins.'],
          strict: [
            'false',
            'Queries with `>` and without an upper bound. Rows with the value of the last cursor, or visible late, are never read.',
          ],
        },
      },
    ],
  },
  {
    folder: 'stripe',
    title: 'Stripe',
    call: 'stripe(options)',
    auth: 'A secret key, or a restricted key that may read the objects and events.',
    streams: [
      ['stripe(options).charges', 'backfill and delta', 'charges'],
      ['stripe(options).customers', 'backfill and delta', 'customers'],
      ['stripe(options).invoices', 'backfill and delta', 'invoices'],
      ['stripe(options).paymentIntents', 'backfill and delta', 'payment intents'],
      ['stripe(options).paymentMethods', 'backfill and delta', 'payment methods'],
      ['stripe(options).prices', 'backfill and delta', 'prices'],
      ['stripe(options).products', 'backfill and delta', 'products'],
      ['stripe(options).subscriptions', 'backfill and delta', 'subscriptions, also canceled ones'],
    ],
    lag: '10 seconds.',
    retention: '30 days: the log of events.',
    deletions: 'By the delta, from events, and by the backfill.',
    pace: HTTP_PACE,
    groups: [
      {
        title: 'stripe(options)',
        file: 'stripe/source.ts',
        name: 'StripeOptions',
        members: {
          apiKey: secret('The key'),
          auth: AUTH,
          baseUrl: ['`https://api.stripe.com/v1`', 'Base URL of the API.'],
          apiVersion: ["the account's", '`Stripe-Version` of lists. Events keep the version they were created with.'],
          limit: ['100', 'Objects of a page, 1 to 100.'],
          expand: [
            'none',
            'Fields to expand, such as `data.payment_method`. The delta reads each changed object that has such a field.',
          ],
          nested: [
            'none',
            "Databases of nested objects, by type: `{ payment_method: 'payment_methods' }`. Declare them in `databases` of the sync.",
          ],
          followUpsMax: [
            '20',
            'Requests that one page may make for its objects, 1 and more. A page that needs more is split.',
          ],
        },
      },
    ],
  },
]
