import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Execute } from '../../../src/contract/index.ts'
import { kafka, type OffsetsState, type TopicOptions } from '../../../src/sources/kafka/source.ts'
import { DatabaseFixture } from '../sql/database-fixture.ts'
import { BrokerFixture, CLUSTERS } from './broker-fixture.ts'

for (const { cluster, isHere, hasGroups, start } of CLUSTERS)
  describe.skipIf(!isHere)(`topics of Kafka: ${cluster}`, () => {
    let broker: BrokerFixture
    beforeAll(async () => {
      broker = await BrokerFixture.open(2, start)
    })
    afterAll(() => broker?.close())

    let topics = 0
    async function topicOf(partitions: number, on = broker): Promise<string> {
      const topic = `topic${++topics}`
      await on.cluster.createTopic(topic, partitions)
      return topic
    }
    const streamOf = (topic: string, options: TopicOptions = {}, on = broker) =>
      kafka({ brokers: on.brokers }).topic(topic, options)

    /** A key always lies in the same partition. */
    const written = (from: number, count: number, keys = 7, partitions = 3) =>
      Array.from({ length: count }, (_, at) => ({
        key: `k${(from + at) % keys}`,
        value: { n: from + at },
        partition: ((from + at) % keys) % partitions,
      }))

    test('R42 R50 RX8 the last value of every key: a whole incremental cycle, then what came since; the offsets are the state', async () => {
      const topic = await topicOf(3)
      await broker.produce(topic, written(0, 60))
      const stage = (await DatabaseFixture.open()).sync('orders', 'incremental', streamOf(topic, { pageSize: 8 }).delta)
      const first = await stage.complete('orders')
      expect(first.pages).toBeGreaterThan(5)
      expect(await stage.rows('orders')).toEqual(broker.truth(topic))
      expect((await stage.state('orders')).offsets).toEqual({ 0: '26', 1: '17', 2: '17' })

      await broker.produce(topic, [
        ...written(60, 5),
        { key: 'k1', value: null, partition: 1 },
        { key: 'k2', value: null, partition: 2 },
        { key: 'k2', value: { n: 'again' }, partition: 2 },
      ])
      const second = await stage.complete('orders')
      expect(second.counts).toMatchObject({ created: 0, deleted: 1 })
      expect(await stage.rows('orders')).toEqual(broker.truth(topic))
      expect((await stage.complete('orders')).counts).toMatchObject({
        created: 0,
        updated: 0,
        deleted: 0,
        unchanged: 0,
      })
      expect(await stage.state('orders')).toMatchObject({ offsets: { 0: expect.any(String) as string } })
      await stage.close()
    })

    test('a cycle ends where the log ended when it began, though more comes with every page', async () => {
      const topic = await topicOf(2)
      await broker.produce(topic, written(0, 12, 12, 2))
      const { delta } = streamOf(topic, { pageSize: 5 })
      let produced = 12
      const busy: Execute<OffsetsState> = async (state, context) => {
        const page = await delta(state, context)
        await broker.produce(topic, written(produced++, 1, 1_000, 2))
        return page
      }
      const stage = (await DatabaseFixture.open()).sync('orders', 'incremental', busy)
      expect((await stage.complete('orders')).counts).toMatchObject({ created: 12 })
      expect(Object.keys(await stage.rows('orders'))).toHaveLength(12)
      const late = produced - 12
      expect((await stage.complete('orders')).counts).toMatchObject({ created: late })
      await stage.close()
    })

    test('replace alone: the log is read again each time and gives the same rows; a key that is no longer in it is swept', async () => {
      const topic = await topicOf(2)
      await broker.produce(topic, [...written(0, 40, 7, 2), { key: 'k3', value: null, partition: 1 }])
      const stage = (await DatabaseFixture.open()).sync(
        'orders',
        'replace',
        kafka({ brokers: broker.brokers }).listing(topic, { pageSize: 6 }).execute,
      )
      await stage.complete('orders')
      const before = await stage.rows('orders')
      expect(before).toEqual(broker.truth(topic))
      await stage.complete('orders')
      expect(await stage.rows('orders')).toEqual(before)
      await stage.close()

      // The same log without one of its keys, as compaction leaves it: another cluster, for this one forgets by size alone.
      const compacted = await BrokerFixture.open(1, start)
      await compacted.cluster.createTopic(topic, 2)
      await compacted.produce(
        topic,
        Object.entries(before)
          .filter(([key]) => key !== 'k5')
          .map(([key, value]) => ({ key, value: value as object, partition: 0 })),
      )
      const other = (await DatabaseFixture.open()).sync('orders', 'replace', (state, context) => {
        const from = context.cycle.id === 1 ? broker : compacted
        return kafka({ brokers: from.brokers }).listing(topic).execute(state, context)
      })
      await other.complete('orders')
      expect(await other.complete('orders', { allowDeletes: true })).toMatchObject({
        counts: { swept: 1, updated: 0, created: 0 },
      })
      expect(await other.rows('orders')).toEqual(compacted.truth(topic))
      await other.close()
      await compacted.close()
    })

    test('what is no JSON object is put aside with the reason, and the rest goes on; keys keep their bytes; metadata on demand', async () => {
      const topic = await topicOf(1)
      await broker.produce(topic, [
        {
          key: 'good',
          value: { big: 'x' },
          headers: { source: 'shop', twice: ['a', 'b'], raw: Buffer.from([0xff]) },
          timestamp: '1767225600123',
        },
        { key: 'text', value: 'not json' },
        { key: 'scalar', value: '7' },
        { key: 'bytes', value: Buffer.from([0xff, 0xfe]) },
        { key: 'avro', value: Buffer.from([0, 0, 0, 0, 1, 2, 3]) },
        { key: Buffer.from([0xff]), value: { of: 'bytes' } },
        { key: 'base64:/w==', value: { of: 'text' } },
        { key: '', value: { of: 'nothing' } },
        { key: null, value: '{"long":9007199254740993}' },
        { key: null, value: null },
      ])
      const stage = (await DatabaseFixture.open()).sync(
        'things',
        'incremental',
        streamOf(topic, { include: ['partition', 'offset', 'timestamp', 'headers'] }).delta,
      )
      expect((await stage.complete('things')).counts).toMatchObject({ created: 5, quarantined: 4 })
      const rows = await stage.rows('things')
      expect(rows['good']).toEqual({
        big: 'x',
        _kafka: {
          partition: 0,
          offset: 0,
          timestamp: '2026-01-01T00:00:00.123Z',
          headers: { source: 'shop', twice: ['a', 'b'], raw: 'base64:/w==' },
        },
      })
      expect(
        Object.fromEntries(Object.entries(rows).map(([key, row]) => [key, row.of ?? row.long ?? row.big])),
      ).toEqual({
        good: 'x',
        'base64:/w==': 'bytes',
        [`base64:${Buffer.from('base64:/w==').toString('base64')}`]: 'text',
        'base64:': 'nothing',
        [`${topic}/0/8`]: 9007199254740993n,
      })
      const aside = await stage.store.quarantineEntries()
      expect(Object.fromEntries(aside.map(({ key, message }) => [key, message]))).toEqual({
        text: `${topic}/0/1: the value is not JSON`,
        scalar: `${topic}/0/2: the value is not an object`,
        bytes: `${topic}/0/3: the value is not UTF-8`,
        avro: expect.stringContaining('schema registry') as string,
      })
      expect(
        Object.fromEntries(aside.map(({ key, text }) => [key, (JSON.parse(text) as { raw: string }).raw])),
      ).toEqual({
        text: expect.any(String) as string,
        scalar: '7',
        bytes: 'base64://4=',
        avro: 'base64:AAAAAAECAw==',
      })
      await stage.close()
    })

    test('a value in another form is read by `decode`', async () => {
      const topic = await topicOf(1)
      await broker.produce(topic, [
        { key: 'a', value: 'x=1' },
        { key: 'b', value: 'y' },
      ])
      const decode = (value: Buffer) => {
        const [name, number] = value.toString().split('=')
        if (number === undefined) throw new Error('no number')
        return { [name!]: Number(number) }
      }
      const stage = (await DatabaseFixture.open()).sync('things', 'incremental', streamOf(topic, { decode }).delta)
      expect((await stage.complete('things')).counts).toMatchObject({ created: 1, quarantined: 1 })
      expect(await stage.rows('things')).toEqual({ a: { x: 1 } })
      await stage.close()
    })

    test('a page ends by its messages or by its bytes, whichever comes first', async () => {
      const topic = await topicOf(1)
      await broker.produce(
        topic,
        Array.from({ length: 30 }, (_, at) => ({ key: `k${at}`, value: { text: 'x'.repeat(10_000) } })),
      )
      const pagesOf = async (options: TopicOptions) => {
        const stage = (await DatabaseFixture.open()).sync('things', 'incremental', streamOf(topic, options).delta)
        const { pages, counts } = await stage.complete('things')
        await stage.close()
        return { pages, created: counts.created }
      }
      expect(await pagesOf({})).toEqual({ pages: 1, created: 30 })
      expect(await pagesOf({ pageSize: 10 })).toEqual({ pages: 3, created: 30 })
      expect(await pagesOf({ pageBytes: 50_000 })).toEqual({ pages: 6, created: 30 })
    })

    test('XC32 messages that retention deleted before they were read are reported, and the pair is complete again after its backfill', async () => {
      const topic = await topicOf(1)
      const large = (name: string) => ({ key: name, value: { text: 'x'.repeat(900_000), name } })
      await broker.produce(topic, [
        { key: 'gone', value: { n: 1 } },
        { key: 'kept', value: { n: 1 } },
      ])
      const stage = (await DatabaseFixture.open()).track('orders', streamOf(topic))
      await stage.complete('orders')
      expect(Object.keys(await stage.rows('orders'))).toEqual(['gone', 'kept'])

      await broker.produce(topic, [{ key: 'gone', value: null }])
      for (let n = 0; n < 7; n++) await broker.produce(topic, [large(`large${n}`)])
      await broker.produce(topic, [{ key: 'kept', value: { n: 2 } }])
      const lost = await stage.run('orders')
      expect(lost.error).toMatchObject({
        code: 'HISTORY_LOST',
        message: expect.stringContaining('no longer retained') as string,
      })
      expect(await stage.state('orders')).toBeNull()
      expect(
        (await stage.store.readCheckpoint({ worker: 'office', sync: 'orders-backfill' })).backfillNeeded,
      ).not.toBeNull()

      await stage.complete('orders-backfill')
      const rows = await stage.rows('orders')
      expect(rows['gone']).toBeUndefined()
      expect(rows['kept']).toEqual({ n: 2 })
      await broker.produce(topic, [{ key: 'kept', value: { n: 3 } }])
      await stage.complete('orders')
      expect((await stage.rows('orders'))['kept']).toEqual({ n: 3 })
      await stage.close()
    })

    test('XC32 a topic that was deleted and recreated is detected: it ends before the offsets, or has fewer partitions', async () => {
      const topic = await topicOf(2)
      await broker.produce(topic, written(0, 20, 7, 2))
      const anew = await BrokerFixture.open(1, start)
      await anew.cluster.createTopic(topic, 2)
      await anew.produce(topic, [{ key: 'k0', value: { n: 'new' }, partition: 0 }])
      let isAnew = false
      const [old, made] = [streamOf(topic), streamOf(topic, {}, anew)]
      const now = () => (isAnew ? made : old)
      const stage = (await DatabaseFixture.open()).track('orders', {
        backfill: (state, context) => now().backfill(state as OffsetsState, context),
        delta: (state, context) => now().delta(state as OffsetsState, context),
        anchor: (context) => now().anchor(context),
      })
      await stage.complete('orders')
      isAnew = true
      expect((await stage.run('orders')).error).toMatchObject({
        code: 'HISTORY_LOST',
        message: expect.stringContaining('recreated') as string,
      })
      await stage.complete('orders-backfill', { allowDeletes: true })
      await stage.complete('orders')
      expect(await stage.rows('orders')).toEqual(anew.truth(topic))
      await stage.close()
      await anew.close()
    })

    test('XC32 a topic that was recreated and has already grown beyond the offsets is detected by its messages', async () => {
      const topic = await topicOf(1)
      await broker.produce(topic, written(0, 5, 7, 1))
      const anew = await BrokerFixture.open(1, start)
      await anew.cluster.createTopic(topic, 1)
      await anew.produce(
        topic,
        written(100, 9, 7, 1).map((message) => ({ ...message, timestamp: '1767225600123' })),
      )
      const stage = (await DatabaseFixture.open()).sync('orders', 'incremental', (state, context) =>
        streamOf(topic, {}, context.cycle.id === 1 ? broker : anew).delta(state as OffsetsState | undefined, context),
      )
      await stage.complete('orders')
      expect((await stage.run('orders')).error).toMatchObject({
        code: 'HISTORY_LOST',
        message: expect.stringContaining('different message at offset 4') as string,
      })
      await stage.close()
      await anew.close()
    })

    test('the backfill reads the log again while the delta goes on, and takes nothing back', async () => {
      const topic = await topicOf(1)
      await broker.produce(
        topic,
        Array.from({ length: 30 }, (_, at) => ({ key: `k${at % 6}`, value: { n: at } })),
      )
      const { backfill, delta, anchor } = streamOf(topic, { pageSize: 5 })
      let meanwhile: Promise<unknown> | null = null
      const stage = await DatabaseFixture.open()
      stage.track('orders', {
        anchor,
        delta,
        backfill: async (state, context) => {
          if (context.cycle.page === 3 && meanwhile === null) {
            await broker.produce(topic, [
              { key: 'k0', value: { n: 'newest' } },
              { key: 'k1', value: null },
            ])
            await (meanwhile = stage.complete('orders'))
          }
          return backfill(state as OffsetsState, context)
        },
      })
      const result = await stage.complete('orders-backfill')
      expect(meanwhile).not.toBeNull()
      expect(result.counts.stale).toBeGreaterThan(0)
      expect(await stage.rows('orders')).toEqual(broker.truth(topic))
      await stage.close()
    })

    test('two readers at once: the second finds the lease held, and nothing lands twice', async () => {
      const topic = await topicOf(2)
      await broker.produce(topic, written(0, 40, 40, 2))
      const stage = (await DatabaseFixture.open()).sync('orders', 'incremental', streamOf(topic, { pageSize: 4 }).delta)
      const results = await Promise.all([stage.run('orders'), stage.run('orders')])
      expect(results.map(({ stopReason }) => stopReason).toSorted()).toEqual(['complete', 'held'])
      const feed = await stage.store.changes({ after: 0, limit: 1_000 })
      expect(feed.map(({ key }) => key).toSorted()).toEqual(
        written(0, 40, 40, 2)
          .map(({ key }) => key)
          .toSorted(),
      )
      await stage.close()
    })

    test.skipIf(!hasGroups)(
      'a consumer group that forms, rebalances and commits on the same topic changes nothing',
      async () => {
        const topic = await topicOf(3)
        await broker.produce(topic, written(0, 60, 60))
        const options = { sessionTimeout: 6_000, heartbeatInterval: 500, maxWaitTimeInMs: 100 }
        const consumers = Array.from({ length: 2 }, () =>
          broker.kafka.consumer({ groupId: `tidemark-${topic}`, ...options }),
        )
        const { delta } = streamOf(topic, { pageSize: 7 })
        const seen: Promise<void>[] = []
        const join = async (at: number) => {
          const consumer = consumers[at]!
          await consumer.connect()
          await consumer.subscribe({ topics: [topic], fromBeginning: true })
          seen.push(new Promise((resolve) => consumer.on(consumer.events.GROUP_JOIN, () => resolve())))
          // Resolves when the member has joined, which `seen` reports as well.
          consumer.run({ autoCommitThreshold: 1, eachMessage: () => Promise.resolve() }).catch(() => {})
        }
        const stage = (await DatabaseFixture.open()).sync('orders', 'incremental', async (state, context) => {
          const { page } = context.cycle
          // One before the cycle's second page, another before its fourth: the group is rebalanced while it is read.
          if (page === 2 || page === 4) await join(page / 2 - 1)
          // The mock gives a member five seconds to join again, and divides the group again after a late one: on a busy
          // machine that may not end. The group is there to disturb, and is not waited for longer.
          if (page === 6) await atMost(20_000, Promise.all(seen))
          return delta(state as OffsetsState | undefined, context)
        })
        try {
          expect((await stage.complete('orders')).counts).toMatchObject({ created: 60, updated: 0, unchanged: 0 })
          expect(seen).toHaveLength(2)
          expect(await stage.rows('orders')).toEqual(broker.truth(topic))
          expect((await stage.store.changes({ after: 0, limit: 1_000 })).map(({ key }) => key).toSorted()).toEqual(
            written(0, 60, 60)
              .map(({ key }) => key)
              .toSorted(),
          )
        } finally {
          // A member leaves only after it has joined.
          await atMost(20_000, Promise.all(consumers.map((consumer) => consumer.disconnect())))
          await stage.close()
        }
      },
    )
  })

async function atMost(ms: number, done: Promise<unknown>): Promise<void> {
  await Promise.race([done, setTimeout(ms, undefined, { ref: false })])
}
