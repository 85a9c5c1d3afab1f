import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { githubStars } from '../../src/sources/github-stars/source.ts'
import { overlapsCursor, chooseWindow } from '../../src/sources/github-stars/overlapping-pages.ts'
import { GithubStarsSimulator, type GithubStarsOptions } from '../../simulators/src/index.ts'
import { RandomStream } from '../../src/testing/simulation/random-stream.ts'
import { HOUR, MINUTE, SECOND } from '../engine/engine-fixture.ts'
import { VendorFixture } from './vendor-fixture.ts'

let stage: VendorFixture<GithubStarsSimulator>
let vendor: GithubStarsSimulator

async function open(options: GithubStarsOptions = {}): Promise<void> {
  stage = await VendorFixture.open((ports) => new GithubStarsSimulator(ports, options))
  vendor = stage.vendor
  stage.track(githubStars({ token: 'GITHUB_TOKEN' }))
}
beforeEach(() => open())
afterEach(() => stage.close())

const fill = (count: number, everyMs = 2 * SECOND): string[] =>
  Array.from({ length: count }, () => {
    stage.pass(everyMs)
    return vendor.create('star')
  })
const truth = (): string[] =>
  vendor
    .truth('star')
    .map(({ repo }) => String((repo as { id: number }).id))
    .toSorted()
const keys = async (): Promise<string[]> => Object.keys(await stage.rows()).toSorted()
const restar = (id: string): void => {
  vendor.remove('star', id)
  stage.pass(SECOND)
  vendor.starAgain(id)
}

describe('GitHub stars', () => {
  test('S9 S20: the first pass reads all stars in overlapping pages, later passes one page', async () => {
    fill(250)
    expect(await stage.delta()).toMatchObject({
      stopReason: 'complete',
      endReason: 'end_of_data',
      counts: { created: 250 },
    })
    expect(stage.asked().map(({ query }) => [query.per_page, query.page, query.sort, query.direction])).toEqual([
      ['100', '1', 'created', 'desc'],
      ['99', '2', 'created', 'desc'],
      ['98', '3', 'created', 'desc'],
      ['83', '4', 'created', 'desc'],
      ['83', '4', 'created', 'desc'],
    ])
    expect(await keys()).toEqual(truth())
    fill(3)
    expect(await stage.delta()).toMatchObject({ endReason: 'reached_since', pages: 1, counts: { created: 3 } })
    // Overlapping passes give no tidemark.
    expect((await stage.scene.checkpoint('sync')).tidemark).toBe(null)
    expect(await keys()).toEqual(truth())
  })

  test('the record is the repository with the time of the star', async () => {
    const [id] = fill(1)
    await stage.delta()
    expect((await stage.rows())[id!]).toMatchObject({
      id: Number(id),
      full_name: 'acme/repository-1',
      starred_at: expect.stringMatching(/Z$/),
    })
  })

  test('stars removed during the read hide no other star', async () => {
    const ids = fill(400)
    const chance = new RandomStream(1, 'unstar')
    expect(
      await stage.delta({
        onRequest(request) {
          if (request === 1 || request > 8) return
          // Above the current page, so that everything below moves up.
          for (let count = chance.int(1, 40); count > 0; count--)
            vendor.remove('star', ids.splice(ids.length - 1 - chance.int(0, 60), 1)[0]!)
        },
      }),
    ).toMatchObject({ stopReason: 'complete' })
    expect(await keys()).toEqual(expect.arrayContaining(truth()))
  })

  test('new stars, and stars of the same second, hide no other star', async () => {
    fill(150)
    fill(120, 0)
    expect(
      await stage.delta({ onRequest: (request) => void (request > 1 && fill(30, request % 2 === 0 ? 0 : SECOND)) }),
    ).toMatchObject({ stopReason: 'complete' })
    await stage.delta()
    expect(await keys()).toEqual(truth())
  })

  test('XC28 SD5: a repository that is starred again has a new time and does not end the pass', async () => {
    const ids = fill(150)
    await stage.delta()
    fill(120)
    for (const id of ids.slice(-6)) restar(id)
    expect(await stage.delta()).toMatchObject({ endReason: 'reached_since', counts: { created: 120 } })
    expect(await keys()).toEqual(truth())
  })

  test('XC27 S23: after a hundred of the newest stars are removed, known pages end the pass', async () => {
    const ids = fill(600)
    await stage.delta()
    for (const id of ids.slice(-100)) vendor.remove('star', id)
    fill(2)
    expect(await stage.delta()).toMatchObject({ endReason: 'caught_up', pages: 4 })
    expect(await keys()).toEqual(expect.arrayContaining(truth()))
  })

  test('SD6: a backfill deletes removed stars and keeps those that moved meanwhile', async () => {
    const ids = fill(330)
    await stage.delta()
    for (const at of [10, 100, 329]) vendor.remove('star', ids[at]!)
    expect(await stage.backfill({ onRequest: (request) => void (request === 4 && restar(ids[3]!)) })).toMatchObject({
      stopReason: 'complete',
      counts: { swept: 3 },
    })
    expect(await keys()).toEqual(truth())
  })

  test('SD4: a short page, or a page without a next link, is not the end', async () => {
    fill(260)
    for (const fault of [{ kind: 'short-page' }, { kind: 'end-flag', value: 'end' }] as const)
      vendor.faults.plan(fault, { on: ({ url }) => !url.endsWith('page=1') })
    await stage.delta()
    expect(await keys()).toEqual(truth())
  })

  test('SD4: an empty response without a link is not the end', async () => {
    fill(60)
    let request = 0
    const flaky = githubStars({ token: 'GITHUB_TOKEN' })
    stage.track({
      ...flaky,
      delta: (state, context) =>
        flaky.delta(state, {
          ...context,
          fetch: async (...asked) => {
            const response = await context.fetch(...asked)
            return ++request === 1 ? new Response('[]', { headers: { 'content-type': 'application/json' } }) : response
          },
        }),
    })
    expect(await stage.delta()).toMatchObject({ stopReason: 'complete', counts: { created: 60 } })
    expect(await keys()).toEqual(truth())
  })

  test('both rate limits are waited out', async () => {
    await stage.close()
    await open({ requestsPerHour: 2 })
    fill(350)
    expect(await stage.delta()).toMatchObject({ pages: 2, error: { code: 'RATE_LIMITED' } })
    vendor.faults.plan({ kind: 'rate-limit', secondary: true, retryAfter: '30' })
    expect(await stage.delta({ afterMs: HOUR, retriesMax: 1 })).toMatchObject({ retries: 1, waitedMs: 30_000 })
    for (let run = 0; run < 4 && (await stage.delta({ afterMs: HOUR })).stopReason !== 'complete'; run++);
    expect(await keys()).toEqual(truth())
  })

  test('reads the stars of another user by name', async () => {
    fill(3)
    stage.track(githubStars({ token: 'GITHUB_TOKEN', user: 'octocat' }))
    await stage.delta()
    expect(stage.asked()[0]!.path).toBe('/users/octocat/starred')
    expect(await keys()).toEqual(truth())
  })

  test('with failures and changes at every request nothing is missing, and after a backfill nothing is left over', async () => {
    const chance = new RandomStream(7, 'stars')
    fill(320)
    vendor.faults.injectAtRates([
      [{ kind: 'server-error' }, 0.1],
      [{ kind: 'truncated' }, 0.1],
      [{ kind: 'html' }, 0.05],
      [{ kind: 'short-page' }, 0.05],
    ])
    const onRequest = (): void => {
      const ids = truth()
      for (let count = chance.int(0, 3); count > 0; count--)
        vendor.remove('star', ids.splice(chance.int(0, ids.length - 1), 1)[0]!)
      if (chance.chance(0.3)) restar(chance.pick(ids))
      if (chance.chance(0.3)) fill(chance.int(1, 30))
    }
    for (let run = 0; run < 40; run++)
      await stage.delta({ onRequest, pagesMax: chance.int(1, 4), afterMs: 20 * MINUTE })
    vendor.faults.clear()
    for (let run = 0; run < 3; run++) await stage.delta({ afterMs: 20 * MINUTE })
    expect(await keys()).toEqual(expect.arrayContaining(truth()))
    await stage.backfill()
    expect(await keys()).toEqual(truth())
  })
})

test('every window contains the requested position and at least fifty after it', () => {
  for (let position = 1; position < 5_000; position++) {
    const { page, perPage, start } = chooseWindow(position)
    expect(start).toBe((page - 1) * perPage + 1)
    if (start > position || (position >= 100 && page * perPage - position < 50) || perPage > 100)
      expect.fail(`${position}: page ${page} of ${perPage}`)
  }
})

test('a window overlaps if it contains the last star, a newer one, or the top of the list; an equal time proves nothing', () => {
  const place = { position: 200, id: 'a', starredAt: '2026-01-01T00:00:10Z' }
  const shows = (...stars: Array<[string, number]>): boolean =>
    overlapsCursor(
      stars.map(([id, second]) => ({ id, starredAt: `2026-01-01T00:00:${String(second).padStart(2, '0')}Z` })),
      { page: 3, perPage: 98, start: 197 },
      place,
    )
  expect(shows(['b', 9], ['a', 10])).toBe(true)
  expect(shows(['b', 11], ['c', 9])).toBe(true)
  expect(shows(['b', 10], ['c', 9])).toBe(false)
  expect(shows(['a', 12], ['c', 9])).toBe(true)
  expect(shows(['b', 9], ['a', 8])).toBe(false)
  expect(shows()).toBe(false)
  expect(overlapsCursor([], { page: 1, perPage: 100, start: 1 }, place)).toBe(true)
})

describe('times', () => {
  const at = (): string => new Date(stage.scene.clock.now()).toISOString()
  const keysSince = (from: string, to = '9999'): string[] =>
    vendor
      .truth('star')
      .filter(
        ({ starred_at: starredAt }) => String(starredAt) >= from.slice(0, 19) && String(starredAt) < to.slice(0, 19),
      )
      .map(({ repo }) => String((repo as { id: number }).id))
      .toSorted()

  test('a start date ends the list at the first older star, and later passes copy only newer ones', async () => {
    fill(150)
    stage.pass(MINUTE)
    const since = at()
    fill(120)
    stage.track(githubStars({ token: 'GITHUB_TOKEN', since }))
    expect(await stage.delta()).toMatchObject({ stopReason: 'complete' })
    expect(await keys()).toEqual(keysSince(since))
    expect(stage.asked().length).toBeLessThanOrEqual(3)
    fill(5)
    await stage.delta()
    await stage.backfill()
    expect(await keys()).toEqual(keysSince(since))
    expect((await keys()).length).toBe(125)
  })

  test('a later start date deletes the older stars only after a confirmation', async () => {
    fill(20)
    stage.pass(MINUTE)
    const since = at()
    fill(20)
    await stage.backfill()
    stage.track(githubStars({ token: 'GITHUB_TOKEN', since }))
    expect((await stage.backfill()).error).toMatchObject({ code: 'SCOPE_CHANGED' })
    expect(await keys()).toEqual(truth())
    await stage.backfill({ allowDeletes: true })
    expect(await keys()).toEqual(keysSince(since))
  })

  test('a range reads the stars between its times and deletes none', async () => {
    fill(150)
    const from = at()
    fill(60)
    const to = at()
    fill(150)
    expect(await stage.range({ from, to })).toMatchObject({ stopReason: 'complete' })
    expect(await keys()).toEqual(keysSince(from, to))
    await stage.backfill()
    await stage.range({ from, to })
    expect(await keys()).toEqual(truth())
  })
})
