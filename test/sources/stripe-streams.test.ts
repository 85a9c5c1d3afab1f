import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createSimulatorFetch, StripeSimulator } from '../../simulators/src/index.ts'
import { LISTED_STREAMS, TRACKED_STREAMS, type StripeResource } from '../../src/sources/stripe/resources.ts'
import { stripe, type StripeOptions } from '../../src/sources/stripe/source.ts'
import { SECOND } from '../engine/engine-fixture.ts'
import { contextOf } from './sql/cases.ts'
import { VendorFixture } from './vendor-fixture.ts'

let stage: VendorFixture<StripeSimulator>
let vendor: StripeSimulator

beforeEach(async () => {
  stage = await VendorFixture.open((ports) => new StripeSimulator(ports))
  vendor = stage.vendor
})
afterEach(() => stage.close())

const source = (options: Partial<StripeOptions> = {}): ReturnType<typeof stripe> =>
  stripe({ apiKey: 'STRIPE_KEY', ...options })
const tracked = Object.entries<StripeResource>(TRACKED_STREAMS).map(([name, { type }]) => ({ name, type }))
const listed = Object.entries<StripeResource>(LISTED_STREAMS).map(([name, { type }]) => ({ name, type }))

/** Writes that Stripe reports without an event: only the next backfill reads them. */
const UNREPORTED_UPDATES = new Set(['file', 'invoiceitem', 'quote'])
const DELETABLE = new Set(['coupon', 'customer', 'invoice', 'invoiceitem', 'plan', 'price', 'product'])

describe('the streams', () => {
  const folder = join(dirname(fileURLToPath(import.meta.resolve('stripe'))), 'resources')
  const files = readdirSync(folder, { recursive: true })
    .map(String)
    .filter((file) => file.endsWith('.d.ts') && !file.startsWith('V2'))
  const eventTypes = new Set(
    [...readFileSync(join(folder, 'Events.d.ts'), 'utf8').matchAll(/^ {4}type: '([\w.]+)';/gm)].map(([, type]) => type),
  )

  test('have the paths, types and filters of the client that Stripe generates from its description', () => {
    const known = files.flatMap((file) => {
      const code = readFileSync(join(folder, file.replace('.d.ts', '.js')), 'utf8')
      const types = readFileSync(join(folder, file), 'utf8')
      const [, path] = /\n {4}list\([^)]*\) \{\s*return this\._makeRequest\('GET', '\/v1([^']+)'/.exec(code) ?? []
      const parameters = types.slice(types.search(/interface \w*ListParams extends/)).split(/\n {0,4}\}/)[0] ?? ''
      return path === undefined
        ? []
        : [{ path, types: [...types.matchAll(/object: '([\w.]+)'/g)].map(([, type]) => type), parameters }]
    })
    for (const [name, stream] of Object.entries<StripeResource>({ ...TRACKED_STREAMS, ...LISTED_STREAMS })) {
      const found = known.find(({ path }) => path === stream.path)
      expect(found?.types, name).toContain(stream.type)
      expect(/\n\s+created\?:/.test(found?.parameters ?? ''), name).toBe(stream.isWithoutCreatedFilter !== true)
    }
  })

  test('are followed by events only if a new object has one', () => {
    const prefixes: Readonly<Record<string, string>> = {
      dispute: 'charge.dispute',
      subscription: 'customer.subscription',
    }
    const reportsNew = (type: string): boolean =>
      ['created', 'opened', 'succeeded', 'attached'].some(
        (event) =>
          eventTypes.has(`${prefixes[type] ?? type}.${event}`) || eventTypes.has(`${type.replace('.', '_')}.${event}`),
      )
    expect(tracked.filter(({ type }) => !reportsNew(type))).toEqual([])
    expect(listed.filter(({ type }) => reportsNew(type) && type !== 'checkout.session')).toEqual([])
    expect(eventTypes).not.toContain('checkout.session.created')
  })

  test.for(tracked)('$name: new, changed and deleted objects arrive by events', async ({ name, type }) => {
    const ids = Array.from({ length: 4 }, () => vendor.create(type, {}))
    stage.track(source()[name as keyof typeof TRACKED_STREAMS])
    await stage.backfill()
    expect(await stage.rows()).toEqual(stage.truth(type))
    vendor.create(type, {})
    stage.pass(2 * SECOND)
    if (!UNREPORTED_UPDATES.has(type)) vendor.update(type, ids[0]!, { metadata: { changed: 'yes' } })
    if (DELETABLE.has(type)) vendor.remove(type, ids[1]!)
    expect(await stage.delta()).toMatchObject({ stopReason: 'complete' })
    expect(await stage.rows()).toEqual(stage.truth(type))
    await stage.backfill()
    expect(await stage.rows()).toEqual(stage.truth(type))
  })

  test.for(listed)('$name: every cycle reads the list', async ({ name, type }) => {
    const ids = Array.from({ length: 4 }, () => vendor.create(type, {}))
    stage.list(source()[name as keyof typeof LISTED_STREAMS])
    await stage.backfill()
    vendor.update(type, ids[0]!, { status: 'changed' })
    vendor.create(type, {})
    await stage.backfill()
    expect(await stage.rows()).toEqual(stage.truth(type))
  })

  test('an event of an invoice that does not exist yet is skipped', async () => {
    vendor.create('invoice', {})
    stage.track(source().invoices)
    await stage.backfill()
    vendor.records.insert('event', 'evt_1upcoming', {
      type: 'invoice.upcoming',
      data: { object: { object: 'invoice', amount_due: 100 } },
    })
    vendor.create('invoice', {})
    expect(await stage.delta()).toMatchObject({ stopReason: 'complete' })
    expect(await stage.rows()).toEqual(stage.truth('invoice'))
  })
})

describe('a start date', () => {
  const shown = async (): Promise<unknown[]> => Object.values(await stage.rows()).map((row) => (row as any).metadata.n)

  async function fill(type: string): Promise<{ ids: string[]; since: string }> {
    const old = [1, 2].map((n) => vendor.create(type, { metadata: { n } }))
    stage.pass(60 * SECOND)
    const since = new Date(stage.scene.clock.now()).toISOString()
    const young = [3, 4].map((n) => vendor.create(type, { metadata: { n } }))
    return { ids: [...old, ...young], since }
  }

  test.for(['customers', 'quotes'] as const)('%s: an older object is not copied', async (name) => {
    const { since } = await fill(TRACKED_STREAMS[name].type)
    stage.track(source({ since })[name])
    await stage.backfill()
    expect(await shown()).toEqual([3, 4])
  })

  test('an older object that changes later is not copied, by either half', async () => {
    const { ids, since } = await fill('customer')
    stage.track(source({ since }).customers)
    await stage.backfill()
    vendor.update('customer', ids[0]!, { metadata: { n: 10 } })
    vendor.update('customer', ids[2]!, { metadata: { n: 30 } })
    await stage.delta()
    expect(await shown()).toEqual([30, 4])
    await stage.backfill()
    expect(await shown()).toEqual([30, 4])
  })

  test('an object created at the start date is copied', async () => {
    stage.pass(1_000 - (stage.scene.clock.now() % 1_000))
    const since = new Date(stage.scene.clock.now()).toISOString()
    vendor.create('customer', { metadata: { n: 1 } })
    stage.track(source({ since }).customers)
    await stage.backfill()
    expect(await shown()).toEqual([1])
  })

  test('a later start date removes the older rows', async () => {
    const { ids, since } = await fill('customer')
    stage.track(source().customers)
    await stage.backfill()
    stage.track(source({ since }).customers)
    await stage.backfill({ allowDeletes: true })
    expect(await shown()).toEqual([3, 4])
    expect(ids).toHaveLength(4)
  })

  test('a lookup of an older object finds nothing, as it is not listed', async () => {
    const { ids, since } = await fill('customer')
    const { lookup } = source({ since }).customers
    const context = {
      ...contextOf(),
      clock: stage.scene.clock,
      fetch: createSimulatorFetch(vendor),
      secrets: { get: () => 'key' },
    }
    expect(await lookup(ids[0]!, context)).toBeNull()
    expect(await lookup(ids[2]!, context)).toMatchObject({ key: ids[2] })
  })
})

describe('a range', () => {
  test.for(['charges', 'paymentLinks'] as const)(
    '%s: contains the objects from its start up to, not at, its end',
    async (name) => {
      const { type } = TRACKED_STREAMS[name]
      stage.pass(1_000 - (stage.scene.clock.now() % 1_000))
      const from = stage.scene.clock.now()
      const ids = [0, 1, 2, 3].map(() => {
        const id = vendor.create(type, {})
        stage.pass(1_000)
        return id
      })
      const iso = (ms: number): string => new Date(ms).toISOString()
      const { range } = source()[name].backfill
      stage.list({ mode: 'incremental', execute: range!({ from: iso(from + 1_000), to: iso(from + 3_000) }) })
      expect(await stage.backfill()).toMatchObject({ stopReason: 'complete' })
      expect(Object.keys(await stage.rows()).toSorted()).toEqual(ids.slice(1, 3).toSorted())
    },
  )
})
