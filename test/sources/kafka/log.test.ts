import type { Cluster } from 'kafkajs'
import { describe, expect, test } from 'vitest'
import type { SyncContext } from '../../../src/contract/index.ts'
import {
  filterCommitted,
  getEndOffset,
  type FetchedMessage,
  type FetchedPartition,
} from '../../../src/sources/kafka/committed-messages.ts'
import { LogPage } from '../../../src/sources/kafka/log-page.ts'
import { TopicLog } from '../../../src/sources/kafka/topic-log.ts'

/** Features that the mock cluster lacks: transactions, compaction, and brokers that lag. */

function message(offset: number, producer: string | null = null, more: Partial<FetchedMessage> = {}): FetchedMessage {
  return {
    offset: String(offset),
    timestamp: '0',
    key: Buffer.from(`k${offset}`),
    value: Buffer.from('{}'),
    batchContext: {
      producerId: producer ?? '-1',
      inTransaction: producer !== null,
      firstOffset: String(offset),
      lastOffsetDelta: 0,
    },
    ...more,
  }
}
const mark = (offset: number, producer: string, type: 'abort' | 'commit') =>
  message(offset, producer, { isControlRecord: true, key: Buffer.from([0, 0, 0, type === 'abort' ? 0 : 1]) })
const fetched = (
  messages: FetchedMessage[],
  abortedTransactions: { producerId: string; firstOffset: string }[] = [],
): FetchedPartition => ({ partition: 0, highWatermark: '100', lastStableOffset: '100', abortedTransactions, messages })
const offsetsOf = (partition: FetchedPartition) =>
  filterCommitted(partition)
    .map(({ offset }) => offset)
    .join(' ')

describe('transactions', () => {
  test('aborted messages and marks are left out, committed ones and those of no transaction are kept', () => {
    const messages = [
      message(0),
      message(1, 'a'),
      message(2, 'b'),
      message(3),
      mark(4, 'a', 'abort'),
      message(5, 'a'),
      mark(6, 'b', 'commit'),
      mark(7, 'a', 'commit'),
    ]
    expect(offsetsOf(fetched(messages, [{ producerId: 'a', firstOffset: '1' }]))).toBe('0 2 3 5')
    expect(offsetsOf(fetched(messages))).toBe('0 1 2 3 5')
  })

  test('several transactions that began before the first message of an answer', () => {
    const aborted = [
      { producerId: 'b', firstOffset: '3' },
      { producerId: 'a', firstOffset: '1' },
    ]
    expect(
      offsetsOf(
        fetched(
          [
            message(10, 'b'),
            message(11, 'a'),
            message(12, 'c'),
            mark(13, 'b', 'abort'),
            message(14, 'b'),
            message(15, 'a'),
          ],
          aborted,
        ),
      ),
    ).toBe('12 14')
  })

  test('the same producer aborts twice', () => {
    const aborted = [
      { producerId: 'a', firstOffset: '1' },
      { producerId: 'a', firstOffset: '5' },
    ]
    expect(
      offsetsOf(
        fetched(
          [
            message(1, 'a'),
            mark(2, 'a', 'abort'),
            message(3, 'a'),
            mark(4, 'a', 'commit'),
            message(5, 'a'),
            mark(6, 'a', 'abort'),
          ],
          aborted,
        ),
      ),
    ).toBe('3')
  })
})

test('the end of an answer is behind its last batch, whatever compaction left of it', () => {
  expect(getEndOffset(fetched([]))).toBeNull()
  expect(
    getEndOffset(
      fetched([
        message(4, null, {
          batchContext: { producerId: '-1', inTransaction: false, firstOffset: '4', lastOffsetDelta: 5 },
        }),
      ]),
    ),
  ).toBe(10n)
  const { batchContext: _, ...old } = message(7)
  expect(getEndOffset(fetched([old]))).toBe(8n)
})

/** A broker that answers as scripted and repeats the last answer, and a clock that advances by sleeping and, optionally, with every answer. */
function logOf(...answers: (Partial<FetchedPartition> | Error)[]) {
  const asked: { offset: string; maxBytes: number }[] = []
  const pace = { answerMs: 0 }
  let now = 0
  const answerOf = (answer: Partial<FetchedPartition> | Error | undefined) => {
    if (answer instanceof Error) throw answer
    return answer
  }
  const broker = {
    fetch: async ({
      maxBytes,
      isolationLevel,
      topics,
    }: {
      maxBytes: number
      isolationLevel: number
      topics: { partitions: { partition: number; fetchOffset: string }[] }[]
    }) => {
      now += pace.answerMs
      if (isolationLevel !== 1) throw new Error('uncommitted messages were asked for')
      asked.push({ offset: topics[0]!.partitions[0]!.fetchOffset, maxBytes })
      return {
        responses: [
          { partitions: [{ ...fetched([]), ...answerOf(answers[Math.min(asked.length, answers.length) - 1]) }] },
        ],
      }
    },
  }
  const cluster = {
    addTargetTopic: async () => {},
    findLeaderForPartitions: () => ({ 1: [0] }),
    findBroker: async () => broker,
  } as unknown as Cluster
  const context = {
    clock: { now: () => now, sleep: async (ms: number) => void (now += ms) },
    signal: new AbortController().signal,
  } as unknown as SyncContext
  const read = (from: string, until: string, mark?: string) =>
    new TopicLog(cluster, 't').read(
      { from: { 0: from }, until: { 0: until }, ...(mark !== undefined && { marks: { 0: mark } }) },
      { pageSize: 10, pageBytes: 1_000 },
      context,
    )
  return { read, asked, pace }
}

describe('a stretch of the log', () => {
  test('marks of transactions, aborted messages and what compaction took away are passed over', async () => {
    const { read, asked } = logOf(
      {
        messages: [message(3, 'a'), mark(4, 'a', 'abort')],
        abortedTransactions: [{ producerId: 'a', firstOffset: '3' }],
      },
      { messages: [message(9)] },
      { messages: [mark(10, 'b', 'commit')] },
    )
    const { messages, next } = await read('3', '11')
    expect(messages.map(({ offset }) => offset)).toEqual(['9'])
    expect(next).toEqual({ 0: '11' })
    expect(asked.map(({ offset }) => offset)).toEqual(['3', '5', '10'])
  })

  test('a batch that was begun before, or that goes beyond the end, gives only what was asked for', async () => {
    const { read } = logOf({ messages: [message(3), message(4), message(5), message(6)] })
    const { messages, next } = await read('4', '6')
    expect(messages.map(({ offset }) => offset)).toEqual(['4', '5'])
    expect(next).toEqual({ 0: '6' })
  })

  test('a tail of which nothing is left is passed over once the broker has it all and shows nothing, asked with room for more each time', async () => {
    const { read, asked } = logOf({ messages: [], lastStableOffset: '8', highWatermark: '8' })
    expect(await read('5', '8')).toEqual({ messages: [], next: { 0: '8' }, marks: {} })
    expect(asked.map(({ maxBytes }) => maxBytes)).toEqual([1_000_000, 4_000_000, 16_000_000, 64_000_000])
  })

  test('a broker that lags behind is waited for, and nothing is passed over', async () => {
    const lagging = { messages: [], lastStableOffset: '5', highWatermark: '5' }
    const { read } = logOf(...Array.from({ length: 12 }, () => lagging), { messages: [message(5), message(6)] })
    const { messages, next } = await read('5', '7')
    expect(messages.map(({ offset }) => offset)).toEqual(['5', '6'])
    expect(next).toEqual({ 0: '7' })
  })

  test('what has come after ten seconds is landed, however much is left', async () => {
    const { read, pace } = logOf(...Array.from({ length: 9 }, (_, at) => ({ messages: [message(at)] })))
    pace.answerMs = 4_000
    const { messages, next } = await read('0', '9')
    expect(messages.map(({ offset }) => offset)).toEqual(['0', '1', '2'])
    expect(next).toEqual({ 0: '3' })
  })

  test('a log that has become shorter than the cycle is to read does not keep it waiting for ever', async () => {
    await expect(
      logOf({ messages: [], lastStableOffset: '5', highWatermark: '5' }).read('5', '7'),
    ).rejects.toMatchObject({ code: 'HISTORY_LOST', message: expect.stringContaining('reached 7') as string })
  })

  test('an open transaction holds back the messages after it: the last stable offset counts if the broker reports it, not the high watermark', async () => {
    await expect(
      logOf({ messages: [], lastStableOffset: '5', highWatermark: '9' }).read('5', '7'),
    ).rejects.toMatchObject({ code: 'HISTORY_LOST' })
    expect((await logOf({ messages: [], lastStableOffset: '-1', highWatermark: '9' }).read('5', '7')).next).toEqual({
      0: '7',
    })
  })
})

describe('a topic that was recreated and has grown beyond the offset', () => {
  const at = (offset: number, timestamp: string) => message(offset, null, { timestamp })
  const outOfRange = Object.assign(new Error('out of range'), { type: 'OFFSET_OUT_OF_RANGE' })

  test('the last message is requested again with the next page, and a different one is detected', async () => {
    const first = logOf({ messages: [at(3, '30'), at(4, '40')] })
    expect(await first.read('3', '5')).toMatchObject({ marks: { 0: '40' } })
    const same = logOf({ messages: [at(4, '40'), at(5, '50')] })
    expect(await same.read('5', '6', '40')).toMatchObject({
      messages: [{ offset: '5' }],
      next: { 0: '6' },
      marks: { 0: '50' },
    })
    expect(same.asked.map(({ offset }) => offset)).toEqual(['4'])
    await expect(logOf({ messages: [at(4, '41'), at(5, '50')] }).read('5', '6', '40')).rejects.toMatchObject({
      code: 'HISTORY_LOST',
      message: expect.stringContaining('different message at offset 4') as string,
    })
  })

  test('an answer with nothing but the message that is known leads on', async () => {
    const { read, asked } = logOf({ messages: [at(4, '40')] }, { messages: [at(5, '50')] })
    expect(await read('5', '6', '40')).toMatchObject({ messages: [{ offset: '5' }], next: { 0: '6' } })
    expect(asked.map(({ offset }) => offset)).toEqual(['4', '5'])
  })

  test('what compaction or retention took is no proof of anything', async () => {
    expect(await logOf({ messages: [at(5, '50')] }).read('5', '6', '40')).toMatchObject({ messages: [{ offset: '5' }] })
    const { read, asked } = logOf(outOfRange, { messages: [at(5, '50')] })
    expect(await read('5', '6', '40')).toMatchObject({ messages: [{ offset: '5' }] })
    expect(asked.map(({ offset }) => offset)).toEqual(['4', '5'])
    await expect(logOf(outOfRange).read('5', '6', '40')).rejects.toMatchObject({ code: 'HISTORY_LOST' })
  })

  test('an empty answer is no proof either: the mark is still to be compared', () => {
    const page = new LogPage(
      { from: { 0: '5' }, until: { 0: '9' }, marks: { 0: '40' } },
      { pageSize: 10, pageBytes: 1_000 },
    )
    expect(page.addPartition(fetched([]))).toBe(false)
    expect(page.getFetchOffset(0)).toBe('4')
  })

  test('a mark is that of the very last offset, or there is none', async () => {
    const batch = { producerId: '-1', inTransaction: false, firstOffset: '4', lastOffsetDelta: 3 }
    expect((await logOf({ messages: [message(4, null, { batchContext: batch })] }).read('4', '8')).marks).toEqual({})
    expect((await logOf({ messages: [at(4, '40'), mark(5, 'a', 'commit')] }).read('4', '6')).marks).toEqual({ 0: '0' })
  })
})
