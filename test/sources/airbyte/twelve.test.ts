import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { airbyte, type AirbyteSource } from '../../../src/sources/airbyte/source.ts'
import type { CycleResult } from '../../../src/engine/cycle-options.ts'
import { EngineFixture, MINUTE, planOf } from '../../engine/engine-fixture.ts'
import {
  FOLLOWED,
  manifestOfTwelve,
  STREAMS,
  TwelveApis,
  type ApiAnswer,
  type ApiRequest,
  type StreamName,
} from './twelve.ts'

const BASE = 'https://apis.example'

let scene: EngineFixture
let apis: TwelveApis
let source: AirbyteSource
let folder: string
/** Replaces the answer to a request. */
let disturb: (index: number, answer: ApiAnswer) => ApiAnswer
beforeEach(async () => {
  scene = await EngineFixture.open()
  apis = new TwelveApis(BASE, scene.clock.now())
  folder = mkdtempSync(join(tmpdir(), 'tidemark-twelve-'))
  writeFileSync(join(folder, 'manifest.yaml'), manifestOfTwelve(BASE))
  source = airbyte({
    manifest: 'manifest.yaml',
    folder,
    config: { api_key: 'key', start_date: '2026-01-20T00:00:00Z', credentials: { kind: 'token', key: 'key' } },
  })
  disturb = (_, answer) => answer
})
afterEach(async () => {
  await scene.close()
  rmSync(folder, { recursive: true })
})

const fetch = async (input: string | URL, init: RequestInit = {}): Promise<Response> => {
  const url = new URL(input)
  const answer = apis.handle({
    method: init.method ?? 'GET',
    path: url.pathname,
    query: url.searchParams,
    headers: Object.fromEntries(new Headers(init.headers)),
    body: typeof init.body === 'string' ? init.body : '',
  })
  const { status = 200, headers = {}, body } = disturb(apis.asked.length, answer)
  return Response.json(body, { status, headers })
}

const cycle = (name: StreamName, limits: object = {}): Promise<CycleResult> => {
  const { mode, execute, limits: own } = source.stream(name, { lagMs: 0 })
  return scene.run(planOf({ mode, execute, limits: { retriesMax: 5, ...own, ...limits } }), { fetch })
}
const truth = (name: StreamName): string[] =>
  (apis.rows.get(name) ?? [])
    .map(({ id, at }) => (name === 'spend' ? JSON.stringify([id, at.slice(0, 10)]) : id))
    .toSorted()

describe.each(STREAMS)('the stream %s of a manifest with the shapes of a public connector', (name) => {
  test('is equal to its API, and its second cycle requests only what is new', async () => {
    expect(await cycle(name)).toMatchObject({ stopReason: 'complete', endReason: null, error: null })
    expect((await scene.keys()).toSorted()).toEqual(truth(name))
    const first = apis.asked.splice(0).length
    scene.clock.step(MINUTE)
    apis.add(name, `${name}-new`, scene.clock.now() - 1_000)
    const result = await cycle(name)
    expect(result).toMatchObject({ stopReason: 'complete', counts: { created: 1, updated: 0, swept: 0 } })
    expect((await scene.keys()).toSorted()).toEqual(truth(name))
    // The rows of three weeks are not returned again: at most those of the newest time, or of the lookback.
    const returned = result.counts.created + result.counts.unchanged
    if (FOLLOWED.includes(name)) expect(returned).toBeLessThanOrEqual(name === 'transactions' ? 4 : 3)
    expect(apis.asked.length).toBeLessThanOrEqual(first + 3)
  })

  test('waits as a limited API asks, retries failures, and is equal in spite of repeated pages', async () => {
    const limited = new Map<number, number>()
    const answers = new Map<string, ApiAnswer>()
    disturb = (index, answer) => {
      const isLogin = /session|token|login/.test(apis.asked.at(-1)?.path ?? '')
      if (index % 4 === 1 && !isLogin) {
        limited.set(index, scene.clock.now())
        const reset = String(Math.ceil(scene.clock.now() / 1_000) + 30)
        return { status: 429, headers: { 'retry-after': '30', 'ratelimit-reset': reset }, body: {} }
      }
      if (index % 4 === 2 && !isLogin) return { status: 503, body: {} }
      // A cache repeats the answer to the same request.
      const { method, path, query, body } = apis.asked.at(-1) as ApiRequest
      const request = `${method} ${path} ${query.toString()} ${body}`
      const known = answers.get(request)
      if (known !== undefined && !isLogin) return known
      answers.set(request, answer)
      return answer
    }
    const asked: number[] = []
    const plain = apis.handle.bind(apis)
    apis.handle = (request) => {
      asked.push(scene.clock.now())
      return plain(request)
    }
    expect(await cycle(name)).toMatchObject({ stopReason: 'complete', error: null })
    expect((await scene.keys()).toSorted()).toEqual(truth(name))
    for (const [index, at] of limited)
      if (asked[index] !== undefined) expect(asked[index] - at).toBeGreaterThanOrEqual(29_000)
  })

  test('is equal when every run ends after one page', async () => {
    for (let runs = 0; runs < 100; runs++) {
      const { stopReason } = await cycle(name, { pagesMax: 1 })
      if (stopReason === 'complete') break
      expect(stopReason).toBe('max_pages')
    }
    expect((await scene.keys()).toSorted()).toEqual(truth(name))
  })
})
