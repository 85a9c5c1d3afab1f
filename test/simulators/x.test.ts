import { ApiError, Client, PostPaginator } from '@xdevplatform/xdk'
import { describe, expect, test } from 'vitest'
import { createSimulatorFetch } from '../../simulators/src/kit/simulator-fetch.ts'
import { serve } from '../../simulators/src/kit/serve.ts'
import { XSimulator, type XOptions } from '../../simulators/src/x/simulator.ts'
import { portsOf } from './ports.ts'

interface Page {
  data?: Array<{ id: string; text: string } & Record<string, unknown>>
  includes?: { users: Array<{ id: string }> }
  errors?: Array<{ resource_id: string; title: string }>
  meta: { result_count: number; next_token?: string; previous_token?: string }
}

function open(options: XOptions = {}) {
  const ports = portsOf()
  const simulator = new XSimulator(ports, options)
  const fetch = createSimulatorFetch(simulator)
  const get = (
    params: Record<string, string> = {},
    path = `/2/users/${simulator.user.id}/bookmarks`,
    token = 'user-token',
  ) =>
    fetch(`https://api.x.com${path}?${new URLSearchParams(params).toString()}`, {
      headers: { authorization: `Bearer ${token}` },
    })
  const list = async (params: Record<string, string> = {}) => (await (await get(params)).json()) as Page
  const texts = (page: Page) => page.data?.map((post) => post.text) ?? []
  /** The texts of every page from the newest to the end. */
  const walk = async (params: Record<string, string> = {}) => {
    const pages: string[][] = []
    let token: string | undefined
    do {
      const page = await list(token === undefined ? params : { ...params, pagination_token: token })
      pages.push(texts(page))
      token = page.meta.next_token
    } while (token !== undefined)
    return pages
  }
  /** Bookmarks t0 to t(count - 1), the last one newest. */
  const bookmark = (count: number) =>
    Array.from({ length: count }, (_, n) => simulator.create('bookmark', { text: `t${n}` }))
  return { ...ports, simulator, get, list, texts, walk, bookmark }
}

describe('the xdk client against the x simulator', () => {
  test('the client finds its user and pages through every bookmark once, newest first', async () => {
    const { simulator, bookmark } = open({ token: 'user-token' })
    const ids = bookmark(25)
    await using server = await serve(simulator)
    const client = new Client({ baseUrl: server.url, accessToken: 'user-token' })
    const me = await client.users.getMe()
    expect(me.data).toEqual({ id: '2244994945', name: 'Reader', username: 'reader' })
    const paginator = new PostPaginator(
      async (token) =>
        client.users.getBookmarks(me.data!.id!, {
          maxResults: 10,
          postFields: ['created_at'],
          ...(token !== undefined && { paginationToken: token }),
        }) as never,
    )
    while (!paginator.done) await paginator.fetchNext()
    expect(paginator.items.map((post) => post.id)).toEqual(ids.toReversed())
    expect(paginator.items[0]).toMatchObject({ text: 't24', createdAt: expect.stringMatching(/^\d{4}-.*Z$/) })
    expect(server.requests).toBe(4)
  })

  test('the client throws its own error for a refusal, with status, headers and body', async () => {
    const { simulator } = open({ token: 'user-token' })
    await using server = await serve(simulator)
    const client = new Client({ baseUrl: server.url, accessToken: 'user-token' })
    simulator.faults.plan({ kind: 'rate-limit' })
    const limited: unknown = await client.users.getBookmarks('2244994945').catch((error: unknown) => error)
    expect(limited).toBeInstanceOf(ApiError)
    expect(limited).toMatchObject({
      status: 429,
      data: { title: 'Too Many Requests', type: 'about:blank', status: 429 },
    })
    expect((limited as ApiError).headers.get('x-rate-limit-remaining')).toBe('0')
    await expect(client.users.getBookmarks('1')).rejects.toMatchObject({
      status: 400,
      data: {
        errors: [
          { message: 'The `id` query parameter value [1] must be the same as the authenticating user [2244994945]' },
        ],
      },
    })
    const stranger = new Client({ baseUrl: server.url, accessToken: 'other' })
    await expect(stranger.users.getBookmarks('2244994945')).rejects.toMatchObject({
      status: 401,
      data: { title: 'Unauthorized' },
    })
  })
})

describe('the list of bookmarks', () => {
  test('is ordered by the time of bookmarking, which ids do not reveal', async () => {
    const { simulator, list, bookmark } = open()
    const ids = bookmark(20)
    expect(ids.toSorted()).not.toEqual(ids)
    simulator.remove('bookmark', ids[3]!)
    expect((await list()).data!.map((post) => post.id)).not.toContain(ids[3])
    simulator.bookmarkAgain(ids[3]!)
    expect((await list({ max_results: '2' })).data!.map((post) => post.id)).toEqual([ids[3], ids[19]])
  })

  test('tokens lead to older and back to newer pages, and stay valid when bookmarks are added and removed', async () => {
    const { simulator, list, texts, bookmark } = open()
    const ids = bookmark(6)
    const first = await list({ max_results: '2' })
    expect(first.meta).toEqual({ result_count: 2, next_token: expect.stringMatching(/^[0-9a-v]+$/) })
    simulator.remove('bookmark', ids[4]!)
    simulator.create('bookmark', { text: 'late' })
    const second = await list({ max_results: '2', pagination_token: first.meta.next_token! })
    expect([texts(first), texts(second)]).toEqual([
      ['t5', 't4'],
      ['t3', 't2'],
    ])
    const back = await list({ max_results: '2', pagination_token: second.meta.previous_token! })
    expect([texts(back), back.meta.previous_token === undefined]).toEqual([['late', 't5'], true])
    const last = await list({ max_results: '2', pagination_token: second.meta.next_token! })
    expect([texts(last), last.meta.next_token]).toEqual([['t1', 't0'], undefined])
  })

  test('an empty list is a response without data', async () => {
    expect(await open().list()).toEqual({ meta: { result_count: 0 } })
  })

  test('a hidden post keeps its slot: the page is short, or empty, though more follow', async () => {
    const { simulator, walk, bookmark } = open()
    const ids = bookmark(5)
    for (const at of [1, 2]) simulator.hidePost(ids[at]!)
    expect(await walk({ max_results: '2' })).toEqual([['t4', 't3'], [], ['t0']])
    simulator.showPost(ids[2]!)
    expect(await walk({ max_results: '2' })).toEqual([['t4', 't3'], ['t2'], ['t0']])
    expect(simulator.truth('bookmark')).toHaveLength(4)
  })

  test('only the 800 most recent are reachable by default', async () => {
    const { simulator, walk, bookmark } = open()
    bookmark(801)
    const reached = (await walk()).flat()
    expect([reached.length, reached.at(-1), simulator.truth('bookmark').length]).toEqual([800, 't1', 801])
    const wide = open({ reachableMax: Infinity })
    wide.bookmark(801)
    expect((await wide.walk()).flat()).toHaveLength(801)
  })

  test('fields beyond the default ones are shown on request, authors beside the posts', async () => {
    const { simulator, list } = open()
    simulator.create('bookmark', { text: 'a', author_id: '7', lang: 'en', created_at: '2020-01-01T00:00:00.000Z' })
    const plain = await list()
    expect(Object.keys(plain.data![0]!).toSorted()).toEqual(['edit_history_tweet_ids', 'id', 'text'])
    const { data, includes } = await list({ 'tweet.fields': 'lang,created_at', expansions: 'author_id' })
    expect(data![0]).toMatchObject({ text: 'a', lang: 'en', created_at: '2020-01-01T00:00:00.000Z', author_id: '7' })
    expect(includes).toEqual({ users: [{ id: '7', name: 'User 7', username: 'user7' }] })
  })

  test('a late bookmark appears above or below the ones that were read already', async () => {
    const { simulator, clock, list, texts } = open()
    simulator.records.lag = { share: 1, maxMs: 60_000 }
    simulator.create('bookmark', { text: 'late' })
    simulator.records.lag = { share: 0, maxMs: 0 }
    simulator.create('bookmark', { text: 'early' })
    expect(texts(await list())).toEqual(['early'])
    clock.advance(60_000)
    expect(texts(await list())).toEqual(['early', 'late'])
  })
})

describe('refusals of the x simulator', () => {
  test.each([
    [{ max_results: '0' }, 'max_results', 'The `max_results` query parameter value [0] is not between 1 and 100'],
    [{ max_results: '101' }, 'max_results', 'The `max_results` query parameter value [101] is not between 1 and 100'],
    [{ max_results: 'ten' }, 'max_results', 'The `max_results` query parameter value [ten] is not between 1 and 100'],
    [
      { pagination_token: 'rubbish' },
      'pagination_token',
      'The `pagination_token` query parameter value [rubbish] is not valid',
    ],
    [
      { since_id: '1' },
      'since_id',
      expect.stringContaining('The query parameter [since_id] is not one of [id,expansions,max_results,'),
    ],
    [
      { 'tweet.fields': 'nothing' },
      'tweet.fields',
      expect.stringContaining('The `tweet.fields` query parameter value [nothing] is not one of ['),
    ],
  ])('%j answers 400', async (params, parameter, message) => {
    const response = await open().get(params as Record<string, string>)
    expect(response.status).toBe(400)
    expect(response.headers.get('content-type')).toBe('application/problem+json')
    expect(await response.json()).toMatchObject({
      title: 'Invalid Request',
      type: 'https://api.twitter.com/2/problems/invalid-request',
      errors: [{ parameters: { [parameter]: [Object.values(params)[0]] }, message }],
    })
  })

  test('an app-only token is not accepted as a user token', async () => {
    const { get } = open({ appToken: 'app' })
    const refused = await get({}, undefined, 'app')
    expect([refused.status, await refused.json()]).toMatchObject([403, { title: 'Unsupported Authentication' }])
    expect((await get()).status).toBe(200)
  })

  test('the 181st request in fifteen minutes, with a retry time, while other endpoints still answer', async () => {
    const { clock, get } = open()
    const opening = clock.now()
    clock.advance(1_000)
    for (let n = 0; n < 180; n++) expect((await get()).headers.get('x-rate-limit-remaining')).toBe(String(179 - n))
    const refused = await get()
    expect([
      refused.status,
      refused.headers.get('x-rate-limit-limit'),
      refused.headers.get('x-rate-limit-remaining'),
    ]).toEqual([429, '180', '0'])
    expect(Number(refused.headers.get('x-rate-limit-reset')) * 1_000).toBe(opening + 1_000 + 15 * 60_000)
    expect((await get({}, '/2/users/me')).status).toBe(200)
    clock.advance(15 * 60_000)
    expect((await get()).status).toBe(200)
  })

  test('an expired page token, where tokens expire', async () => {
    const { clock, list, get, bookmark } = open({ pageTokenTtlMs: 60_000 })
    bookmark(3)
    const { meta } = await list({ max_results: '1' })
    clock.advance(60_000)
    expect((await get({ pagination_token: meta.next_token! })).status).toBe(200)
    clock.advance(1)
    expect((await get({ pagination_token: meta.next_token! })).status).toBe(400)
  })
})

describe('faults of the x simulator', () => {
  test('the end can be reported too early, and more can be announced where nothing follows', async () => {
    const { simulator, list, texts, bookmark } = open()
    bookmark(4)
    simulator.faults.plan({ kind: 'end-flag', value: 'end' })
    expect((await list({ max_results: '2' })).meta).toEqual({ result_count: 2 })
    simulator.faults.plan({ kind: 'end-flag', value: 'more' })
    const all = await list()
    const beyond = await list({ pagination_token: all.meta.next_token! })
    expect(beyond.meta).toEqual({ result_count: 0, previous_token: expect.any(String) })
    expect(texts(await list({ pagination_token: beyond.meta.previous_token! }))).toEqual(texts(all))
  })

  test('pages of a hundred can end early where pages of ninety do not', async () => {
    const { walk, bookmark } = open({ endsEarlyAbove: 90 })
    bookmark(250)
    expect((await walk({ max_results: '100' })).flat()).toHaveLength(100)
    expect((await walk({ max_results: '90' })).flat()).toHaveLength(250)
  })

  test('a token can expire, a page can be short, and a post can be withheld with an error beside the data', async () => {
    const { simulator, get, list, walk, texts, bookmark } = open()
    const ids = bookmark(4)
    const { meta } = await list({ max_results: '1' })
    simulator.faults.plan({ kind: 'expired-token' })
    expect((await get({ pagination_token: meta.next_token! })).status).toBe(400)
    simulator.faults.plan({ kind: 'short-page' })
    expect(await walk({ max_results: '4' })).toEqual([
      ['t3', 't2'],
      ['t1', 't0'],
    ])
    simulator.faults.plan({ kind: 'partial' })
    const partial = await list()
    expect(texts(partial)).toEqual(['t2', 't1', 't0'])
    expect(partial.errors).toMatchObject([{ resource_id: ids[3], title: 'Authorization Error' }])
  })
})
