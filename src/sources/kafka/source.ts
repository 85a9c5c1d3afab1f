import { SyncError, type Execute, type SyncContext, type TimeRange } from '../../contract/index.ts'
import { offsets, type OffsetsOptions, type OffsetsState } from '../../strategies/offsets.ts'
import { instantToMs } from '../../values/instant.ts'
import { limitRange, parseSince, withSinceScope } from '../kit/since.ts'
import { ClusterConnections } from './cluster-connections.ts'
import type { KafkaOptions } from './connect.ts'
import type { LogMessage } from './log-page.ts'
import { toChange, type MessageOptions } from './message.ts'
import { TopicLog } from './topic-log.ts'

export { listTopics } from './discover.ts'
export type { KafkaOptions } from './connect.ts'
export type { MessageOptions, MetadataField } from './message.ts'
export type { OffsetsState } from '../../strategies/offsets.ts'

/** Options of one Kafka topic. */
export interface TopicOptions extends MessageOptions {
  /**
   * `delete.retention.ms` of a compacted topic: a sync that was away for longer has missed deletions, and reads the
   * topic again.
   */
  readonly tombstonesMs?: number
  /** The start date: reading begins at the first message of each partition with this time or a later one. */
  readonly since?: string
  /** Messages per page; 10,000 by default. */
  readonly pageSize?: number
  /** Bytes of keys and values per page; 8,000,000 by default. A page ends with the message that exceeds it. */
  readonly pageBytes?: number
}

/** The last value of every key of a topic. Pass it to `worker.track`. */
export interface KafkaStream {
  readonly backfill: Execute<OffsetsState>
  /** Without a state, starts at the oldest retained message. */
  readonly delta: Execute<OffsetsState>
  readonly anchor: (context: SyncContext) => Promise<OffsetsState | undefined>
}

/** The topics of a Kafka cluster. */
export interface KafkaSource {
  /** Follows the offsets: `worker.track('orders', { database, source: kafka({ brokers }).topic('orders') })`. */
  topic(name: string, options?: TopicOptions): KafkaStream
  /**
   * Reads all retained messages each time and sweeps missing rows: `worker.sync('countries', { database, ...kafka({
   * brokers }).listing('countries') })`.
   */
  listing(name: string, options?: TopicOptions): { readonly mode: 'replace'; readonly execute: Execute<OffsetsState> }
}

const PAGE_SIZE = 10_000
const PAGE_BYTES = 8_000_000

/** Reads Kafka topics: the last value of every key. A message without a key is a row of its own. */
export function kafka(source: KafkaOptions): KafkaSource {
  const topic = (name: string, options: TopicOptions = {}): KafkaStream => {
    const since = parseSince(options.since)
    const log = offsets(buildOffsetsOptions(source, name, options, since))
    const backfill = Object.assign(withSinceScope(log, since), {
      range: (range: TimeRange) => {
        if (range.to !== undefined)
          throw new SyncError(
            'RANGE_UNSUPPORTED',
            `topic ${name}: a range cannot end before the end of the topic, because a later message of the same key replaces an earlier one. Leave out \`to\`.`,
          )
        return offsets(buildOffsetsOptions(source, name, options, limitRange(range, since).from))
      },
    })
    return { backfill, delta: log, anchor: (context) => log.anchor(context) }
  }
  return { topic, listing: (name, options) => ({ mode: 'replace', execute: topic(name, options).backfill }) }
}

function buildOffsetsOptions(
  source: KafkaOptions,
  name: string,
  options: TopicOptions,
  since: string | undefined,
): OffsetsOptions<LogMessage> {
  const limits = { pageSize: options.pageSize ?? PAGE_SIZE, pageBytes: options.pageBytes ?? PAGE_BYTES }
  const clients = new ClusterConnections(source)
  return {
    bounds: (context) => clients.withCluster(context, (cluster) => new TopicLog(cluster, name).bounds()),
    read: (query, context) =>
      clients.withCluster(context, (cluster) => new TopicLog(cluster, name).read(query, limits, context)),
    cursor: ({ partition, offset }) => `${partition}:${offset}`,
    toChanges: (message) => toChange(name, message, options),
    ...(since !== undefined && {
      start: (context: SyncContext) =>
        clients.withCluster(context, (cluster) => startOffsets(new TopicLog(cluster, name), instantToMs(since))),
    }),
    ...(options.tombstonesMs !== undefined && { tombstonesMs: options.tombstonesMs }),
  }
}

/** A partition whose messages are all older begins at its end. */
async function startOffsets(log: TopicLog, ms: number): Promise<Record<string, string>> {
  const bounds = await log.bounds()
  const found = await log.offsetsSince(ms)
  return Object.fromEntries(Object.entries(bounds).map(([partition, { end }]) => [partition, found[partition] ?? end]))
}
