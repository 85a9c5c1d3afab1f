import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { SyncContext } from '../../../src/contract/index.ts'
import { Secret } from '../../../src/redaction/secret.ts'
import { buildConfig } from '../../../src/sources/kafka/connect.ts'
import { toSyncError } from '../../../src/sources/kafka/failures.ts'
import { kafka, type OffsetsState } from '../../../src/sources/kafka/source.ts'
import { contextOf } from '../sql/cases.ts'
import { DatabaseFixture } from '../sql/database-fixture.ts'
import { BrokerFixture, CLUSTERS } from './broker-fixture.ts'

for (const { cluster, isHere, start } of CLUSTERS)
  describe.skipIf(!isHere)(`a cluster that fails: ${cluster}`, () => {
    let broker: BrokerFixture
    beforeAll(async () => {
      broker = await BrokerFixture.open(2, start)
    })
    afterAll(() => broker?.close())

    let topics = 0
    async function stageOf(limits = {}): Promise<{ topic: string; stage: DatabaseFixture }> {
      const topic = `failing${++topics}`
      await broker.cluster.createTopic(topic, 2)
      for (const partition of [0, 1]) await broker.cluster.setLeader(topic, partition, partition + 1)
      await broker.produce(
        topic,
        Array.from({ length: 20 }, (_, at) => ({ key: `k${at}`, value: { at }, partition: at % 2 })),
      )
      const { delta } = kafka({ brokers: broker.brokers }).topic(topic, { pageSize: 4 })
      return { topic, stage: (await DatabaseFixture.open()).sync('orders', 'incremental', delta, limits) }
    }

    test.each([
      ['fetch', 'corruptMessage', 'SOURCE_INVALID'],
      ['fetch', 'notLeaderForPartition', 'SOURCE_UNAVAILABLE'],
      ['fetch', 'disconnect', 'SOURCE_UNAVAILABLE'],
      ['fetch', 'offsetOutOfRange', 'HISTORY_LOST'],
      ['fetch', 'topicAuthorizationFailed', 'SOURCE_FORBIDDEN'],
      ['listOffsets', 'topicAuthorizationFailed', 'SOURCE_FORBIDDEN'],
      ['listOffsets', 'unknownTopicOrPartition', 'SOURCE_NOT_FOUND'],
    ] as const)('%s answered with %s is %s, and the next cycle ends the work', async (api, failure, code) => {
      const { topic, stage } = await stageOf()
      await broker.cluster.failNext(api, failure, 2)
      const failed = await stage.run('orders')
      expect(failed.error?.code ?? null).toBe(code)
      await broker.cluster.failNoMore(api)
      await stage.complete('orders')
      expect(await stage.rows('orders')).toEqual(broker.truth(topic))
      expect((await stage.store.changes({ after: 0, limit: 100 })).length).toBe(20)
      await stage.close()
    })

    test('a broker that goes down in the middle, and partitions that move: tried again within the cycle, and nothing is lost or doubled', async () => {
      const patient = await stageOf({ retriesMax: 3 })
      await broker.cluster.failNext('fetch', 'disconnect', 1)
      expect((await patient.stage.complete('orders')).retries).toBe(1)
      expect(await patient.stage.rows('orders')).toEqual(broker.truth(patient.topic))
      await patient.stage.close()

      const { topic, stage } = await stageOf()
      await stage.complete('orders')
      await broker.produce(topic, [{ key: 'k1', value: { at: 'again' }, partition: 1 }])
      await broker.cluster.down(2)
      expect((await stage.run('orders')).error?.code).toBe('SOURCE_UNAVAILABLE')
      await broker.cluster.setLeader(topic, 1, 1)
      await stage.complete('orders')
      expect(await stage.rows('orders')).toEqual(broker.truth(topic))
      expect((await stage.store.changes({ after: 0, limit: 100 })).length).toBe(21)
      await broker.cluster.up(2)
      await stage.close()
    })

    test('a partition that gets another leader in the middle of a cycle is found again', async () => {
      const { topic, stage } = await stageOf()
      const { delta } = kafka({ brokers: broker.brokers }).topic(topic, { pageSize: 4 })
      stage.sync(
        'moving',
        'incremental',
        async (state, context) => {
          if (context.cycle.page === 2)
            for (const partition of [0, 1]) await broker.cluster.setLeader(topic, partition, 2 - partition)
          return delta(state as OffsetsState | undefined, context)
        },
        { retriesMax: 2 },
      )
      expect((await stage.complete('moving')).retries).toBeGreaterThan(0)
      expect(await stage.rows('moving')).toEqual(broker.truth(topic))
      await stage.close()
    })

    test('a cycle is resumed by a process that has only its state', async () => {
      const { topic, stage } = await stageOf()
      const streamOf = () => kafka({ brokers: broker.brokers }).topic(topic, { pageSize: 4 }).delta
      const { nextState } = await streamOf()(undefined, contextOf())
      expect((await streamOf()(nextState, contextOf())).changes).toHaveLength(4)
      await stage.close()
    })

    test('no group is asked for: with every request of groups refused, a cycle completes', async () => {
      const { topic, stage } = await stageOf()
      const apis = ['findCoordinator', 'joinGroup', 'syncGroup', 'heartbeat', 'offsetFetch', 'offsetCommit'] as const
      for (const api of apis) await broker.cluster.failNext(api, 'groupAuthorizationFailed', 100)
      await stage.complete('orders')
      expect(await stage.rows('orders')).toEqual(broker.truth(topic))
      for (const api of apis) await broker.cluster.failNoMore(api)
      await stage.close()
    })

    test('a topic that is not there is said', async () => {
      // The mock would make it, whether it may or not.
      await broker.cluster.setTopicError('no-such-topic', 'unknownTopicOrPartition')
      await expect(
        kafka({ brokers: broker.brokers }).topic('no-such-topic').delta(undefined, contextOf()),
      ).rejects.toMatchObject({ code: 'SOURCE_NOT_FOUND', message: expect.stringContaining('no-such-topic') as string })
    })

    test('Z13 a source that reads for two tenants at once asks the brokers of each', async () => {
      const other = await BrokerFixture.open(1, start)
      for (const [stage, name] of [
        [broker, 'ours'],
        [other, 'theirs'],
      ] as const) {
        await stage.cluster.createTopic('shared', 1)
        await stage.produce('shared', [
          { key: 'whose', value: { name } },
          { key: 'more', value: { name } },
        ])
      }
      const { delta } = kafka({ brokers: 'BROKERS' }).topic('shared', { pageSize: 1 })
      // The same cycle, by its number: they differ only in their secrets.
      const as = (stage: BrokerFixture) =>
        ({ ...contextOf(), secrets: { get: () => stage.brokers.join(',') } }) as SyncContext
      const [ours, theirs] = await Promise.all([delta(undefined, as(broker)), delta(undefined, as(other))])
      const next = await Promise.all([delta(ours.nextState, as(broker)), delta(theirs.nextState, as(other))])
      expect([ours, theirs, ...next].map(({ changes }) => (changes[0] as any).record.name)).toEqual([
        'ours',
        'theirs',
        'ours',
        'theirs',
      ])
      await other.close()
    })

    test('brokers that do not respond are unavailable, and are named', async () => {
      await expect(
        kafka({ brokers: ['127.0.0.1:1'] })
          .topic('t')
          .delta(undefined, contextOf()),
      ).rejects.toMatchObject({ code: 'SOURCE_UNAVAILABLE', message: expect.stringContaining('127.0.0.1:1') as string })
    })

    test('connections end with their cycle, also when it is stopped in the middle of an answer', async () => {
      const sockets = () => process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length
      const settled = () => expect.poll(sockets)
      const { stage } = await stageOf()
      const before = sockets()
      await stage.complete('orders')
      await settled().toBe(before)

      const { topic } = await stageOf()
      const stopping = new AbortController()
      const context = { ...contextOf(), signal: stopping.signal } as SyncContext
      const { delta } = kafka({ brokers: broker.brokers }).topic(topic, { pageSize: 4 })
      const { nextState } = await delta(undefined, context)
      await settled().toBeGreaterThan(before)
      await broker.cluster.setDelay('all', 2_000)
      const reading = delta(nextState, context)
      stopping.abort(new Error('enough'))
      await expect(reading).rejects.toThrow()
      await broker.cluster.setDelay('all', 0)
      await settled().toBe(before)
      await expect(delta(nextState, context)).rejects.toThrow('enough')
      await stage.close()
    })
  })

describe('what a client is made of', () => {
  const secrets = { get: (name: string) => `the ${name}` }

  test('secrets are looked up by name, or are given; TLS and SASL are passed on', async () => {
    expect(buildConfig({ brokers: ['a:1', 'b:2'] }, { secrets })).toEqual({
      brokers: ['a:1', 'b:2'],
      clientId: 'tidemark',
    })
    expect(buildConfig({ brokers: 'a:1,b:2' }, { secrets })).toMatchObject({ brokers: ['a:1', 'b:2'] })
    expect(
      buildConfig({ brokers: 'BROKERS', ssl: true, clientId: 'shop' }, { secrets: { get: () => 'a:1, b:2' } }),
    ).toEqual({ brokers: ['a:1', 'b:2'], ssl: true, clientId: 'shop' })
    expect(
      buildConfig(
        {
          brokers: ['a:1'],
          ssl: { ca: 'CA', key: new Secret('pem') },
          sasl: { mechanism: 'scram-sha-512', username: 'USER', password: 'PASSWORD' },
        },
        { secrets },
      ),
    ).toMatchObject({
      ssl: { ca: 'the CA', key: 'pem' },
      sasl: { mechanism: 'scram-sha-512', username: 'the USER', password: 'the PASSWORD' },
    })
    const { sasl } = buildConfig(
      { brokers: ['a:1'], sasl: { mechanism: 'oauthbearer', token: 'TOKEN' } },
      { secrets },
    ) as { sasl: { oauthBearerProvider: () => Promise<{ value: string }> } }
    expect(await sasl.oauthBearerProvider()).toEqual({ value: 'the TOKEN' })
    expect(() => buildConfig({ brokers: [] }, { secrets })).toThrow('at least one broker')
  })

  test('what is thrown is known by its kind, also below what was tried again; credentials that are refused ask for new ones, a codec for its package', () => {
    const thrown = (name: string, more = {}) => Object.assign(new Error('said the broker'), { name, ...more })
    expect(toSyncError(thrown('KafkaJSSASLAuthenticationError'), 'x')).toMatchObject({ code: 'AUTH_REJECTED' })
    expect(
      toSyncError(
        thrown('KafkaJSNumberOfRetriesExceeded', {
          cause: thrown('KafkaJSProtocolError', { type: 'TOPIC_AUTHORIZATION_FAILED' }),
        }),
        'topic t',
      ),
    ).toMatchObject({ code: 'SOURCE_FORBIDDEN', message: 'topic t: said the broker.' })
    expect(toSyncError(thrown('KafkaJSNotImplemented'), 'x')).toMatchObject({
      code: 'PACKAGE_UNFIT',
      message: expect.stringContaining('CompressionCodecs') as string,
    })
    expect(toSyncError(thrown('KafkaJSConnectionError'), 'x')).toMatchObject({ code: 'SOURCE_UNAVAILABLE' })
  })
})
