import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { bookmarks } from '../../src/sources/bookmarks/source.ts'
import { XSimulator, type XOptions } from '../../simulators/src/index.ts'
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

const fill = (count: number): string[] =>
  Array.from({ length: count }, (_, n) => vendor.create('bookmark', { text: `t${n}` }))
const truth = (): unknown => stage.truth('bookmark')
const reopen = async (options: XOptions): Promise<void> => {
  await stage.close()
  await open(options)
}

describe('X bookmarks', () => {
  test('S9 S20: the first pass reads all bookmarks, later passes one page', async () => {
    fill(250)
    expect(await stage.delta()).toMatchObject({
      stopReason: 'complete',
      endReason: 'end_of_data',
      pages: 4,
      counts: { created: 250 },
    })
    expect(stage.asked().map(({ query }) => query.max_results)).toEqual(['90', '90', '90', '90'])
    expect(await stage.rows()).toEqual(truth())
    fill(3)
    expect(await stage.delta()).toMatchObject({
      endReason: 'reached_since',
      pages: 1,
      counts: { created: 3, unchanged: 87 },
    })
    expect(await stage.rows()).toEqual(truth())
  })

  test('S18: a pass that exceeds the budget of a window continues in the next windows', async () => {
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

  test('F8 XC27 XC28: removed, repeated or hidden bookmarks at the top neither end a pass early nor extend it', async () => {
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

  test('XC29: expired tokens restart the pass', async () => {
    await reopen({ pageTokenTtlMs: MINUTE })
    fill(300)
    await stage.delta({ pagesMax: 2 })
    await stage.delta({ afterMs: HOUR, pagesMax: 2 })
    fill(2)
    for (let run = 0; run < 6 && (await stage.delta({ afterMs: 20 * MINUTE })).stopReason !== 'complete'; run++);
    expect(await stage.rows()).toEqual(truth())
  })

  test('SD6: a backfill finds removed bookmarks', async () => {
    const ids = fill(200)
    await stage.delta()
    vendor.remove('bookmark', ids[30]!)
    vendor.hidePost(ids[40]!)
    await stage.delta()
    expect(Object.keys(await stage.rows())).toHaveLength(200)
    expect(
      await stage.backfill({
        onRequest(request) {
          if (request !== 3) return
          vendor.remove('bookmark', ids[3]!)
          vendor.bookmarkAgain(ids[3]!)
        },
      }),
    ).toMatchObject({ stopReason: 'complete', counts: { swept: 2 } })
    expect(await stage.rows()).toEqual(truth())
  })

  test('SD6: bookmarks beyond the list limit of X are not deleted', async () => {
    fill(790)
    await stage.delta()
    fill(50)
    await stage.delta()
    expect(await stage.backfill()).toMatchObject({
      stopReason: 'error',
      error: { code: 'SYNC_INVALID', message: expect.stringContaining('newest 800') as string },
    })
    expect(Object.keys(await stage.rows())).toHaveLength(840)
  })

  test('SD6: a withheld post is not deleted', async () => {
    fill(100)
    await stage.delta()
    vendor.faults.plan({ kind: 'partial' })
    expect(await stage.backfill()).toMatchObject({ stopReason: 'error', error: { code: 'SOURCE_INVALID' } })
    expect(Object.keys(await stage.rows())).toHaveLength(100)
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { swept: 0 } })
  })

  test('lists that end early with a page size of 100 are read completely', async () => {
    await reopen({ endsEarlyAbove: 90 })
    fill(300)
    await stage.delta()
    expect(await stage.rows()).toEqual(truth())
  })

  test.each(['delta', 'backfill'] as const)('SD4: a premature last page hides nothing from a %s', async (half) => {
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

  test('the copy equals the list after failures of every kind', async () => {
    fill(250)
    vendor.faults.injectAtRates([
      [{ kind: 'server-error' }, 0.1],
      [{ kind: 'truncated' }, 0.1],
      [{ kind: 'html' }, 0.1],
      [{ kind: 'expired-token' }, 0.05],
      [{ kind: 'rate-limit', retryAfter: '1' }, 0.1],
    ])
    for (let run = 0; run < 40; run++) {
      if (run % 5 === 0) fill(7)
      await stage.delta({ afterMs: 20 * MINUTE, retriesMax: 1 })
    }
    vendor.faults.clear()
    expect(await stage.delta({ afterMs: 20 * MINUTE })).toMatchObject({ stopReason: 'complete' })
    expect(await stage.rows()).toEqual(truth())
  })

  test('a token of another user, or no token, stops the sync', async () => {
    await reopen({ token: 'another' })
    expect(await stage.delta()).toMatchObject({ error: { code: 'AUTH_REJECTED' } })
    expect(() => bookmarks({ userId: '1' })).toThrow(/token/)
  })

  test('an invalid cursor is not requested, and the list restarts', async () => {
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

describe('times', () => {
  const posted = (from: string, to = '9999'): string[] =>
    vendor
      .truth('bookmark')
      .filter(({ created_at: at }) => String(at) >= from && String(at) < to)
      .map(({ id }) => String(id))
      .toSorted()
  const keys = async (): Promise<string[]> => Object.keys(await stage.rows()).toSorted()
  const day = (n: number): string => new Date(Date.UTC(2026, 0, n)).toISOString()
  /** Bookmarked in another order than they were written. */
  const fillDays = (): void => {
    for (let n = 0; n < 200; n++) vendor.create('bookmark', { created_at: day(1 + ((n * 7) % 28)) })
  }

  test('a start date leaves out the posts written before it, and a range reads those between its times', async () => {
    fillDays()
    stage.track(bookmarks({ userId: vendor.user.id, token: 'X_TOKEN', since: day(10) }))
    await stage.delta()
    expect(await keys()).toEqual(posted(day(10)))
    await stage.backfill()
    expect(await keys()).toEqual(posted(day(10)))
    await reopen({})
    fillDays()
    expect(await stage.range({ from: day(5), to: day(8) })).toMatchObject({ stopReason: 'complete' })
    expect(await keys()).toEqual(posted(day(5), day(8)))
    expect(() => bookmarks({ userId: '1', token: 'T', since: day(1), fields: ['text'] })).toThrow('needs "created_at"')
  })

  test('a range is read also from a list that X truncates, because it deletes nothing', async () => {
    for (let n = 0; n < 900; n++) vendor.create('bookmark', { created_at: day(1 + (n % 28)) })
    expect((await stage.backfill()).error).toMatchObject({ code: 'SYNC_INVALID' })
    expect(await stage.range({ from: day(5) })).toMatchObject({ stopReason: 'complete' })
  })
})
