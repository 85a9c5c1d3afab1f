import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { Execute } from '../../src/contract/index.ts'
import type { SourceDescriptor, SourceStream, StreamDeclaration } from '../../src/sources/kit/define-source.ts'
import { SOURCES, type SourceName } from '../../src/sources/registry.ts'
import { planRange } from '../../src/worker/plan-range.ts'
import { Worker } from '../../src/worker/worker.ts'

const folder = mkdtempSync(join(tmpdir(), 'tidemark-times-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
writeFileSync(
  join(folder, 'manifest.yaml'),
  `version: 1.0.0
type: DeclarativeSource
check: { type: CheckStream, stream_names: [items] }
streams:
  - type: DeclarativeStream
    name: items
    primary_key: id
    retriever:
      type: SimpleRetriever
      requester: { type: HttpRequester, url_base: "https://api.example", path: items }
      record_selector: { type: RecordSelector, extractor: { type: DpathExtractor, field_path: [items] } }
spec: { type: Spec, connection_specification: { type: object, properties: {} } }
`,
)

interface Sample {
  readonly config: object
  /** Streams whose records have times; the first one must read ranges unless the source states why not. */
  readonly timed: readonly StreamDeclaration[]
  /** Streams without times. */
  readonly untimed?: readonly StreamDeclaration[]
  /** `since` is set here if it is an option of streams. */
  readonly isSinceOfStream?: true
}

const FOLLOW = {
  kind: 'window',
  since: 'updated_after',
  page: { kind: 'token', parameter: 'after', next: 'next' },
} as const

/** One configuration of every source: a new source does not compile without one. */
const SAMPLES: Readonly<Record<SourceName, Sample>> = {
  airbyte: { config: { manifest: 'manifest.yaml' }, timed: [{ id: 'items' }] },
  airtable: {
    config: { base_id: 'appX', token: '${T}' },
    timed: [{ id: 'Tasks' }, { id: 'tblX', options: { webhook: 'achX' } }],
  },
  bookmarks: { config: { user_id: '1', token: '${T}' }, timed: [{ id: 'bookmarks' }] },
  evm: {
    config: { providers: [{ kind: 'rpc', name: 'node', url: 'https://node.example' }] },
    timed: [{ id: 'transfers', options: { address: `0x${'ab'.repeat(20)}` } }],
  },
  files: {
    config: { folder: '.' },
    timed: [{ id: 'a' }, { id: 'a', key: ['id'], cursor: 'updated_at' }],
    untimed: [{ id: 'a', key: ['id'] }],
  },
  github: {
    config: { token: '${T}' },
    timed: ['issues', 'issueComments', 'reviewComments', 'pullRequests', 'commits'].map((stream) => ({
      id: stream,
      options: { repository: 'acme/app', stream },
    })),
    untimed: ['repositories', 'issues'].map((id) => ({ id })),
  },
  'github-stars': { config: { token: '${T}' }, timed: [{ id: 'stars' }] },
  hubspot: { config: { access_token: '${T}' }, timed: [{ id: 'contacts' }, { id: 'cars' }] },
  kafka: { config: { brokers: ['localhost:9092'] }, timed: [{ id: 'orders' }] },
  kraken: { config: { api_key: '${K}', api_secret: '${S}' }, timed: [{ id: 'ledgers' }, { id: 'trades' }] },
  linear: { config: { api_key: '${T}' }, timed: [{ id: 'issues' }] },
  odata: {
    config: { url: 'https://odata.example' },
    timed: [{ id: 'Orders', cursor: 'ChangedAt' }],
    untimed: [{ id: 'Orders', mode: 'full_refresh' }],
  },
  'postgres-cdc': { config: { url: 'postgres://localhost/shop' }, timed: [{ id: 'orders' }] },
  rest: {
    config: { base_url: 'https://api.example' },
    timed: [
      {
        id: 'items',
        key: ['id'],
        cursor: 'updated_at',
        options: {
          path: 'items',
          page: { kind: 'token', parameter: 'after', next: 'next' },
          follow: FOLLOW,
          deletes: 'ignore',
        },
      },
    ],
    untimed: [
      {
        id: 'items',
        key: ['id'],
        options: { path: 'items', page: { kind: 'token', parameter: 'after', next: 'next' } },
      },
    ],
    isSinceOfStream: true,
  },
  salesforce: {
    config: { instance_url: 'https://example.my.salesforce.com', access_token: '${T}' },
    timed: [{ id: 'Account' }],
  },
  servicenow: {
    config: { instance_url: 'https://example.service-now.com', user: '${U}', password: '${P}' },
    timed: [{ id: 'incident' }],
  },
  singer: { config: { command: 'tap-x', catalog: 'none' }, timed: [{ id: 'issues' }] },
  sql: {
    config: { url: 'sqlite:shop.db' },
    timed: [{ id: 'orders', cursor: 'updated_at' }],
    untimed: [{ id: 'orders', mode: 'full_refresh' }],
  },
  stripe: { config: { api_key: '${T}' }, timed: [{ id: 'customers' }] },
}

const project = {
  folder,
  tokens: () => ({ read: async () => null, write: async () => {} }) as never,
}

async function open(name: SourceName, declaration: StreamDeclaration, since?: string): Promise<SourceStream> {
  const descriptor = SOURCES[name] as SourceDescriptor
  const { config, isSinceOfStream } = SAMPLES[name]
  const start = since === undefined ? {} : { since }
  const source = await descriptor.open(isSinceOfStream === true ? config : { ...config, ...start }, project)
  const options = { ...declaration.options, ...(isSinceOfStream === true && start) }
  const declared = Object.keys(options).length === 0 ? declaration : { ...declaration, options }
  return descriptor.stream(source, declared, [declared])
}

function halves(stream: SourceStream): Execute<any>[] {
  return 'execute' in stream ? [stream.execute] : [stream.backfill, stream.delta]
}

const NAMES = Object.keys(SOURCES) as SourceName[]

describe.each(NAMES)('%s', (name) => {
  const { times, config, streams } = SOURCES[name] as SourceDescriptor
  const { timed, untimed = [], isSinceOfStream } = SAMPLES[name]

  test('takes a start date, or says why not', async () => {
    const options = streams.options.properties
    const hasSince = 'since' in config.properties || (isSinceOfStream === true && 'since' in options)
    expect(hasSince).toBe(times.since === true)
    if (times.since !== true) return expect(times.since).toMatch(/^[a-z].*[^.]$/)
    await expect(open(name, timed[0]!, 'soon')).rejects.toThrow('`since` is "soon"')
    await expect(open(name, timed[0]!, '2024-01-31')).resolves.toBeDefined()
  })

  test.each(timed.map((declaration) => [declaration] as const))(
    '$id: reads ranges, or says why not',
    async (declaration) => {
      const stream = await open(name, declaration)
      const [range] = halves(stream).flatMap((execute) => execute.range ?? [])
      if (times.range !== true) {
        expect(range).toBeUndefined()
        return expect(halves(stream)[0]!.rangeUnsupported).toBe(times.range)
      }
      expect(range).toBeTypeOf('function')
      expect(range!({ from: '2024-01-01T00:00:00.000000Z' })).toBeTypeOf('function')
    },
  )

  test.each(untimed.map((declaration) => [declaration] as const))(
    '$id: `tidemark backfill` names the reason without ranges',
    async (declaration) => {
      const stream = await open(name, declaration)
      const worker = new Worker({ name: 'shop' })
      const database = worker.database('rows')
      if ('execute' in stream) worker.sync('rows', { database, mode: stream.mode, execute: stream.execute })
      else worker.track('rows', { database, source: stream })
      const reason = halves(stream)[0]!.rangeUnsupported
      expect(reason).toMatch(/^[a-zA-Z`].*[^.]$/)
      expect(() => planRange(worker, 'rows', { from: '2024-01-01' })).toThrow(
        `its source cannot read a range of times: ${reason}. Run`,
      )
    },
  )
})
