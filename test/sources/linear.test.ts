import { afterEach, beforeEach, expect, test } from 'vitest'
import { linear } from '../../src/sources/linear/source.ts'
import { LinearSimulator } from '../../simulators/src/index.ts'
import { MINUTE } from '../engine/engine-fixture.ts'
import { VendorFixture } from './vendor-fixture.ts'

let stage: VendorFixture<LinearSimulator>
let vendor: LinearSimulator
let team: string

beforeEach(async () => {
  stage = await VendorFixture.open((ports) => new LinearSimulator(ports))
  vendor = stage.vendor
  team = vendor.create('team', { name: 'Team', key: 'T' })
  stage.list(linear({ apiKey: 'LINEAR_KEY' }).issues)
})
afterEach(() => stage.close())

const fill = (count: number): string[] =>
  Array.from({ length: count }, (_, n) => vendor.create('issue', { team, title: `i${n}` }))
const rows = async (): Promise<unknown> =>
  Object.fromEntries(Object.entries(await stage.rows()).map(([key, row]) => [key, (row as { title: string }).title]))
const truth = (): unknown => Object.fromEntries(vendor.truth('issue').map(({ id, title }) => [id, title]))

test('N73: every cycle reads the complete list and sweeps deleted records', async () => {
  const ids = fill(250)
  expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { created: 250 } })
  expect(stage.asked()).toHaveLength(3)
  expect(await rows()).toEqual(truth())
  vendor.remove('issue', ids[3]!)
  vendor.update('issue', ids[4]!, { title: 'changed' })
  expect((await stage.backfill()).counts).toMatchObject({ swept: 1, updated: 1 })
  expect(await rows()).toEqual(truth())
  expect(await stage.state()).toBeNull()
})

test('XC16: a rejected cursor restarts the cycle and does not stop the sync', async () => {
  fill(250)
  vendor.faults.plan({ kind: 'expired-token' }, { times: 1, on: () => vendor.requests.entries.length > 1 })
  expect(await stage.backfill()).toMatchObject({ stopReason: 'complete' })
  expect(
    stage.asked().map(({ body }) => (JSON.parse(body) as { variables: { after: unknown } }).variables.after === null),
  ).toEqual([true, false, true, false, false])
  expect(await rows()).toEqual(truth())
})

test('teams are a separate list', async () => {
  stage.list(linear({ apiKey: 'LINEAR_KEY' }).teams)
  await stage.backfill()
  expect(Object.keys(await stage.rows())).toEqual([team])
})

test.each([
  ['a rate limit', { kind: 'rate-limit' }],
  ['a server error', { kind: 'server-error', status: 503 }],
  ['half a body', { kind: 'truncated', how: 'short' }],
  ['a partial answer', { kind: 'partial' }],
] as const)('%s sweeps nothing, and is asked again', async (_, fault) => {
  fill(150)
  await stage.backfill()
  vendor.faults.plan(fault, { times: 1 })
  expect((await stage.backfill()).stopReason).not.toBe('complete')
  expect(await rows()).toEqual(truth())
  await stage.backfill({ afterMs: 3_700_000 })
  expect(await rows()).toEqual(truth())
})

test('NX9: a null node is missing data, and nothing is deleted', async () => {
  fill(20)
  await stage.backfill()
  const { error } = await stage.backfill({
    spoil: (body) => {
      body.data.issues.nodes[7] = null
      return body
    },
  })
  expect(error).toMatchObject({ code: 'SOURCE_INVALID', message: expect.stringContaining('incomplete') })
  expect(await rows()).toEqual(truth())
})

test('RATE_LIMITED if both budgets are exhausted, the later reset decides the wait', async () => {
  fill(1)
  vendor.faults.plan({ kind: 'rate-limit' }, { times: 1 })
  await stage.backfill({
    spoil: (body, _url, headers) => {
      const nowMs = Date.parse(headers.get('date')!)
      for (const [budget, waitMs] of [
        ['requests', 600_000],
        ['complexity', 60_000],
      ] as const) {
        headers.set(`x-ratelimit-${budget}-remaining`, '0')
        headers.set(`x-ratelimit-${budget}-reset`, String(nowMs + waitMs))
      }
      return body
    },
  })
  stage.asked()
  expect((await stage.backfill({ afterMs: 2 * MINUTE })).error).toMatchObject({ code: 'RATE_LIMITED' })
  expect(stage.asked()).toEqual([])
  expect(await stage.backfill({ afterMs: 8 * MINUTE })).toMatchObject({ stopReason: 'complete' })
})

test('a run that is interrupted anywhere is resumed', async () => {
  fill(350)
  expect(await stage.untilComplete('backfill')).toBeGreaterThan(3)
  expect(await rows()).toEqual(truth())
})
