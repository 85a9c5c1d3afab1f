import { afterEach, beforeEach, expect, test } from 'vitest'
import { AirtableSimulator } from '../../simulators/src/index.ts'
import { airtable, type AirtablePair } from '../../src/sources/airtable/source.ts'
import { VendorFixture } from './vendor-fixture.ts'

const DAY_MS = 86_400_000
const TABLE = 'tbl00000000000000'
let stage: VendorFixture<AirtableSimulator>
let vendor: AirtableSimulator

beforeEach(async () => {
  stage = await VendorFixture.open((ports) => new AirtableSimulator(ports, { baseId: 'appX' }))
  vendor = stage.vendor
  stage.track(source())
})
afterEach(() => stage.close())

const source = (): AirtablePair =>
  airtable({ baseId: 'appX', token: 'AIRTABLE_TOKEN' }).tracked(TABLE, 'achSimulated00001')
const fill = (count: number): string[] =>
  Array.from({ length: count }, (_, n) => vendor.create('Tasks', { Name: `t${n}` }))

test('the delta reads the records that changed, in few requests, and deletes those that were deleted', async () => {
  const ids = fill(250)
  await stage.backfill()
  ids.slice(0, 15).forEach((id) => vendor.update('Tasks', id, { Name: 'changed' }))
  vendor.remove('Tasks', ids[20]!)
  fill(2)
  stage.asked()
  expect(await stage.delta()).toMatchObject({ stopReason: 'complete' })
  expect(stage.asked().length).toBeLessThan(5)
  expect(await stage.rows()).toEqual(stage.truth('Tasks'))
})

test('the last change of a record counts: deleted, or restored', async () => {
  const [gone, back] = fill(2)
  await stage.backfill()
  vendor.update('Tasks', gone!, { Name: 'changed' })
  vendor.remove('Tasks', gone!)
  vendor.remove('Tasks', back!)
  vendor.records.insert('Tasks', back!, { Name: 'restored' })
  vendor.update('Tasks', back!, { Name: 'restored' })
  await stage.delta()
  expect(await stage.rows()).toEqual(stage.truth('Tasks'))
})

test('changes during the backfill arrive by the delta', async () => {
  const ids = fill(250)
  await stage.backfill({
    onRequest: (request) => request === 3 && vendor.update('Tasks', ids[0]!, { Name: 'changed' }),
  })
  await stage.delta()
  expect(await stage.rows()).toEqual(stage.truth('Tasks'))
})

test('more payloads than a page holds are read to the end', async () => {
  const ids = fill(70)
  await stage.backfill()
  ids.forEach((id) => vendor.update('Tasks', id, { Name: 'changed' }))
  await stage.delta()
  expect(await stage.rows()).toEqual(stage.truth('Tasks'))
})

test('payloads that were deleted before they were read need a backfill', async () => {
  const [id] = fill(3)
  await stage.backfill()
  await stage.delta()
  vendor.update('Tasks', id!, { Name: 'changed' })
  for (let day = 0; day < 8; day++) stage.pass(DAY_MS)
  vendor.create('Tasks', {})
  expect((await stage.delta()).error).toMatchObject({ code: 'HISTORY_LOST' })
})

test('a gap in the numbers of the payloads is noticed', async () => {
  const [id] = fill(3)
  await stage.backfill()
  vendor.update('Tasks', id!, { Name: 'changed' })
  const { error } = await stage.delta({
    spoil: (body, url) => (url.pathname.endsWith('/payloads') ? { ...body, cursor: body.cursor + 1 } : body),
  })
  expect(error).toMatchObject({ code: 'HISTORY_LOST' })
})

test('the payloads of another request are read again', async () => {
  const ids = fill(30)
  await stage.backfill()
  ids.forEach((id) => vendor.update('Tasks', id, { Name: 'changed' }))
  vendor.faults.plan({ kind: 'duplicate-page' }, { times: 1, on: ({ url }) => /payloads\?cursor=(?!31&)/.test(url) })
  expect((await stage.delta()).error).toMatchObject({ code: 'SOURCE_INVALID' })
  await stage.delta()
  expect(await stage.rows()).toEqual(stage.truth('Tasks'))
})

test('a new name of a field changes every record, so the table is read again', async () => {
  fill(3)
  await stage.backfill()
  vendor.changeField('Tasks')
  expect((await stage.delta()).error).toMatchObject({ code: 'HISTORY_LOST' })
})

test('an unknown webhook is an error that names it', async () => {
  stage.track(airtable({ baseId: 'appX', token: 'T' }).tracked(TABLE, 'achUnknown'))
  expect((await stage.backfill()).error).toMatchObject({ message: expect.stringContaining('achUnknown') })
})

test('the retention of payloads is declared', () => {
  expect(source().delta.retentionMs).toBe(7 * DAY_MS)
  expect(() => airtable({ baseId: 'appX', token: 'T' }).tracked('Tasks', 'ach1')).toThrow(/tbl/)
})
