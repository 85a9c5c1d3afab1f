import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Change, Execute, Lookup, SyncContext } from '../../src/contract/index.ts'
import { airtable } from '../../src/sources/airtable/source.ts'
import { github } from '../../src/sources/github/source.ts'
import { hubspot } from '../../src/sources/hubspot/source.ts'
import { linear } from '../../src/sources/linear/source.ts'
import { bearer, rest } from '../../src/sources/rest/source.ts'
import { salesforce } from '../../src/sources/salesforce/source.ts'
import { servicenow } from '../../src/sources/servicenow/source.ts'
import { sql } from '../../src/sources/sql/source.ts'
import { stripe } from '../../src/sources/stripe/source.ts'
import { RandomStream } from '../../src/testing/index.ts'
import {
  ACCOUNTS,
  createSimulatorFetch,
  fillAccount,
  ManualClock,
  type AccountName,
} from '../../simulators/src/index.ts'
import { NO_PARTITIONS } from '../../src/values/partition-overlay.ts'

type StreamWithLookup = { readonly lookup?: Lookup; readonly backfill?: Execute<any>; readonly execute?: Execute<any> }

const STREAMS: Record<string, readonly [AccountName, string, StreamWithLookup]> = {
  airtable: ['airtable', 'Tasks', airtable({ baseId: 'appSimulated00001', token: 'K' }).table('Tasks')],
  'github repositories': ['github', 'repository', github({ token: 'K' }).repositories],
  'github issues': ['github', 'issue', github({ token: 'K' }).issues],
  hubspot: ['hubspot', 'contacts', hubspot({ accessToken: 'K' }).contacts],
  'linear issues': ['linear', 'issue', linear({ apiKey: 'K' }).issues],
  'linear teams': ['linear', 'team', linear({ apiKey: 'K' }).teams],
  rest: [
    'stripe',
    'customer',
    rest({
      baseUrl: 'https://api.stripe.com/v1',
      streams: [
        {
          name: 'customers',
          path: '/customers',
          records: 'data',
          key: 'id',
          deleted: 'deleted',
          page: { kind: 'token', parameter: 'starting_after', next: { last: 'id' }, more: 'has_more' },
          lookup: { path: '/customers/{key}' },
        },
      ],
      auth: bearer('K'),
    }).customers,
  ],
  salesforce: [
    'salesforce',
    'Account',
    salesforce({ instanceUrl: 'https://example.my.salesforce.com', accessToken: 'K' }).object('Account'),
  ],
  servicenow: [
    'servicenow',
    'incident',
    servicenow({ instanceUrl: 'https://example.service-now.com', user: 'K', password: 'K' }).table('incident'),
  ],
  stripe: ['stripe', 'customer', stripe({ apiKey: 'K' }).customers],
}

describe.each(Object.entries(STREAMS))('%s', (_, [name, type, stream]) => {
  test('returns a record by its key as a page does, and nothing for an invalid or deleted key', async () => {
    const clock = new ManualClock()
    const vendor = ACCOUNTS[name].createSimulator({ clock, random: new RandomStream(3, 'lookup') })
    fillAccount(vendor, ACCOUNTS[name])
    clock.advance(3_600_000)
    const context = contextOf(createSimulatorFetch(vendor), clock)
    const [listed] = await changesOf((stream.backfill ?? stream.execute)!, context)
    const found = await stream.lookup!(listed!.key!, context)
    expect(found).toMatchObject({ type: 'upsert', key: listed!.key!, record: (listed as { record: object }).record })
    expect(await stream.lookup!(listed!.key!.replace(/.{4}$/, '0000'), context)).toBe(null)
    expect(await stream.lookup!('no such/key?x=y', context)).toBe(null)
    vendor.remove(type, listed!.key!)
    const after = await stream.lookup!(listed!.key!, context)
    expect(after === null || after.type === 'delete').toBe(true)
  })
})

test('sql: finds a row by a key of one or several columns', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-lookup-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'shop.db')
  const database = new DatabaseSync(file)
  database.exec(
    "create table people (id integer primary key, name text); insert into people values (1, 'Ada'), (2, 'Grace'), (20, 'Joan')",
  )
  database.exec(
    "create table lines (shop text not null, line integer not null, name text, primary key (shop, line)); insert into lines values ('a', 1, 'one'), ('a', 2, 'two')",
  )
  database.close()
  const context = contextOf(fetch, new ManualClock())
  const { lookup } = sql({ url: `sqlite:${file}` }).listing('people')
  expect(await lookup('2', context)).toMatchObject({ key: '2', record: { name: 'Grace' } })
  for (const missing of ['3', '0', '', 'x']) expect(await lookup(missing, context)).toBe(null)
  const lines = sql({ url: `sqlite:${file}` }).listing('lines').lookup
  expect(await lines('["a","2"]', context)).toMatchObject({ record: { name: 'two' } })
  for (const missing of ['["a","3"]', '["a"]', 'a', '{}']) expect(await lines(missing, context)).toBe(null)
})

async function changesOf(execute: Execute<any>, context: SyncContext): Promise<Change[]> {
  for (let state: unknown, page = 1; ; page++) {
    const { changes, hasMore, nextState } = await execute(state, { ...context, cycle: { ...context.cycle, page } })
    if (changes.length > 0 || !hasMore) return changes
    state = nextState
  }
}

function contextOf(ask: typeof fetch, clock: ManualClock): SyncContext {
  const quiet = (): void => {}
  return {
    fetch: ask as SyncContext['fetch'],
    clock,
    random: new RandomStream(1, 'context'),
    signal: new AbortController().signal,
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    pacer: { wait: async () => {} },
    secrets: { get: () => 'secret' },
    partitions: NO_PARTITIONS,
    cycle: { id: 1, mode: 'replace', startedAt: clock.now(), page: 1 },
  }
}
