import { describe, expect, test } from 'vitest'
import { chooseStrategy, renderWorker, type Answers } from '../../src/advisor/index.ts'
import { KNOWN_APIS, type KnownApi } from '../../src/advisor/known-apis.ts'
import { Worker } from '../../src/worker/worker.ts'
import type { TrackSource } from '../../src/worker/track-options.ts'
import type { Execute } from '../../src/contract/index.ts'
import { airtable } from '../../src/sources/airtable/source.ts'
import { github } from '../../src/sources/github/source.ts'
import { hubspot } from '../../src/sources/hubspot/source.ts'
import { linear } from '../../src/sources/linear/source.ts'
import { salesforce } from '../../src/sources/salesforce/source.ts'
import { servicenow } from '../../src/sources/servicenow/source.ts'
import { stripe } from '../../src/sources/stripe/source.ts'
import {
  AirtableSimulator,
  GithubSimulator,
  HubspotSimulator,
  LinearSimulator,
  SalesforceSimulator,
  ServicenowSimulator,
  StripeSimulator,
  type SimulatorPorts,
  type VendorSimulator,
} from '../../simulators/src/index.ts'
import { SECOND } from '../engine/engine-fixture.ts'
import { VendorFixture } from '../sources/vendor-fixture.ts'

interface Pair {
  readonly simulator: (ports: SimulatorPorts) => VendorSimulator
  readonly type: string
  readonly source: TrackSource
}

const PAIRS = {
  salesforce: {
    simulator: (ports) => new SalesforceSimulator(ports),
    type: 'Account',
    // A query job has a state of its own.
    source: salesforce({
      instanceUrl: 'https://example.my.salesforce.com',
      accessToken: 'SF_TOKEN',
      bulk: false,
    }).object('Account'),
  },
  stripe: {
    simulator: (ports) => new StripeSimulator(ports),
    type: 'customer',
    source: stripe({ apiKey: 'STRIPE_KEY' }).customers,
  },
  hubspot: {
    simulator: (ports) => new HubspotSimulator(ports),
    type: 'contacts',
    source: hubspot({ accessToken: 'HUBSPOT_TOKEN' }).contacts,
  },
  servicenow: {
    simulator: (ports) => new ServicenowSimulator(ports),
    type: 'incident',
    source: servicenow({
      instanceUrl: 'https://example.service-now.com',
      user: 'SN_USER',
      password: 'SN_PASSWORD',
    }).table('incident'),
  },
} satisfies Record<string, Pair>

describe.each(Object.entries(PAIRS) as [keyof typeof PAIRS, Pair][])('%s', (api, { simulator, type, source }) => {
  const { mode, backfill, delta, lagMs } = chooseStrategy({ api })

  test('N88 its source hands on the state that is advised', async () => {
    const stage = await VendorFixture.open(simulator)
    const seen = { backfill: [] as unknown[], delta: [] as unknown[] }
    stage.track({
      ...source,
      backfill: noting(source.backfill, seen.backfill),
      delta: noting(source.delta, seen.delta),
    })
    const ids = Array.from({ length: 250 }, (_, n) =>
      stage.vendor.create(type, { name: `n${n}`, email: `e${n}@example.com` }),
    )
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { created: 250 } })
    for (const id of ids.slice(0, 130)) stage.vendor.update(type, id, { name: 'changed', email: `${id}@example.com` })
    stage.vendor.remove(type, ids[200]!)
    expect(await stage.delta()).toMatchObject({ stopReason: 'complete' })
    expect(mode).toBe('pair')
    expect(Object.keys(await stage.rows())).toHaveLength(249)
    for (const state of seen.backfill) expectShape(state, backfill.state)
    for (const state of seen.delta) expectShape(state, delta!.state)
    expect([seen.backfill.length >= 2, seen.delta.length >= 1]).toEqual([true, true])
    await stage.close()
  })

  test('N77 what is younger than its lag waits, what is older does not', async () => {
    const stage = (await VendorFixture.open(simulator)).track(source)
    stage.vendor.create(type, { name: 'first', email: 'first@example.com' })
    await stage.backfill()
    const id = stage.vendor.create(type, { name: 'young', email: 'young@example.com' })
    await stage.delta({ afterMs: lagMs! - 2 * SECOND })
    expect(Object.keys(await stage.rows())).not.toContain(id)
    // Two seconds up to the lag, one for stamps of whole seconds.
    await stage.delta({ afterMs: 4 * SECOND })
    expect(Object.keys(await stage.rows())).toContain(id)
    await stage.close()
  })

  test('N31 pages have a hundred records, and the delta runs every five minutes', async () => {
    const stage = (await VendorFixture.open(simulator)).track(source)
    for (let n = 0; n < 150; n++) stage.vendor.create(type, { name: `n${n}`, email: `e${n}@example.com` })
    const result = await stage.backfill()
    // The first answer and the end may be asked for again before they are believed.
    expect(result.pages).toBeGreaterThanOrEqual(2)
    expect(result.pages).toBeLessThanOrEqual(5)
    const worker = new Worker()
    worker.track('sync', { database: worker.database('things'), source })
    expect(worker.manifest.syncs.map(({ schedule }) => schedule)).toEqual([
      { kind: 'manual' },
      { kind: 'interval', intervalMs: 300_000 },
    ])
    expect(renderWorker({ api })).toContain("schedule: '5m'")
    await stage.close()
  })
})

describe('N88 sources that are read whole', () => {
  test('N80 GitHub: two levels, and what is gone is swept', async () => {
    const stage = await VendorFixture.open(
      (ports) => new GithubSimulator(ports, { viewer: 'me', organizations: ['acme'] }),
    )
    const seen: unknown[] = []
    const { issues } = github({ token: 'GITHUB_TOKEN', owner: 'acme', repositoriesPerPage: 3 })
    stage.list({ ...issues, execute: noting(issues.execute, seen) })
    const repositories = Array.from({ length: 5 }, (_, n) =>
      stage.vendor.create('repository', { name: `r${n}`, owner: 'acme' }),
    )
    const ids = Array.from({ length: 250 }, (_, n) =>
      stage.vendor.create('issue', { repository: repositories[n % 2]!, title: `i${n}` }),
    )
    await expectSwept(stage, 'issue', ids, { api: 'github' }, seen)
  })

  test('N80 Linear: a connection, and what is gone is swept', async () => {
    const stage = await VendorFixture.open((ports) => new LinearSimulator(ports))
    const seen: unknown[] = []
    const { issues } = linear({ apiKey: 'LINEAR_KEY' })
    stage.list({ ...issues, execute: noting(issues.execute, seen) })
    const team = stage.vendor.create('team', { name: 'Team', key: 'T' })
    const ids = Array.from({ length: 250 }, (_, n) => stage.vendor.create('issue', { team, title: `i${n}` }))
    await expectSwept(stage, 'issue', ids, { api: 'linear' }, seen)
  })

  test('N80 Airtable: a token, and what is gone is swept', async () => {
    const stage = await VendorFixture.open(
      (ports) => new AirtableSimulator(ports, { baseId: 'appX', tables: ['Tasks'] }),
    )
    const seen: unknown[] = []
    const table = airtable({ baseId: 'appX', token: 'AIRTABLE_TOKEN' }).table('Tasks')
    stage.list({ ...table, execute: noting(table.execute, seen) })
    const ids = Array.from({ length: 250 }, (_, n) => stage.vendor.create('Tasks', { Name: `t${n}` }))
    await expectSwept(stage, 'Tasks', ids, { api: 'airtable' }, seen)
  })
})

test('N88 the table: for each of the five, how it is backfilled, how it is followed, and what is special', () => {
  const row = (api: KnownApi): unknown[] => {
    const { backfill, delta, lagMs, deletes } = chooseStrategy({ api })
    return [backfill.strategy, delta?.strategy ?? null, lagMs, deletes]
  }
  expect({
    salesforce: row('salesforce'),
    stripe: row('stripe'),
    hubspot: row('hubspot'),
    github: row('github'),
    servicenow: row('servicenow'),
  }).toEqual({
    salesforce: ['keyset', 'keyset', 15_000, 'reported'],
    stripe: ['token', 'eventFeed', 10_000, 'reported'],
    hubspot: ['token', 'search', 10_000, 'streams'],
    github: ['relayNested', null, null, 'swept'],
    servicenow: ['keyset', 'keyset', 15_000, 'streams'],
  })
})

test('N77 every lag that is advised lies between ten seconds and a minute unless more is known to be needed', () => {
  for (const { facts } of KNOWN_APIS) if (facts.lagSeconds !== undefined) expect([10, 15]).toContain(facts.lagSeconds)
})

async function expectSwept(
  stage: VendorFixture<VendorSimulator>,
  type: string,
  ids: readonly string[],
  answers: Answers,
  seen: readonly unknown[],
): Promise<void> {
  const { mode, backfill } = chooseStrategy(answers)
  expect(mode).toBe('replace')
  expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { created: 250 } })
  stage.vendor.remove(type, ids[7]!)
  expect((await stage.backfill()).counts).toMatchObject({ swept: 1, created: 0 })
  expect(seen.length).toBeGreaterThan(1)
  for (const state of seen) expectShape(state, backfill.state)
  await stage.close()
}

function noting(execute: Execute<any>, seen: unknown[]): Execute<any> {
  return async (state, context) => {
    const page = await execute(state, context)
    if (page.nextState !== undefined) seen.push(page.nextState)
    return page
  }
}

/** Every member is one of the shape, and none that is always there is missing. */
const OWN_MEMBERS = [
  'extra',
  'first',
  'endMs',
  'by',
  'left',
  'claimed',
  'ending',
  'tally',
  'nestedTallies',
  'before',
  'pending',
  'reading',
  'read',
  'marks',
  'scanned',
  'pages',
  'requests',
  'answeredMs',
]

function expectShape(state: unknown, shape: unknown): void {
  const [members, expected] = [state as Record<string, unknown>, shape as Record<string, unknown>]
  // A search that is stuck in one millisecond, and a place in an empty log, have members of their own.
  if (members['phase'] === 'deadlock') return
  const names = Object.keys(expected)
  // Members by which a source counts what it has read, and remembers that an end is being asked for again, are its own.
  const advised = Object.keys(members).filter((name) => !OWN_MEMBERS.includes(name))
  expect(names.map((name) => name.replace('?', ''))).toEqual(expect.arrayContaining(advised))
  expect(Object.keys(members)).toEqual(expect.arrayContaining(names.filter((name) => !name.endsWith('?'))))
  for (const [name, inner] of Object.entries(expected)) {
    const member = members[name.replace('?', '')]
    if (typeof inner === 'object' && member !== undefined) expectShape(member, inner)
  }
}
