import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openStore } from '../../../src/stores/open-store.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { RandomStream } from '../../../src/testing/simulation/random-stream.ts'
import { buildPackage, type Build } from '../../process/build.ts'
import { Child } from '../../process/child.ts'
import { openOdata } from '../../simulators/odata/open-odata.ts'

describe('R50 killed', () => {
  let build: Build
  beforeAll(async () => {
    build = await buildPackage()
  })
  afterAll(() => build.remove())

  const WAYS = [
    ['version 4, by its cursor', 4, false],
    ['version 2, by its cursor', 2, false],
    ['by delta links', 4, true],
  ] as const
  test.each(WAYS)(
    'R17 R21 R34 R48 R50 %s: a reader killed inside a cycle leaves the checkpoint; the next one ends the cycle, and nothing lands twice',
    async (_, version, isTracked) => {
      const At = version === 4 ? 'Edm.DateTimeOffset' : 'Edm.DateTime'
      await using served = await openOdata(
        { version, sets: { Orders: { key: ['Id'], properties: { Id: 'Edm.Int32', Name: 'Edm.String', At } } } },
        { clock: systemClock, random: new RandomStream(1, 'odata') },
      )
      const put = (id: number, name: string, ms: number): void =>
        served.odata.put('Orders', {
          Id: id,
          Name: name,
          At: new Date(ms).toISOString().slice(0, version === 4 ? 24 : 23),
        })
      const start = Date.now() - 60_000
      for (let id = 1; id <= 40; id++) put(id, `n${id}`, start + Math.floor(id / 7) * 1_000)
      const folder = mkdtempSync(join(tmpdir(), 'tidemark-odata-kill-'))
      const url = `sqlite:${join(folder, 'store.db')}`
      const input = { url, service: served.url, pageSize: 3, isTracked }
      try {
        const victim = new Child(build, 'run-odata.mjs', { input: { ...input, holdAt: 6 } })
        await victim.until('landed', (said) => said['page'] === 4)
        expect((await victim.kill()).signal).toBe('SIGKILL')
        const look = async () => {
          const store = await openStore(url)
          try {
            const { committed, inflight } = await store.readCheckpoint({ worker: 'office', sync: 'orders' })
            return { committed, pages: inflight?.page ?? null, feed: await store.changes({ after: 0, limit: 1_000 }) }
          } finally {
            await store.close()
          }
        }
        const dead = await look()
        expect(dead).toMatchObject({ committed: null })
        expect(dead.pages).toBeGreaterThanOrEqual(4)

        const heir = await new Child(build, 'run-odata.mjs', { input }).ended
        expect(heir.said.at(-1)).toMatchObject({ event: 'result', stopReason: 'complete', resumed: true })
        const done = await look()
        expect(done.feed.map(({ key }) => Number(key)).toSorted((a, b) => a - b)).toEqual(
          Array.from({ length: 40 }, (__, index) => index + 1),
        )
        expect(done.committed).not.toBeNull()

        // One more full incremental cycle, by yet another process.
        put(7, 'again', Date.now() - 3_000)
        const third = await new Child(build, 'run-odata.mjs', { input }).ended
        expect(third.said.at(-1)).toMatchObject({
          stopReason: 'complete',
          resumed: false,
          counts: { created: 0, updated: 1 },
        })
      } finally {
        rmSync(folder, { recursive: true, force: true })
      }
    },
  )
})
