import { afterEach, describe, expect, test } from 'vitest'
import { salesforce } from '../../../src/sources/salesforce/source.ts'
import { servicenow } from '../../../src/sources/servicenow/source.ts'
import {
  SalesforceSimulator,
  ServicenowSimulator,
  type SimulatorPorts,
  type VendorSimulator,
} from '../../../simulators/src/index.ts'
import { DATABASE } from '../../engine/engine-fixture.ts'
import { VendorFixture } from '../vendor-fixture.ts'

interface Vendor {
  readonly type: string
  readonly key: string
  /** A number or date field: its values and its type by the metadata. */
  readonly field: readonly [name: string, value: unknown, type: string, inferred: string]
  readonly isMetadata: RegExp
  /** The number of metadata requests in the first cycle and in later ones. */
  readonly requests: readonly [number, number]
  open(ports: SimulatorPorts): VendorSimulator
  /** Ways to deny access. */
  readonly refusals: Readonly<Record<string, (ports: SimulatorPorts) => VendorSimulator>>
  source(
    metadata?: boolean,
  ): ReturnType<ReturnType<typeof salesforce>['object']> | ReturnType<ReturnType<typeof servicenow>['table']>
}

const VENDORS: Readonly<Record<string, Vendor>> = {
  salesforce: {
    type: 'Account',
    key: 'Id',
    field: ['AnnualRevenue', 7, 'double', 'bigint'],
    isMetadata: /\/describe$/,
    requests: [1, 1],
    open: (ports) => new SalesforceSimulator(ports),
    refusals: { 'the description is refused': (ports) => new SalesforceSimulator(ports, { hidesDescriptions: true }) },
    source: (metadata = true) =>
      salesforce({ instanceUrl: 'https://example.my.salesforce.com', accessToken: 'TOKEN', metadata }).object(
        'Account',
      ),
  },
  servicenow: {
    type: 'incident',
    key: 'sys_id',
    field: ['state', '7', 'decimal', 'text'],
    isMetadata: /\/sys_(?:db_object|dictionary)$/,
    requests: [2, 1],
    open: (ports) => new ServicenowSimulator(ports),
    refusals: {
      'the list of tables is refused': (ports) => new ServicenowSimulator(ports, { refused: ['sys_db_object'] }),
      'the dictionary is refused': (ports) => new ServicenowSimulator(ports, { refused: ['sys_dictionary'] }),
      'no row of the dictionary may be seen': (ports) =>
        new ServicenowSimulator(ports, { hidden: (table) => table === 'sys_dictionary' }),
    },
    source: (metadata = true) =>
      servicenow({ instanceUrl: 'https://example.service-now.com', user: 'TOKEN', password: 'TOKEN', metadata }).table(
        'incident',
      ),
  },
}

let stage: VendorFixture<VendorSimulator>
afterEach(() => stage?.close())

describe.each(Object.entries(VENDORS))('types from the metadata of %s', (_, vendor) => {
  const {
    type,
    key,
    field: [field, value, declared, inferred],
    isMetadata,
  } = vendor

  async function open(
    make: (ports: SimulatorPorts) => VendorSimulator = vendor.open,
    metadata?: boolean,
  ): Promise<void> {
    stage = (await VendorFixture.open(make)).track(vendor.source(metadata))
    stage.vendor.create(type, { [field]: value })
  }
  const asked = (): number => stage.asked().filter(({ path }) => isMetadata.test(path)).length
  const typesOf = async (): Promise<Record<string, string>> => {
    const { columns } = (await stage.scene.store.schema(DATABASE))!
    return Object.fromEntries(columns.map((column) => [column.member, `${column.type} of ${column.origin}`]))
  }
  const warnings = (): string[] => stage.scene.logged.filter((line) => line.includes('denies access to its metadata'))

  test('are requested once in each cycle with records', async () => {
    await open()
    for (let n = 0; n < 350; n++) stage.vendor.create(type, { [field]: value })
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { created: 351 } })
    expect(asked()).toBe(vendor.requests[0])
    expect(await typesOf()).toMatchObject({ [field]: `${declared} of source`, [key]: 'text of source' })
    await stage.delta()
    await stage.delta()
    stage.asked()
    await stage.delta()
    expect(asked()).toBe(0)
    stage.vendor.create(type, { [field]: value })
    await stage.delta()
    expect(asked()).toBe(vendor.requests[1])
    expect(await stage.rows()).toEqual(stage.truth(type, key))
    expect(warnings()).toEqual([])
  })

  test.each(Object.keys(vendor.refusals))('are inferred when %s, which is logged once', async (name) => {
    await open(vendor.refusals[name])
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { created: 1 } })
    expect(asked()).toBeGreaterThan(0)
    expect(await typesOf()).toMatchObject({ [field]: `${inferred} of values`, [key]: 'text of source' })
    stage.vendor.create(type, {})
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { created: 1 } })
    expect(asked()).toBeGreaterThan(0)
    expect(await stage.rows()).toEqual(stage.truth(type, key))
    expect(warnings()).toHaveLength(1)
  })

  test.each([
    ['a rate limit', { kind: 'rate-limit' }, 'RATE_LIMITED'],
    ['a server error', { kind: 'server-error', status: 503 }, 'SOURCE_UNAVAILABLE'],
    ['half a body', { kind: 'truncated', how: 'short' }, 'SOURCE_INVALID'],
    ['a page to sign in', { kind: 'html' }, 'SOURCE_INVALID'],
    ['a refusal of the credentials', { kind: 'unauthorized' }, 'AUTH_REJECTED'],
  ] as const)(
    'are no reason to infer them: %s fails the page, and no row lands without its types',
    async (__, fault, code) => {
      await open()
      stage.vendor.faults.plan(fault, { on: ({ url }) => isMetadata.test(new URL(url).pathname) })
      expect((await stage.backfill()).error).toMatchObject({ code })
      expect(await stage.rows()).toEqual({})
      expect(await stage.backfill()).toMatchObject({ stopReason: 'complete' })
      expect(await typesOf()).toMatchObject({ [field]: `${declared} of source` })
      expect(warnings()).toEqual([])
    },
  )

  test('are not requested if disabled', async () => {
    await open(vendor.open, false)
    await stage.backfill()
    expect(asked()).toBe(0)
    expect(await typesOf()).toMatchObject({ [field]: `${inferred} of values`, [key]: 'text of source' })
  })
})
