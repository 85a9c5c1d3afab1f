import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/platform/clock.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { createServer } from '../../src/server/server.ts'
import { upsert } from '../../src/testing/store-cases/harness.ts'
import { addKey, ServerFixture, toNextMinute, type OpenHarness } from './server-fixture.ts'

export function describeFleet(name: string, open: OpenHarness): void {
  describe(`several servers on one ${name}`, () => {
    test('Z43 XF18 share the limit of a key, but not those of others', async () => {
      const stand = await ServerFixture.open(open)
      stand.shift.ms = toNextMinute()
      await (await stand.driver()).cycle([upsert('a', { n: 1 })])
      const quiet = { debug() {}, info() {}, warn() {}, error() {} }
      const second = createServer({
        store: await stand.harness.reopen(),
        version: '0.0.0',
        ports: {
          clock: { now: () => systemClock.now() + stand.shift.ms, sleep: systemClock.sleep },
          random: systemRandom,
          log: quiet,
        },
      })
      const url = await second.listen(0)
      onTestFinished(() => second.close())
      const key = await addKey(stand.store, ['*:read'], { rateLimit: 40 })
      const ask = async (base: string, who = key): Promise<{ status: number; remaining: number }> => {
        const response = await fetch(`${base}/agents/v1/things`, { headers: { authorization: `Bearer ${who}` } })
        await response.text()
        return { status: response.status, remaining: Number(response.headers.get('x-ratelimit-remaining')) }
      }
      for (let n = 0; n < 20; n++) await ask(stand.url)
      // Until the counts were exchanged.
      let asked = 0
      for (let { remaining } = await ask(url); remaining > 19 - asked && asked < 15; { remaining } = await ask(url)) {
        asked++
        await systemClock.sleep(200)
      }
      expect(asked).toBeLessThan(15)
      const statuses = new Set<number>()
      for (let n = 0; n < 20; n++) statuses.add((await ask(url)).status)
      expect([...statuses]).toContain(429)
      expect((await ask(url, stand.key)).status).toBe(200)
      stand.shift.ms += 60_000
      expect((await ask(url)).status).toBe(200)
    })
  })
}
