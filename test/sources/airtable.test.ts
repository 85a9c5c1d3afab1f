import { afterEach, beforeEach, expect, test } from 'vitest'
import { airtable } from '../../src/sources/airtable/source.ts'
import { AirtableSimulator } from '../../simulators/src/index.ts'
import { VendorFixture } from './vendor-fixture.ts'

let stage: VendorFixture<AirtableSimulator>
let vendor: AirtableSimulator

beforeEach(async () => {
  stage = await VendorFixture.open((ports) => new AirtableSimulator(ports, { baseId: 'appX', tables: ['Tasks'] }))
  vendor = stage.vendor
  stage.list(airtable({ baseId: 'appX', token: 'AIRTABLE_TOKEN' }).table('Tasks'))
})
afterEach(() => stage.close())

const fill = (count: number): string[] =>
  Array.from({ length: count }, (_, n) => vendor.create('Tasks', { Name: `t${n}` }))

test('N73 N74: every cycle reads the complete list by offset and sweeps deleted records', async () => {
  const ids = fill(250)
  expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { created: 250 } })
  const asked = stage.asked()
  expect(asked.map(({ path, query }) => `${path} ${Object.keys(query).join(' ')}`)).toEqual([
    '/v0/appX/Tasks pageSize',
    '/v0/appX/Tasks pageSize offset',
    '/v0/appX/Tasks pageSize offset',
  ])
  expect(await stage.rows()).toEqual(stage.truth('Tasks'))
  vendor.remove('Tasks', ids[3]!)
  vendor.update('Tasks', ids[4]!, { Name: null })
  expect((await stage.backfill()).counts).toMatchObject({ swept: 1, updated: 1 })
  expect(await stage.rows()).toEqual(stage.truth('Tasks'))
  expect(await stage.state()).toBeNull()
})

test('T7: the last page of another listing does not end a list, and no row is swept', async () => {
  const { execute, mode } = airtable({ baseId: 'appX', token: 'AIRTABLE_TOKEN' }).table('Tasks')
  stage.list({ execute, mode })
  fill(150)
  await stage.backfill()
  let asked = 0
  const result = await stage.backfill({
    allowDeletes: true,
    spoil: (body) => (++asked === 1 ? { records: body.records.slice(-50) } : body),
  })
  expect(result).toMatchObject({ stopReason: 'complete', counts: { swept: 0 } })
  expect(await stage.rows()).toEqual(stage.truth('Tasks'))
})

test('an expired iteration is restarted', async () => {
  fill(250)
  vendor.faults.plan({ kind: 'expired-token' }, { on: (request) => request.url.includes('offset=') })
  expect(await stage.backfill()).toMatchObject({ stopReason: 'complete' })
  expect(stage.asked().map(({ query }) => 'offset' in query)).toEqual([false, true, false, true, true])
  expect(await stage.rows()).toEqual(stage.truth('Tasks'))
})

test.each([
  ['a rate limit', { kind: 'rate-limit' }],
  ['a server error', { kind: 'server-error', status: 503 }],
  ['half a body', { kind: 'truncated', how: 'short' }],
] as const)('%s is asked again, and nothing is swept', async (_, fault) => {
  fill(150)
  await stage.backfill()
  vendor.faults.plan(fault, { times: 1 })
  const before = stage.scene.clock.now()
  expect(await stage.backfill({ retriesMax: 3, afterMs: 0 })).toMatchObject({ stopReason: 'complete' })
  if (fault.kind === 'rate-limit') expect(stage.scene.clock.now() - before).toBeGreaterThanOrEqual(30_000)
  expect(await stage.rows()).toEqual(stage.truth('Tasks'))
})

test('a run that is interrupted anywhere is resumed', async () => {
  fill(350)
  expect(await stage.untilComplete('backfill')).toBeGreaterThan(3)
  expect(await stage.rows()).toEqual(stage.truth('Tasks'))
})

test('a start date and a range select records by the time of their last change', async () => {
  const at = (): string => new Date(stage.scene.clock.now()).toISOString()
  const keys = async (): Promise<string[]> => Object.keys(await stage.rows()).toSorted()
  const old = fill(120)
  stage.pass(1_000)
  const since = at()
  const young = fill(130)
  stage.pass(1_000)
  const to = at()
  stage.pass(1_000)
  vendor.update('Tasks', old[5]!, { Name: 'changed' })
  const table = airtable({ baseId: 'appX', token: 'AIRTABLE_TOKEN', since }).table('Tasks')
  stage.list(table)
  await stage.backfill()
  expect(await keys()).toEqual([...young, old[5]!].toSorted())
  vendor.update('Tasks', young[0]!, { Name: 'changed too' })
  expect(await stage.range({ to })).toMatchObject({ stopReason: 'complete' })
  expect(await keys()).toEqual([...young, old[5]!].toSorted())
  stage.list(airtable({ baseId: 'appX', token: 'AIRTABLE_TOKEN' }).table('Tasks'))
  await stage.range({ to: since })
  expect(await keys()).toEqual([...old, ...young].toSorted())
})
