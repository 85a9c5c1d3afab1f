import { describe, expect, test } from 'vitest'
import { createSimulatorFetch } from '../../simulators/src/kit/simulator-fetch.ts'
import { serve } from '../../simulators/src/kit/serve.ts'
import { parseEncodedQuery } from '../../simulators/src/servicenow/encoded-query.ts'
import { ServicenowSimulator, type ServicenowOptions } from '../../simulators/src/servicenow/simulator.ts'
import { portsOf } from './ports.ts'

interface Answer {
  result: Array<Record<string, string>>
  error?: { message: string }
}

function open(options: ServicenowOptions = {}) {
  const ports = portsOf()
  const simulator = new ServicenowSimulator(ports, options)
  const fetch = createSimulatorFetch(simulator)
  const get = (table: string, params: Record<string, string> = {}) =>
    fetch(`https://i.service-now.com/api/now/table/${table}?${new URLSearchParams(params).toString()}`, {
      headers: { authorization: 'Basic dTpw' },
    })
  const list = async (params: Record<string, string> = {}, table = 'incident') =>
    ((await (await get(table, params)).json()) as Answer).result
  return { ...ports, simulator, get, list }
}

describe('the encoded query', () => {
  test('NQ starts a new query, OR joins alternatives, and the order applies to all', () => {
    const fields = new Set(['a', 'b', 'c'])
    const query = parseEncodedQuery('a>1^ORb=2^c!=3^NQa=1^b>2^ORDERBYa^ORDERBYDESCb', fields)
    expect(
      query.queries.map((conditions) =>
        conditions.map((alternatives) =>
          alternatives.map(({ field, operator, value }) => `${field}${operator}${value}`),
        ),
      ),
    ).toEqual([
      [['a>1', 'b=2'], ['c!=3']],
      [['a=1'], ['b>2']],
    ])
    expect(query.orderBy).toEqual([
      { field: 'a', descending: false },
      { field: 'b', descending: true },
    ])
    expect(
      parseEncodedQuery("a=x^^y^b>javascript:gs.dateGenerate('2026-01-01','00:00:05')", fields).queries[0],
    ).toMatchObject([[{ value: 'x^y' }], [{ value: '2026-01-01 00:00:05' }]])
  })

  test('a keyset over the timestamp and the id reads every row once, however many share a second', async () => {
    const { simulator, clock, list } = open()
    for (let n = 0; n < 40; n++) {
      if (n % 20 === 0) clock.advance(1_000)
      simulator.create('incident', { number: String(n) })
    }
    const seen: string[] = []
    let query = 'ORDERBYsys_updated_on^ORDERBYsys_id'
    for (;;) {
      const page = await list({ sysparm_query: query, sysparm_limit: '7' })
      if (page.length === 0) break
      seen.push(...page.map((row) => row['number']!))
      const { sys_updated_on: at, sys_id: id } = page.at(-1)!
      query = `sys_updated_on>${at}^NQsys_updated_on=${at}^sys_id>${id}^ORDERBYsys_updated_on^ORDERBYsys_id`
    }
    expect(seen.toSorted((a, b) => Number(a) - Number(b))).toEqual(Array.from({ length: 40 }, (_, n) => String(n)))
  })

  test('a column that does not exist is dropped from the query, unless the instance is configured to return nothing', async () => {
    const lenient = open()
    lenient.simulator.create('incident')
    expect(await lenient.list({ sysparm_query: 'sys_updated>2099-01-01 00:00:00' })).toHaveLength(1)
    const strict = open({ invalidQueryReturnsNoRows: true })
    strict.simulator.create('incident')
    expect(await strict.list({ sysparm_query: 'sys_updated>2099-01-01 00:00:00' })).toEqual([])
  })
})

describe('the table api', () => {
  test('timestamps are whole seconds in UTC and all values are text', async () => {
    const { simulator, clock, list } = open()
    clock.advance(1_999)
    const id = simulator.create('incident', { number: 'INC1', active: true })
    clock.advance(60_000)
    simulator.update('incident', id, { state: 2 })
    expect(await list()).toEqual([
      {
        sys_id: id,
        number: 'INC1',
        short_description: '',
        state: '2',
        active: 'true',
        sys_created_on: '2026-01-01 00:00:01',
        sys_updated_on: '2026-01-01 00:01:01',
        sys_mod_count: '1',
      },
    ])
  })

  test('pages by offset contain the total and links, and the requested fields only', async () => {
    const { simulator, get } = open()
    for (let n = 0; n < 5; n++) simulator.create('incident', { number: String(n) })
    const response = await get('incident', {
      sysparm_limit: '2',
      sysparm_offset: '2',
      sysparm_query: 'ORDERBYnumber',
      sysparm_fields: 'number',
    })
    expect(await response.json()).toEqual({ result: [{ number: '2' }, { number: '3' }] })
    expect(response.headers.get('x-total-count')).toBe('5')
    const rels = [...response.headers.get('link')!.matchAll(/sysparm_offset=(\d+)[^>]*>;rel="(\w+)"/g)].map(
      ([, offset, rel]) => [rel, offset],
    )
    expect(rels).toEqual([
      ['first', '0'],
      ['prev', '0'],
      ['next', '4'],
      ['last', '4'],
    ])
  })

  test('rows hidden from the reader make a page short though more follow', async () => {
    const { simulator, get } = open({ hidden: (_table, row) => Number(row['number']) < 3 })
    for (let n = 0; n < 6; n++) simulator.create('incident', { number: String(n) })
    const response = await get('incident', { sysparm_limit: '4', sysparm_query: 'ORDERBYnumber' })
    expect(((await response.json()) as Answer).result.map((row) => row['number'])).toEqual(['3'])
    expect([response.headers.get('x-total-count'), response.headers.get('link')?.includes('rel="next"')]).toEqual([
      '6',
      true,
    ])
  })

  test('a deletion leaves a row in the audit, with its own second and id', async () => {
    const { simulator, clock, list } = open()
    const id = simulator.create('incident', { state: 1 })
    simulator.update('incident', id, { state: 2 })
    clock.advance(5_000)
    simulator.remove('incident', id)
    expect(await list()).toEqual([])
    const deletes = await list(
      { sysparm_query: 'tablename=incident^fieldname=DELETED^ORDERBYsys_created_on^ORDERBYsys_id' },
      'sys_audit',
    )
    expect(deletes).toMatchObject([{ documentkey: id, newvalue: 'DELETED', sys_created_on: '2026-01-01 00:00:05' }])
    expect(await list({ sysparm_query: 'fieldname=state' }, 'sys_audit')).toMatchObject([
      { oldvalue: '1', newvalue: '2' },
    ])
  })

  test('ties come in another order with every request', async () => {
    const { simulator, list } = open()
    for (let n = 0; n < 20; n++) simulator.create('incident')
    const order = async () => (await list({ sysparm_query: 'ORDERBYsys_updated_on' })).map((row) => row['sys_id'])
    expect(await order()).not.toEqual(await order())
  })

  test('a cancelled transaction returns 200 with some rows and an error beside them', async () => {
    const { simulator, get } = open()
    for (let n = 0; n < 4; n++) simulator.create('incident')
    simulator.faults.plan({ kind: 'partial' })
    const response = await get('incident')
    const body = (await response.json()) as Answer
    expect([response.status, body.result.length, body.error?.message]).toEqual([
      200,
      2,
      'Transaction cancelled: maximum execution time exceeded',
    ])
  })

  test('a rule of the instance limits requests by the hour and returns when to retry', async () => {
    const { clock, get } = open({ requestsPerHour: 1 })
    const first = await get('incident')
    clock.advance(60_000)
    const second = await get('incident')
    expect([
      first.status,
      first.headers.get('x-ratelimit-limit'),
      second.status,
      second.headers.get('retry-after'),
    ]).toEqual([200, '1', 429, '3540'])
    expect(await second.json()).toMatchObject({ error: { message: 'Rate limit exceeded' }, status: 'failure' })
  })

  test('an unknown table, an unknown row and missing credentials are refused as the vendor refuses them', async () => {
    const { simulator, get } = open()
    await using server = await serve(simulator)
    expect((await get('nothing')).status).toBe(400)
    expect((await get('incident/abc')).status).toBe(404)
    const stranger = await fetch(`${server.url}/api/now/table/incident`)
    expect([stranger.status, await stranger.json()]).toMatchObject([
      401,
      { error: { message: 'User Not Authenticated' } },
    ])
  })
})
