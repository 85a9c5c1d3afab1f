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
  ServicenowSimulator,
  StripeSimulator,
  type Simulator,
  type SimulatorPorts,
} from '../../simulators/src/index.ts'
import type { Change, Execute } from '../../src/contract/index.ts'
import type { SyncPlan } from '../../src/engine/sync-plan.ts'
import { compareContract } from '../../src/probe/compare-contract.ts'
import type { Fact } from '../../src/probe/fact.ts'
import { planSyncProbe, probeSync, type SyncReport } from '../../src/probe/probe-sync.ts'
import { airtable } from '../../src/sources/airtable/source.ts'
import { github } from '../../src/sources/github/source.ts'
import { hubspot } from '../../src/sources/hubspot/source.ts'
import { linear } from '../../src/sources/linear/source.ts'
import { odata } from '../../src/sources/odata/source.ts'
import type { RestStream } from '../../src/sources/rest/stream.ts'
import { salesforce } from '../../src/sources/salesforce/source.ts'
import { servicenow } from '../../src/sources/servicenow/source.ts'
import { stripe } from '../../src/sources/stripe/source.ts'
import { RandomStream } from '../../src/testing/simulation/random-stream.ts'
import type { TrackSource } from '../../src/worker/track-options.ts'
import { Worker } from '../../src/worker/worker.ts'
import { createProbeContext } from './probe-context.ts'

const BUDGET = 40

interface World<Vendor extends Simulator> {
  readonly vendor: Vendor
  readonly clock: ManualClock
}

function open<Vendor extends Simulator>(create: (ports: SimulatorPorts) => Vendor): World<Vendor> {
  const clock = new ManualClock()
  return { vendor: create({ clock, random: new RandomStream(7, 'probe') }), clock }
}

function fill(clock: ManualClock, create: (index: number) => void): void {
  for (let pair = 0; pair < 12; pair++) {
    clock.advance(300_000 + 137)
    create(2 * pair)
    create(2 * pair + 1)
  }
  clock.advance(600_000)
}

function listingOf(source: unknown): SyncPlan {
  const worker = new Worker({ name: 'probe' })
  const database = worker.database('rows')
  const stream = source as TrackSource & { readonly execute?: Execute<any>; readonly mode?: 'replace' }
  if (stream.execute !== undefined) {
    worker.sync('rows', { ...stream, database, mode: stream.mode ?? 'replace', execute: stream.execute })
    return worker.plan('rows')
  }
  const { backfill } = worker.track('rows', { database, source: stream })
  return worker.plan(backfill)
}

function probe({ vendor, clock }: World<Simulator>, source: unknown): Promise<SyncReport> {
  const context = createProbeContext({ clock, fetch: createSimulatorFetch(vendor) as typeof fetch })
  return probeSync(listingOf(source), context, { requestsMax: BUDGET })
}

describe('a shipped source agrees with its vendor', () => {
  const worlds: Readonly<Record<string, () => { world: World<Simulator>; source: unknown }>> = {
    stripe: () => {
      const world = open((ports) => new StripeSimulator(ports))
      fill(world.clock, () => world.vendor.create('customer', {}))
      return { world, source: stripe({ apiKey: 'KEY' }).customers }
    },
    hubspot: () => {
      const world = open((ports) => new HubspotSimulator(ports))
      fill(world.clock, () => world.vendor.create('contacts', {}))
      return { world, source: hubspot({ accessToken: 'TOKEN' }).contacts }
    },
    servicenow: () => {
      const world = open((ports) => new ServicenowSimulator(ports))
      fill(world.clock, () => world.vendor.create('incident', {}))
      const api = servicenow({ instanceUrl: 'https://example.service-now.com', user: 'USER', password: 'PASSWORD' })
      return { world, source: api.table('incident') }
    },
    salesforce: () => {
      const world = open((ports) => new SalesforceSimulator(ports))
      fill(world.clock, () => world.vendor.create('Account', { Name: 'A' }))
      const org = salesforce({ instanceUrl: 'https://acme.my.salesforce.com', accessToken: 'TOKEN', bulk: false })
      return { world, source: org.object('Account', { fields: ['Name'] }) }
    },
    github: () => {
      const world = open((ports) => new GithubSimulator(ports, { viewer: 'acme' }))
      const repository = world.vendor.create('repository', { name: 'engine', owner: 'acme' })
      fill(world.clock, (index) => world.vendor.create('issue', { repository, title: `Issue ${index}` }))
      return { world, source: github({ token: 'TOKEN', owner: 'acme' }).issues }
    },
    linear: () => {
      const world = open((ports) => new LinearSimulator(ports))
      const team = world.vendor.create('team', { key: 'SHIP', name: 'Shipping' })
      fill(world.clock, (index) => world.vendor.create('issue', { team, title: `Issue ${index}` }))
      return { world, source: linear({ apiKey: 'KEY' }).issues }
    },
    airtable: () => {
      const world = open((ports) => new AirtableSimulator(ports))
      fill(world.clock, (index) => world.vendor.create('Tasks', { Name: `Task ${index}` }))
      return { world, source: airtable({ baseId: 'appSimulated00001', token: 'TOKEN' }).table('Tasks') }
    },
    odata: () => {
      const properties = { Id: 'Edm.Int32', ModifiedAt: 'Edm.DateTimeOffset' } as const
      const world = open(
        (ports) => new OdataSimulator(ports, { version: 4, sets: { Orders: { key: ['Id'], properties } } }),
      )
      fill(world.clock, (index) =>
        world.vendor.put('Orders', { Id: index + 1, ModifiedAt: new Date(world.clock.now()).toISOString() }),
      )
      return {
        world,
        source: odata({ url: 'https://erp.example.com/odata/' }).entitySet('Orders', { cursor: 'ModifiedAt' }),
      }
    },
  }
  for (const [name, create] of Object.entries(worlds))
    test(name, async () => {
      const { world, source } = create()
      const { facts, contradictions, requests, endedBy } = await probe(world, source)
      expect(endedBy).toBeNull()
      expect(contradictions).toEqual([])
      expect(facts.find(({ topic }) => topic === 'records')?.value).toBe('24')
      expect(facts.find(({ topic }) => topic === 'ids')?.value).toBe('unique')
      expect(requests.length).toBeGreaterThan(1)
      expect(requests.length).toBeLessThanOrEqual(BUDGET)
    })
})

/** A source of twelve rows in memory, in pages of four; a test replaces a part of it by a lie. */
interface FakeSource {
  readonly mode: 'replace' | 'incremental'
  readonly execute: Execute<any>
  readonly lookup: (key: string) => Promise<Change | null>
}

const NOW = Date.UTC(2026, 0, 2)

function createRow(index: number): Change {
  const at = new Date(NOW - (20 - index) * 60_000).toISOString()
  return { type: 'upsert', key: `row-${index}`, record: { id: `row-${index}` }, upstreamUpdatedAt: at }
}

const ROWS = Array.from({ length: 12 }, (_, index) => createRow(index))

interface FakeLies {
  /** The rows of a reading, from 1. */
  readonly rows?: (reading: number) => readonly Change[]
  readonly range?: (from: string) => readonly Change[]
  readonly lookup?: FakeSource['lookup']
  readonly mode?: FakeSource['mode']
  readonly tidemark?: (page: number) => string | undefined
}

function createSource({
  rows = () => ROWS,
  range,
  lookup,
  mode = 'replace',
  tidemark = () => undefined,
}: FakeLies): unknown {
  let readings = 0
  const execute: Execute<{ page: number }> = async (state) => {
    if (state === undefined) readings++
    const page = state?.page ?? 0
    const all = rows(readings)
    const mark = tidemark(page)
    return {
      changes: all.slice(4 * page, 4 * page + 4),
      hasMore: 4 * page + 4 < all.length,
      nextState: { page: page + 1 },
      ...(mark !== undefined && { tidemark: mark }),
    }
  }
  return {
    mode,
    execute: Object.assign(execute, {
      range:
        ({ from = '' }: { readonly from?: string }): Execute<any> =>
        async () => ({
          changes: [...(range?.(from) ?? ROWS.filter((row) => Date.parse(timeOf(row)) >= Date.parse(from)))],
          hasMore: false,
        }),
    }),
    lookup: lookup ?? (async (key: string) => ROWS.find((row) => row.key === key) ?? null),
    lagMs: 30_000,
  }
}

function timeOf(row: Change): string {
  return 'upstreamUpdatedAt' in row ? (row.upstreamUpdatedAt ?? '') : ''
}

async function contradict(lies: FakeLies): Promise<string[]> {
  const clock = new ManualClock(NOW)
  const plan = listingOf(createSource(lies))
  const { contradictions } = await probeSync({ ...plan, lagMs: 30_000 }, createProbeContext({ clock }), {
    requestsMax: BUDGET,
  })
  return contradictions.map(({ declared, evidence }) => `${declared} ${evidence.rows.map(({ key }) => key).join(',')}`)
}

describe('RX13 a source that contradicts its declaration is named', () => {
  test('an honest source has no contradiction', async () => {
    expect(await contradict({})).toEqual([])
    expect(planSyncProbe(listingOf(createSource({}))).map(({ purpose }) => purpose)).toEqual([
      'listing',
      'range',
      'lookup',
      'second listing',
    ])
  })

  test('a range without the rows of its start', async () => {
    expect(
      await contradict({ range: (from) => ROWS.filter((row) => Date.parse(timeOf(row)) > Date.parse(from)) }),
    ).toEqual(['range row-5'])
  })

  test('a lookup that does not find a listed row', async () => {
    expect(await contradict({ lookup: async () => null })).toEqual(['lookup row-0'])
  })

  test('a lookup that finds a row for any key', async () => {
    const found = await contradict({ lookup: async (key) => ({ ...createRow(0), key }) as Change })
    expect(found).toEqual(['lookup zq0zq'])
  })

  test('O16 a tidemark that an older row follows', async () => {
    const mixed = [...ROWS.slice(4), ...ROWS.slice(0, 4)]
    const tidemark = (): string => timeOf(ROWS[7]!)
    expect(await contradict({ mode: 'incremental', rows: () => mixed, tidemark })).toEqual(['tidemark row-0'])
    // Only the last page of a listing claims.
    expect(await contradict({ mode: 'replace', rows: () => mixed, tidemark })).toEqual([])
  })

  test('a row that becomes visible later than the lag', async () => {
    const late = { ...createRow(3), key: 'late' } as Change
    expect(await contradict({ rows: (reading) => (reading === 1 ? ROWS : [...ROWS, late]) })).toEqual(['lag late'])
    const soon = { ...createRow(3), key: 'soon', upstreamUpdatedAt: new Date(NOW - 10_000).toISOString() } as Change
    expect(await contradict({ rows: (reading) => (reading === 1 ? ROWS : [...ROWS, soon]) })).toEqual([])
  })
})

describe('RX13 the declaration of a manifest is compared with the facts', () => {
  const fact = (topic: Fact['topic'], value: string): Fact => ({
    topic,
    value,
    text: 'It is so.',
    certainty: 'shown',
    evidence: { requests: [1], rows: [] },
  })
  const size = { parameter: 'limit', value: 100 }
  const windowed: RestStream = {
    name: 'items',
    path: '/items',
    key: 'id',
    updatedAt: 'updated_at',
    page: { kind: 'link', size },
    follow: { kind: 'window', since: 'since', page: { kind: 'link' } },
    lookup: { path: '/items/{key}' },
  }
  const timed: RestStream = { ...windowed, follow: { kind: 'timestamp', since: 'since', size } }
  const declaredBy = (stream: RestStream, topic: Fact['topic'], value: string): string[] =>
    compareContract(stream, [fact(topic, value)]).map(({ declared }) => declared)

  test('the bound of the time filter', () => {
    expect(declaredBy(timed, 'lower-bound', 'exclusive')).toEqual(['timestamp'])
    expect(declaredBy(windowed, 'lower-bound', 'exclusive')).toEqual([])
    const tight: RestStream = {
      ...windowed,
      follow: { kind: 'window', since: 'since', page: { kind: 'link' }, overlapMs: 0 },
    }
    expect(declaredBy(tight, 'lower-bound', 'exclusive')).toEqual(['window'])
    expect(declaredBy(windowed, 'lower-bound', 'ignored')).toEqual(['window'])
    expect(declaredBy(windowed, 'lower-bound', 'inclusive')).toEqual([])
  })

  test('the order, the lag and the page size that a paging relies on', () => {
    expect(declaredBy(timed, 'order', 'descending')).toEqual(['order'])
    expect(declaredBy(windowed, 'order', 'descending')).toEqual([])
    expect(declaredBy(windowed, 'late-rows', '31')).toEqual(['lag'])
    expect(declaredBy({ ...windowed, lagMs: 60_000 }, 'late-rows', '31')).toEqual([])
    expect(declaredBy(timed, 'page-size', '50')).toEqual(['size'])
    expect(declaredBy(windowed, 'page-size', '50')).toEqual([])
  })

  test('deletions, the lookup and pages that lose rows', () => {
    expect(declaredBy(windowed, 'deletes', 'flag:deleted')).toEqual(['deleted'])
    expect(declaredBy({ ...windowed, deleted: 'deleted' }, 'deletes', 'flag:deleted')).toEqual([])
    expect(declaredBy(windowed, 'lookup', 'invents')).toEqual(['lookup'])
    expect(declaredBy(windowed, 'lookup', '404')).toEqual([])
    expect(declaredBy(windowed, 'page-border', 'ties-lost')).toEqual(['page'])
    expect(declaredBy(windowed, 'page-border', 'repeats-last-row')).toEqual([])
  })

  test('a fact that was not tested contradicts nothing', () => {
    expect(compareContract(timed, [{ ...fact('lower-bound', 'exclusive'), certainty: 'untestable' }])).toEqual([])
  })
})
