import { DatabaseSync } from '@photostructure/sqlite'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { loadWorker } from '../../src/worker/load-worker.ts'
import { readManifest, buildWorker } from '../../src/config/manifest/manifest.ts'
import { MANIFEST_SCHEMA } from '../../src/config/manifest/schema.ts'
import { selectStreams } from '../../src/config/manifest/select-streams.ts'
import { openStore, runCycle } from '../../src/index.ts'

const root = resolve(import.meta.dirname, '../..')
const MANIFEST = `name: shop
connector: sql
config:
  url: sqlite:shop.db
streams:
  - id: shop.customers
    key: [id]
    cursor: updated_at
    schema_strategy: discovery
    state_handling: platform_registry
    safety_window: PT5M
    schedule: 5m
    options: { table: customers }
  - id: shop.countries
    mode: full_refresh
    select: [code]
    options: { table: countries }
`

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tidemark-manifest-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const write = (text: string, name = 'tidemark.yaml'): string => {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}
/** The error that the manifest is refused with. */
async function refusal(text: string, environment = {}): Promise<{ code: string; message: string }> {
  return buildWorker(write(text), 'tidemark.yaml', environment).then(
    () => ({ code: 'accepted', message: '' }),
    (error: { code: string; message: string }) => ({ code: error.code, message: error.message }),
  )
}

const REST = `connector: rest
config: { base_url: "https://api.example.com" }
streams:
  - id: crm.contacts
    key: [id]
    options: { path: /contacts,
      page: { kind: token, parameter: after, next: next },
      follow: { kind: window, since: updated_since, page: { kind: token, parameter: after, next: next } },
      deletes: { path: /deleted, key: id, updated_at: at, follow: { kind: window, since: since, page: { kind: none } } } }
`

describe('a manifest', () => {
  test('R22 is loaded where there is no worker.ts, by the one loader, as a worker like any other', async () => {
    write(MANIFEST)
    const { worker, file } = await loadWorker(undefined, { folder })
    expect(file).toBe(join(folder, 'tidemark.yaml'))
    expect(worker.name).toBe('shop')
    expect(
      worker.manifest.syncs.map(({ name, mode, pair, schedule, databases }) => ({
        name,
        mode,
        pair,
        schedule,
        databases,
      })),
    ).toEqual([
      {
        name: 'shop.customers-backfill',
        mode: 'replace',
        pair: 'backfill',
        schedule: { kind: 'manual' },
        databases: ['shop.customers'],
      },
      {
        name: 'shop.customers',
        mode: 'incremental',
        pair: 'delta',
        schedule: { kind: 'interval', intervalMs: 300_000 },
        databases: ['shop.customers'],
      },
      {
        name: 'shop.countries',
        mode: 'replace',
        pair: null,
        schedule: { kind: 'interval', intervalMs: 1_800_000 },
        databases: ['shop.countries'],
      },
    ])
    write('export default 1', 'worker.js')
    await expect(loadWorker(undefined, { folder })).rejects.toMatchObject({ code: 'WORKER_INVALID' })
    expect((await loadWorker('tidemark.yaml', { folder })).worker.name).toBe('shop')
  })

  test('R7 R8 its streams run on the engine, and each has a checkpoint in the registry', async () => {
    const shop = new DatabaseSync(join(folder, 'shop.db'))
    shop.exec(
      `CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, updated_at TEXT NOT NULL); CREATE TABLE countries (code TEXT PRIMARY KEY NOT NULL, name TEXT)`,
    )
    shop.exec(
      `INSERT INTO customers VALUES (1, 'Ada', '2020-01-01T00:00:00Z'), (2, 'Bob', '2020-01-02T00:00:00Z'); INSERT INTO countries VALUES ('de', 'Germany')`,
    )
    shop.close()
    const path = write(MANIFEST)
    const before = readFileSync(path, 'utf8')
    const worker = await buildWorker(path, 'tidemark.yaml', {})
    const store = await openStore(`sqlite:${join(folder, 'store.db')}`)
    try {
      for (const name of ['shop.customers', 'shop.countries'])
        expect(await runCycle(worker, name, { store }), name).toMatchObject({ stopReason: 'complete', error: null })
      const texts = async (database: string): Promise<unknown[]> =>
        (await store.rows({ database, limit: 10 })).map(({ text }) => JSON.parse(text) as unknown)
      expect(await texts('shop.customers')).toMatchObject([
        { id: 1, name: 'Ada' },
        { id: 2, name: 'Bob' },
      ])
      expect(await texts('shop.countries')).toEqual([{ code: 'de' }])
      const { committed, version } = await store.readCheckpoint({ worker: 'shop', sync: 'shop.customers' })
      expect(version).toBe(1)
      expect(JSON.parse(committed!)).toMatchObject({ cursorField: 'updated_at', cursorValue: '2020-01-02T00:00:00Z' })
      expect((await store.readCheckpoint({ worker: 'shop', sync: 'shop.countries' })).committed).toBeNull()
      expect(readFileSync(path, 'utf8')).toBe(before)
    } finally {
      await store.close()
    }
  })

  test('RX1 a stream keeps its rows and its checkpoint under its id, also when the table behind it is renamed', async () => {
    const shop = new DatabaseSync(join(folder, 'shop.db'))
    shop.exec(
      `CREATE TABLE customers (id INTEGER PRIMARY KEY, updated_at TEXT NOT NULL); INSERT INTO customers VALUES (1, '2020-01-01T00:00:00Z')`,
    )
    const text =
      'name: shop\nconnector: sql\nconfig: { url: "sqlite:shop.db" }\nstreams:\n  - { id: shop.customers, cursor: updated_at, options: { table: customers } }\n'
    const store = await openStore(`sqlite:${join(folder, 'store.db')}`)
    try {
      const run = async (manifest: string) =>
        runCycle(await buildWorker(write(manifest), 'tidemark.yaml', {}), 'shop.customers', { store })
      expect(await run(text)).toMatchObject({ error: null, version: 1, counts: { created: 1 } })
      shop.exec(`ALTER TABLE customers RENAME TO clients; INSERT INTO clients VALUES (2, '2020-01-02T00:00:00Z')`)
      expect(await run(text.replace('table: customers', 'table: clients'))).toMatchObject({
        error: null,
        version: 2,
        counts: { created: 1, deleted: 0, swept: 0 },
      })
      expect((await store.rows({ database: 'shop.customers', limit: 10 })).map(({ key }) => key)).toEqual(['1', '2'])
    } finally {
      shop.close()
      await store.close()
    }
  })

  test('RX5 says which version of its form it is in; another is refused, and the message says where', async () => {
    expect(await refusal(`manifest_version: 1\n${MANIFEST}`)).toEqual({ code: 'accepted', message: '' })
    expect(await refusal(`manifest_version: 2\n${MANIFEST}`)).toEqual({
      code: 'MANIFEST_INVALID',
      message: 'tidemark.yaml:1:19: manifest_version: it must be 1.',
    })
  })

  test('R22 never contains state', async () => {
    for (const name of ['state', 'cursor_value', 'last_cursor'])
      expect(await refusal(MANIFEST.replace('    key: [id]', `    ${name}: 2025`))).toMatchObject({
        code: 'MANIFEST_INVALID',
      })
    expect((await refusal(MANIFEST.replace('platform_registry', 'connector'))).message).toBe(
      'tidemark.yaml:10:21: streams.0.state_handling: it must be "platform_registry".',
    )
  })

  test.each([
    ['a tab', MANIFEST.replace('  url', '\turl'), /^tidemark\.yaml:4:1: /],
    ['a key twice', MANIFEST.replace('    key: [id]', '    id: b'), /^tidemark\.yaml:7:5: /],
    [
      'an option that is not there',
      MANIFEST.replace('cursor:', 'curser:'),
      'tidemark.yaml:8:5: streams.0: unknown field "curser". Did you mean "cursor"?',
    ],
    [
      'no connector of that name',
      MANIFEST.replace('connector: sql', 'connector: sqll'),
      /^tidemark\.yaml:2:12: connector: it must be one of airbyte, .*, sql, stripe\. Did you mean "sql"\?$/,
    ],
    ['an empty manifest', '', 'tidemark.yaml:1:1: it must be an object.'],
    [
      'a window that is no duration',
      MANIFEST.replace('PT5M', '5m'),
      /^tidemark\.yaml:11:20: streams\.0\.safety_window: it is /,
    ],
    [
      'something missing',
      MANIFEST.replace('  url: sqlite:shop.db', '  {}'),
      'tidemark.yaml:4:3: config: `url` is missing.',
    ],
    [
      'no mode',
      MANIFEST.replace('full_refresh', 'sometimes'),
      'tidemark.yaml:15:11: streams.1.mode: it must be one of incremental, full_refresh.',
    ],
    [
      'two streams with one id',
      MANIFEST.replace('shop.countries', 'shop.customers'),
      'tidemark.yaml:14:9: the stream id "shop.customers" is used twice.',
    ],
    ['a schedule that is none', MANIFEST.replace('5m\n', 'often\n'), /^tidemark\.yaml:6:5: shop\.customers: .*often/],
    [
      'a declared schema that is not there',
      MANIFEST.replace('discovery', 'declared'),
      'tidemark.yaml:6:5: streams.0: `schema` is missing.',
    ],
    [
      'a table that is no text',
      MANIFEST.replace('{ table: countries }', '{ table: 5 }'),
      'tidemark.yaml:17:23: streams.1.options.table: it must be a text.',
    ],
    [
      'nothing selected',
      `${MANIFEST}select: { include: [crm.*] }\n`,
      'tidemark.yaml:18:9: `select` matches none of the streams.',
    ],
    [
      'no streams',
      'connector: sql\nconfig: { url: sqlite:shop.db }\n',
      'tidemark.yaml:1:1: `streams` is missing; list the available streams with `tidemark discover`.',
    ],
    [
      'an incremental stream without a cursor',
      MANIFEST.replace('mode: full_refresh', 'mode: incremental'),
      /^tidemark\.yaml:14:5: shop\.countries: it cannot be incremental without a `cursor`; set one\.$/,
    ],
    [
      'a safety window of a full refresh',
      MANIFEST.replace('mode: full_refresh', 'safety_window: PT5M'),
      'tidemark.yaml:14:5: shop.countries: a full refresh has no safety window.',
    ],
    ['an empty file', '', /^tidemark\.yaml:1:1: /],
    [
      'a misspelt member of a page',
      REST.replace('parameter: after', 'paramter: after'),
      /^tidemark\.yaml:7:28: streams\.0\.options\.page: unknown field "paramter"\. Did you mean "parameter"\?/,
    ],
    [
      'a misspelt member of what is followed',
      REST.replace('since: updated_since', 'since: updated_since, overlapMs: 5'),
      /^tidemark\.yaml:8:\d+: streams\.0\.options\.follow: unknown field "overlapMs"\. Did you mean "overlap_ms"\?/,
    ],
    [
      'a misspelt member of a page inside it',
      REST.replace('next: next } }', 'nxt: next } }'),
      /^tidemark\.yaml:8:\d+: streams\.0\.options\.follow\.page: unknown field "nxt"\. Did you mean "next"\?/,
    ],
    [
      'a misspelt member of the deletions',
      REST.replace('key: id,', 'ky: id,'),
      /^tidemark\.yaml:9:\d+: streams\.0\.options\.deletes: unknown field "ky"\. Did you mean "key"\?/,
    ],
    [
      'a kind of page that does not exist',
      REST.replace('kind: token, parameter: after', 'kind: tokens, parameter: after'),
      /^tidemark\.yaml:7:\d+: streams\.0\.options\.page\.kind: it must be one of none, token, /,
    ],
  ])('with %s is refused, and the message says where', async (_, text, expected) => {
    const { message } = await refusal(text)
    if (typeof expected === 'string') expect(message).toBe(expected)
    else expect(message).toMatch(expected)
  })

  test('`deletes` of a stream is that of its database; another value is refused with its line and the two allowed values', async () => {
    const deletesOf = async (value: string): Promise<unknown> => {
      const worker = await buildWorker(
        write(MANIFEST.replace('schema_strategy: discovery', `schema_strategy: discovery\n    deletes: ${value}`)),
        'tidemark.yaml',
        {},
      )
      return worker.manifest.databases.find(({ name }) => name === 'shop.customers')!.deletes
    }
    expect([await deletesOf('soft'), await deletesOf('hard')]).toEqual(['soft', undefined])
    await expect(deletesOf('softly')).rejects.toMatchObject({
      code: 'MANIFEST_INVALID',
      message: expect.stringMatching(/deletes.*hard.*soft/),
    })
  })

  test('a declared schema is that of the database', async () => {
    const text = MANIFEST.replace(
      'schema_strategy: discovery',
      'schema_strategy: declared\n    schema: { type: object, required: [name] }',
    )
    expect((await buildWorker(write(text), 'tidemark.yaml', {})).schemaOf('shop.customers')).toEqual({
      type: 'object',
      required: ['name'],
    })
  })
})

const DESTINATION = `destinations:
  - name: warehouse
    connector: postgres
    config:
      url: \${WAREHOUSE_URL}
      schema: shop
    databases: [shop.customers]
    mode: append
    schedule: 1h
`
const WAREHOUSE = { WAREHOUSE_URL: 'postgres://etl:hunter2@warehouse/analytics' }

describe('destinations', () => {
  test('are those of the worker, with the values of their secrets; without a selection they get every database', async () => {
    const build = async (text: string) =>
      (await buildWorker(write(MANIFEST + text), 'tidemark.yaml', WAREHOUSE)).destinations()
    expect(await build(DESTINATION)).toMatchObject([
      {
        name: 'warehouse',
        databases: ['shop.customers'],
        mode: 'append',
        schedule: { kind: 'interval', intervalMs: 3_600_000 },
        destination: { kind: 'postgres', location: 'PostgreSQL at warehouse/analytics, schema shop' },
      },
    ])
    const children = { 'shop.customers': ['items'] }
    const text = DESTINATION.replace('mode: append', 'children: { shop.customers: [items] }')
    expect(await build(text)).toMatchObject([{ mode: 'mirror', children }])
    expect(await build(DESTINATION.replace(/ {4}databases[^]*/, ''))).toMatchObject([
      { databases: ['shop.customers', 'shop.countries'], mode: 'mirror', schedule: { kind: 'continuous' } },
    ])
  })

  test.each([
    [
      'a misspelt field',
      ['mode:', 'mod:'],
      'tidemark.yaml:25:5: destinations.0: unknown field "mod". Did you mean "mode"?',
    ],
    [
      'a misspelt field of its config',
      ['schema: shop', 'shema: shop'],
      'tidemark.yaml:23:7: destinations.0.config: unknown field "shema". Did you mean "schema"?',
    ],
    [
      'an unknown connector',
      ['connector: postgres', 'connector: postgrse'],
      /^tidemark\.yaml:20:16: destinations\.0\.connector: it must be one of .*postgres.*\. Did you mean "postgres"\?$/,
    ],
    [
      'an unknown mode',
      ['append', 'upsert'],
      'tidemark.yaml:25:11: destinations.0.mode: it must be one of mirror, append, history.',
    ],
    [
      'a schedule that is none',
      ['schedule: 1h', 'schedule: often'],
      /^tidemark\.yaml:26:15: Destination "warehouse": .*often/,
    ],
    [
      'a database that is no stream',
      ['[shop.customers]', '[shop.countries, shop.custmers]'],
      /^tidemark\.yaml:24:33: .*"shop\.custmers".* Did you mean "shop\.customers"\?$/,
    ],
    [
      'child tables of another mode',
      ['schedule: 1h', 'children: { shop.customers: [items] }'],
      /^tidemark\.yaml:26:15: Destination "warehouse": children are tables of the current rows, and the mode is append/,
    ],
    [
      'child tables of a database that is not copied',
      ['mode: append', 'children: { shop.customer: [items] }'],
      /^tidemark\.yaml:25:15: .*"shop\.customer", which is not copied\. Did you mean "shop\.customers"\?$/,
    ],
    [
      'child tables that are no list',
      ['mode: append', 'children: { shop.customers: items }'],
      'tidemark.yaml:25:33: destinations.0.children.shop.customers: it must be a list.',
    ],
    [
      'a literal secret',
      ['${WAREHOUSE_URL}', 'postgres://etl:hunter2@w/a'],
      /^tidemark\.yaml:22:12: .*write \$\{NAME\} here/,
    ],
    ['a variable that is not set', ['WAREHOUSE_URL', 'STOCK_URL'], 'tidemark.yaml:22:12: STOCK_URL is not set.'],
    [
      'no name',
      ['- name: warehouse\n    connector', '- connector'],
      'tidemark.yaml:19:5: destinations.0: `name` is missing.',
    ],
    [
      'a name twice',
      [/$/, DESTINATION.replace('destinations:\n', '')],
      'tidemark.yaml:27:11: the destination name "warehouse" is used twice.',
    ],
  ] as const)('with %s are refused, and the message says where', async (_, [from, to], expected) => {
    const text = MANIFEST + DESTINATION.replace(from, () => to)
    expect(text).not.toBe(MANIFEST + DESTINATION)
    const { message } = await refusal(text, WAREHOUSE)
    expect(message).not.toContain('hunter2')
    if (typeof expected === 'string') expect(message).toBe(expected)
    else expect(message).toMatch(expected)
  })

  test('a secret is needed to run, and not to read the manifest', async () => {
    const path = write(MANIFEST + DESTINATION)
    expect(readManifest(path, 'tidemark.yaml', {}).destinations).toMatchObject([
      { config: { url: '${WAREHOUSE_URL}' } },
    ])
    expect(await refusal(MANIFEST + DESTINATION)).toMatchObject({ code: 'SECRET_MISSING' })
  })
})

describe('secrets', () => {
  test('R45 stay names until they are needed, and none is written out', async () => {
    const manifest = readManifest(write(MANIFEST.replace('sqlite:shop.db', '${SHOP_URL}')), 'tidemark.yaml', {
      SHOP_URL: 'postgres://app:hunter2@db/shop',
    })
    expect(manifest.config).toEqual({ url: 'SHOP_URL' })
    for (const [connector, config] of [
      ['sql', 'url: postgres://app:hunter2@db/shop'],
      ['stripe', 'api_key: hunter2'],
      ['rest', 'base_url: x, auth: { kind: bearer, token: hunter2 }'],
    ]) {
      const { code, message } = await refusal(
        `connector: ${connector}\nconfig: { ${config} }\nstreams:\n  - id: a\n    key: [id]\n    options: { path: /a, page: { kind: none } }\n`.replace(
          connector === 'rest' ? 'nothing' : /    (?:key|options):.*\n/g,
          '',
        ),
      )
      expect(code, connector).toBe('MANIFEST_INVALID')
      expect(message).toContain('write ${NAME} here')
      expect(message).not.toContain('hunter2')
    }
  })

  test('other values are filled in from the environment and .env, as text and never as YAML', async () => {
    const rest =
      'connector: rest\nconfig:\n  base_url: https://${HOST}/v1\nstreams: [{ id: a, key: [id], options: { path: /a, page: { kind: none } } }]\n'
    expect(await refusal(rest)).toEqual({ code: 'SECRET_MISSING', message: 'tidemark.yaml:3:13: HOST is not set.' })
    write('HOST=api.example.com', '.env')
    expect(readManifest(write(rest), 'tidemark.yaml', {}).config).toEqual({ base_url: 'https://api.example.com/v1' })
    expect(readManifest(write(rest), 'tidemark.yaml', { HOST: 'x\nauth: 1' }).config).toEqual({
      base_url: 'https://x\nauth: 1/v1',
    })
  })
})

describe('the selection of streams', () => {
  const ids = ['shop.orders', 'shop.order_lines', 'shop.audit', 'crm.people', 'crm.audit']

  test.each([
    [{}, ids],
    [{ include: ['shop.*'] }, ['shop.orders', 'shop.order_lines', 'shop.audit']],
    [{ include: ['shop.*'], exclude: ['*.audit'] }, ['shop.orders', 'shop.order_lines']],
    [{ include: ['crm.audit'], exclude: ['*.audit'] }, []],
    [{ include: ['{shop,crm}.audit', 'shop.order?'] }, ['shop.orders', 'shop.audit', 'crm.audit']],
    [{ include: ['shop.order'] }, []],
    [{ include: ['shop?orders'] }, ['shop.orders']],
    [{ include: ['s.op.*', '(shop).*', '[a-z]*', '{shop'] }, []],
    [{ limit: 2 }, ['shop.orders', 'shop.order_lines']],
    [{ exclude: ['shop.orders'], limit: 1 }, ['shop.order_lines']],
  ])('RX3 %j', (selection, selected) => {
    expect(selectStreams(ids, selection)).toEqual(selected)
  })
})

describe('documents', () => {
  test('the published schema is the one that validates', () => {
    const page = join(root, 'docs/reference/manifest.schema.json')
    const text = `${JSON.stringify(MANIFEST_SCHEMA, null, 2)}\n`
    if (process.env['TIDEMARK_UPDATE'] === '1') writeFileSync(page, text)
    expect(readFileSync(page, 'utf8')).toBe(text)
  })

  test('every manifest of the guide loads', async () => {
    const guide = readFileSync(join(root, 'docs/guides/manifests.md'), 'utf8')
    const syncs: string[][] = []
    for (const [, text] of guide.matchAll(/^```yaml\n([\s\S]*?)^```/gm))
      syncs.push((await buildWorker(write(text!), 'tidemark.yaml', WAREHOUSE)).manifest.syncs.map(({ name }) => name))
    expect(syncs).toEqual([
      ['shop.customers-backfill', 'shop.customers', 'shop.countries'],
      ['stripe.customers-backfill', 'stripe.customers', 'stripe.invoices-backfill', 'stripe.invoices'],
      ['crm.contacts-backfill', 'crm.contacts'],
      ['crm.deals', 'crm.people'],
      ['work.projects', 'work.tasks-backfill', 'work.tasks', 'work.sales', 'work.visits'],
      ['shop.orders', 'shop.history'],
      ['stripe.customers-backfill', 'stripe.customers'],
    ])
  })
})
