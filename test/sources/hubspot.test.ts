import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { hubspot } from '../../src/sources/hubspot/source.ts'
import { churn, HubspotSimulator } from '../../src/testing/simulators/index.ts'
import { Stream } from '../../src/testing/simulation/random.ts'
import { MINUTE, SECOND } from '../engine/scene.ts'
import { Stage } from './stage.ts'

let stage: Stage<HubspotSimulator>
let vendor: HubspotSimulator

async function open(options: ConstructorParameters<typeof HubspotSimulator>[1] = {}): Promise<void> {
  stage = await Stage.open((ports) => new HubspotSimulator(ports, options))
  vendor = stage.vendor
  stage.track(hubspot({ accessToken: 'HUBSPOT_TOKEN' }).contacts)
}
beforeEach(() => open())
afterEach(() => stage.close())

const fill = (count: number): string[] => Array.from({ length: count }, (_, n) => vendor.create('contacts', { email: `c${n}@example.com` }))
const bodies = (): any[] => stage.asked().filter(({ method }) => method === 'POST').map(({ body }) => JSON.parse(body))
const both = async (choices?: Parameters<typeof stage.delta>[0]): Promise<void> => {
  for (let half = 0; half < 2; half++) expect(await stage.delta(choices)).toMatchObject({ stopReason: 'complete' })
}

describe('the backfill', () => {
  test('N45 N46 N47: hands tokens back as they were given, until there is no paging', async () => {
    fill(250)
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { created: 250 } })
    const lists = stage.asked().filter(({ method }) => method === 'GET')
    expect(lists).toHaveLength(3)
    expect(lists[0]!.path).toBe('/crm/v3/objects/contacts')
    expect(lists[0]!.query).toEqual({ limit: '100', properties: 'email,firstname,lastname,createdate,lastmodifieddate,hs_object_id' })
    expect(lists[1]!.query.after).toMatch(/./)
    expect(await stage.rows()).toEqual(stage.truth('contacts'))
  })

  test('other types are modified by another name', async () => {
    stage.track(hubspot({ accessToken: 'HUBSPOT_TOKEN' }).companies)
    vendor.create('companies', { name: 'A' })
    await stage.backfill()
    vendor.create('companies', { name: 'B' })
    stage.asked()
    await stage.delta()
    expect(bodies()[0].sorts).toEqual([{ propertyName: 'hs_lastmodifieddate', direction: 'ASCENDING' }])
    expect(await stage.rows()).toEqual(stage.truth('companies'))
  })
})

describe('the delta', () => {
  test('N48 N50 N51: without a state asks from five minutes back up to ten seconds ago, inclusively, in milliseconds', async () => {
    fill(3)
    await stage.delta({ afterMs: MINUTE })
    const now = stage.scene.clock.now()
    expect(bodies()).toEqual([{
      filterGroups: [{ filters: [
        { propertyName: 'lastmodifieddate', operator: 'GTE', value: String(now - 5 * MINUTE) },
        { propertyName: 'lastmodifieddate', operator: 'LTE', value: String(now - 10 * SECOND) },
      ] }],
      sorts: [{ propertyName: 'lastmodifieddate', direction: 'ASCENDING' }],
      properties: ['email', 'firstname', 'lastname', 'createdate', 'lastmodifieddate', 'hs_object_id'],
      limit: 100,
    }])
    expect(await stage.rows()).toEqual(stage.truth('contacts'))
  })

  test('NX13: alone brings what changed and went while the backfill was paging to the truth', async () => {
    fill(230)
    await stage.backfill({
      onRequest(request) {
        if (request === 1) return
        stage.pass(2 * SECOND)
        churn(vendor, { type: 'contacts', writes: 25, random: new Stream(request, 'churn'), fields: (n) => ({ email: `r${request}-${n}@example.com` }), updates: 0.5, deletes: 0.2 })
      },
    })
    await both()
    expect(await stage.rows()).toEqual(stage.truth('contacts'))
  })

  test('N49 N52: goes on from the newest time of a full page, and ends with a short one', async () => {
    fill(1)
    await stage.backfill()
    for (let n = 0; n < 150; n++) {
      stage.pass(10)
      fill(1)
    }
    stage.asked()
    await stage.delta()
    const [, second, ...more] = bodies()
    expect(more).toEqual([])
    const times = vendor.records.current('contacts').map(({ modifiedAtMs }) => modifiedAtMs)
    expect(times).toContain(Number(second.filterGroups[0].filters[0].value))
    expect(await stage.rows()).toEqual(stage.truth('contacts'))
    expect((await stage.state()).deltaCursor).toEqual({ phase: 'delta', cursorMs: Math.max(...times) })
  })

  test.each([100, 250])('N53 N54 N55 N56 N57: %i of one millisecond are read by id, from the lowest on', async (count) => {
    fill(5)
    await stage.backfill()
    stage.pass(SECOND)
    fill(count)
    const tieMs = stage.scene.clock.now()
    stage.pass(SECOND)
    fill(3)
    stage.asked()
    await stage.delta()
    const asked = bodies()
    const tied = asked.filter(({ sorts }) => sorts[0].propertyName === 'hs_object_id')
    expect(tied[0].filterGroups[0].filters).toEqual([
      { propertyName: 'lastmodifieddate', operator: 'EQ', value: String(tieMs) }, { propertyName: 'hs_object_id', operator: 'GT', value: '0' },
    ])
    expect(tied).toHaveLength(Math.ceil(count / 100) + 1)
    expect(asked.at(-1).filterGroups[0].filters[0].value).toBe(String(tieMs + 1))
    expect(await stage.rows()).toEqual(stage.truth('contacts'))
  })

  test('N58: a short page of one time is no tie', async () => {
    fill(1)
    await stage.backfill()
    stage.pass(SECOND)
    fill(98)
    stage.asked()
    await stage.delta()
    expect(bodies()).toHaveLength(1)
    expect(await stage.rows()).toEqual(stage.truth('contacts'))
  })

  test('N59: a tie that is broken off is taken up', async () => {
    fill(1)
    await stage.backfill()
    stage.pass(SECOND)
    fill(350)
    expect(await stage.untilComplete('delta')).toBeGreaterThan(4)
    expect(await stage.rows()).toEqual(stage.truth('contacts'))
  })

  test('N9: what the index shows late is not passed over, and what it still shows does not come back', async () => {
    await stage.close()
    await open({ lag: { share: 0.5, maxMs: 9 * SECOND } })
    fill(20)
    await stage.backfill()
    for (let round = 0; round < 25; round++) {
      churn(vendor, { type: 'contacts', writes: 12, random: new Stream(round, 'late'), fields: (n) => ({ email: `${round}-${n}@example.com` }), updates: 0.5, deletes: 0.2 })
      await stage.delta({ afterMs: 1_700 })
    }
    await both({ afterMs: 30 * SECOND })
    expect(await stage.rows()).toEqual(stage.truth('contacts'))
  })

  test('deletes are listed by turns, as what was archived', async () => {
    const [first] = fill(3)
    await stage.backfill()
    vendor.remove('contacts', first!)
    await both()
    expect(stage.asked().at(-1)!.query).toMatchObject({ archived: 'true', limit: '100' })
    expect(await stage.rows()).toEqual(stage.truth('contacts'))
  })
})

test.each([
  ['a rate limit', { kind: 'rate-limit', retryAfter: '3' }], ['a server error', { kind: 'server-error', status: 502 }],
  ['a body cut off', { kind: 'truncated', how: 'cut-off' }], ['half a body', { kind: 'truncated', how: 'short' }], ['a page of HTML', { kind: 'html' }],
] as const)('%s is asked again, and nothing is lost', async (_, fault) => {
  fill(150)
  vendor.faults.plan(fault, { times: 2 })
  expect(await stage.backfill({ retriesMax: 5 })).toMatchObject({ stopReason: 'complete' })
  stage.pass(SECOND)
  churn(vendor, { type: 'contacts', writes: 60, random: new Stream(3, 'churn'), fields: (n) => ({ email: `x${n}@example.com` }), deletes: 0.3, updates: 0.3 })
  vendor.faults.plan(fault, { times: 2 })
  await both({ retriesMax: 5 })
  expect(await stage.rows()).toEqual(stage.truth('contacts'))
})
