import type { SASLOptions } from 'kafkajs'
import { SyncError, type Destination } from '../../contract/index.ts'
import type { KafkaClientConfig } from '../../sources/kafka/connect.ts'
import type { KafkaDestinationOptions } from './destination.ts'
import { KafkaSession, type KafkaSessionOptions } from './session.ts'
import { BATCH_BYTES_MAX } from './topic-producer.ts'

/** About three seconds: a transaction that was just committed may still block the next one. */
const RETRY = { retries: 5, initialRetryTime: 100 }

/** The destination, with the retries of the client as an argument for tests. */
export function createKafkaDestination(
  options: KafkaDestinationOptions,
  retry: KafkaSessionOptions['retry'] = RETRY,
): Destination {
  const { topic = '', partitions = -1, replicationFactor = -1 } = options
  const config = buildConfig(options)
  const where = `Kafka at ${config.brokers.join(', ')}`
  const limit = { bytesMax: BATCH_BYTES_MAX }
  return {
    kind: 'kafka',
    location: where,
    supports: {
      modes: ['mirror', 'append'],
      commit: 'acknowledgement',
      mergeByKey: false,
      addColumn: false,
      swap: false,
      types: ['bigint', 'boolean', 'double', 'json', 'numeric', 'text'],
    },
    open: ({ tenant }) =>
      KafkaSession.open(
        {
          config,
          where,
          topicOf: typeof topic === 'string' ? (name) => topic + name : topic,
          isTransactional: options.transactions ?? true,
          createsTopics: options.createTopics ?? true,
          layout: { partitions, replicationFactor },
          limit,
          retry,
        },
        tenant,
      ),
  }
}

function buildConfig({ brokers, ssl, sasl, clientId = 'tidemark' }: KafkaDestinationOptions): KafkaClientConfig {
  const list = (typeof brokers === 'string' ? brokers.split(',') : [...brokers]).map((broker) => broker.trim())
  if (list.length === 0 || !list.every((broker) => /^[^\s,:@]+:\d+$/.test(broker)))
    throw new SyncError('DESTINATION_INVALID', 'The brokers of the destination are not host:port, or a list of them.')
  return {
    brokers: list,
    clientId,
    ...(ssl !== undefined && { ssl: typeof ssl === 'boolean' ? ssl : { ...ssl } }),
    ...(sasl !== undefined && { sasl: buildSasl(sasl) }),
  }
}

function buildSasl(sasl: NonNullable<KafkaDestinationOptions['sasl']>): SASLOptions {
  if (sasl.mechanism === 'oauthbearer')
    return { mechanism: sasl.mechanism, oauthBearerProvider: async () => ({ value: sasl.token }) }
  return { mechanism: sasl.mechanism as 'plain', username: sasl.username, password: sasl.password }
}
