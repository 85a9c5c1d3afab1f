import jsforce from 'jsforce'
import { describe, expect, test } from 'vitest'
import { createSimulatorFetch } from '../../simulators/src/kit/simulator-fetch.ts'
import { churn } from '../../simulators/src/kit/churn.ts'
import { serve } from '../../simulators/src/kit/serve.ts'
import { SalesforceSimulator, type SalesforceOptions } from '../../simulators/src/salesforce/simulator.ts'
import { parseSoql } from '../../simulators/src/salesforce/soql.ts'
import { portsOf } from './ports.ts'

interface Answer {
  totalSize: number
  done: boolean
  nextRecordsUrl?: string
  records: Array<Record<string, string>>
}

function open(options: SalesforceOptions = {}, seed = 1) {
  const ports = portsOf(seed)
  const simulator = new SalesforceSimulator(ports, options)
  const fetch = createSimulatorFetch(simulator)
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(`https://org.example${path}`, { headers: { authorization: 'Bearer t', ...headers } })
  const query = async (soql: string, headers: Record<string, string> = {}) =>
    (await (await get(`/services/data/v65.0/query?q=${encodeURIComponent(soql)}`, headers)).json()) as Answer
  const refusal = async (soql: string) => {
    const response = await get(`/services/data/v65.0/query?q=${encodeURIComponent(soql)}`)
    return { status: response.status, code: ((await response.json()) as Array<{ errorCode: string }>)[0]!.errorCode }
  }
  return { ...ports, simulator, get, query, refusal }
}

describe('jsforce against the salesforce simulator', () => {
  test('jsforce pages through a query by its locators and sees every record once', async () => {
    const { simulator } = open()
    for (let n = 0; n < 450; n++) simulator.create('Account', { Name: `Account ${n}` })
    await using server = await serve(simulator)
    const connection = new jsforce.Connection({ instanceUrl: server.url, accessToken: 'token', version: '65.0' })
    let page = await connection.query('SELECT Id, Name FROM Account ORDER BY Id', {
      headers: { 'Sforce-Query-Options': 'batchSize=200' },
    } as object)
    const ids = page.records.map((record) => record['Id'] as string)
    while (!page.done) {
      page = await connection.queryMore(page.nextRecordsUrl!)
      ids.push(...page.records.map((record) => record['Id'] as string))
    }
    expect(page.totalSize).toBe(450)
    expect(ids).toEqual(
      simulator
        .truth('Account')
        .map((row) => String(row['Id']))
        .toSorted(),
    )
    expect(server.requests).toBe(3)
  })

  test('jsforce signs in with client credentials, describes an object and finds records by its own query builder', async () => {
    const { simulator } = open({ token: 'secret' })
    simulator.create('Account', { Name: 'Ann', Industry: 'Energy' })
    simulator.create('Account', { Name: 'Bob', Industry: 'Media' })
    await using server = await serve(simulator)
    const connection = new jsforce.Connection({
      loginUrl: server.url,
      instanceUrl: server.url,
      oauth2: { loginUrl: server.url, clientId: 'id', clientSecret: 'shh' },
    })
    await connection.authorize({ grant_type: 'client_credentials' })
    expect((await connection.sobject('Account').describe()).fields.map((field) => field.name)).toContain(
      'SystemModstamp',
    )
    const found = await connection.sobject('Account').find({ Industry: 'Media' }, 'Id, Name').sort('Name').limit(5)
    expect(found.map((record) => record['Name'])).toEqual(['Bob'])
  })

  test('jsforce reports a spent budget and a malformed query by their error codes', async () => {
    const { simulator } = open({ dailyRequests: 1 })
    await using server = await serve(simulator)
    const connection = new jsforce.Connection({ instanceUrl: server.url, accessToken: 'token' })
    await expect(connection.query('SELECT Id FROM Account WHERE')).rejects.toMatchObject({
      errorCode: 'MALFORMED_QUERY',
    })
    await expect(connection.query('SELECT Id FROM Account')).rejects.toMatchObject({
      errorCode: 'REQUEST_LIMIT_EXCEEDED',
    })
    expect(connection.limitInfo?.apiUsage).toEqual({ used: 1, limit: 1 })
  })
})

describe('the rules of SOQL', () => {
  test.each([
    ["SELECT Id FROM Account WHERE Name = 'a' AND Name = 'b' OR Name = 'c'", 'MALFORMED_QUERY'],
    ['SELECT Id FROM Account WHERE', 'MALFORMED_QUERY'],
    ['SELECT Id FROM Account LIMIT 5 ORDER BY Id', 'MALFORMED_QUERY'],
    ['SELECT Id FROM Account WHERE SystemModstamp > 2026-01-01T00:00:00.000 0000', 'MALFORMED_QUERY'],
    ['SELECT Id FROM Account WHERE SystemModstamp > 2026-01-01T00:00:00.000', 'MALFORMED_QUERY'],
    ["SELECT Id FROM Account WHERE SystemModstamp > '2026-01-01T00:00:00.000Z'", 'INVALID_FIELD'],
    ["SELECT Id FROM Account WHERE Id > 'short'", 'INVALID_QUERY_FILTER_OPERATOR'],
    ['SELECT Nothing FROM Account', 'INVALID_FIELD'],
    ['SELECT Id FROM Account ORDER BY Nothing', 'INVALID_FIELD'],
    ['SELECT Id FROM Nothing', 'INVALID_TYPE'],
    ['SELECT Id FROM Account LIMIT 1 OFFSET 2001', 'NUMBER_OUTSIDE_VALID_RANGE'],
  ])('%s is refused as %s', async (soql, code) => {
    expect(await open().refusal(soql)).toEqual({ status: 400, code })
  })

  test('a keyset predicate parses to OR of a comparison and a bracketed AND', () => {
    expect(
      parseSoql(
        "SELECT Id FROM A WHERE T > 2026-01-01T00:00:00.5Z OR (T = 2026-01-01T00:00:00+0000 AND Id > '') ORDER BY T, Id DESC LIMIT 3",
      ),
    ).toEqual({
      fields: ['Id'],
      count: false,
      from: 'A',
      where: {
        kind: 'or',
        all: [
          {
            kind: 'compare',
            field: 'T',
            operator: '>',
            value: { kind: 'datetime', value: Date.UTC(2026, 0, 1, 0, 0, 0, 500) },
          },
          {
            kind: 'and',
            all: [
              { kind: 'compare', field: 'T', operator: '=', value: { kind: 'datetime', value: Date.UTC(2026, 0, 1) } },
              { kind: 'compare', field: 'Id', operator: '>', value: { kind: 'string', value: '' } },
            ],
          },
        ],
      },
      orderBy: [
        { field: 'T', descending: false, nullsLast: false },
        { field: 'Id', descending: true, nullsLast: false },
      ],
      limit: 3,
      offset: 0,
    })
  })

  test('a plus sign that was not encoded arrives as a space and breaks the query', async () => {
    const { get } = open()
    const soql = 'SELECT Id FROM Account WHERE CreatedDate = 2026-01-01T00:00:00.000+0000'
    expect((await get(`/services/data/v65.0/query?q=${soql.replaceAll(' ', '%20')}`)).status).toBe(400)
    expect((await get(`/services/data/v65.0/query?q=${encodeURIComponent(soql)}`)).status).toBe(200)
  })
})

describe('the salesforce simulator', () => {
  test('ids are 18 characters, ordered by byte, and do not follow time', async () => {
    const { simulator, query } = open()
    for (let n = 0; n < 40; n++) simulator.create('Account', { Name: String(n) })
    const ids = (await query('SELECT Id FROM Account ORDER BY Id')).records.map((row) => row['Id']!)
    expect(ids.every((id) => /^001\w{15}$/.test(id))).toBe(true)
    expect(ids).toEqual([...ids].sort())
    expect(ids).not.toEqual(simulator.truth('Account').map((row) => row['Id']))
  })

  test('timestamps have milliseconds and change with every update', async () => {
    const { simulator, clock, query } = open()
    const id = simulator.create('Account', { Name: 'a' })
    clock.advance(1_234)
    simulator.update('Account', id, { Name: 'b' })
    expect((await query('SELECT CreatedDate, SystemModstamp FROM Account')).records[0]).toMatchObject({
      CreatedDate: '2026-01-01T00:00:00.000+0000',
      SystemModstamp: '2026-01-01T00:00:01.234+0000',
    })
  })

  test('a late write shows its old version until its delay is over, and a late new record shows nothing', async () => {
    const { simulator, clock, query } = open()
    const id = simulator.create('Account', { Name: 'old' })
    simulator.records.lag = { share: 1, maxMs: 10_000 }
    simulator.update('Account', id, { Name: 'new' })
    simulator.create('Account', { Name: 'unseen' })
    const names = async () => (await query('SELECT Name FROM Account ORDER BY Name')).records.map((row) => row['Name'])
    expect(await names()).toEqual(['old'])
    clock.advance(10_000)
    expect(await names()).toEqual(['new', 'unseen'])
  })

  test('queryAll shows deleted records with a flag, query does not show them', async () => {
    const { simulator, get, query } = open()
    simulator.remove('Account', simulator.create('Account', { Name: 'gone' }))
    expect((await query('SELECT Id FROM Account')).totalSize).toBe(0)
    const all = await get(
      `/services/data/v65.0/queryAll?q=${encodeURIComponent('SELECT Id, IsDeleted FROM Account WHERE IsDeleted = true')}`,
    )
    expect(((await all.json()) as Answer).records).toMatchObject([{ IsDeleted: true }])
    expect(simulator.truth('Account')).toEqual([])
  })

  test('the batch size header is clamped between 200 and 2,000', async () => {
    const { simulator, query } = open()
    for (let n = 0; n < 2_100; n++) simulator.create('Account')
    expect((await query('SELECT Id FROM Account', { 'sforce-query-options': 'batchSize=50' })).records).toHaveLength(
      200,
    )
    expect((await query('SELECT Id FROM Account', { 'sforce-query-options': 'batchSize=9999' })).records).toHaveLength(
      2_000,
    )
    expect(await query('SELECT Id FROM Account LIMIT 100')).toMatchObject({ totalSize: 100, done: true })
  })

  test('a locator expires after a quarter of an hour without use, and the eleventh cursor ends the oldest', async () => {
    const { simulator, clock, get, query } = open({ batchSizeMin: 1 })
    for (let n = 0; n < 5; n++) simulator.create('Account')
    const first = async () =>
      (await query('SELECT Id FROM Account', { 'sforce-query-options': 'batchSize=2' })).nextRecordsUrl!
    const idle = await first()
    clock.advance(15 * 60_000 + 1)
    const refused = await get(idle)
    expect([refused.status, await refused.json()]).toEqual([
      400,
      [{ message: 'invalid query locator', errorCode: 'INVALID_QUERY_LOCATOR' }],
    ])
    const oldest = await first()
    for (let n = 0; n < 10; n++) {
      clock.advance(1)
      await first()
    }
    expect((await get(oldest)).status).toBe(400)
  })

  test('the end flag can be false either way, and a page can be short though more follow', async () => {
    const { simulator, get, query } = open({ batchSizeMin: 1 })
    for (let n = 0; n < 4; n++) simulator.create('Account')
    const twos = { 'sforce-query-options': 'batchSize=2' }
    simulator.faults.plan({ kind: 'end-flag', value: 'end' })
    expect(await query('SELECT Id FROM Account', twos)).toMatchObject({ done: true, totalSize: 4, records: [{}, {}] })
    simulator.faults.plan({ kind: 'end-flag', value: 'more' })
    const more = await query('SELECT Id FROM Account')
    expect([more.done, more.records.length]).toEqual([false, 4])
    expect(await (await get(more.nextRecordsUrl!)).json()).toMatchObject({ done: true, records: [] })
    simulator.faults.plan({ kind: 'short-page' })
    const short = await query('SELECT Id FROM Account LIMIT 4')
    expect([short.done, short.records.length]).toEqual([false, 2])
  })

  test('requests are logged and the usage header counts them', async () => {
    const { simulator, get } = open({ dailyRequests: 10 })
    await get('/services/data/v65.0/limits')
    const response = await get('/services/data/v65.0/query?q=SELECT%20Id%20FROM%20Account')
    expect(response.headers.get('sforce-limit-info')).toBe('api-usage=2/10')
    expect(simulator.requests.entries.at(-1)).toMatchObject({
      method: 'GET',
      path: '/services/data/v65.0/query',
      query: { q: 'SELECT Id FROM Account' },
      status: 200,
    })
    expect(simulator.requests.count(/query$/)).toBe(1)
  })

  test('the same seed and clock give the same responses to the last byte', async () => {
    const run = async () => {
      const { simulator, clock, random, get } = open({ lag: { share: 0.3, maxMs: 5_000 } }, 7)
      churn(simulator, { type: 'Account', writes: 200, random, fields: (n) => ({ Name: `n${n}` }) })
      clock.advance(1_000)
      return (await get('/services/data/v65.0/query?q=SELECT%20Id,Name,SystemModstamp%20FROM%20Account')).text()
    }
    expect(await run()).toBe(await run())
  })
})
