import { DatabaseSync } from '@photostructure/sqlite'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { runCycle } from '../../src/worker/run-cycle.ts'
import { CONNECTORS } from '../../src/config/manifest/connectors.ts'
import { buildWorker } from '../../src/config/manifest/manifest.ts'
import type { SyncPlan } from '../../src/engine/sync-plan.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { RandomStream } from '../../src/testing/simulation/random-stream.ts'
import {
  AirtableSimulator,
  createSimulatorFetch,
  GithubSimulator,
  GithubStarsSimulator,
  HubspotSimulator,
  KRAKEN_CREDENTIALS,
  KrakenSimulator,
  LinearSimulator,
  SalesforceSimulator,
  ServicenowSimulator,
  StripeSimulator,
  XSimulator,
  type SimulatorPorts,
  type VendorSimulator,
} from '../../simulators/src/index.ts'
import { MINUTE, EngineFixture } from '../engine/engine-fixture.ts'
import { KEY, people, TAP } from '../sources/singer/tap-fixture.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tidemark-manifest-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const manifest = (text: string): string => {
  const path = join(folder, 'tidemark.yaml')
  writeFileSync(path, text)
  return path
}

interface Case {
  readonly config: string
  readonly stream: string
  readonly vendor: (ports: SimulatorPorts) => VendorSimulator
  readonly fill: (vendor: VendorSimulator, n: number) => string
  /** Whether it is read whole and followed; else by one function. */
  readonly pair: boolean
  readonly secrets?: Record<string, string>
}

const VENDORS: Record<string, Case> = {
  airtable: {
    config: '{ base_id: appX, token: "${T}" }',
    stream: '{ id: crm.tasks, options: { table: Tasks } }',
    vendor: (ports) => new AirtableSimulator(ports, { baseId: 'appX', tables: ['Tasks'] }),
    fill: (vendor, n) => vendor.create('Tasks', { Name: `t${n}` }),
    pair: false,
  },
  bookmarks: {
    config: '{ user_id: "2244994945", token: "${T}" }',
    stream: '{ id: x.bookmarks, schedule: 15m, backfill_schedule: 1d }',
    vendor: (ports) => new XSimulator(ports),
    fill: (vendor, n) => vendor.create('bookmark', { text: `t${n}` }),
    pair: true,
  },
  github: {
    config: '{ token: "${T}", owner: acme }',
    stream: '{ id: github.repositories }',
    vendor: (ports) => new GithubSimulator(ports, { viewer: 'me', organizations: ['acme'] }),
    fill: (vendor, n) => vendor.create('repository', { name: `r${n}`, owner: 'acme' }),
    pair: false,
  },
  'github-stars': {
    config: '{ token: "${T}" }',
    stream: '{ id: github.stars }',
    vendor: (ports) => new GithubStarsSimulator(ports),
    fill: (vendor) => vendor.create('star', {}),
    pair: true,
  },
  hubspot: {
    config: '{ access_token: "${T}" }',
    stream: '{ id: crm.people, select: [email, phone], options: { object: contacts } }',
    vendor: (ports) => new HubspotSimulator(ports),
    fill: (vendor, n) => vendor.create('contacts', { email: `c${n}@example.com` }),
    pair: true,
  },
  kraken: {
    config: '{ api_key: "${KEY}", api_secret: "${SECRET}" }',
    stream: '{ id: kraken.ledgers }',
    vendor: (ports) => new KrakenSimulator(ports),
    fill: (vendor) => vendor.create('ledger'),
    pair: false,
    secrets: { KEY: KRAKEN_CREDENTIALS.key, SECRET: KRAKEN_CREDENTIALS.secret },
  },
  linear: {
    config: '{ api_key: "${T}" }',
    stream: '{ id: linear.teams }',
    vendor: (ports) => new LinearSimulator(ports),
    fill: (vendor, n) => vendor.create('team', { name: `Team ${n}`, key: `T${n}` }),
    pair: false,
  },
  rest: {
    config: '{ base_url: "https://api.airtable.com/v0", auth: { kind: bearer, token: "${T}" } }',
    stream:
      '{ id: crm.tasks, key: [id], options: { path: /appX/Tasks, records: records, page: { kind: token, parameter: offset, next: offset } } }',
    vendor: (ports) => new AirtableSimulator(ports, { baseId: 'appX', tables: ['Tasks'] }),
    fill: (vendor, n) => vendor.create('Tasks', { Name: `t${n}` }),
    pair: false,
  },
  salesforce: {
    config: '{ instance_url: https://example.my.salesforce.com, access_token: "${T}" }',
    stream: '{ id: sf.accounts, select: [Name], options: { object: Account } }',
    vendor: (ports) => new SalesforceSimulator(ports),
    fill: (vendor, n) => vendor.create('Account', { Name: `a${n}` }),
    pair: true,
  },
  servicenow: {
    config: '{ instance_url: https://example.service-now.com, user: "${U}", password: "${P}" }',
    stream: '{ id: sn.incident }',
    vendor: (ports) => new ServicenowSimulator(ports),
    fill: (vendor, n) => vendor.create('incident', { short_description: `i${n}` }),
    pair: true,
  },
  stripe: {
    config: '{ api_key: "${T}" }',
    stream: '{ id: stripe.customers }',
    vendor: (ports) => new StripeSimulator(ports),
    fill: (vendor, n) => vendor.create('customer', { name: `c${n}` }),
    pair: true,
  },
}

describe('a manifest alone', () => {
  test.each(Object.entries(VENDORS))(
    'reads what %s has, and then what is new',
    async (connector, { config, stream, vendor: make, fill, pair, secrets = {} }) => {
      const worker = await buildWorker(
        manifest(`name: shop\nconnector: ${connector}\nconfig: ${config}\nstreams:\n  - ${stream}\n`),
        'tidemark.yaml',
        {},
      )
      const database = worker.manifest.databases[0]!.name
      expect(worker.manifest.syncs.map(({ name }) => name)).toEqual(
        pair ? [`${database}-backfill`, database] : [database],
      )
      const scene = await EngineFixture.open()
      try {
        const vendor = make({ clock: scene.clock, random: new RandomStream(1, 'vendor') })
        const run = (plan: SyncPlan) => {
          scene.clock.step(5 * MINUTE)
          return scene.run(plan, {
            fetch: createSimulatorFetch(vendor),
            secrets: { get: (name) => secrets[name] ?? name },
          })
        }
        const made = Array.from({ length: 5 }, (_, n) => fill(vendor, n))
        expect(await run(worker.plans()[0]!)).toMatchObject({
          stopReason: 'complete',
          error: null,
          counts: { created: 5, quarantined: 0 },
        })
        made.push(fill(vendor, 5))
        expect(await run(worker.plan(database))).toMatchObject({
          stopReason: 'complete',
          error: null,
          counts: { quarantined: 0 },
        })
        expect((await scene.keys(database)).toSorted()).toEqual(made.toSorted())
      } finally {
        await scene.close()
      }
    },
  )

  test('a stream is named by the last part of its id', async () => {
    const { config } = VENDORS['stripe']!
    const path = manifest(`connector: stripe\nconfig: ${config}\nstreams:\n  - id: eu.stripe.customers\n`)
    const { manifest: built } = await buildWorker(path, 'tidemark.yaml', {})
    expect(built.syncs.map(({ name }) => name)).toEqual(['eu.stripe.customers-backfill', 'eu.stripe.customers'])
  })

  test('HubSpot associations are listed; Salesforce takes a start date and Bulk', async () => {
    const hubspot = 'connector: hubspot\nconfig: { access_token: "${T}", since: 2024-01-31 }\n'
    const pairs = await buildWorker(manifest(`${hubspot}streams: [{ id: contacts_companies }]\n`), 'tidemark.yaml', {})
    expect(pairs.manifest.syncs.map(({ name, mode }) => [name, mode])).toEqual([['contacts_companies', 'replace']])
    const salesforce = `connector: salesforce
config: { instance_url: https://x.my.salesforce.com, access_token: "\${T}", bulk: BULK, since: 2024-01-31 }
streams: [{ id: Account }]
`
    for (const bulk of ['true', 'false', 'auto']) {
      const { manifest: built } = await buildWorker(manifest(salesforce.replace('BULK', bulk)), 'tidemark.yaml', {})
      expect(built.syncs.map(({ name }) => name)).toEqual(['Account-backfill', 'Account'])
    }
    await expect(buildWorker(manifest(salesforce.replace('BULK', 'maybe')), 'tidemark.yaml', {})).rejects.toThrow(
      'bulk',
    )
  })

  test('N42 nested objects of a stream arrive in databases of their own, also one that another stream fills', async () => {
    const { config, vendor: make } = VENDORS['stripe']!
    const options =
      'expand: [data.payment_method, data.customer], nested: { payment_method: methods, customer: stripe.customers }'
    const path = manifest(
      `name: shop\nconnector: stripe\nconfig: ${config}\nstreams:\n  - { id: stripe.paymentIntents, options: { ${options} } }\n  - { id: stripe.customers }\n`,
    )
    const worker = await buildWorker(path, 'tidemark.yaml', {})
    expect(worker.manifest.databases.map(({ name }) => name).toSorted()).toEqual([
      'methods',
      'stripe.customers',
      'stripe.paymentIntents',
    ])
    const scene = await EngineFixture.open()
    try {
      const vendor = make({ clock: scene.clock, random: new RandomStream(1, 'vendor') })
      const customer = vendor.create('customer', {})
      const method = vendor.create('payment_method', {})
      vendor.create('payment_intent', { customer, payment_method: method })
      const backfill = worker.plans().find(({ sync }) => sync === 'stripe.paymentIntents-backfill')!
      const context = { fetch: createSimulatorFetch(vendor), secrets: { get: (name: string) => name } }
      expect(await scene.run(backfill, context)).toMatchObject({ stopReason: 'complete', error: null })
      expect(await scene.keys('methods')).toEqual([method])
      expect(await scene.keys('stripe.customers')).toEqual([customer])
    } finally {
      await scene.close()
    }
  })

  test('a full refresh of an incremental stream reads everything each time', async () => {
    const { config, vendor: make, fill } = VENDORS['stripe']!
    const stream = '{ id: stripe.customers, mode: full_refresh }'
    const path = manifest(`name: shop\nconnector: stripe\nconfig: ${config}\nstreams:\n  - ${stream}\n`)
    const worker = await buildWorker(path, 'tidemark.yaml', {})
    expect(worker.manifest.syncs.map(({ name, mode }) => [name, mode])).toEqual([['stripe.customers', 'replace']])
    const scene = await EngineFixture.open()
    try {
      const vendor = make({ clock: scene.clock, random: new RandomStream(1, 'vendor') })
      const made = Array.from({ length: 3 }, (_, n) => fill(vendor, n))
      for (let cycle = 0; cycle < 2; cycle++) {
        scene.clock.step(5 * MINUTE)
        const report = await scene.run(worker.plans()[0]!, {
          fetch: createSimulatorFetch(vendor),
          secrets: { get: (name) => name },
        })
        expect(report).toMatchObject({
          stopReason: 'complete',
          error: null,
          counts: cycle === 0 ? { created: 3 } : { unchanged: 3 },
        })
      }
      expect((await scene.keys('stripe.customers')).toSorted()).toEqual(made.toSorted())
    } finally {
      await scene.close()
    }
  })

  test.each(['toString', 'constructor', '__proto__', 'hasOwnProperty'])(
    'a stream named %s, which every object has, is not there',
    async (name) => {
      const path = manifest(
        `name: shop\nconnector: linear\nconfig: { api_key: "\${T}" }\nstreams:\n  - { id: linear.teams, options: { stream: ${name} } }\n`,
      )
      await expect(buildWorker(path, 'tidemark.yaml', {})).rejects.toMatchObject({
        code: 'SOURCE_NOT_FOUND',
        message: expect.stringContaining(`"${name}"`),
      })
    },
  )

  test.each(['salesforce', 'servicenow'])(
    'a safety window of %s is read again: a row that the index shows later than all that came after it is not missed',
    async (connector) => {
      const { config, stream, vendor: make, fill } = VENDORS[connector]!
      for (const [window, isFound] of [
        ['', false],
        ['safety_window: PT10M, ', true],
      ] as const) {
        const worker = await buildWorker(
          manifest(
            `name: shop\nconnector: ${connector}\nconfig: ${config}\nstreams:\n  - ${stream.replace('{ ', `{ ${window}`)}\n`,
          ),
          'tidemark.yaml',
          {},
        )
        const database = worker.manifest.databases[0]!.name
        const scene = await EngineFixture.open()
        try {
          let vendor!: VendorSimulator
          let hidden: string | null = null
          vendor = make({ clock: scene.clock, random: new RandomStream(1, 'vendor') })
          const fetch = async (input: string | URL, init?: RequestInit): Promise<Response> => {
            const answer = await createSimulatorFetch(vendor)(input, init)
            if (hidden === null) return answer
            const body = JSON.parse(await answer.text()) as {
              records?: Record<string, unknown>[]
              result?: Record<string, unknown>[]
              done?: boolean
            }
            const shown = (rows?: Record<string, unknown>[]) =>
              rows?.filter((row) => row['Id'] !== hidden && row['sys_id'] !== hidden)
            // An index that does not show a row does not count it either.
            const records = shown(body.records)
            return Response.json(
              {
                ...body,
                ...(records !== undefined && { records, totalSize: records.length }),
                ...(body.result !== undefined && { result: shown(body.result) }),
              },
              { headers: answer.headers },
            )
          }
          const run = (plan: SyncPlan) => scene.run(plan, { fetch, secrets: { get: (name) => name } })
          scene.clock.step(5 * MINUTE)
          expect(await run(worker.plans()[0]!)).toMatchObject({ stopReason: 'complete', error: null })
          const late = fill(vendor, 1)
          hidden = late
          scene.clock.step(MINUTE)
          fill(vendor, 2)
          scene.clock.step(MINUTE)
          expect(await run(worker.plan(database))).toMatchObject({ stopReason: 'complete', error: null })
          hidden = null
          scene.clock.step(MINUTE)
          // Changes and deletions are read alternately.
          for (let turn = 0; turn < 2; turn++)
            expect(await run(worker.plan(database))).toMatchObject({ stopReason: 'complete', error: null })
          expect((await scene.keys(database)).includes(late), `with ${window || 'no window'}`).toBe(isFound)
        } finally {
          await scene.close()
        }
      }
    },
  )

  test('reads a folder of files, a database and a tap', async () => {
    mkdirSync(join(folder, 'drop'))
    writeFileSync(join(folder, 'drop/a.csv'), 'id;name\n1;Ada\n2;Bob\n')
    writeFileSync(join(folder, 'drop/b.txt'), 'no')
    const shop = new DatabaseSync(join(folder, 'shop.db'))
    shop.exec(
      `CREATE TABLE countries (code TEXT PRIMARY KEY NOT NULL, name TEXT); INSERT INTO countries VALUES ('de', 'Germany')`,
    )
    shop.close()
    writeFileSync(join(folder, 'world.json'), JSON.stringify({ streams: { people: { rows: people(3) } } }))
    const store = await openSqliteStore({ file: ':memory:' })
    const read = async (text: string): Promise<Record<string, unknown>> => {
      const worker = await buildWorker(manifest(text), 'tidemark.yaml', {})
      const { name } = worker.manifest.syncs[0]!
      expect(await runCycle(worker, name, { store, secrets: { TAP_KEY: KEY } }), name).toMatchObject({
        stopReason: 'complete',
        error: null,
      })
      return Object.fromEntries(
        (await store.rows({ database: name, limit: 10 })).map((row) => [row.key, JSON.parse(row.text) as unknown]),
      )
    }
    try {
      expect(
        await read(
          'connector: files\nconfig: { folder: drop }\nstreams: [{ id: drop.people, key: [id], options: { csv: { delimiter: ; }, settle_ms: 0, match: "a" } }]\n',
        ),
      ).toEqual({ 1: { id: '1', name: 'Ada' }, 2: { id: '2', name: 'Bob' } })
      mkdirSync(join(folder, 'drop/2026/01'), { recursive: true })
      writeFileSync(join(folder, 'drop/2026/01/c.ndjson.gz'), '')
      const found = await CONNECTORS.files.discover!({ folder: 'drop' }, folder, {
        signal: new AbortController().signal,
      } as never)
      expect(found).toEqual(['.', '2026/01'].map((id) => ({ id, key: ['path', 'row'], candidates: [] })))
      expect(
        await read(
          'connector: sql\nconfig: { url: "sqlite:shop.db" }\nstreams: [{ id: shop.countries, options: { table: countries } }]\n',
        ),
      ).toEqual({ de: { code: 'de', name: 'Germany' } })
      const tap = (more: string): string =>
        `connector: singer\nconfig:\n  command: [${process.execPath}, ${TAP}]\n  settings: { world: ${join(folder, 'world.json')}, api_key: "\${TAP_KEY}" }\nstreams:\n  - id: tap.people${more}\n`
      expect(await read(tap(''))).toEqual(Object.fromEntries(people(3).map((row) => [String(row['id']), row])))
      writeFileSync(join(folder, 'world.json'), JSON.stringify({ streams: { people: { rows: people(2) } } }))
      expect(Object.keys(await read(`name: other\n${tap('\n    mode: full_refresh')}`))).toEqual(['1', '2', '3'])
    } finally {
      await store.close()
    }
  })

  test('every connector is covered by one of these tests, or by its own suite', () => {
    const elsewhere = {
      airbyte: 'test/sources/airbyte',
      evm: 'test/sources/evm/manifest.test.ts',
      files: 'above',
      sql: 'above',
      singer: 'above',
      kafka: 'test/sources/kafka',
      odata: 'test/sources/odata',
      'postgres-cdc': 'test/config/manifest-cdc.pg.test.ts',
    }
    expect([...Object.keys(VENDORS), ...Object.keys(elsewhere)].toSorted()).toEqual(Object.keys(CONNECTORS).toSorted())
  })
})

describe('invalid manifests', () => {
  const refusal = (text: string): Promise<string> =>
    buildWorker(manifest(text), 'tidemark.yaml', {}).then(
      () => 'accepted',
      (error: { message: string }) => error.message,
    )

  test.each([
    [
      'a secret of a tap written out',
      'connector: singer\nconfig:\n  command: tap-x\n  settings:\n    api_key: hunter2\nstreams: [{ id: a }]\n',
      /^tidemark\.yaml:5:14: config\.settings\.api_key: it is a secret: write \$\{NAME\} here/,
    ],
    [
      'two ways in',
      'connector: salesforce\nconfig: { instance_url: x, access_token: "${A}", oauth: { token_url: x, client_id: "${B}" } }\nstreams: [{ id: a }]\n',
      /^tidemark\.yaml:2:9: config: must match exactly one schema/,
    ],
    [
      'no way in',
      'connector: servicenow\nconfig: { instance_url: x, user: "${A}" }\nstreams: [{ id: a }]\n',
      /^tidemark\.yaml:2:9: config: /,
    ],
    [
      'a full refresh of files',
      'connector: files\nconfig: { folder: drop }\nstreams:\n  - id: a\n    mode: full_refresh\n',
      /^tidemark\.yaml:4:5: a: a full refresh is not possible/,
    ],
    [
      'a pattern that is none',
      'connector: files\nconfig: { folder: drop }\nstreams:\n  - { id: a, options: { match: "(" } }\n',
      /^tidemark\.yaml:4:5: a: `match` is not a valid regular expression/,
    ],
    [
      'a backfill of what has none',
      'connector: linear\nconfig: { api_key: "${A}" }\nstreams:\n  - { id: teams, backfill_schedule: 1d }\n',
      /^tidemark\.yaml:4:5: teams: it has no backfill/,
    ],
    [
      'a stream that is not there',
      'connector: kraken\nconfig: { api_key: "${A}", api_secret: "${B}" }\nstreams:\n  - id: kraken.orders\n',
      /^tidemark\.yaml:4:5: kraken\.orders: Unknown stream "orders"\. The streams are ledgers, trades\.$/,
    ],
    [
      'a misspelt stream',
      'connector: kraken\nconfig: { api_key: "${A}", api_secret: "${B}" }\nstreams:\n  - id: kraken.ledger\n',
      /^tidemark\.yaml:4:5: kraken\.ledger: Unknown stream "ledger"\. Did you mean "ledgers"\?$/,
    ],
    [
      'a name that is no table',
      'connector: servicenow\nconfig: { instance_url: "https://x", user: "${A}", password: "${B}" }\nstreams:\n  - { id: a, options: { table: "no-table" } }\n',
      /^tidemark\.yaml:4:5: a: "no-table" is not a valid ServiceNow table name\.$/,
    ],
    ...[
      ['stripe', '{ api_key: "${A}" }', 'stripe.customers'],
      ['airtable', '{ base_id: b, token: "${A}" }', 'tasks'],
      ['hubspot', '{ access_token: "${A}" }', 'contacts'],
      ['kafka', '{ brokers: "a:1" }', 'topic'],
      ['postgres-cdc', '{ url: "${A}" }', 'orders'],
      ['files', '{ folder: drop }', 'a'],
      ['linear', '{ api_key: "${A}" }', 'teams'],
    ].map(([connector, config, id]): [string, string, RegExp] => [
      `a safety window of ${connector}`,
      `connector: ${connector}\nconfig: ${config}\nstreams:\n  - id: ${id}\n    safety_window: PT5M\n`,
      /^tidemark\.yaml:5:20: streams\.0\.safety_window: it is not supported by this connector: .*\.$/,
    ]),
  ])('%s', async (_, text, expected) => {
    const message = await refusal(text)
    expect(message).toMatch(expected)
    expect(message).not.toContain('hunter2')
  })
})
