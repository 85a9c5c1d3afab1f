import type { Execute, SyncContext } from '../../contract/index.ts'
import { offsets, type OffsetsOptions, type OffsetsState } from '../../strategies/offsets.ts'
import { ClusterConnections } from './cluster-connections.ts'
import type { KafkaOptions } from './connect.ts'
import type { LogMessage } from './log-page.ts'
import { toChange, type MessageOptions } from './message.ts'
import { TopicLog } from './topic-log.ts'

export { listTopics } from './discover.ts'
export type { KafkaOptions } from './connect.ts'
export type { MessageOptions, MetadataField } from './message.ts'
export type { OffsetsState } from '../../strategies/offsets.ts'

export interface TopicOptions extends MessageOptions {
  /** `delete.retention.ms` of a compacted topic: who was away for longer has missed deletions, and reads the topic anew. */
  readonly tombstonesMs?: number
  /** Messages; 10,000 unless given. */
  readonly pageSize?: number
  /** Of keys and values; 8,000,000 unless given. A page ends with the message that goes beyond. */
  readonly pageBytes?: number
}

export interface KafkaStream {
  readonly backfill: Execute<OffsetsState>
  /** Without a state, from the oldest message that is kept. */
  readonly delta: Execute<OffsetsState>
  readonly anchor: (context: SyncContext) => Promise<OffsetsState | undefined>
}

export interface KafkaSource {
  /** Followed by its offsets: `worker.track('orders', { database, source: kafka({ brokers }).topic('orders') })`. */
  topic(name: string, options?: TopicOptions): KafkaStream
  /** All that is kept, each time; what is no longer there is swept: `worker.sync('countries', { database, ...kafka({ brokers }).listing('countries') })`. */
  listing(name: string, options?: TopicOptions): { readonly mode: 'replace'; readonly execute: Execute<OffsetsState> }
}

const PAGE_SIZE = 10_000
const PAGE_BYTES = 8_000_000

/** Topics of Kafka: the last value of every key, by the key; a message without one is a row of its own. */
export function kafka(source: KafkaOptions): KafkaSource {
  const topic = (name: string, options: TopicOptions = {}): KafkaStream => {
    const log = offsets(buildOffsetsOptions(source, name, options))
    return { backfill: log, delta: log, anchor: (context) => log.anchor(context) }
  }
  return { topic, listing: (name, options) => ({ mode: 'replace', execute: topic(name, options).backfill }) }
}

function buildOffsetsOptions(source: KafkaOptions, name: string, options: TopicOptions): OffsetsOptions<LogMessage> {
  const limits = { pageSize: options.pageSize ?? PAGE_SIZE, pageBytes: options.pageBytes ?? PAGE_BYTES }
  const clients = new ClusterConnections(source)
  return {
    bounds: (context) => clients.withCluster(context, (cluster) => new TopicLog(cluster, name).bounds()),
    read: (query, context) => clients.withCluster(context, (cluster) => new TopicLog(cluster, name).read(query, limits, context)),
    place: ({ partition, offset }) => `${partition}:${offset}`,
    toChanges: (message) => toChange(name, message, options),
    ...(options.tombstonesMs !== undefined && { tombstonesMs: options.tombstonesMs }),
  }
}
