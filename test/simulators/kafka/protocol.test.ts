import { createRequire } from 'node:module'
import { describe, expect, test } from 'vitest'
import { crc32c } from '../../../simulators/src/kafka/crc32c.ts'
import { decodeBatches, encodeBatch, type RecordBatch } from '../../../simulators/src/kafka/record-batch.ts'
import { KafkaSimulator, ManualClock, type KafkaMessage, type KafkaOptions } from '../../../simulators/src/index.ts'
import { WireClient } from './wire-client.ts'

const require = createRequire(import.meta.url)

const READ_COMMITTED = 1
const MINUTE_MS = 60_000

/** The clock is stopped: a pending request waits for the right event. */
async function open(options: KafkaOptions = {}) {
  const clock = new ManualClock()
  const simulator = new KafkaSimulator({ clock }, options)
  simulator.topics.create('t', 2)
  const addresses = await simulator.listen()
  const client = await WireClient.connect(addresses[0]!)
  return {
    clock,
    simulator,
    addresses,
    client,
    async [Symbol.asyncDispose]() {
      client[Symbol.dispose]()
      await simulator.close()
    },
  }
}

const message = (key: string, value: string | null = key): KafkaMessage => ({ key, value })
const fetching = (offset: number, { partition = 0, maxBytes = 1_000_000, ...given }: Record<string, number> = {}) => ({
  maxWaitTime: 0,
  minBytes: 1,
  maxBytes: 1_000_000,
  isolationLevel: 0,
  topics: [{ topic: 't', partitions: [{ partition, fetchOffset: String(offset), maxBytes }] }],
  ...given,
})

interface Fetched {
  errorCode: number
  highWatermark: string
  lastStableOffset: string
  lastStartOffset: string
  abortedTransactions: { producerId: string; firstOffset: string }[]
  messages: { offset: string; key: Buffer | null; value: Buffer | null; timestamp: string; isControlRecord: boolean }[]
}
async function fetchOf(client: WireClient, given: object, version = 11): Promise<Fetched> {
  return (await client.ask('Fetch', version, given)).responses[0].partitions[0] as Fetched
}
const offsetsOf = ({ messages }: Fetched) => messages.map(({ offset }) => Number(offset))

describe('record batches', () => {
  const batch: RecordBatch = {
    baseOffset: 7,
    lastOffset: 8,
    leaderEpoch: 3,
    isTransactional: false,
    isControl: false,
    producerId: -1,
    producerEpoch: 0,
    baseSequence: 0,
    records: [
      {
        offset: 7,
        timestamp: 1_767_225_600_123,
        key: Buffer.from('k'),
        value: null,
        headers: [
          ['a', Buffer.from('1')],
          ['a', Buffer.from([0xff])],
        ],
      },
      { offset: 8, timestamp: 1_767_225_700_000, key: null, value: Buffer.from('x'.repeat(300)), headers: [] },
    ],
  }

  test('are written byte for byte as kafkajs writes them, the checksum too', async () => {
    const { RecordBatch: write } = require('kafkajs/src/protocol/recordBatch/v0') as {
      RecordBatch(given: object): Promise<{ buffer: Buffer }>
    }
    const record = require('kafkajs/src/protocol/recordBatch/record/v0') as (given: object) => object
    const Long = require('kafkajs/src/utils/long') as { fromValue(value: number): object }
    const records = batch.records.map(({ offset, timestamp, key, value, headers }) =>
      record({
        offsetDelta: offset - 7,
        timestampDelta: timestamp - batch.records[0]!.timestamp,
        key,
        value,
        headers: headers.length === 0 ? {} : { a: headers.map(([, bytes]) => bytes) },
      }),
    )
    const theirs = await write({
      firstOffset: Long.fromValue(7),
      firstTimestamp: batch.records[0]!.timestamp,
      maxTimestamp: batch.records[1]!.timestamp,
      partitionLeaderEpoch: 3,
      lastOffsetDelta: 1,
      records,
    })
    expect(encodeBatch(batch).toString('hex')).toBe(theirs.buffer.toString('hex'))
  })

  test('are read back unchanged; a corrupt, compressed or older batch is recognised', () => {
    const bytes = encodeBatch(batch)
    expect(decodeBatches(Buffer.concat([bytes, bytes]))).toEqual([batch, batch])
    const harmed = (at: number, value: number) =>
      decodeBatches(Buffer.concat([bytes.subarray(0, at), Buffer.from([value]), bytes.subarray(at + 1)]))
    expect(harmed(bytes.length - 1, 0x79)).toBe('CORRUPT_MESSAGE')
    expect(harmed(16, 1)).toBe('UNSUPPORTED_FOR_MESSAGE_FORMAT')
    const zipped = Buffer.from(bytes)
    zipped.writeInt16BE(1, 21)
    zipped.writeUInt32BE(crc32c(zipped.subarray(21)), 17)
    expect(decodeBatches(zipped)).toBe('UNSUPPORTED_COMPRESSION_TYPE')
    expect(() => decodeBatches(bytes.subarray(0, -1))).toThrow(RangeError)
    expect(crc32c(Buffer.from('123456789'))).toBe(0xe3069283)
  })
})

describe('every announced version is supported', () => {
  test('the supported versions are returned, in each version of the request; an unknown version is answered in the first', async () => {
    await using opened = await open()
    const { client } = opened
    for (const version of [0, 1, 2]) {
      const { apiVersions } = await client.ask('ApiVersions', version)
      expect(apiVersions).toContainEqual({ apiKey: 1, minVersion: 4, maxVersion: 11 })
      expect(apiVersions).toHaveLength(12)
    }
    client.send(Buffer.from([0, 0, 0, 10, 0, 18, 0, 3, 0, 0, 0, 77, 0xff, 0xff]))
    const answer = await client.answer(77)
    expect([answer.readInt16BE(), answer.readInt32BE(2)]).toEqual([35, 12])
  })

  test.each([1, 2, 3, 4, 5, 6])(
    'metadata in version %i: brokers, partitions and their leaders; a missing topic',
    async (version) => {
      await using opened = await open({ brokers: 2 })
      const { client, simulator, addresses } = opened
      simulator.topics.create('other', 1)
      simulator.topics.log('other', 0).setLeader(null)
      const { brokers, topicMetadata } = await client.ask('Metadata', version, { topics: [] })
      expect(brokers.map(({ host, port }: { host: string; port: number }) => `${host}:${port}`)).toEqual(addresses)
      // An empty list means none of them, no list all of them; kafkajs writes the second for the first.
      expect(topicMetadata.map(({ topic }: { topic: string }) => topic)).toEqual(['t', 'other'])
      const asked = await client.ask('Metadata', version, { topics: ['t', 'none', 'other'] })
      expect(asked.topicMetadata).toMatchObject([
        {
          topicErrorCode: 0,
          topic: 't',
          isInternal: false,
          partitionMetadata: [
            { partitionErrorCode: 0, partitionId: 0, leader: 1, replicas: [1, 2], isr: [1, 2] },
            { partitionId: 1, leader: 2 },
          ],
        },
        { topicErrorCode: 3, topic: 'none', partitionMetadata: [] },
        { topicErrorCode: 0, topic: 'other', partitionMetadata: [{ partitionErrorCode: 5, leader: -1 }] },
      ])
    },
  )

  test.each([4, 5, 6, 7, 8, 9, 10, 11])('fetch in version %i', async (version) => {
    await using opened = await open()
    const { client, simulator } = opened
    simulator.append('t', 0, [message('a'), message('b', null)])
    simulator.topics.log('t', 0).deleteBefore(1)
    const found = await fetchOf(client, fetching(1), version)
    expect(found).toMatchObject({
      errorCode: 0,
      highWatermark: '2',
      lastStableOffset: '2',
      abortedTransactions: [],
      ...(version >= 5 && { lastStartOffset: '1' }),
    })
    expect(found.messages.map(({ key, value }) => [String(key), value])).toEqual([
      ['a', Buffer.from('a')],
      ['b', null],
    ])
    expect(await fetchOf(client, fetching(0), version)).toMatchObject({ errorCode: 1, highWatermark: '-1' })
  })

  test.each([1, 2, 3])('list offsets in version %i', async (version) => {
    await using opened = await open()
    const { client, simulator } = opened
    simulator.append(
      't',
      0,
      [1_000, 3_000, 2_000].map((timestamp) => ({ ...message('a'), timestamp })),
    )
    simulator.topics.log('t', 0).deleteBefore(1)
    const offsetAt = async (timestamp: number, partition = 0) =>
      (
        await client.ask('ListOffsets', version, {
          replicaId: -1,
          isolationLevel: 0,
          topics: [{ topic: 't', partitions: [{ partition, timestamp }] }],
        })
      ).responses[0].partitions[0]
    expect(await offsetAt(-1)).toMatchObject({ errorCode: 0, offset: '3', timestamp: '-1' })
    expect(await offsetAt(-2)).toMatchObject({ offset: '1' })
    expect(await offsetAt(500)).toMatchObject({ offset: '1', timestamp: '3000' })
    expect(await offsetAt(3_001)).toMatchObject({ offset: '-1', timestamp: '-1' })
    expect(await offsetAt(-1, 9)).toMatchObject({ errorCode: 3 })
  })

  test.each([3, 4, 5, 6, 7])('produce in version %i', async (version) => {
    await using opened = await open()
    const { client } = opened
    const produce = (partition: number, acks = -1) =>
      client.ask('Produce', version, {
        acks,
        timeout: 1_000,
        topicData: [
          {
            topic: 't',
            partitions: [
              {
                partition,
                messages: [
                  { key: Buffer.from('a'), value: Buffer.from('1') },
                  { key: Buffer.from('b'), value: null },
                ],
              },
            ],
          },
        ],
      })
    await produce(0)
    expect((await produce(0)).topics).toMatchObject([
      {
        topicName: 't',
        partitions: [
          {
            partition: 0,
            errorCode: 0,
            baseOffset: '2',
            logAppendTime: '-1',
            ...(version >= 5 && { logStartOffset: '0' }),
          },
        ],
      },
    ])
    expect((await produce(9)).topics[0].partitions[0]).toMatchObject({ errorCode: 3, baseOffset: '-1' })
    expect((await produce(0, 2)).topics[0].partitions[0]).toMatchObject({ errorCode: 21 })
    expect(offsetsOf(await fetchOf(client, fetching(0)))).toEqual([0, 1, 2, 3])
  })
})

test('a produce request with acks=0 gets no response: the next one belongs to the next request', async () => {
  await using opened = await open()
  const { client, simulator } = opened
  client
    .ask('Produce', 7, {
      acks: 0,
      timeout: 1_000,
      topicData: [{ topic: 't', partitions: [{ partition: 0, messages: [{ key: null, value: Buffer.from('1') }] }] }],
    })
    .catch(() => {})
  await client.ask('Metadata', 6, { topics: ['t'] })
  expect(client.answered).toEqual([2])
  expect(simulator.topics.log('t', 0).end).toBe(1)
})

describe('fetch', () => {
  test('a batch is returned whole, also where it is read from its middle; nothing before it is returned', async () => {
    await using opened = await open()
    const { client, simulator } = opened
    for (const keys of [
      ['a', 'b', 'c'],
      ['d', 'e'],
    ])
      simulator.append(
        't',
        0,
        keys.map((key) => message(key)),
      )
    expect(offsetsOf(await fetchOf(client, fetching(1)))).toEqual([0, 1, 2, 3, 4])
    expect(offsetsOf(await fetchOf(client, fetching(3)))).toEqual([3, 4])
    expect(await fetchOf(client, fetching(5))).toMatchObject({ errorCode: 0, messages: [] })
    expect(await fetchOf(client, fetching(6))).toMatchObject({ errorCode: 1 })
  })

  test('a response has the requested number of bytes and may end in the middle of a batch; only its first batch is always complete', async () => {
    await using opened = await open()
    const { client, simulator } = opened
    for (const partition of [0, 1])
      for (const key of 'abc') simulator.append('t', partition, [message(key, 'x'.repeat(100))])
    const size = encodeBatch({
      baseOffset: 0,
      lastOffset: 0,
      leaderEpoch: 0,
      isTransactional: false,
      isControl: false,
      producerId: -1,
      producerEpoch: -1,
      baseSequence: -1,
      records: [{ offset: 0, timestamp: 0, key: Buffer.from('a'), value: Buffer.from('x'.repeat(100)), headers: [] }],
    }).length
    const both = (maxBytes: number, partitionMaxBytes: number) => ({
      ...fetching(0),
      maxBytes,
      topics: [
        {
          topic: 't',
          partitions: [0, 1].map((partition) => ({ partition, fetchOffset: '0', maxBytes: partitionMaxBytes })),
        },
      ],
    })
    const counts = async (maxBytes: number, partitionMaxBytes: number) =>
      ((await client.ask('Fetch', 11, both(maxBytes, partitionMaxBytes))).responses[0].partitions as Fetched[]).map(
        (found) => offsetsOf(found).length,
      )
    expect(await counts(10_000, 10_000)).toEqual([3, 3])
    expect(await counts(10_000, 2 * size + 70)).toEqual([2, 2])
    expect(await counts(4 * size, 10_000)).toEqual([3, 1])
    expect(await counts(10, 10_000)).toEqual([1, 0])
    expect(await counts(10_000, 10)).toEqual([1, 0])
    // The response was cut there, not made shorter: exactly this many bytes arrived.
    const bytesOf = async (maxBytes: number) =>
      simulator.topics.log('t', 0).read(0, { maxBytes, atLeastOneBatch: true, until: 3 }).length
    expect(await bytesOf(2 * size + 70)).toBe(2 * size + 70)
  })

  test('waits until a message arrives, or until the time is over', async () => {
    await using opened = await open()
    const { client, simulator, clock } = opened
    const waiting = fetchOf(client, { ...fetching(0), maxWaitTime: MINUTE_MS })
    // Another connection is answered meanwhile; this one would have been.
    using other = await WireClient.connect(opened.addresses[0]!)
    await other.ask('Metadata', 6, { topics: ['t'] })
    clock.advance(MINUTE_MS - 1)
    await other.ask('Metadata', 6, { topics: ['t'] })
    expect(client.answered).toEqual([])
    simulator.append('t', 0, [message('a')])
    expect(offsetsOf(await waiting)).toEqual([0])

    // Less than requested: only the time-out releases it.
    const patient = fetchOf(client, { ...fetching(0), maxWaitTime: MINUTE_MS, minBytes: 10_000 })
    await expect
      .poll(() => {
        clock.advance(MINUTE_MS)
        return client.answered.length
      })
      .toBe(2)
    expect(offsetsOf(await patient)).toEqual([0])
  })

  test('nothing of a transaction is shown before it has ended, and then the aborted producer', async () => {
    await using opened = await open()
    const { client, simulator } = opened
    simulator.append('t', 0, [message('before')])
    simulator.append('t', 0, [message('kept')], { transactionOf: 1 })
    simulator.append('t', 0, [message('given up')], { transactionOf: 2 })
    const committed = (offset = 0) => fetchOf(client, { ...fetching(offset), isolationLevel: READ_COMMITTED })
    expect(offsetsOf(await committed())).toEqual([0])
    expect(await committed()).toMatchObject({ highWatermark: '3', lastStableOffset: '1' })
    expect(offsetsOf(await fetchOf(client, fetching(0)))).toEqual([0, 1, 2])
    simulator.endTransaction('t', 0, 1, 'commit')
    expect(await committed()).toMatchObject({ lastStableOffset: '2' })
    simulator.endTransaction('t', 0, 2, 'abort')
    const all = await committed()
    expect(all).toMatchObject({ lastStableOffset: '5', abortedTransactions: [{ producerId: '2', firstOffset: '2' }] })
    expect(
      all.messages.map(({ isControlRecord, key }) => (isControlRecord ? key!.readInt16BE(2) : String(key))),
    ).toEqual(['before', 'kept', 'given up', 1, 0])
    expect((await committed(5)).abortedTransactions).toEqual([])
    const { responses } = await client.ask('ListOffsets', 3, {
      replicaId: -1,
      isolationLevel: READ_COMMITTED,
      topics: [{ topic: 't', partitions: [{ partition: 0, timestamp: -1 }] }],
    })
    expect(responses[0].partitions[0].offset).toBe('5')
    expect(() => simulator.endTransaction('t', 0, 2, 'abort')).toThrow('no open transaction')
  })

  test('compaction keeps the last record of every key, gaps in the offsets and the start of the log; tombstones are removed later', async () => {
    await using opened = await open()
    const { client, simulator } = opened
    const log = simulator.topics.log('t', 0)
    simulator.append('t', 0, [message('a', '1'), message('b', '1'), { key: null, value: 'no key' }])
    simulator.append('t', 0, [message('a', '2')])
    simulator.append('t', 0, [message('b', null), message('c', '1')])
    simulator.append('t', 0, [message('given up', '1')], { transactionOf: 1 })
    simulator.endTransaction('t', 0, 1, 'abort')
    simulator.append('t', 0, [message('c', '2')])
    const keys = async () =>
      (await fetchOf(client, fetching(0))).messages
        .filter(({ isControlRecord }) => !isControlRecord)
        .map(({ offset, key, value }) => `${offset} ${String(key)} ${String(value)}`)
    log.compact({ tombstones: 'keep' })
    expect(await keys()).toEqual(['3 a 2', '4 b null', '5 c 1', '8 c 2'])
    expect(await fetchOf(client, fetching(1))).toMatchObject({ errorCode: 0, highWatermark: '9', lastStartOffset: '0' })
    log.compact({ tombstones: 'forget' })
    expect(await keys()).toEqual(['3 a 2', '5 c 1', '8 c 2'])
    // The remaining batch records its last offset.
    simulator.append('t', 0, [message('c', '3'), message('z'), message('c', '4')])
    simulator.append('t', 0, [message('c', '5')])
    simulator.append('t', 0, [message('end')])
    log.compact({ tombstones: 'forget' })
    const found = (await fetchOf(client, fetching(9))).messages as unknown as {
      offset: string
      batchContext: { firstOffset: string; lastOffsetDelta: number }
    }[]
    expect(
      found.map(({ offset, batchContext: { firstOffset, lastOffsetDelta } }) => [offset, firstOffset, lastOffsetDelta]),
    ).toEqual([
      ['10', '9', 2],
      ['12', '12', 0],
      ['13', '13', 0],
    ])
  })

  test('a request to another broker than the leader, or with another leader epoch, is refused', async () => {
    await using opened = await open({ brokers: 2 })
    const { client, simulator } = opened
    const codeOf = async (partition: number, currentLeaderEpoch = -1) =>
      (
        await fetchOf(client, {
          ...fetching(0),
          topics: [{ topic: 't', partitions: [{ partition, currentLeaderEpoch, fetchOffset: '0', maxBytes: 1 }] }],
        })
      ).errorCode
    expect([await codeOf(0), await codeOf(1), await codeOf(2)]).toEqual([0, 6, 3])
    simulator.topics.log('t', 1).setLeader(1)
    expect([await codeOf(1), await codeOf(1, 0), await codeOf(1, 1), await codeOf(1, 2)]).toEqual([0, 74, 0, 75])
  })

  test('an unknown session is refused', async () => {
    await using opened = await open()
    expect(await opened.client.ask('Fetch', 11, { ...fetching(0), sessionId: 5, sessionEpoch: 3 })).toMatchObject({
      errorCode: 70,
      responses: [],
    })
  })
})

describe('connections', () => {
  test('requests of one connection are answered in sequence, though the second could be answered at once', async () => {
    await using opened = await open()
    const { client, simulator } = opened
    const first = fetchOf(client, { ...fetching(0), maxWaitTime: MINUTE_MS })
    const second = client.ask('Metadata', 6, { topics: ['t'] })
    using other = await WireClient.connect(opened.addresses[0]!)
    await other.ask('Metadata', 6, { topics: ['t'] })
    expect(client.answered).toEqual([])
    simulator.append('t', 0, [message('a')])
    await Promise.all([first, second])
    expect(client.answered).toEqual([1, 2])
  })

  test.each([
    ['an unsupported kind of request', [0, 0, 0, 10, 0, 11, 0, 0, 0, 0, 0, 1, 0xff, 0xff]],
    ['an unsupported version', [0, 0, 0, 10, 0, 1, 0, 3, 0, 0, 0, 1, 0xff, 0xff]],
    ['a truncated request', [0, 0, 0, 10, 0, 1, 0, 4, 0, 0, 0, 1, 0xff, 0xff]],
    ['an implausible length', [0x47, 0x45, 0x54, 0x20, 0x2f]],
    ['a negative length', [0xff, 0xff, 0xff, 0xff]],
  ])('%s ends the connection', async (_, bytes) => {
    await using opened = await open()
    opened.client.send(Buffer.from(bytes))
    await opened.client.ended
    using next = await WireClient.connect(opened.addresses[0]!)
    await next.ask('ApiVersions', 0)
  })

  test('an idle connection is closed', async () => {
    await using opened = await open({ idleMs: 20 })
    await opened.client.ended
  })

  test('a broker that is down closes its connections and accepts none; it returns on the same port', async () => {
    await using opened = await open()
    const { simulator, client, addresses } = opened
    await simulator.broker(1).stop()
    await client.ended
    await expect(WireClient.connect(addresses[0]!)).rejects.toThrow('ECONNREFUSED')
    await simulator.broker(1).start()
    using next = await WireClient.connect(addresses[0]!)
    await next.ask('ApiVersions', 0)
    expect(() => simulator.broker(2)).toThrow('no broker 2')
  })
})

describe('faults', () => {
  test('an error for everything in the request, for this many requests of that kind', async () => {
    await using opened = await open()
    const { client, simulator } = opened
    simulator.faults.plan({ kind: 'error', error: 'LEADER_NOT_AVAILABLE' }, { api: 'metadata', times: 2 })
    simulator.faults.plan({ kind: 'error', error: 'NOT_LEADER_OR_FOLLOWER' }, { api: 'fetch' })
    const codes = async () => [
      (await client.ask('Metadata', 6, { topics: ['t'] })).topicMetadata[0].topicErrorCode,
      (await fetchOf(client, fetching(0))).errorCode,
    ]
    expect([await codes(), await codes(), await codes()]).toEqual([
      [5, 6],
      [5, 0],
      [0, 0],
    ])
    simulator.faults.plan({ kind: 'error', error: 'KAFKA_STORAGE_ERROR' })
    simulator.faults.clear('fetch')
    expect(await codes()).toEqual([56, 0])
    simulator.faults.plan({ kind: 'error', error: 'KAFKA_STORAGE_ERROR' })
    simulator.faults.clear()
    expect(await codes()).toEqual([0, 0])
  })

  test.each([
    ['before', 0],
    ['inside', 1],
  ] as const)(
    'a connection that is cut %s the response: the message is stored %i times, and later data is ignored',
    async (where, there) => {
      await using opened = await open()
      const { client, simulator } = opened
      simulator.faults.plan({ kind: 'cut', where }, { api: 'produce' })
      const produce = () =>
        client.ask('Produce', 7, {
          acks: -1,
          timeout: 1_000,
          topicData: [
            { topic: 't', partitions: [{ partition: 0, messages: [{ key: null, value: Buffer.from('1') }] }] },
          ],
        })
      const [first, second] = await Promise.allSettled([produce(), produce()])
      expect((first as PromiseRejectedResult).reason.message).toMatch(
        where === 'before' ? /after 0 bytes/ : /after [1-9]\d* bytes/,
      )
      expect(second.status).toBe('rejected')
      expect(simulator.topics.log('t', 0).end).toBe(there)
    },
  )

  test('a delayed response', async () => {
    await using opened = await open()
    const { client, simulator, clock } = opened
    simulator.faults.plan({ kind: 'slow', ms: MINUTE_MS }, { api: 'metadata' })
    const slow = client.ask('Metadata', 6, { topics: ['t'] })
    using other = await WireClient.connect(opened.addresses[0]!)
    await other.ask('Metadata', 6, { topics: ['t'] })
    expect(client.answered).toEqual([])
    await expect
      .poll(() => {
        clock.advance(MINUTE_MS)
        return client.answered
      })
      .toEqual([1])
    await slow
  })
})
