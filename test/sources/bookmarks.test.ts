import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { bookmarks } from '../../src/sources/bookmarks/source.ts'
import { XSimulator, type XOptions } from '../../src/testing/simulators/index.ts'
import { HOUR, MINUTE } from '../engine/engine-fixture.ts'
import { setState } from '../strategies/run-strategy.ts'
import { VendorFixture } from './vendor-fixture.ts'

let stage: VendorFixture<XSimulator>
let vendor: XSimulator

async function open(options: XOptions = {}): Promise<void> {
  stage = await VendorFixture.open((ports) => new XSimulator(ports, options))
  vendor = stage.vendor
  stage.track(bookmarks({ userId: vendor.user.id, token: 'X_TOKEN' }))
}
beforeEach(() => open())
afterEach(() => stage.close())

const fill = (count: number): string[] => Array.from({ length: count }, (_, n) => vendor.create('bookmark', { text: `t${n}` }))
const truth = (): unknown => stage.truth('bookmark')
const reopen = async (options: XOptions): Promise<void> => {
  await stage.close()
  await open(options)
}

describe('the bookmarks of X', () => {
  test('S9 S20: all of them, and then a page for what is new', async () => {
    fill(250)
    expect(await stage.delta()).toMatchObject({ stopReason: 'complete', endReason: 'end_of_data', pages: 4, counts: { created: 250 } })
    expect(stage.asked().map(({ query }) => query.max_results)).toEqual(['90', '90', '90', '90'])
    expect(await stage.rows()).toEqual(truth())
    fill(3)
    expect(await stage.delta()).toMatchObject({ endReason: 'reached_since', pages: 1, counts: { created: 3, unchanged: 87 } })
    expect(await stage.rows()).toEqual(truth())
  })

  test('S18: out of the budget of a window the pass goes on in the next, as long as it takes', async () => {
    await reopen({ rateLimit: { requests: 2, perMs: 15 * MINUTE } })
    fill(60)
    await stage.delta()
    fill(500)
    const limited = await stage.delta({ afterMs: HOUR })
    expect(limited).toMatchObject({ stopReason: 'error', pages: 2, error: { code: 'RATE_LIMITED' } })
    expect(limited.retryAt! - limited.endedAt).toBeGreaterThan(14 * MINUTE)
    for (let run = 0; run < 5 && (await stage.delta({ afterMs: 16 * MINUTE })).stopReason !== 'complete'; run++);
    expect(await stage.rows()).toEqual(truth())
  })

  test('F8 XC27 XC28: what is taken away, bookmarked again or hidden at the top neither ends a pass early nor makes it long', async () => {
    const ids = fill(200)
    await stage.delta()
    fill(100)
    vendor.remove('bookmark', ids.at(-1)!)
    vendor.hidePost(ids.at(-3)!)
    for (const id of [ids.at(-2)!, ids[5]!]) {
      vendor.remove('bookmark', id)
      vendor.bookmarkAgain(id)
    }
    expect(await stage.delta()).toMatchObject({ endReason: 'reached_since', pages: 2, counts: { created: 100 } })
  })

  test('XC29: tokens that grow old begin the pass anew', async () => {
    await reopen({ pageTokenTtlMs: MINUTE })
    fill(300)
    await stage.delta({ pagesMax: 2 })
    await stage.delta({ afterMs: HOUR, pagesMax: 2 })
    fill(2)
    for (let run = 0; run < 6 && (await stage.delta({ afterMs: 20 * MINUTE })).stopReason !== 'complete'; run++);
    expect(await stage.rows()).toEqual(truth())
  })

  test('SD6: a full reading finds what is gone', async () => {
    const ids = fill(200)
    await stage.delta()
    vendor.remove('bookmark', ids[30]!)
    vendor.hidePost(ids[40]!)
    await stage.delta()
    expect(Object.keys(await stage.rows())).toHaveLength(200)
    expect(await stage.backfill({
      onRequest(request) {
        if (request !== 3) return
        vendor.remove('bookmark', ids[3]!)
        vendor.bookmarkAgain(ids[3]!)
      },
    })).toMatchObject({ stopReason: 'complete', counts: { swept: 2 } })
    expect(await stage.rows()).toEqual(truth())
  })

  test('SD6: of more bookmarks than X lists, those that it no longer lists are not taken for gone', async () => {
    fill(790)
    await stage.delta()
    fill(50)
    await stage.delta()
    expect(await stage.backfill()).toMatchObject({ stopReason: 'error', error: { code: 'SYNC_INVALID', message: expect.stringContaining('newest 800') as string } })
    expect(Object.keys(await stage.rows())).toHaveLength(840)
  })

  test('SD6: nor is a post that X withholds', async () => {
    fill(100)
    await stage.delta()
    vendor.faults.plan({ kind: 'partial' })
    expect(await stage.backfill()).toMatchObject({ stopReason: 'error', error: { code: 'SOURCE_INVALID' } })
    expect(Object.keys(await stage.rows())).toHaveLength(100)
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { swept: 0 } })
  })

  test('lists that end early when a hundred are asked for at once are read whole', async () => {
    await reopen({ endsEarlyAbove: 90 })
    fill(300)
    await stage.delta()
    expect(await stage.rows()).toEqual(truth())
  })

  test.each(['delta', 'backfill'] as const)('SD4: a page that says too early that it is the last one hides nothing from a %s', async (half) => {
    fill(250)
    if (half === 'backfill') await stage.delta()
    for (const nth of [1, 2]) {
      fill(100)
      let request = 0
      vendor.faults.plan({ kind: 'end-flag', value: 'end' }, { on: () => ++request === nth })
      expect(await stage[half]()).toMatchObject({ stopReason: 'complete', counts: { swept: 0 } })
      expect(await stage.rows()).toEqual(truth())
    }
  })

  test('through failures of every kind the copy is the list', async () => {
    fill(250)
    vendor.faults.injectAtRates([[{ kind: 'server-error' }, 0.1], [{ kind: 'truncated' }, 0.1], [{ kind: 'html' }, 0.1], [{ kind: 'expired-token' }, 0.05], [{ kind: 'rate-limit', retryAfter: '1' }, 0.1]])
    for (let run = 0; run < 40; run++) {
      if (run % 5 === 0) fill(7)
      await stage.delta({ afterMs: 20 * MINUTE, retriesMax: 1 })
    }
    vendor.faults.clear()
    expect(await stage.delta({ afterMs: 20 * MINUTE })).toMatchObject({ stopReason: 'complete' })
    expect(await stage.rows()).toEqual(truth())
  })

  test('a token of another user, or none, stops it', async () => {
    await reopen({ token: 'another' })
    expect(await stage.delta()).toMatchObject({ error: { code: 'AUTH_REJECTED' } })
    expect(() => bookmarks({ userId: '1' })).toThrow(/token/)
  })

  test('a place that is none is not asked for: the list is begun anew', async () => {
    fill(100)
    await stage.delta({ pagesMax: 1 })
    const { committed, inflight } = await stage.scene.checkpoint()
    expect(committed).toBeNull()
    await setState(stage.scene, { ...JSON.parse(inflight!.state!), tailCursor: 'of another source' })
    stage.asked()
    expect(await stage.delta()).toMatchObject({ stopReason: 'complete' })
    expect(stage.asked()[0]!.query).not.toHaveProperty('pagination_token')
    expect(await stage.rows()).toEqual(truth())
  })
})
