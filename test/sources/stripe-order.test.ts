import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { stripe } from '../../src/sources/stripe/source.ts'
import { StripeSimulator } from '../../simulators/src/index.ts'
import { HOUR, MINUTE, SECOND } from '../engine/engine-fixture.ts'
import { VendorFixture } from './vendor-fixture.ts'

let stage: VendorFixture<StripeSimulator>
let vendor: StripeSimulator
let writes: number

beforeEach(async () => {
  stage = await VendorFixture.open((ports) => new StripeSimulator(ports))
  vendor = stage.vendor
  writes = 0
})
afterEach(() => stage.close())

/** Every write has its number in the name, so that a row identifies its write. */
const create = (): string => vendor.create('customer', { name: `write ${++writes}` })
const change = (id: string): void => vendor.update('customer', id, { name: `write ${++writes}` })
const fill = (count: number): string[] => Array.from({ length: count }, create)
const track = (limit = 100): void => void stage.track(stripe({ apiKey: 'STRIPE_KEY', limit }).customers)

/** The rows equal the source, and no row returned to an older version in the feed. */
async function expectExact(): Promise<void> {
  expect(await stage.rows()).toEqual(stage.truth('customer'))
  const newest = new Map<string, number>()
  for (const { key, text, sequence } of await stage.scene.feed()) {
    if (text === null) continue
    const write = Number(/write (\d+)/.exec(text)![1])
    expect(write, `sequence ${sequence} of ${key}`).toBeGreaterThanOrEqual(newest.get(key) ?? 0)
    newest.set(key, write)
  }
}

const HEADERS: ReadonlyArray<readonly [string, (nowMs: number) => number | null]> = [
  ['is right', (nowMs) => nowMs],
  ['is an hour ahead', (nowMs) => nowMs + HOUR],
  ['is a year ahead', (nowMs) => nowMs + 365 * 24 * HOUR],
  ['is five seconds behind', (nowMs) => nowMs - 5 * SECOND],
  ['is an hour behind', (nowMs) => nowMs - HOUR],
  ['is a year behind', (nowMs) => nowMs - 365 * 24 * HOUR],
  ['jumps by an hour every few seconds', (nowMs) => nowMs + ((Math.floor(nowMs / 7_000) % 3) - 1) * HOUR],
  ['stands still', () => Date.UTC(2026, 2, 1)],
  ['is missing', () => null],
]

describe.each(HEADERS)('a Date header that %s', (_, dateMs) => {
  beforeEach(() => void (vendor.conditions = { dateMs }))

  test('does not change the result of a backfill with its delta', async () => {
    const ids = fill(30)
    stage.pass(MINUTE)
    track(10)
    await stage.backfill({
      onRequest(request) {
        // Only some pages list each change, but the log has all of them.
        if (request > 1) for (const id of ids.slice(0, 12)) change(id)
        if (request > 1) create()
        stage.pass(3 * SECOND)
      },
    })
    for (const id of ids.slice(20)) change(id)
    await stage.delta()
    await stage.delta()
    await expectExact()
    vendor.remove('customer', ids[3]!)
    change(ids[4]!)
    await stage.delta()
    await stage.delta()
    await expectExact()
  })

  test('does not change the result of a delta between the pages of a slow backfill', async () => {
    const ids = fill(30)
    stage.pass(MINUTE)
    track(5)
    for (let run = 0; run < 6; run++) {
      for (const id of ids.filter((_id, at) => at % 3 === run % 3)) change(id)
      await stage.backfill({ pagesMax: 1, afterMs: 20 * SECOND })
      for (const id of ids.filter((_id, at) => at % 4 === run % 4)) change(id)
      await stage.delta({ afterMs: run % 2 === 0 ? 2 * SECOND : 40 * SECOND })
    }
    await stage.backfill()
    await stage.delta()
    await stage.delta()
    await expectExact()
  })

  test('does not change the result of a delta alone, also on an empty account', async () => {
    track(10)
    expect(await stage.delta()).toMatchObject({ stopReason: 'complete' })
    const ids = fill(25)
    stage.pass(SECOND)
    for (const id of ids) change(id)
    for (let cycle = 0; cycle < 3; cycle++) await stage.delta({ afterMs: 20 * SECOND })
    await expectExact()
  })
})

describe('an object whose current version was read', () => {
  test('is not reverted by its own events that appear later in the log', async () => {
    const [id, other] = fill(2)
    track()
    await stage.backfill()
    change(id!)
    change(id!)
    stage.pass(15 * SECOND)
    // Too young for this cycle, but part of the version that is read.
    change(id!)
    change(other!)
    stage.pass(SECOND)
    change(id!)
    await stage.delta({ afterMs: SECOND })
    await stage.delta({ afterMs: 15 * SECOND })
    await stage.delta()
    await expectExact()
  })

  test('is updated by its events again once the log is past the read', async () => {
    const [id] = fill(1)
    track()
    await stage.backfill()
    change(id!)
    await stage.delta()
    await stage.delta()
    stage.asked()
    for (let cycle = 0; cycle < 3; cycle++) {
      change(id!)
      await stage.delta()
    }
    expect(stage.asked().map(({ path }) => path)).toEqual(['/v1/events', '/v1/events', '/v1/events'])
    expect(Object.keys(await stage.state())).toEqual(['cursor', 'cursorTime', 'answeredMs'])
    await expectExact()
  })
})

describe('a cached list', () => {
  const isList = ({ url }: Request): boolean => new URL(url).pathname === '/v1/customers'

  test('does not overwrite the version of an event, and does not revive a deleted object', async () => {
    const ids = fill(20)
    stage.pass(MINUTE)
    track(10)
    vendor.conditions = { isCached: () => false }
    await stage.backfill()
    for (const round of [1, 2]) {
      for (const id of ids.slice(5 * round, 5 * round + 8)) change(id)
      await stage.delta()
    }
    vendor.remove('customer', ids[0]!)
    create()
    await stage.delta()
    vendor.conditions = { isCached: isList }
    await stage.backfill()
    await expectExact()
    vendor.conditions = {}
    await stage.backfill()
    await expectExact()
  })

  test('is distinguished from a fresh one: one backfill applies all changes made while no delta ran', async () => {
    const ids = fill(120)
    stage.pass(MINUTE)
    track()
    await stage.backfill()
    for (let round = 0; round < 3; round++) {
      for (const id of ids) change(id)
      if (round < 2) await stage.delta()
    }
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { updated: 120 } })
    await expectExact()
    await stage.delta()
    await expectExact()
  })
})

describe('events stamped before the creation of their object by a clock that was set back', () => {
  test('neither revert the object nor revive it after its deletion', async () => {
    track()
    await stage.backfill()
    const [kept, gone] = fill(2)
    vendor.records.clockBackMs = 5 * SECOND
    change(gone!)
    vendor.remove('customer', gone!)
    stage.pass(SECOND)
    change(kept!)
    for (let cycle = 0; cycle < 3; cycle++) await stage.delta()
    await expectExact()
  })
})

describe('a page that is served twice', () => {
  test.each(['/v1/customers', '/v1/events'])('of %s loses nothing and reverts nothing', async (path) => {
    const ids = fill(40)
    stage.pass(MINUTE)
    track(10)
    vendor.faults.plan(
      { kind: 'duplicate-page' },
      { on: ({ url }) => new URL(url).pathname === path && new URL(url).searchParams.has('starting_after'), times: 2 },
    )
    await stage.backfill({ retriesMax: 3 })
    for (const id of ids) change(id)
    stage.pass(SECOND)
    for (const id of ids) change(id)
    let pages = 0
    const isLog = ({ url }: Request): boolean =>
      new URL(url).pathname === path && new URL(url).searchParams.has('ending_before')
    vendor.faults.plan({ kind: 'duplicate-page' }, { on: (request) => isLog(request) && ++pages > 1, times: 2 })
    await stage.delta({ retriesMax: 3 })
    await stage.delta()
    await expectExact()
  })

  test('invariant 12: the last page of the log, served again after its cursor, does not end the log', async () => {
    const ids = fill(3)
    stage.pass(MINUTE)
    track()
    await stage.backfill()
    change(ids[0]!)
    await stage.delta()
    change(ids[1]!)
    vendor.faults.plan({ kind: 'duplicate-page' }, { on: ({ url }) => new URL(url).pathname === '/v1/events' })
    expect(await stage.delta({ retriesMax: 1 })).toMatchObject({ stopReason: 'complete', retries: 1 })
    await expectExact()
  })
})

test('SYNC_INVALID a page size that Stripe rejects is rejected at declaration', () => {
  for (const limit of [0, 101, 1.5, Number.NaN])
    expect(() => stripe({ apiKey: 'STRIPE_KEY', limit })).toThrow('Stripe returns 1 to 100 records a page')
  expect(() => stripe({ apiKey: 'STRIPE_KEY', limit: 100 })).not.toThrow()
})
