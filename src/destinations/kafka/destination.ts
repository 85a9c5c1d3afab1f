import { SyncError, type Destination } from '../../contract/index.ts'
import { registerSecret } from '../../redaction/known-secrets.ts'
import { createKafkaDestination } from './create-destination.ts'

/** Options of `kafka`. */
export interface KafkaDestinationOptions {
  /** `host:port` of some brokers, which report the others: a list, or comma-separated. */
  readonly brokers: string | readonly string[]
  /** The topic of a database: a prefix, or a function of its name. Default: the name of the database. */
  readonly topic?: string | ((database: string) => string)
  /** TLS: true, or PEM certificates if they are not the system's. */
  readonly ssl?: boolean | { readonly ca?: string; readonly cert?: string; readonly key?: string }
  /** The sign-in: `plain`, `scram-sha-256`, `scram-sha-512` or `oauthbearer`. */
  readonly sasl?:
    | {
        readonly mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'
        readonly username: string
        readonly password: string
      }
    | { readonly mechanism: 'oauthbearer'; readonly token: string }
  /** The client name in the brokers' logs and quotas. Default: `tidemark`. */
  readonly clientId?: string
  /** Partitions of a topic that is created. Default: that of the brokers. */
  readonly partitions?: number
  /** Replicas of a topic that is created. Default: that of the brokers. */
  readonly replicationFactor?: number
  /** Creates missing topics, and checks the `cleanup.policy` of existing ones. Default: true. */
  readonly createTopics?: boolean
  /** Writes each batch in a transaction. Without it, a batch may be written twice after a crash. Default: true. */
  readonly transactions?: boolean
}

/**
 * Kafka topics, one per database: a message per change, with the key of the row. A batch and its token are one
 * transaction, so that readers with `read_committed` see every change once.
 *
 * @example
 * ```ts
 * import { Worker } from 'tidemark'
 * import { kafka } from 'tidemark/destinations/kafka'
 *
 * const worker = new Worker({ name: 'billing' })
 * worker.database('customers')
 * worker.destination('events', kafka({ brokers: ['kafka-1:9092', 'kafka-2:9092'], topic: 'billing.' }))
 * ```
 */
export function kafka(options: KafkaDestinationOptions): Destination {
  const { sasl, ssl } = options
  const secrets =
    sasl === undefined ? [] : sasl.mechanism === 'oauthbearer' ? [sasl.token] : [sasl.username, sasl.password]
  for (const secret of [...secrets, ...(typeof ssl === 'object' && ssl.key !== undefined ? [ssl.key] : [])])
    registerSecret(secret)
  for (const name of ['partitions', 'replicationFactor'] as const) {
    const count = options[name]
    if (count !== undefined && !(Number.isInteger(count) && count > 0))
      throw new SyncError('DESTINATION_INVALID', `\`${name}\` of the destination is not a positive integer.`)
  }
  return createKafkaDestination(options)
}
