import { afterEach, beforeEach, expect, test } from 'vitest'
import { rest, type RestStream, type TrackedStream } from '../../../src/sources/rest/source.ts'
import { EngineFixture, MINUTE, planOf } from '../../engine/engine-fixture.ts'
import { Api, BASE, type Handler } from './api.ts'

let scene: EngineFixture
beforeEach(async () => {
  scene = await EngineFixture.open()
})
afterEach(() => scene.close())

const DAY = 24 * 60 * MINUTE
const STREAM = {
  name: 'items',
  path: '/items',
  key: 'id',
  updatedAt: 'at',
  page: { kind: 'none' },
  deletes: 'ignore',
  follow: { kind: 'window', since: 'since', until: 'until', page: { kind: 'none' } },
} as const

/** Ten records, one per day; both bounds of the filter are exclusive. */
const handler: Handler = ({ searchParams: query }) =>
  Array.from({ length: 10 }, (_, n) => ({
    id: `d${n}`,
    at: new Date(scene.clock.now() - (10 - n) * DAY).toISOString(),
  })).filter(({ at }) => at > (query.get('since') ?? '') && at < (query.get('until') ?? '9'))

const open = (stream: Partial<RestStream>): TrackedStream =>
  rest({ baseUrl: BASE, streams: [{ ...STREAM, ...stream } as RestStream] })['items'] as TrackedStream

test('a start date limits the list and the changes, and a record exactly at it is read', async () => {
  const since = new Date(scene.clock.now() - 4 * DAY).toISOString()
  const api = new Api(scene.clock, { '/items': handler })
  const { backfill, delta } = open({ since })
  await scene.run(planOf({ mode: 'replace', execute: backfill }), { fetch: api.fetch })
  expect(await scene.keys()).toEqual(['d6', 'd7', 'd8', 'd9'])
  await scene.run(planOf({ sync: 'delta', execute: delta }), { fetch: api.fetch })
  expect(await scene.keys()).toEqual(['d6', 'd7', 'd8', 'd9'])
  expect(api.asked.every(({ query }) => query['since'] !== undefined)).toBe(true)
})

test('a range is read with both bounds, and not before the start date', async () => {
  const at = (days: number): string => new Date(scene.clock.now() - days * DAY).toISOString()
  const api = new Api(scene.clock, { '/items': handler })
  const { backfill } = open({ since: at(4) })
  await scene.run(planOf({ mode: 'replace', execute: backfill.range!({ from: at(8), to: at(2) }) }), {
    fetch: api.fetch,
  })
  expect(await scene.keys()).toEqual(expect.arrayContaining(['d6', 'd7']))
  expect(await scene.keys()).not.toContain('d5')
  expect(await scene.keys()).not.toContain('d9')
})

test.each([
  ['no time filter', { since: '2024-01-31', follow: undefined }, /needs a time filter/],
  ['no date', { since: 'yesterday' }, /`since` is "yesterday"/],
])('a start date with %s is refused', (_, stream, message) => {
  expect(() => open(stream as Partial<RestStream>)).toThrow(message)
})
