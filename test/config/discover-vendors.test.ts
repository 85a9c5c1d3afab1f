import { expect, test } from 'vitest'
import { CONNECTORS } from '../../src/config/manifest/connectors.ts'
import type { ManifestStream } from '../../src/config/manifest/manifest-file.ts'
import { RandomStream } from '../../src/testing/simulation/random-stream.ts'
import {
  AirtableSimulator,
  createSimulatorFetch,
  HubspotSimulator,
  ManualClock,
  SalesforceSimulator,
  serve,
  ServicenowSimulator,
  type Simulator,
  type SimulatorPorts,
} from '../../simulators/src/index.ts'
import { Project } from '../cli/project.ts'

const ports: SimulatorPorts = {
  clock: new ManualClock(Date.parse('2026-03-01T00:00:00Z')),
  random: new RandomStream(1, 'vendor'),
}

function ask(
  connector: keyof typeof CONNECTORS,
  config: object,
  vendor: Simulator,
  declared: readonly ManifestStream[] = [],
) {
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  return CONNECTORS[connector].discover!(
    config,
    '.',
    {
      fetch: createSimulatorFetch(vendor),
      secrets: { get: (name) => name },
      signal: new AbortController().signal,
      clock: ports.clock,
      log,
    },
    declared,
  )
}

test('RX2 Salesforce lists its objects that can be queried and followed, with the fields of those in the manifest', async () => {
  const vendor = new SalesforceSimulator(ports, {
    objects: { Account: { Name: 'string' }, Invoice__c: { Total__c: 'double' } },
  })
  const config = { instance_url: 'https://example.my.salesforce.com', access_token: 'T' }
  const known = {
    key: ['Id'],
    cursor: 'SystemModstamp',
    candidates: ['CreatedDate', 'LastModifiedDate', 'SystemModstamp'],
  }
  expect(await ask('salesforce', config, vendor)).toEqual([
    { id: 'Account', ...known },
    { id: 'Invoice__c', ...known },
  ])
  const [account, invoice] = await ask('salesforce', config, vendor, [
    { id: 'sf.bills', options: { object: 'Invoice__c' } },
  ])
  expect(account!.columns).toBeUndefined()
  expect(invoice!.columns).toEqual(['Id', 'IsDeleted', 'CreatedDate', 'LastModifiedDate', 'SystemModstamp', 'Total__c'])
})

test('RX2 ServiceNow lists its tables with inherited columns; a table without a time of its last change is omitted', async () => {
  const vendor = new ServicenowSimulator(ports, {
    tables: { task: ['number'], incident: ['severity'], lost: [] },
    extends: { incident: 'task', lost: 'nowhere' },
  })
  const config = { instance_url: 'https://example.service-now.com', user: 'U', password: 'P' }
  const found = await ask('servicenow', config, vendor, [{ id: 'sn.incident' }])
  expect(found.map(({ id }) => id)).toEqual(['incident', 'sys_audit', 'task'])
  expect(found[0]).toEqual({
    id: 'incident',
    key: ['sys_id'],
    cursor: 'sys_updated_on',
    candidates: ['sys_created_on', 'sys_updated_on'],
    columns: ['number', 'severity', 'sys_created_on', 'sys_id', 'sys_mod_count', 'sys_updated_on'],
  })
})

test('RX2 ServiceNow has more tables than a page', async () => {
  const tables = Object.fromEntries(Array.from({ length: 1_200 }, (_, n) => [`u_table_${n}`, []]))
  const found = await ask(
    'servicenow',
    { instance_url: 'https://example.service-now.com', user: 'U', password: 'P' },
    new ServicenowSimulator(ports, { tables }),
  )
  expect(found).toHaveLength(1_201)
})

test('RX2 Airtable lists the tables of the base', async () => {
  expect(
    await ask(
      'airtable',
      { base_id: 'appX', token: 'T' },
      new AirtableSimulator(ports, { baseId: 'appX', tables: ['Tasks', 'Big Deals'] }),
    ),
  ).toEqual(
    ['Tasks', 'Big Deals'].map((id, at) => ({ id, aliases: [`tbl0000000000000${at}`], key: ['id'], candidates: [] })),
  )
})

test('RX2 HubSpot lists the standard types and those of the account; a token without access lists the standard ones', async () => {
  const types = { contacts: ['email'], p7_cars: ['colour'] }
  const vendor = new HubspotSimulator(ports, { types })
  const found = await ask('hubspot', { access_token: 'T' }, vendor)
  const names = found.map(({ id, cursor }) => `${id} ${cursor!}`)
  expect(names).toHaveLength(21)
  expect(names).toEqual(
    expect.arrayContaining([
      'contacts lastmodifieddate',
      'companies hs_lastmodifieddate',
      'line_items hs_lastmodifieddate',
      'calls hs_lastmodifieddate',
      'p7_cars hs_lastmodifieddate',
    ]),
  )
  const forbidden: Simulator = { handle: async () => Response.json({ category: 'MISSING_SCOPES' }, { status: 403 }) }
  expect(await ask('hubspot', { access_token: 'T' }, forbidden)).toHaveLength(20)
})

test('RX7 a stream with an alias, or one that the manifest defines, is not reported as gone', async () => {
  await using served = await serve(new AirtableSimulator(ports, { baseId: 'appX', tables: ['Tasks'] }))
  const project = new Project()
  const drift = async (manifest: string): Promise<unknown> => {
    project.write('tidemark.yaml', manifest)
    return (
      JSON.parse((await project.run('discover', '--json', { env: { T: 'open-sesame' } })).stdout) as { drift: unknown }
    ).drift
  }
  const head = `connector: airtable\nconfig: { base_id: appX, token: "\${T}", base_url: "${served.url}/v0" }\nstreams:\n`
  expect(
    await drift(
      `${head}  - { id: crm.work, options: { table: tbl00000000000000 } }\n  - { id: crm.Tasks }\n  - { id: crm.gone, options: { table: Gone } }\n`,
    ),
  ).toMatchObject([{ stream: 'crm.gone', is_gone: true }])
  expect(await drift('connector: files\nconfig: { folder: . }\nstreams: [{ id: drop.people }]\n')).toEqual([])
})

test('RX2 RX7 the command uses the credentials of the manifest, lists objects with keys and cursors, and shows the differences from the stored columns', async () => {
  const vendor = new SalesforceSimulator(
    { clock: { now: Date.now, sleep: async () => {} }, random: new RandomStream(1, 'vendor') },
    { token: 'open-sesame', objects: { Account: { Name: 'string', Colour__c: 'string' } } },
  )
  vendor.create('Account', { Name: 'Acme' })
  await using served = await serve(vendor)
  const project = new Project()
  const env = { SF_TOKEN: 'open-sesame' }
  project.write(
    'tidemark.yaml',
    `name: crm\nconnector: salesforce\nconfig: { instance_url: "${served.url}", access_token: "\${SF_TOKEN}" }\nstreams:\n  - { id: sf.accounts, select: [Name], options: { object: Account } }\n  - { id: sf.gone, options: { object: Gone } }\n`,
  )
  expect((await project.run('run', 'sf.accounts-backfill', { env })).stderr).not.toContain('error')
  const { stdout } = await project.run('discover', '--json', { env })
  expect(JSON.parse(stdout)).toMatchObject({
    connector: 'salesforce',
    streams: [{ id: 'Account', key: ['Id'], cursor: 'SystemModstamp', mode: 'incremental', needs: null }],
    drift: [{ stream: 'sf.gone', is_gone: true }],
  })
  expect(await project.run('discover', { env: { SF_TOKEN: 'wrong-word' } })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('AUTH_REJECTED') as string,
  })
})
