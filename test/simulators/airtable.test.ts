import { describe, expect, test } from 'vitest'
import { AirtableSimulator, type AirtableOptions } from '../../simulators/src/airtable/simulator.ts'
import { createSimulatorFetch } from '../../simulators/src/kit/simulator-fetch.ts'
import { portsOf } from './ports.ts'

interface Page {
  records: Array<{ id: string; createdTime: string; fields: Record<string, unknown> }>
  offset?: string
}

function open(options: AirtableOptions = {}) {
  const ports = portsOf()
  const simulator = new AirtableSimulator(ports, options)
  const fetch = createSimulatorFetch(simulator)
  const get = (params: Record<string, string> = {}) =>
    fetch(`https://api.airtable.com/v0/appSimulated00001/Tasks?${new URLSearchParams(params).toString()}`, {
      headers: { authorization: 'Bearer t' },
    })
  const list = async (params: Record<string, string> = {}) => (await (await get(params)).json()) as Page
  return { ...ports, simulator, get, list }
}

describe('the airtable simulator', () => {
  test('an iteration by offsets sees the records that existed at its start, once, and ends without an offset', async () => {
    const { simulator, list } = open()
    const ids = Array.from({ length: 7 }, (_, n) => simulator.create('Tasks', { Name: `t${n}` }))
    const first = await list({ pageSize: '3' })
    simulator.create('Tasks', { Name: 'late' })
    simulator.remove('Tasks', ids[4]!)
    const second = await list({ pageSize: '3', offset: first.offset! })
    const third = await list({ pageSize: '3', offset: second.offset! })
    expect([first, second, third].map((page) => page.records.map((record) => record.fields['Name']))).toEqual([
      ['t0', 't1', 't2'],
      ['t3', 't5'],
      ['t6'],
    ])
    expect(third.offset).toBeUndefined()
  })

  test('an idle iteration expires', async () => {
    const { simulator, clock, get, list } = open()
    for (let n = 0; n < 3; n++) simulator.create('Tasks')
    const { offset } = await list({ pageSize: '1' })
    clock.advance(10 * 60_000 + 1)
    const refused = await get({ offset: offset! })
    expect([refused.status, await refused.json()]).toMatchObject([
      422,
      { error: { type: 'LIST_RECORDS_ITERATOR_NOT_AVAILABLE' } },
    ])
    const rubbish = await get({ offset: '10' })
    expect([rubbish.status, await rubbish.json()]).toEqual([
      422,
      { error: { type: 'INVALID_OFFSET_VALUE', message: 'The value of offset 10 is invalid' } },
    ])
  })

  test('empty fields are omitted, and only the requested ones are shown', async () => {
    const { simulator, list } = open()
    simulator.create('Tasks', { Name: 'a', Done: false, Notes: '', Tags: [], Left: null, Points: 0 })
    expect((await list()).records[0]).toMatchObject({
      createdTime: '2026-01-01T00:00:00.000Z',
      fields: { Name: 'a', Points: 0 },
    })
    expect((await list({ 'fields[]': 'Name' })).records[0]!.fields).toEqual({ Name: 'a' })
  })

  test('a sixth request in a second is refused, and everything for thirty seconds after it', async () => {
    const { clock, get } = open({ limited: true })
    const statuses: number[] = []
    for (let n = 0; n < 6; n++) statuses.push((await get()).status)
    clock.advance(29_999)
    statuses.push((await get()).status)
    clock.advance(1)
    statuses.push((await get()).status)
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429, 429, 200])
  })

  test('a page of more than 100 and an unknown table are refused', async () => {
    const { simulator, get } = open()
    expect((await get({ pageSize: '101' })).status).toBe(422)
    const unknown = await createSimulatorFetch(simulator)('https://api.airtable.com/v0/appSimulated00001/None', {
      headers: { authorization: 'Bearer t' },
    })
    expect([unknown.status, await unknown.json()]).toMatchObject([
      403,
      { error: { type: 'INVALID_PERMISSIONS_OR_MODEL_NOT_FOUND' } },
    ])
  })

  test('a sort and a maximum number of records hold over all pages', async () => {
    const { simulator, list } = open()
    for (const name of ['b', 'a', 'd', 'c']) simulator.create('Tasks', { Name: name })
    const params = { 'sort[0][field]': 'Name', 'sort[0][direction]': 'desc', maxRecords: '3', pageSize: '2' }
    const first = await list(params)
    const second = await list({ ...params, offset: first.offset! })
    expect([...first.records, ...second.records].map((record) => record.fields['Name'])).toEqual(['d', 'c', 'b'])
    expect(second.offset).toBeUndefined()
  })
})

test('a webhook numbers its payloads and keeps them for a week', async () => {
  const ports = portsOf()
  const simulator = new AirtableSimulator(ports, { baseId: 'appX' })
  const fetch = createSimulatorFetch(simulator)
  const get = async (path: string): Promise<any> =>
    (
      await fetch(`https://api.airtable.com/v0/bases/appX/webhooks${path}`, { headers: { authorization: 'Bearer t' } })
    ).json()
  const id = simulator.create('Tasks', { Name: 'a' })
  simulator.remove('Tasks', id)
  expect((await get('')).webhooks[0].cursorForNextPayload).toBe(3)
  const first = await get('/achSimulated00001/payloads?limit=1')
  expect([first.cursor, first.mightHaveMore, first.payloads.length]).toEqual([2, true, 1])
  const second = await get('/achSimulated00001/payloads?cursor=2')
  expect([second.cursor, second.mightHaveMore]).toEqual([3, false])
  expect(second.payloads[0].changedTablesById.tbl00000000000000).toEqual({ destroyedRecordIds: [id] })
  ports.clock.advance(8 * 86_400_000)
  simulator.create('Tasks', { Name: 'b' })
  expect((await get('/achSimulated00001/payloads?cursor=1')).cursor).toBe(4)
})
