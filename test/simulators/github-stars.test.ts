import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { request } from '@octokit/request'
import { describe, expect, test } from 'vitest'
import { GithubStarsSimulator, type GithubStarsOptions } from '../../simulators/src/github-stars/simulator.ts'
import { createSimulatorFetch } from '../../simulators/src/kit/simulator-fetch.ts'
import { serve } from '../../simulators/src/kit/serve.ts'
import { portsOf } from './ports.ts'

interface Star {
  starred_at: string
  repo: { id: number; name: string } & Record<string, unknown>
}

const STAR_JSON = 'application/vnd.github.star+json'

function open(options: GithubStarsOptions = {}) {
  const ports = portsOf()
  const simulator = new GithubStarsSimulator(ports, options)
  const fetch = createSimulatorFetch(simulator)
  const get = (path = '/user/starred', headers: Record<string, string> = {}) =>
    fetch(`https://api.github.com${path}`, { headers: { authorization: 'Bearer t', accept: STAR_JSON, ...headers } })
  const list = async (path?: string) => (await (await get(path)).json()) as Star[]
  const names = async (path?: string) => (await list(path)).map((star) => star.repo.name)
  const rels = async (path: string, headers?: Record<string, string>) =>
    relsOf((await get(path, headers)).headers.get('link'))
  /** Stars r0 to r(count - 1), one per second, the last one newest. */
  const star = (count: number) =>
    Array.from({ length: count }, (_, n) => {
      ports.clock.advance(1_000)
      return simulator.create('star', { name: `r${n}` })
    })
  return { ...ports, simulator, get, list, names, rels, star }
}

function relsOf(link: string | null): Record<string, string> {
  return Object.fromEntries([...(link ?? '').matchAll(/<([^>]+)>; rel="(\w+)"/g)].map(([, url, rel]) => [rel!, url!]))
}

describe('the octokit client against the github stars simulator', () => {
  test('octokit follows the links to the end and sees every star once, newest first', async () => {
    const { simulator, star } = open({ token: 'secret' })
    star(25)
    await using server = await serve(simulator)
    const client = request.defaults({
      baseUrl: server.url,
      headers: { authorization: 'token secret', accept: STAR_JSON },
    })
    const seen: string[] = []
    let url: string | undefined = '/user/starred?per_page=10'
    while (url !== undefined) {
      const { data, headers }: { data: unknown; headers: { link?: string } } = await client(`GET ${url}`)
      seen.push(...(data as Star[]).map((entry) => entry.repo.name))
      url = relsOf(headers.link ?? null)['next']
    }
    expect(seen).toEqual(Array.from({ length: 25 }, (_, n) => `r${24 - n}`))
    expect(server.requests).toBe(3)
  })

  test('octokit throws its own errors for limits, for an unchanged page and for a wrong token', async () => {
    const { simulator } = open({ token: 'secret' })
    await using server = await serve(simulator)
    const client = request.defaults({ baseUrl: server.url, headers: { authorization: 'token secret' } })
    simulator.faults.plan({ kind: 'rate-limit' })
    await expect(client('GET /user/starred')).rejects.toMatchObject({
      status: 403,
      response: {
        headers: { 'x-ratelimit-remaining': '0' },
        data: { message: 'API rate limit exceeded for user ID 583231.' },
      },
    })
    simulator.faults.plan({ kind: 'rate-limit', secondary: true, retryAfter: '60' })
    await expect(client('GET /user/starred')).rejects.toMatchObject({
      status: 403,
      response: { headers: { 'retry-after': '60' } },
    })
    const { headers } = await client('GET /user/starred')
    await expect(client('GET /user/starred', { headers: { 'if-none-match': headers.etag! } })).rejects.toMatchObject({
      status: 304,
    })
    await expect(client('GET /user/starred', { headers: { authorization: 'token other' } })).rejects.toMatchObject({
      status: 401,
      response: { data: { message: 'Bad credentials' } },
    })
  })
})

describe('a starred repository', () => {
  test('has every field that GitHub publishes as required', async () => {
    const published = readFileSync(
      join(import.meta.dirname, '../../node_modules/@octokit/openapi-types/types.d.ts'),
      'utf8',
    )
    const requiredOf = (schema: string) => {
      const from = published.indexOf(`\n    ${schema}: {\n`)
      return [...published.slice(from, published.indexOf('\n    };\n', from)).matchAll(/\n {6}(\w+): /g)].map(
        ([, name]) => name!,
      )
    }
    expect(requiredOf('repository').length).toBeGreaterThan(60)
    const { list, star } = open()
    star(1)
    const [first] = await list()
    expect(Object.keys(first!)).toEqual(requiredOf('"starred-repository"'))
    expect(requiredOf('repository').filter((name) => !(name in first!.repo))).toEqual([])
    expect(requiredOf('"simple-user"').filter((name) => !(name in (first!.repo['owner'] as object)))).toEqual([])
  })

  test('shows the time of starring only for its media type', async () => {
    const { simulator, clock, get, list, star } = open()
    const [id] = star(1)
    clock.advance(60_000)
    simulator.update('star', id!, { description: 'changed', pushed_at: '2026-01-01T00:01:01Z' })
    expect((await list())[0]).toMatchObject({
      starred_at: '2026-01-01T00:00:01Z',
      repo: { full_name: 'acme/r0', description: 'changed', updated_at: '2026-01-01T00:01:01Z' },
    })
    const plain = (await (await get(undefined, { accept: 'application/json' })).json()) as object[]
    expect(plain[0]).toMatchObject({ full_name: 'acme/r0' })
    expect(plain[0]).not.toHaveProperty('starred_at')
  })

  test('that is starred again returns on top with a new time', async () => {
    const { simulator, clock, list, names, star } = open()
    const [first] = star(3)
    simulator.remove('star', first!)
    expect(await names()).toEqual(['r2', 'r1'])
    clock.advance(10_000)
    simulator.starAgain(first!)
    expect((await list())[0]).toMatchObject({
      starred_at: '2026-01-01T00:00:13Z',
      repo: { name: 'r0', created_at: '2026-01-01T00:00:01Z' },
    })
  })
})

describe('the list of stars', () => {
  test('is sorted by starring or by the last push, down or up', async () => {
    const { simulator, names, star } = open()
    const ids = star(3)
    simulator.update('star', ids[1]!, { pushed_at: '2026-02-01T00:00:00Z' })
    expect(await names()).toEqual(['r2', 'r1', 'r0'])
    expect(await names('/user/starred?direction=asc')).toEqual(['r0', 'r1', 'r2'])
    expect(await names('/user/starred?sort=updated')).toEqual(['r1', 'r2', 'r0'])
  })

  test('has thirty to a page, a hundred at most, and links only to existing pages', async () => {
    const { list, rels, star } = open()
    star(205)
    expect([(await list()).length, (await list('/user/starred?per_page=500')).length]).toEqual([30, 100])
    const at = (page: number) => `https://api.github.com/user/starred?per_page=100&page=${page}`
    expect(await rels('/user/starred?per_page=100')).toEqual({ next: at(2), last: at(3) })
    expect(await rels('/user/starred?per_page=100&page=2')).toEqual({
      prev: at(1),
      next: at(3),
      last: at(3),
      first: at(1),
    })
    expect(await rels('/user/starred?per_page=100&page=3')).toEqual({ prev: at(2), first: at(1) })
    expect(await list('/user/starred?per_page=100&page=4')).toEqual([])
  })

  test('has no link at all when there is a single page', async () => {
    const { get, list, star } = open()
    expect([await list(), (await get()).headers.get('link')]).toEqual([[], null])
    star(30)
    expect((await get()).headers.get('link')).toBeNull()
  })

  test('changes under a reader: an unstarred repository moves another one across the page boundary', async () => {
    const { simulator, names, star } = open()
    const ids = star(6)
    const first = await names('/user/starred?per_page=3')
    simulator.remove('star', ids[5]!)
    const second = await names('/user/starred?per_page=3&page=2')
    expect([...first, ...second]).toEqual(['r5', 'r4', 'r3', 'r1', 'r0'])
  })

  test('of a named user is public, without private repositories, and its links contain the user number', async () => {
    const { simulator, get, list, rels, star } = open()
    star(2)
    simulator.create('star', { name: 'secret', private: true })
    expect(await list('/user/starred')).toHaveLength(3)
    const anonymous = await createSimulatorFetch(simulator)('https://api.github.com/users/OctoCat/starred?per_page=1')
    expect([anonymous.status, anonymous.headers.get('x-ratelimit-limit')]).toEqual([200, '60'])
    expect(await anonymous.json()).toMatchObject([{ name: 'r1' }])
    const { next } = await rels('/users/octocat/starred?per_page=1')
    expect(next).toBe('https://api.github.com/user/583231/starred?per_page=1&page=2')
    expect((await list(next!.slice('https://api.github.com'.length)))[0]!.repo.name).toBe('r0')
    expect((await get('/users/nobody/starred')).status).toBe(404)
  })

  test('a late star appears below the ones that were read already', async () => {
    const { simulator, clock, names, star } = open()
    simulator.records.lag = { share: 1, maxMs: 60_000 }
    simulator.create('star', { name: 'late' })
    simulator.records.lag = { share: 0, maxMs: 0 }
    star(1)
    expect(await names()).toEqual(['r0'])
    clock.advance(60_000)
    expect(await names()).toEqual(['r0', 'late'])
  })
})

describe('an unchanged list', () => {
  test('is answered with 304 and does not count towards the budget, until a star is added', async () => {
    const { get, star } = open()
    star(3)
    const first = await get()
    const etag = first.headers.get('etag')!
    expect(etag).toMatch(/^W\/"[0-9a-f]{64}"$/)
    const same = await get(undefined, { 'if-none-match': etag })
    expect([same.status, await same.text(), same.headers.get('x-ratelimit-remaining')]).toEqual([304, '', '4999'])
    expect((await get('/user/starred?direction=asc', { 'if-none-match': etag })).status).toBe(200)
    star(1)
    const changed = await get(undefined, { 'if-none-match': etag })
    expect([changed.status, changed.headers.get('x-ratelimit-remaining')]).toEqual([200, '4997'])
  })
})

describe('refusals of the github stars simulator', () => {
  test('a spent budget, until the hour is over', async () => {
    const { clock, get } = open({ requestsPerHour: 2 })
    const opening = clock.now()
    await get()
    await get()
    const refused = await get()
    expect([refused.status, refused.headers.get('x-ratelimit-remaining'), refused.headers.get('retry-after')]).toEqual([
      403,
      '0',
      null,
    ])
    expect(Number(refused.headers.get('x-ratelimit-reset')) * 1_000).toBe(opening + 3_600_000)
    clock.advance(3_600_000)
    expect((await get()).status).toBe(200)
  })

  test('a burst, with the seconds to wait, though budget is left', async () => {
    const { clock, get } = open({ pointsPerMinute: 2 })
    await get()
    clock.advance(10_000)
    await get()
    const refused = await get()
    expect([refused.status, refused.headers.get('retry-after'), refused.headers.get('x-ratelimit-remaining')]).toEqual([
      403,
      '50',
      '4998',
    ])
    expect(await refused.json()).toMatchObject({ message: expect.stringContaining('secondary rate limit') })
    clock.advance(50_000)
    expect((await get()).status).toBe(200)
  })

  test('missing credentials and missing permissions', async () => {
    const { simulator, get } = open({ forbidden: true })
    expect((await createSimulatorFetch(simulator)('https://api.github.com/user/starred')).status).toBe(401)
    const refused = await get()
    expect([refused.status, refused.headers.get('x-accepted-github-permissions'), await refused.json()]).toMatchObject([
      403,
      'starring=read',
      { message: 'Resource not accessible by personal access token' },
    ])
    expect(await (await get('/user')).json()).toMatchObject({ login: 'octocat', id: 583231 })
  })
})

describe('faults of the github stars simulator', () => {
  test('the links can hide following pages and announce missing ones', async () => {
    const { simulator, list, rels, star } = open()
    star(3)
    simulator.faults.plan({ kind: 'end-flag', value: 'end' })
    expect(await rels('/user/starred?per_page=1&page=2')).toEqual({
      prev: expect.any(String),
      first: expect.any(String),
    })
    simulator.faults.plan({ kind: 'end-flag', value: 'more' })
    const { next } = await rels('/user/starred')
    expect(next).toBe('https://api.github.com/user/starred?page=2')
    expect(await list('/user/starred?page=2')).toEqual([])
  })

  test('a page can be short while the links announce more', async () => {
    const { simulator, get, star } = open()
    star(8)
    simulator.faults.plan({ kind: 'short-page' })
    const short = await get('/user/starred?per_page=4')
    expect([((await short.json()) as Star[]).length, 'next' in relsOf(short.headers.get('link'))]).toEqual([2, true])
  })
})
