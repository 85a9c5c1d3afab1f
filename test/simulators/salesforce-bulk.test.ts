import jsforce from 'jsforce'
import { describe, expect, test } from 'vitest'
import { createSimulatorFetch } from '../../simulators/src/kit/simulator-fetch.ts'
import { serve } from '../../simulators/src/kit/serve.ts'
import { SalesforceSimulator, type SalesforceOptions } from '../../simulators/src/salesforce/simulator.ts'
import { portsOf } from './ports.ts'

const HOUR_MS = 3_600_000

function open(options: SalesforceOptions = {}) {
  const ports = portsOf(1)
  const simulator = new SalesforceSimulator(ports, options)
  const fetch = createSimulatorFetch(simulator)
  const send = async (method: string, path: string, body?: unknown, version = '60.0') => {
    const response = await fetch(`https://org.example/services/data/v${version}/jobs/query${path}`, {
      method,
      headers: { authorization: 'Bearer t', 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.includes('json') === true
    return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : null }
  }
  const create = (query: string, operation = 'query') => send('POST', '', { operation, query })
  const complete = async (query: string, operation = 'query'): Promise<string> => {
    const { id } = (await create(query, operation)).body
    ports.clock.advance(15_000)
    expect((await send('GET', `/${id}`)).body).toMatchObject({ state: 'JobComplete' })
    return id
  }
  return { ...ports, simulator, send, create, complete }
}

const TYPES = {
  Deal: { Name: 'string', Amount: 'currency', Units: 'int', Open: 'boolean', Due: 'date', Called: 'datetime' },
  Site: { Name: 'string', Place: 'address' },
} as const

describe('query jobs of Bulk API 2.0', () => {
  test('a job goes from UploadComplete to JobComplete and counts its records', async () => {
    const { simulator, clock, send, create } = open()
    for (let n = 0; n < 5; n++) simulator.create('Account', { Name: `a${n}` })
    const created = await create('SELECT Id, Name FROM Account')
    expect(created.body).toMatchObject({
      operation: 'query',
      object: 'Account',
      state: 'UploadComplete',
      contentType: 'CSV',
      apiVersion: 60,
      lineEnding: 'LF',
      columnDelimiter: 'COMMA',
    })
    const { id } = created.body
    expect(id).toMatch(/^750\w{15}$/)
    expect((await send('GET', `/${id}/results`)).status).toBe(400)
    clock.advance(15_000)
    expect((await send('GET', `/${id}`)).body).toMatchObject({ state: 'JobComplete', numberRecordsProcessed: 5 })
    const { headers, text } = await send('GET', `/${id}/results`)
    expect(headers.get('content-type')).toBe('text/csv')
    expect(headers.get('sforce-numberofrecords')).toBe('5')
    expect(headers.get('sforce-locator')).toBe('null')
    expect(text.split('\n')).toHaveLength(7)
  })

  test('results are split into sets with a header line each, and a locator can be used again', async () => {
    const { simulator, send, complete } = open()
    for (let n = 0; n < 5; n++) simulator.create('Account', { Name: `a${n}` })
    const id = await complete('SELECT Id, Name FROM Account')
    const seen: string[] = []
    let locator = ''
    for (const expected of ['Mg', 'NA', 'null']) {
      const page = await send('GET', `/${id}/results?maxRecords=2${locator}`)
      expect((await send('GET', `/${id}/results?maxRecords=2${locator}`)).text).toBe(page.text)
      expect(page.headers.get('sforce-locator')).toBe(expected)
      const [header, ...lines] = page.text.trimEnd().split('\n')
      expect(header).toBe('"Id","Name"')
      expect(page.headers.get('sforce-numberofrecords')).toBe(String(lines.length))
      seen.push(...lines)
      locator = `&locator=${expected}`
    }
    expect(new Set(seen).size).toBe(5)
    expect((await send('GET', `/${id}/results?locator=x`)).status).toBe(400)
  })

  test('values are quoted, null is empty, decimals have a fraction and times end with Z', async () => {
    const { simulator, send, complete } = open({ objects: TYPES })
    simulator.create('Deal', { Name: 'a "b",\nc', Amount: 100, Units: 7, Open: true, Due: '2026-02-03', Called: 0 })
    simulator.create('Deal', { Amount: 0.25, Open: false })
    const id = await complete('SELECT Name, Amount, Units, Open, Due, Called FROM Deal')
    const lines = (await send('GET', `/${id}/results`)).text
    expect(lines).toContain('"a ""b"",\nc","100.0","7","true","2026-02-03","1970-01-01T00:00:00.000Z"\n')
    expect(lines).toContain('"","0.25","","false","",""\n')
  })

  test('an empty result is a header line without a locator', async () => {
    const { send, complete } = open()
    const id = await complete('SELECT Id FROM Account')
    const { text, headers } = await send('GET', `/${id}/results`)
    expect([text, headers.get('sforce-numberofrecords'), headers.get('sforce-locator')]).toEqual([
      '"Id"\n',
      '0',
      'null',
    ])
  })

  test('queryAll returns deleted records, query does not', async () => {
    const { simulator, send, complete } = open()
    simulator.remove('Account', simulator.create('Account', {}))
    const count = async (operation: string): Promise<string | null> => {
      const id = await complete('SELECT Id FROM Account', operation)
      return (await send('GET', `/${id}/results`)).headers.get('sforce-numberofrecords')
    }
    expect([await count('query'), await count('queryAll')]).toEqual(['0', '1'])
  })

  test('the result is no snapshot: each row is as it was at some time during the job', async () => {
    const { simulator, clock, send, create } = open()
    const ids = Array.from({ length: 40 }, () => simulator.create('Account', { Name: 'old' }))
    const { id } = (await create('SELECT Id, Name FROM Account')).body
    for (const one of ids) simulator.update('Account', one, { Name: 'new' })
    clock.advance(15_000)
    const { text } = await send('GET', `/${id}/results`)
    expect(text).toContain('"old"')
    expect(text).toContain('"new"')
    expect(text.trimEnd().split('\n')).toHaveLength(41)
  })

  test.each([
    ['SELECT COUNT() FROM Account', 'API_ERROR'],
    ['SELECT Id FROM Account LIMIT 1 OFFSET 1', 'API_ERROR'],
    ['SELECT Id FROM Nothing', 'INVALID_TYPE'],
    ['SELECT Nothing FROM Account', 'INVALID_FIELD'],
    ['SELECT FIELDS(ALL) FROM Account', 'MALFORMED_QUERY'],
    ['SELECT Id FROM Contact', 'INVALIDENTITY'],
  ])('%s is refused as %s', async (query, code) => {
    const { status, body } = await open({ notInBulk: ['Contact'] }).create(query)
    expect([status, body[0].errorCode]).toEqual([400, code])
  })

  test('a query with a compound field is accepted and fails', async () => {
    const { clock, send, create } = open({ objects: TYPES })
    const { id } = (await create('SELECT Id, Place FROM Site')).body
    clock.advance(15_000)
    expect((await send('GET', `/${id}`)).body).toMatchObject({
      state: 'Failed',
      errorMessage: expect.stringContaining('compound data not supported'),
    })
  })

  test('a job can be aborted and deleted, and ages out after seven days', async () => {
    const { clock, send, create, complete } = open()
    const { id } = (await create('SELECT Id FROM Account')).body
    expect((await send('DELETE', `/${id}`)).body[0].errorCode).toBe('INVALIDJOBSTATE')
    expect((await send('PATCH', `/${id}`, { state: 'Aborted' })).body).toMatchObject({ state: 'Aborted' })
    expect((await send('DELETE', `/${id}`)).status).toBe(204)
    expect((await send('GET', `/${id}`)).status).toBe(404)
    const kept = await complete('SELECT Id FROM Account')
    clock.advance(7 * 24 * HOUR_MS - 20_000)
    expect((await send('GET', `/${kept}/results`)).status).toBe(200)
    clock.advance(20_000)
    expect((await send('GET', `/${kept}/results`)).status).toBe(404)
  })

  test('results need the API version of the job, and a day has a limited number of jobs', async () => {
    const { clock, send, create, complete } = open({ dailyQueryJobs: 2 })
    const id = await complete('SELECT Id FROM Account')
    expect((await send('GET', `/${id}/results`, undefined, '61.0')).status).toBe(409)
    await create('SELECT Id FROM Account')
    expect((await create('SELECT Id FROM Account')).body[0].errorCode).toBe('LIMIT_EXCEEDED')
    clock.advance(25 * HOUR_MS)
    expect((await create('SELECT Id FROM Account')).status).toBe(200)
  })

  test('the end of the results can be claimed too early, and a set can be short', async () => {
    const { simulator, send, complete } = open()
    for (let n = 0; n < 4; n++) simulator.create('Account', {})
    const id = await complete('SELECT Id FROM Account')
    simulator.faults.plan({ kind: 'end-flag', value: 'end' })
    expect((await send('GET', `/${id}/results?maxRecords=2`)).headers.get('sforce-locator')).toBe('null')
    simulator.faults.plan({ kind: 'short-page' })
    expect((await send('GET', `/${id}/results?maxRecords=2`)).headers.get('sforce-numberofrecords')).toBe('1')
    simulator.faults.plan({ kind: 'expired-token' })
    expect((await send('GET', `/${id}/results`)).status).toBe(404)
  })

  test('jsforce reads the results of a job', async () => {
    const { simulator, complete } = open()
    for (let n = 0; n < 30; n++) simulator.create('Account', { Name: `a${n}` })
    const id = await complete('SELECT Id, Name FROM Account')
    await using server = await serve(simulator)
    const connection = new jsforce.Connection({ instanceUrl: server.url, accessToken: 'token', version: '60.0' })
    const job = connection.bulk2.job('query', { id })
    await job.poll(1, 5_000)
    const records = await (await job.result()).toArray()
    expect(records.map((record) => String(record['Name'])).toSorted()).toEqual(
      simulator
        .truth('Account')
        .map((record) => String(record['Name']))
        .toSorted(),
    )
    await job.delete()
    expect(simulator.jobs.count).toBe(0)
  })
})
