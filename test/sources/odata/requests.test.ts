import { afterEach, describe, expect, test } from 'vitest'
import { required } from '../../../src/values/required.ts'
import { odata } from '../../../src/sources/odata/source.ts'
import { OdataSimulator, SERVICE_PATH } from '../../../simulators/src/odata/simulator.ts'
import { standardParser } from '../../simulators/odata/standard-parser.ts'
import { VendorFixture } from '../vendor-fixture.ts'
import { ODataFixture, URL_OF_SERVICE } from './odata-fixture.ts'

const closing: { close(): Promise<void> }[] = []
afterEach(() => Promise.all(closing.splice(0).map((each) => each.close())))
const open = async (version: 2 | 4): Promise<ODataFixture> => {
  const desk = await ODataFixture.open(version)
  closing.push(desk)
  return desk
}

const textOf = (url: string): string => decodeURIComponent(url.slice(url.indexOf(SERVICE_PATH) + SERVICE_PATH.length))

describe('R26 R39 SAP by OData, as documented', () => {
  const since = '2025-09-30T23:59:59Z'
  const input = { stream_id: 'GLAccounts', cursor_field: 'LastUpdated', cursor_value: since }
  const accounts = async (): Promise<VendorFixture<OdataSimulator>> => {
    const sets = {
      GLAccounts: {
        key: ['AccountID'],
        properties: { AccountID: 'Edm.String', Name: 'Edm.String', LastUpdated: 'Edm.DateTimeOffset' },
      },
    } as const
    const stage = await VendorFixture.open(
      (ports) => new OdataSimulator(ports, { parser: standardParser, version: 4, sets }),
    )
    closing.push(stage)
    return stage
  }
  test('word for word when it is strict: the request, the state before and the state after', async () => {
    const stage = await accounts()
    const put = (id: string, at: string): void =>
      stage.vendor.put('GLAccounts', { AccountID: id, Name: id, LastUpdated: at })
    put('100-443', '2025-09-30T12:00:00Z')
    put('100-444', since)
    put('100-445', '2025-10-02T11:20:45Z')
    put('100-446', '2025-10-01T08:00:00Z')
    const { delta } = odata({ url: URL_OF_SERVICE }).entitySet('GLAccounts', { cursor: 'LastUpdated', strict: true })
    const given: unknown[] = []
    stage.list({
      mode: 'incremental',
      execute: (state, context) => {
        given.push(state ?? input)
        return delta(state ?? input, context)
      },
    })
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { created: 2 } })
    const [description, request, ...more] = stage.vendor.urls
    expect(textOf(description!)).toBe('/$metadata')
    expect(`GET ${textOf(request!)}`).toBe(
      'GET /GLAccounts?$filter=LastUpdated gt 2025-09-30T23:59:59Z&$orderby=LastUpdated asc&$top=1000',
    )
    expect(more).toEqual([])
    expect(given).toEqual([input])
    expect(await stage.state()).toEqual({ ...input, cursor_value: '2025-10-02T11:20:45Z', records_emitted: 2 })
  })

  test('F4 strict loses no ties at a border of its pages either: these never end within a moment', async () => {
    for (const [pageSize, ties] of [
      [3, 2],
      [3, 3],
      [2, 7],
      [1, 4],
    ] as const) {
      const stage = await accounts()
      const { delta } = odata({ url: URL_OF_SERVICE }).entitySet('GLAccounts', {
        cursor: 'LastUpdated',
        strict: true,
        pageSize,
      })
      stage.list({ mode: 'incremental', execute: delta })
      for (let n = 0; n < 12; n++)
        stage.vendor.put('GLAccounts', {
          AccountID: `a${n}`,
          Name: 'x',
          LastUpdated: `2025-10-01T00:00:${String(Math.floor(n / ties)).padStart(2, '0')}Z`,
        })
      expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { created: 12 } })
      expect(await stage.rows()).toEqual(stage.truth('GLAccounts', 'AccountID'))
    }
  })

  test('F4 and unless it is: from the position on, up to the horizon, by cursor and key', async () => {
    const stage = await accounts()
    stage.track(odata({ url: URL_OF_SERVICE }).entitySet('GLAccounts', { cursor: 'LastUpdated', since, pageSize: 1 }))
    stage.vendor.put('GLAccounts', { AccountID: "100'445", Name: 'x', LastUpdated: '2025-10-02T11:20:45Z' })
    await stage.delta()
    expect(stage.vendor.urls.map(textOf)).toEqual([
      '/$metadata',
      '/GLAccounts?$filter=LastUpdated ge 2025-09-30T23:59:59Z and LastUpdated le 2026-03-01T00:04:29.000Z&$orderby=LastUpdated asc,AccountID asc&$top=1',
      "/GLAccounts?$filter=(LastUpdated gt 2025-10-02T11:20:45Z or (LastUpdated eq 2025-10-02T11:20:45Z and AccountID gt '100''445')) and LastUpdated le 2026-03-01T00:04:29.000Z&$orderby=LastUpdated asc,AccountID asc&$top=1",
    ])
    expect(await stage.state()).toEqual({
      cursorTimestamp: '2025-10-02T11:20:45Z',
      cursorId: "100'445",
      answeredMs: Date.UTC(2026, 2, 1, 0, 4, 29),
    })
  })

  test('a space is %20 and never a plus', async () => {
    const stage = await accounts()
    stage.track(odata({ url: URL_OF_SERVICE }).entitySet('GLAccounts', { cursor: 'LastUpdated' }))
    stage.vendor.put('GLAccounts', { AccountID: 'a+b c&d', Name: 'x', LastUpdated: '2025-10-02T13:20:45+02:00' })
    expect(await stage.delta()).toMatchObject({ stopReason: 'complete' })
    await stage.backfill()
    const [, , second, , , fourth] = stage.vendor.urls
    expect(second).toContain('$filter=(LastUpdated%20gt%202025-10-02T13:20:45%2B02:00%20or%20')
    expect(fourth).toContain('AccountID%20gt%20%27a%2Bb%20c%26d%27')
    for (const url of stage.vendor.urls) expect(url).not.toContain('+')
  })
})

describe('a start date and a range', () => {
  test.each([2, 4] as const)('version %i: limit the listing and keep its key order', async (version) => {
    const { stage, service, source } = await open(version)
    closing.push(stage)
    const put = (id: number, at: string): void =>
      service.put('Orders', {
        Id: String(id),
        Name: `n${id}`,
        Price: '1.50',
        Gone: false,
        At: version === 4 ? `${at}Z` : at,
      })
    put(1, '2025-12-31T23:59:59')
    put(2, '2026-01-01T00:00:00')
    put(3, '2026-01-10T00:00:00')
    put(4, '2026-02-01T00:00:00')
    stage.track(source.entitySet('Orders', { cursor: 'At', since: '2026-01-01' }))
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { created: 3 } })
    expect((await stage.scene.checkpoint('sync-backfill')).scope).toBe('since 2026-01-01T00:00:00.000000Z')

    put(2, '2026-01-01T00:00:00')
    service.urls.splice(0)
    const result = await stage.range({ from: '2025-01-01', to: '2026-01-10' })
    expect(result).toMatchObject({ stopReason: 'complete', counts: { unchanged: 1, swept: 0 } })
    const literal = (text: string): string => (version === 4 ? `${text}Z` : `datetime'${text}'`)
    expect(textOf(required(service.urls[1], 'the first request'))).toBe(
      `/Orders?$filter=At ge ${literal('2026-01-01T00:00:00')} and At lt ${literal('2026-01-10T00:00:00')}&$orderby=Id asc&$top=1000`,
    )
  })

  test('a day belongs to a range that ends within it', async () => {
    const { stage, service, source } = await open(4)
    closing.push(stage)
    stage.track(source.entitySet('Days', { cursor: 'On' }))
    await stage.backfill()
    service.urls.splice(0)
    await stage.range({ from: '2026-01-01T08:00:00Z', to: '2026-01-10' })
    await stage.range({ to: '2026-01-10T08:00:00Z' })
    const filters = service.urls.map(textOf).flatMap((url) => /filter=([^&]*)/.exec(url)?.[1] ?? [])
    expect([...new Set(filters)]).toEqual(['On ge 2026-01-01 and On lt 2026-01-10', 'On le 2026-01-10'])
  })

  test('a start date needs a cursor', () => {
    const limited = odata({ url: URL_OF_SERVICE, since: '2026-01-01' })
    expect(() => limited.listing('Orders')).toThrow(/`since` needs a `cursor`/)
    expect(() => limited.tracked('Orders')).toThrow(/`since` needs a `cursor`/)
    expect(() => limited.entitySet('Orders', { cursor: 'At', since: 'soon' })).toThrow(/`since` is "soon"/)
    expect(odata({ url: URL_OF_SERVICE }).listing('Orders').execute.range).toBeUndefined()
  })
})

test('version 2 is asked in its own literals', async () => {
  const desk = (await open(2)).follow('Orders', { since: '2026-01-01T00:00:00Z', exactCursor: true })
  desk.order('7', 'x', { at: '2026-02-01T10:00:00.5' })
  await desk.stage.delta()
  expect(desk.asked()).toEqual([
    "/Orders?$filter=At ge datetime'2026-01-01T00:00:00' and At le datetime'2026-03-01T00:04:29'&$orderby=At asc,Id asc&$top=1000",
    "/Orders?$filter=(At gt datetime'2026-02-01T10:00:00.5' or (At eq datetime'2026-02-01T10:00:00.5' and Id gt 7L)) and At le datetime'2026-03-01T00:04:29'&$orderby=At asc,Id asc&$top=1000",
  ])
  const lines = (await open(2)).follow('Items')
  lines.service.put('Items', {
    Id: '0a0a0a0a-0000-0000-0000-000000000001',
    Name: 'x',
    At: '2026-02-01T10:00:00.1234567Z',
  })
  await lines.stage.delta()
  await lines.stage.backfill()
  expect(lines.asked()).toEqual([
    "/Items?$filter=At lt datetimeoffset'2026-03-01T00:04:29.001Z'&$orderby=At asc,Id asc&$top=1000",
    // No more than milliseconds were shown: the last one is read whole, by key, until two answers are empty. Then it
    // goes on with the next.
    "/Items?$filter=At ge datetimeoffset'2026-02-01T10:00:00.123Z' and At lt datetimeoffset'2026-02-01T10:00:00.124Z'&$orderby=Id asc&$top=1000",
    "/Items?$filter=At ge datetimeoffset'2026-02-01T10:00:00.123Z' and At lt datetimeoffset'2026-02-01T10:00:00.124Z' and Id gt guid'0a0a0a0a-0000-0000-0000-000000000001'&$orderby=Id asc&$top=1000",
    "/Items?$filter=At ge datetimeoffset'2026-02-01T10:00:00.123Z' and At lt datetimeoffset'2026-02-01T10:00:00.124Z' and Id gt guid'0a0a0a0a-0000-0000-0000-000000000001'&$orderby=Id asc&$top=1000",
    "/Items?$filter=At ge datetimeoffset'2026-02-01T10:00:00.124Z' and At lt datetimeoffset'2026-03-01T00:04:29.001Z'&$orderby=At asc,Id asc&$top=1000",
    '/Items?$orderby=Id asc&$top=1000',
    "/Items?$filter=Id gt guid'0a0a0a0a-0000-0000-0000-000000000001'&$orderby=Id asc&$top=1000",
    // An empty page ends a listing only when it comes twice.
    "/Items?$filter=Id gt guid'0a0a0a0a-0000-0000-0000-000000000001'&$orderby=Id asc&$top=1000",
  ])
})

test('each version is asked with its headers, and every question with what was given for all', async () => {
  for (const version of [4, 2] as const) {
    const desk = await open(version)
    desk.orders(1)
    desk.stage.track(
      odata({ url: `${URL_OF_SERVICE}/`, headers: { 'X-Tenant': 'a' }, query: { 'sap-client': '100' } }).entitySet(
        'Orders',
        { cursor: 'At', pageSize: 5 },
      ),
    )
    const headers: Record<string, string>[] = []
    const handle = desk.service.handle.bind(desk.service)
    desk.service.handle = (request) => {
      headers.push(Object.fromEntries(request.headers))
      return handle(request)
    }
    await desk.stage.delta()
    expect(headers[0]).toMatchObject({ accept: 'application/xml, text/xml', 'x-tenant': 'a' })
    expect(headers[1]).toMatchObject(
      version === 4
        ? {
            accept: 'application/json;odata.metadata=minimal;IEEE754Compatible=true',
            'odata-maxversion': '4.01',
            prefer: 'odata.maxpagesize=5',
            'x-tenant': 'a',
          }
        : { accept: 'application/json', maxdataserviceversion: '2.0', 'x-tenant': 'a' },
    )
    if (version === 2) expect(headers[1]).not.toHaveProperty('prefer')
    expect(desk.service.urls).toHaveLength(3 + (version === 2 ? 3 : 0))
    for (const url of desk.service.urls) expect(url).toMatch(/[?&]sap-client=100$/)
  }
})
