import { setTimeout as sleep } from 'node:timers/promises'
import type { Message } from 'kafkajs'
import {
  SyncError,
  type DestinationBatch,
  type DestinationPosition,
  type DestinationSchema,
  type TokenStep,
} from '../../contract/index.ts'
import { isNextStep } from '../kit/is-next-step.ts'
import { findVanishedKeys } from './find-vanished-keys.ts'
import { serializeSchema, toMessage, toTombstone, type BatchHeaders } from './messages.ts'
import type { PartitionOf } from './partition-of.ts'
import type { PlacedMessage, TopicProducer, WriteResult } from './topic-producer.ts'
import type { PartitionBounds, TopicReader } from './topic-reader.ts'
import {
  parseState,
  POSITION_KEY,
  SCHEMA_KEY_PREFIX,
  serializeState,
  sideTopicOf,
  type TopicState,
} from './topic-state.ts'

const NO_POSITION: DestinationPosition = { live: null, loading: null }

export interface TopicWriterOptions {
  readonly reader: TopicReader
  readonly producer: TopicProducer
  readonly isTransactional: boolean
  readonly partitionOf: PartitionOf
}

/** The topic of one database, and its side topic. */
export class TopicWriter {
  readonly topics: { readonly topic: string; readonly sideTopic: string }
  readonly #reader: TopicReader
  readonly #producer: TopicProducer
  readonly #isTransactional: boolean
  readonly #partitionOf: PartitionOf
  /** By partition, an offset that the topic has reached: of the stored state, and of the messages written since. */
  readonly #ends = new Map<number, bigint>()
  #state: TopicState | null = null
  #isLost = false

  private constructor(topic: string, { reader, producer, isTransactional, partitionOf }: TopicWriterOptions) {
    this.topics = { topic, sideTopic: sideTopicOf(topic) }
    this.#reader = reader
    this.#producer = producer
    this.#isTransactional = isTransactional
    this.#partitionOf = partitionOf
  }

  /** The producer is initialized, so the state that is read here stays the last one until another producer is. */
  static async open(topic: string, options: TopicWriterOptions): Promise<TopicWriter> {
    const writer = new TopicWriter(topic, options)
    await writer.#readState()
    return writer
  }

  /** Null for rows that are no longer in the topic: it was deleted, recreated or truncated. */
  get position(): DestinationPosition {
    return this.#state === null || this.#isLost ? NO_POSITION : { live: this.#state.live, loading: this.#state.loading }
  }

  get hasState(): boolean {
    return this.#state !== null
  }

  get mode(): TopicState['mode'] | null {
    return this.position.live === null ? null : (this.#state?.mode ?? null)
  }

  async apply(batch: DestinationBatch, step: TokenStep): Promise<'applied' | 'refused'> {
    // Without transactions another producer may have written since.
    if (!this.#isTransactional) await this.#readState()
    if (!isNextStep(this.position, batch, step)) return 'refused'
    const { schema, changes, isFirst, isLast } = batch
    const before = this.#state
    const loadStart = isFirst ? await this.#readLoadStart() : (before?.loadStart ?? null)
    const partitions = isFirst ? (loadStart ?? []).length : (before?.partitions ?? 0)
    const { text, fingerprint } = serializeSchema(schema)
    const load = isFirst ? step.next.epoch : (before?.load ?? 0)
    const headers: BatchHeaders = { schema: fingerprint, load, token: step.next }
    const place = (message: Message): PlacedMessage => ({
      ...message,
      partition: this.#partitionOf(String(message.key), partitions),
    })
    if (isLast && loadStart !== null && !(await this.#deleteDeadKeys(loadStart, batch, headers, place)))
      return 'refused'
    let after: TopicState | null = null
    const result = await this.#write(
      mapMessages(changes, (change) => place(toMessage(change, headers))),
      () => {
        after = {
          ...(isLast ? { live: step.next, loading: null } : { ...this.position, [batch.target]: step.next }),
          mode: schema.mode,
          partitions,
          load,
          loadStart: isLast ? null : loadStart,
          ends: Array.from({ length: partitions }, (_, at) => String(this.#ends.get(at) ?? 0)),
          schema: fingerprint,
        }
        const position: PlacedMessage = { key: POSITION_KEY, value: serializeState(after), partition: 0 }
        if (before?.schema === fingerprint) return [position]
        return [{ key: SCHEMA_KEY_PREFIX + fingerprint, value: text, partition: 0 }, position]
      },
    )
    if (result.kind === 'fenced') return 'refused'
    this.#state = after
    this.#isLost = false
    return 'applied'
  }

  async prepare({ database, mode }: DestinationSchema): Promise<void> {
    if (this.mode !== null && this.mode !== mode)
      throw new SyncError(
        'DESTINATION_INVALID',
        `The topic ${this.topics.topic} was written in mode ${this.mode}, and not ${mode}. Use another topic, or remove it with \`tidemark destinations remove --drop\`.`,
      )
    if (this.hasState || !(await this.#reader.exists(this.topics.topic))) return
    const bounds = await this.#reader.bounds(this.topics.topic)
    if (bounds.some(({ low, end }) => end > low))
      throw new SyncError(
        'DESTINATION_FOREIGN',
        `${database}: the topic ${this.topics.topic} already has messages that Tidemark did not write. Nothing was changed.`,
      )
  }

  close(): Promise<void> {
    return this.#producer.close()
  }

  /** A load is written over the rows: keys that it did not write are deleted before it becomes live. */
  async #deleteDeadKeys(
    loadStart: readonly string[],
    { changes }: DestinationBatch,
    headers: BatchHeaders,
    place: (message: Message) => PlacedMessage,
  ): Promise<boolean> {
    await this.#readStableBounds()
    const current = new Set(changes.map(({ key }) => key))
    for await (const keys of findVanishedKeys(this.#reader, this.topics.topic, loadStart.map(BigInt))) {
      const messages = keys.filter((key) => !current.has(key)).map((key) => place(toTombstone(key, headers)))
      if (messages.length > 0 && (await this.#write(messages, () => [])).kind === 'fenced') return false
    }
    return true
  }

  /** `toState` is called after the rows are written. */
  #write(rows: Iterable<PlacedMessage>, toState: () => PlacedMessage[]): Promise<WriteResult> {
    return this.#producer.write({ topic: this.topics.topic, messages: rows }, (ends) => {
      for (const [partition, end] of ends) this.#ends.set(partition, end)
      const messages = toState()
      return messages.length === 0 ? [] : [{ topic: this.topics.sideTopic, messages }]
    })
  }

  async #readState(): Promise<void> {
    const found = (await this.#reader.exists(this.topics.sideTopic))
      ? await this.#reader.findLast(this.topics.sideTopic, 0, POSITION_KEY)
      : null
    const text = found?.value?.toString('utf8')
    this.#state = text === undefined ? null : parseState(text)
    const ends = this.#state?.ends ?? []
    const bounds = (await this.#reader.exists(this.topics.topic)) ? await this.#reader.bounds(this.topics.topic) : []
    this.#isLost = !ends.every((end, at) => (bounds[at]?.end ?? -1n) >= BigInt(end))
    this.#ends.clear()
    if (!this.#isLost) for (const [at, end] of ends.entries()) this.#ends.set(at, BigInt(end))
  }

  /** Keys stay in their partitions when partitions are added, so that the versions of a key are in order. */
  async #readLoadStart(): Promise<string[]> {
    const bounds = await this.#readStableBounds()
    const partitions = this.#isLost ? bounds.length : (this.#state?.partitions ?? bounds.length)
    return bounds.slice(0, partitions).map(({ end }) => String(end))
  }

  /** A commit is answered before it is visible in every partition. */
  async #readStableBounds(): Promise<PartitionBounds[]> {
    for (let attempt = 1; ; attempt++) {
      const bounds = await this.#reader.bounds(this.topics.topic)
      if ([...this.#ends].every(([at, end]) => (bounds[at]?.end ?? -1n) >= end)) return bounds
      if (attempt === STABLE_ATTEMPTS_MAX)
        throw new SyncError(
          'DESTINATION_UNAVAILABLE',
          `The last transaction of the topic ${this.topics.topic} is not visible yet.`,
        )
      await sleep(STABLE_WAIT_MS)
    }
  }
}

const STABLE_ATTEMPTS_MAX = 100
const STABLE_WAIT_MS = 50

function* mapMessages<Item, Result>(items: Iterable<Item>, map: (item: Item) => Result): Generator<Result> {
  for (const item of items) yield map(item)
}
