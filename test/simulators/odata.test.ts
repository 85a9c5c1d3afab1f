import { afterEach, describe, expect, test } from 'vitest'
import { openOdata, type ServedOdata } from './odata/open-odata.ts'
import type { OdataOptions } from '../../simulators/src/odata/simulator.ts'
import { portsOf } from './ports.ts'

const V4 = {
  Orders: {
    key: ['Id'],
    properties: {
      Id: 'Edm.Int64',
      Name: 'Edm.String',
      Price: 'Edm.Decimal',
      Guid: 'Edm.Guid',
      ModifiedAt: 'Edm.DateTimeOffset',
      Open: 'Edm.Boolean',
    },
  },
} as const
const V2 = {
  Orders: {
    key: ['Id'],
    properties: { ...V4.Orders.properties, ModifiedAt: 'Edm.DateTime', SeenAt: 'Edm.DateTimeOffset' },
  },
} as const
const GUID = '0a0a0a0a-0000-0000-0000-000000000001'

const opened: ServedOdata[] = []
afterEach(() => Promise.all(opened.splice(0).map((served) => served.close())))

interface Answer {
  value: Array<Record<string, any>>
  '@odata.count'?: number
  '@odata.nextLink'?: string
  '@odata.deltaLink'?: string
  d: { results: Array<Record<string, any>>; __count?: string; __next?: string }
  error: { code: string; message: any }
}

async function open(options: Partial<OdataOptions> = {}) {
  const ports = portsOf()
  const served = await openOdata({ version: 4, sets: options.version === 2 ? V2 : V4, ...options }, ports)
  opened.push(served)
  const { odata, url } = served
  const fetchIn = (address: string, headers: Record<string, string> = {}) =>
    fetch(new URL(address, url), { headers: { accept: 'application/json', ...headers } })
  const get = async (address: string, headers?: Record<string, string>) =>
    (await (await fetchIn(address, headers)).json()) as Answer
  /** Options in the given order, encoded as OData requires. */
  const list = (query: Record<string, string> = {}, headers?: Record<string, string>) =>
    get(
      `Orders?${Object.entries(query)
        .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
        .join('&')}`,
      headers,
    )
  const ids = async (filter: string) => {
    const answer = await list({ $filter: filter })
    return answer.error === undefined
      ? (answer.value ?? answer.d.results).map((row) => Number(row['Id'])).join(' ')
      : answer.error.code
  }
  const put = (id: number | string, at = '2026-01-01T00:00:00Z', more = {}, when = {}) =>
    odata.put('Orders', { Id: id, ModifiedAt: at, Name: `order ${id}`, ...more }, when)
  return { ...ports, odata, url, fetchIn, get, list, ids, put }
}

/** Follows next links to the end, and returns the pages. */
async function pages(
  get: (address: string, headers?: Record<string, string>) => Promise<Answer>,
  first: string,
  headers?: Record<string, string>,
): Promise<Answer[]> {
  const read = [await get(first, headers)]
  for (;;) {
    const next = read.at(-1)!['@odata.nextLink'] ?? read.at(-1)!.d?.__next
    if (next === undefined) return read
    read.push(await get(next, headers))
  }
}

describe('$filter', () => {
  test('version 4: comparisons, precedence, its own literals and null', async () => {
    const { put, ids } = await open()
    put(1, '2026-01-01T00:00:00Z', { Name: "O'Neil", Price: '1.10', Guid: GUID, Open: true })
    put(2, '2026-01-01T00:00:00.0000001Z', { Name: 'a+b', Price: '9007199254740993.0000000001', Open: false })
    put(3, '2026-01-02T00:00:00+02:00', { Name: 'x' })
    expect(await ids("Name eq 'O''Neil'")).toBe('1')
    expect(await ids("Name eq 'a+b'")).toBe('2')
    expect(await ids('ModifiedAt gt 2026-01-01T00:00:00Z')).toBe('2 3')
    expect(await ids('ModifiedAt ge 2026-01-01T22:00:00Z')).toBe('3')
    expect(await ids('Price gt 9007199254740993')).toBe('2')
    expect(await ids('Price lt 2 or Price eq null')).toBe('1 3')
    expect(await ids(`Guid eq ${GUID.toUpperCase()}`)).toBe('1')
    expect(await ids('Open ne true')).toBe('2 3')
    expect(await ids('not (Id eq 1) and Id lt 3')).toBe('2')
    expect(await ids('Id eq 3 and not (Id eq 3) or Id eq 1')).toBe('1')
    expect(await ids('Id eq 1 or Id eq 2 and Id eq 3')).toBe('1')
    expect(await ids('(Id eq 1 or Id eq 2) and Id gt 1')).toBe('2')
    expect(await ids("contains(Name,'Neil')")).toBe('1')
  })

  test('version 2: the literals of version 2, and not those of version 4', async () => {
    const { put, ids } = await open({ version: 2 })
    put(1, '2026-01-01T00:00:00', { SeenAt: '2026-01-01T00:00:00Z', Guid: GUID, Price: '2.5', Name: "datetime'x'" })
    put(2, '2026-01-01T00:00:00.5', { SeenAt: '2026-01-01T02:00:00+01:00' })
    expect(await ids("ModifiedAt gt datetime'2026-01-01T00:00:00'")).toBe('2')
    expect(await ids("SeenAt ge datetimeoffset'2026-01-01T01:00:00Z'")).toBe('2')
    expect(await ids(`Guid eq guid'${GUID}' and Id eq 1L and Price eq 2.5M`)).toBe('1')
    expect(await ids("Name eq 'datetime''x'''")).toBe('1')
    for (const foreign of [
      'ModifiedAt gt 2026-01-01T00:00:00Z',
      `Guid eq ${GUID}`,
      "ModifiedAt gt datetimeoffset'2026-01-01T00:00:00Z'",
    ])
      expect(await ids(foreign), foreign).toBe('BadRequest')
  })

  test.each([
    "ModifiedAt gt datetime'2026-01-01T00:00:00'",
    "Id eq '1'",
    'Nope eq 1',
    'Id+eq+1',
    'not Id eq 1',
    'Id eq',
  ])('version 4 refuses %s', async (filter) => {
    const { get } = await open()
    expect((await get(`Orders?$filter=${filter.replaceAll(' ', '%20')}`)).error.code).toBe('BadRequest')
  })
})

test('each version has its document, its metadata and its errors', async () => {
  const four = await open()
  const two = await open({ version: 2 })
  expect(await four.get('')).toMatchObject({ value: [{ name: 'Orders', kind: 'EntitySet', url: 'Orders' }] })
  expect(await two.get('')).toEqual({ d: { EntitySets: ['Orders'] } })
  expect(await (await four.fetchIn('$metadata')).text()).toMatch(
    /Version="4\.0".*<Key><PropertyRef Name="Id"\/><\/Key><Property Name="Id" Type="Edm.Int64" Nullable="false"\/>.*<EntitySet Name="Orders" EntityType="Tidemark.Simulated.OrdersType"\/>/,
  )
  expect(await (await two.fetchIn('$metadata')).text()).toMatch(/DataServiceVersion="2\.0".*Type="Edm.DateTime"/)
  expect((await four.get('Nope')).error).toMatchObject({ code: 'NotFound', message: expect.stringContaining('Nope') })
  expect((await two.get('Nope')).error).toMatchObject({
    code: 'NotFound',
    message: { lang: 'en', value: expect.stringContaining('Nope') },
  })
  expect((await four.list({ $inlinecount: 'allpages' })).error.code).toBe('BadRequest')
  expect((await fetch(new URL('Orders', two.url))).headers.get('content-type')).toContain('atom+xml')
})

test('values have the format of each version, and numbers beyond doubles keep their digits', async () => {
  const row = { Id: '9007199254740993', Price: '1.10', ModifiedAt: '2026-01-01T00:00:00.1234567Z' }
  const four = await open()
  four.odata.put('Orders', row)
  const text = await (await four.fetchIn('Orders?$select=Id,Price,ModifiedAt')).text()
  expect(text).toContain('"value":[{"Id":9007199254740993,"Price":1.10,"ModifiedAt":"2026-01-01T00:00:00.1234567Z"}]')
  expect((await four.list({}, { accept: 'application/json;IEEE754Compatible=true' })).value[0]).toMatchObject({
    Id: '9007199254740993',
    Price: '1.10',
    Name: null,
  })
  const two = await open({ version: 2 })
  two.odata.put('Orders', { ...row, SeenAt: row.ModifiedAt })
  const shown = (await two.list({ $inlinecount: 'allpages', $top: '5' })).d
  expect(shown).toMatchObject({
    __count: '1',
    results: [
      {
        Id: '9007199254740993',
        Price: '1.10',
        ModifiedAt: '/Date(1767225600123)/',
        SeenAt: '/Date(1767225600123+0000)/',
        __metadata: { type: 'Tidemark.Simulated.OrdersType' },
      },
    ],
  })
  expect(await (await two.fetchIn(shown.results[0]!['__metadata'].uri)).json()).toMatchObject({
    d: { Id: '9007199254740993' },
  })
})

test('$orderby over several fields, $top, $skip, $count', async () => {
  const { put, list, fetchIn } = await open({ topMax: 3 })
  for (const [id, name] of [
    [1, 'b'],
    [2, 'a'],
    [3, 'b'],
    [4, 'a'],
    [5, 'c'],
  ] as const)
    put(id, undefined, { Name: name })
  const shown = await list({ $orderby: 'Name desc,Id asc', $top: '2', $skip: '1', $count: 'true' })
  expect(shown).toMatchObject({ '@odata.count': 5, value: [{ Id: 1 }, { Id: 3 }] })
  expect(shown['@odata.nextLink']).toBeUndefined()
  const capped = await list({ $top: '4' })
  expect([capped.value.length, capped['@odata.nextLink']]).toEqual([3, undefined])
  expect(await (await fetchIn('Orders/$count?$filter=Id%20gt%202')).text()).toBe('3')
})

describe('paging', () => {
  test.each([4, 2] as const)(
    'version %s: next links lead through all rows once, though rows share their time',
    async (version) => {
      const { odata, put, get } = await open({ version, pageSizeMax: 3 })
      for (let id = 1; id <= 8; id++) put(id, version === 4 ? '2026-01-01T00:00:00Z' : '2026-01-01T00:00:00')
      odata.faults.plan({ kind: 'short-page' })
      const read = await pages(get, `Orders?$orderby=ModifiedAt&$top=7${version === 2 ? '&$format=json' : ''}`)
      const rows = read.map((page) => (page.value ?? page.d.results).map((row) => Number(row['Id'])))
      expect(rows).toEqual([
        [1, 2],
        [3, 4, 5],
        [6, 7],
      ])
      expect(odata.requests.count()).toBe(3)
    },
  )

  test('Prefer: maxpagesize is honoured below the server’s own limit; links are followed unchanged', async () => {
    const { put, get, fetchIn } = await open({ pageSizeMax: 4, relativeLinks: true })
    for (let id = 1; id <= 5; id++) put(id)
    const first = await fetchIn('Orders', { prefer: 'odata.maxpagesize=2' })
    expect(first.headers.get('preference-applied')).toBe('odata.maxpagesize=2')
    const page = (await first.json()) as Answer
    expect([page.value.length, page['@odata.nextLink']?.startsWith('Orders?$skiptoken=')]).toEqual([2, true])
    expect((await get('Orders', { prefer: 'maxpagesize=10' })).value).toHaveLength(4)
    expect((await get(`${page['@odata.nextLink']!}&$top=1`)).error.code).toBe('BadRequest')
  })

  test('a row that moves between pages is returned again by keyset, and makes an offset skip another', async () => {
    const read = async (skipToken: 'keyset' | 'offset') => {
      const { odata, put, get } = await open({ pageSizeMax: 2, skipToken })
      for (let id = 1; id <= 5; id++) put(id, `2026-01-01T00:00:0${id}Z`)
      odata.beforeRequest = (number) => number === 2 && put(1, '2026-01-01T00:00:09Z')
      return (await pages(get, 'Orders?$orderby=ModifiedAt'))
        .flatMap((page) => page.value.map((row) => row['Id'] as number))
        .join(' ')
    }
    expect(await read('keyset')).toBe('1 2 3 4 5 1')
    expect(await read('offset')).toBe('1 2 4 5 1')
  })

  test('a late row becomes visible after its delay, with its old timestamp', async () => {
    const { clock, put, list } = await open()
    put(1, '2026-01-01T00:00:00Z', {}, { afterMs: 5_000 })
    expect((await list()).value).toEqual([])
    clock.advance(5_000)
    expect((await list()).value).toMatchObject([{ Id: 1, ModifiedAt: '2026-01-01T00:00:00Z' }])
  })
})

describe('deltas', () => {
  const track = { prefer: 'odata.track-changes' }

  test('a delta link returns each row changed since the listing began, once, and deleted rows', async () => {
    const { odata, put, get } = await open({ pageSizeMax: 2 })
    for (let id = 1; id <= 4; id++) put(id)
    // Changed concurrently with the listing: the listing may miss it, the delta must not.
    odata.beforeRequest = (number) => number === 2 && put(1, '2026-01-02T00:00:00Z')
    const listing = await pages(get, 'Orders', track)
    odata.beforeRequest = undefined
    put(5)
    put(5, '2026-01-03T00:00:00Z')
    odata.remove('Orders', { Id: 2 })
    const delta = await pages(get, listing.at(-1)!['@odata.deltaLink']!)
    expect(delta.flatMap((page) => page.value)).toMatchObject([
      { Id: 1, ModifiedAt: '2026-01-02T00:00:00Z' },
      { Id: 5, ModifiedAt: '2026-01-03T00:00:00Z' },
      { Id: 2, '@removed': { reason: 'deleted' } },
    ])
    expect(delta.map((page) => page['@odata.deltaLink'] === undefined)).toEqual([true, false])
    expect((await get(delta.at(-1)!['@odata.deltaLink']!)).value).toEqual([])
  })

  test('a row that no longer matches is removed with the reason changed; 4.0 has its own format', async () => {
    const { odata, put, get } = await open({ removedAs: '$deletedEntity' })
    put(1, undefined, { Open: true })
    const link = (await get('Orders?$filter=Open%20eq%20true', track))['@odata.deltaLink']!
    put(1, undefined, { Open: false })
    expect((await get(link)).value).toEqual([
      {
        '@odata.context': expect.stringMatching(/#Orders\/\$deletedEntity$/),
        id: expect.stringMatching(/Orders\(1\)$/),
        reason: 'changed',
      },
    ])
    odata.expireDeltaLinks()
    expect((await get(link)).error.code).toBe('SyncStateNotFound')
  })

  test('there is no delta link without the preference, from a service without tracking, or in version 2', async () => {
    expect((await (await open()).list())['@odata.deltaLink']).toBeUndefined()
    const untracked = await (await open({ tracksChanges: false })).fetchIn('Orders', track)
    expect([
      untracked.headers.get('preference-applied'),
      ((await untracked.json()) as Answer)['@odata.deltaLink'],
    ]).toEqual([null, undefined])
    expect(Object.keys((await (await open({ version: 2 })).list({}, track)).d)).toEqual(['results'])
  })
})

test('faults: refusals with a retry time, half a body, a next link that repeats, an expired link, other credentials', async () => {
  const { odata, put, get, fetchIn, list } = await open({ pageSizeMax: 1, token: 'secret' })
  const key = { authorization: 'Bearer secret' }
  for (let id = 1; id <= 3; id++) put(id)
  expect((await fetchIn('Orders')).status).toBe(401)
  odata.faults.plan({ kind: 'rate-limit', retryAfter: '7' })
  const limited = await fetchIn('Orders', key)
  expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '7'])
  odata.faults.plan({ kind: 'server-error', status: 503 })
  expect((await fetchIn('Orders', key)).status).toBe(503)
  odata.faults.plan({ kind: 'truncated' })
  await expect(fetchIn('Orders', key).then((response) => response.text())).rejects.toThrow('terminated')
  odata.repeatNextLinks(1)
  const page = await list({ $orderby: 'Id' }, key)
  expect(page['@odata.nextLink']).toBe(odata.urls.at(-1))
  const again = await get(page['@odata.nextLink']!, key)
  odata.faults.plan({ kind: 'expired-token' })
  expect((await get(again['@odata.nextLink']!, key)).error.code).toBe('SyncStateNotFound')
  expect(odata.requests.entries.map((entry) => entry.status)).toEqual([401, 429, 503, 200, 200, 200, 410])
})
