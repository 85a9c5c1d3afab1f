import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStore } from '../../../src/stores/open-store.ts'
import { buildPackage, type Build } from '../../process/build.ts'
import { Child } from '../../process/child.ts'
import { json, serve } from '../kit/loopback.ts'
import { FOLLOWED, manifestOfTwelve, STREAMS, TwelveApis } from './twelve.ts'

let build: Build
beforeAll(async () => {
  build = await buildPackage()
})
afterAll(() => build.remove())

const KILLS = 5

test('a reader of twelve APIs that is killed at any request ends equal to them, and then reads only what is new', async () => {
  let apis: TwelveApis | null = null
  let victim: Child | null = null
  let killAt = Number.POSITIVE_INFINITY
  const service = await serve(async (request, response) => {
    const url = new URL(request.url, 'http://localhost')
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]))
    const answer = apis?.handle({
      method: request.method ?? 'GET',
      path: url.pathname,
      query: url.searchParams,
      headers,
      body: await text(request),
    })
    if (--killAt === 0) return void victim?.kill()
    json(response, answer?.body, { status: answer?.status ?? 200, headers: { ...answer?.headers } })
  })
  apis = new TwelveApis(service, Date.now())
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-twelve-'))
  const url = `sqlite:${join(folder, 'store.db')}`
  writeFileSync(join(folder, 'manifest.yaml'), manifestOfTwelve(service))
  const start = new Date(Date.now() - 40 * 86_400_000).toISOString().replace(/\.\d+Z/, 'Z')
  const config = { api_key: 'key', start_date: start, credentials: { kind: 'token', key: 'key' } }
  const run = (): Child =>
    (victim = new Child(build, 'run-airbyte.mjs', { input: { url, folder, config, names: STREAMS } }))
  const compare = async (): Promise<void> => {
    const store = await openStore(url)
    try {
      for (const name of STREAMS) {
        const rows = await store.rows({ database: name, limit: 1_000 })
        const keys = rows.map(({ key }) => (name === 'spend' ? (JSON.parse(key) as string[])[0] : key))
        expect([name, new Set(keys)]).toEqual([name, new Set(apis?.rows.get(name)?.map(({ id }) => id))])
        expect([name, keys.length]).toEqual([name, new Set(keys).size])
      }
    } finally {
      await store.close()
    }
  }
  try {
    for (let kill = 0; kill < KILLS; kill++) {
      killAt = 5 + ((kill * 7) % 17)
      expect((await run().ended).signal).toBe('SIGKILL')
    }
    killAt = Number.POSITIVE_INFINITY
    const heir = await run().ended
    expect(
      heir.said.filter(({ event }) => event === 'result').map(({ name, stopReason }) => [name, stopReason]),
    ).toEqual(STREAMS.map((name) => [name, 'complete']))
    await compare()

    for (const name of STREAMS) apis.add(name, `${name}-new`, Date.now() - 1_000)
    const next = await run().ended
    const results = next.said.filter(({ event }) => event === 'result')
    expect(results).toHaveLength(STREAMS.length)
    for (const { name, stopReason, counts } of results) {
      expect([name, stopReason, counts]).toMatchObject([name, 'complete', { created: 1, updated: 0, swept: 0 }])
      const { unchanged } = counts as { unchanged: number }
      if (FOLLOWED.includes(name as never)) expect([name, unchanged]).toEqual([name, Math.min(unchanged, 3)])
    }
    await compare()
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
