import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openStore } from '../../../src/index.ts'
import { buildPackage, type Build } from '../../process/build.ts'
import { Child } from '../../process/child.ts'
import { BrokerFixture, CLUSTERS } from './broker-fixture.ts'

let build: Build
beforeAll(async () => {
  build = await buildPackage()
})
afterAll(() => build?.remove())

for (const { cluster, isHere, start } of CLUSTERS)
  describe.skipIf(!isHere)(`R50 killed: ${cluster}`, () => {
    let broker: BrokerFixture
    beforeAll(async () => {
      broker = await BrokerFixture.open(1, start)
    })
    afterAll(() => broker?.close())

    test('R42 R48 R50 a reader killed inside a cycle leaves the offsets with the rows they cover; the next one ends the cycle, and nothing lands twice', async () => {
      const topic = 'orders'
      await broker.cluster.createTopic(topic, 2)
      await broker.produce(
        topic,
        Array.from({ length: 40 }, (_, at) => ({ key: `k${at}`, value: { at }, partition: at % 2 })),
      )
      const folder = mkdtempSync(join(tmpdir(), 'tidemark-kafka-kill-'))
      const url = `sqlite:${join(folder, 'store.db')}`
      const input = { url, brokers: broker.brokers, topic, pageSize: 3 }
      const look = async () => {
        const store = await openStore(url)
        try {
          const { committed, inflight } = await store.readCheckpoint({ worker: 'office', sync: 'orders' })
          const rows = await store.rows({ database: 'orders', limit: 1_000 })
          return {
            committed,
            inflight,
            rows: Object.fromEntries(rows.map(({ key, text }) => [key, JSON.parse(text) as object])),
            feed: await store.changes({ after: 0, limit: 1_000 }),
          }
        } finally {
          await store.close()
        }
      }
      try {
        const victim = new Child(build, 'run-kafka.mjs', { input: { ...input, holdAt: 6 } })
        await victim.until('landed', (said) => said['page'] === 4)
        expect((await victim.kill()).signal).toBe('SIGKILL')
        const dead = await look()
        expect(dead.committed).toBeNull()
        expect(dead.inflight?.page).toBeGreaterThanOrEqual(4)
        // The offsets cover exactly the messages that have landed.
        const { offsets } = JSON.parse(dead.inflight!.state!) as { offsets: Record<string, string> }
        expect(Object.values(offsets).reduce((sum, offset) => sum + Number(offset), 0)).toBe(dead.feed.length)

        await broker.produce(topic, [{ key: 'k7', value: null, partition: 1 }])
        const heir = await new Child(build, 'run-kafka.mjs', { input }).ended
        expect(heir.said.at(-1)).toMatchObject({ event: 'result', stopReason: 'complete', resumed: true })
        const done = await look()
        expect(done.feed.map(({ key }) => key).toSorted()).toEqual(
          Array.from({ length: 40 }, (_, at) => `k${at}`).toSorted(),
        )
        expect(JSON.parse(done.committed!)).toMatchObject({ offsets: { 0: '20', 1: '20' } })

        // One more whole cycle, by yet another process: what came meanwhile.
        const third = await new Child(build, 'run-kafka.mjs', { input }).ended
        expect(third.said.at(-1)).toMatchObject({
          stopReason: 'complete',
          resumed: false,
          counts: { created: 0, updated: 0, deleted: 1 },
        })
        expect((await look()).rows).toEqual(broker.truth(topic))
      } finally {
        rmSync(folder, { recursive: true, force: true })
      }
    })
  })
