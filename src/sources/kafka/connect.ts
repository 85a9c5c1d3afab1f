import type { Cluster, KafkaConfig, SASLOptions } from 'kafkajs'
import { SyncError, type SyncContext } from '../../contract/index.ts'
import { Secret } from '../../redaction/secret.ts'
import { required } from '../../values/required.ts'
import { importPackage } from '../../values/import-package.ts'

/** The name of a secret, resolved on use, or the secret itself. */
type SecretSource = string | Secret

/** The brokers and credentials of a Kafka cluster. */
export interface KafkaOptions {
  /**
   * `host:port` of some brokers, which report the others: a list, a comma-separated string, or the secret that contains
   * it.
   */
  readonly brokers: readonly string[] | SecretSource
  /** TLS: true, or PEM certificates if they are not the system's. */
  readonly ssl?: boolean | { readonly ca?: SecretSource; readonly cert?: SecretSource; readonly key?: SecretSource }
  readonly sasl?:
    | {
        readonly mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'
        readonly username: SecretSource
        readonly password: SecretSource
      }
    | { readonly mechanism: 'oauthbearer'; readonly token: SecretSource }
  /** The client name in the brokers' logs and quotas; `tidemark` by default. */
  readonly clientId?: string
}

/** The options with resolved secrets; equal values identify the same client. */
export type KafkaClientConfig = KafkaConfig & { readonly brokers: string[] }

export function buildConfig(
  { brokers, ssl, sasl, clientId = 'tidemark' }: KafkaOptions,
  { secrets }: Pick<SyncContext, 'secrets'>,
): KafkaClientConfig {
  const reveal = (source: SecretSource): string => (source instanceof Secret ? source.reveal() : secrets.get(source))
  const revealed = (sources: Readonly<Record<string, SecretSource | undefined>>): Record<string, string> =>
    Object.fromEntries(
      Object.entries(sources).flatMap(([name, source]) => (source === undefined ? [] : [[name, reveal(source)]])),
    )
  const text =
    typeof brokers === 'string'
      ? brokers.includes(':')
        ? brokers
        : secrets.get(brokers)
      : brokers instanceof Secret
        ? brokers.reveal()
        : brokers.join(',')
  const list = text
    .split(',')
    .map((broker) => broker.trim())
    .filter((broker) => broker !== '')
  if (list.length === 0)
    throw new SyncError('SYNC_INVALID', 'kafka: `brokers` is empty. Set the address of at least one broker.')
  return {
    brokers: list,
    clientId,
    ...(ssl !== undefined && { ssl: typeof ssl === 'boolean' ? ssl : revealed(ssl) }),
    ...(sasl !== undefined && { sasl: buildSaslOptions(sasl, reveal) }),
  }
}

function buildSaslOptions(
  sasl: NonNullable<KafkaOptions['sasl']>,
  reveal: (source: SecretSource) => string,
): SASLOptions {
  if (sasl.mechanism === 'oauthbearer')
    return { mechanism: sasl.mechanism, oauthBearerProvider: async () => ({ value: reveal(sasl.token) }) }
  return { mechanism: sasl.mechanism as 'plain', username: reveal(sasl.username), password: reveal(sasl.password) }
}

/**
 * kafkajs exposes reads only through consumer groups, whose rebalances and offsets we do not use. The cluster below
 * them can fetch from brokers directly; kafkajs passes it to a partition assigner, and no group is ever joined.
 */
export async function connectCluster(config: KafkaClientConfig): Promise<Cluster> {
  const { Kafka, logLevel } = await loadKafkajs()
  // The engine retries with the cycle's own backoff and log.
  const kafka = new Kafka({
    ...config,
    logLevel: logLevel.NOTHING,
    connectionTimeout: 5_000,
    retry: { retries: 1, initialRetryTime: 100 },
  })
  let cluster: Cluster | undefined
  kafka.consumer({
    groupId: 'none',
    allowAutoTopicCreation: false,
    readUncommitted: false,
    partitionAssigners: [
      (assignment) => {
        cluster = assignment.cluster
        return {
          name: 'none',
          version: 0,
          assign: () => Promise.resolve([]),
          protocol: () => ({ name: 'none', metadata: Buffer.alloc(0) }),
        }
      },
    ],
  })
  const opened = required<Cluster>(cluster, 'the Kafka cluster')
  await opened.connect()
  return opened
}

/** Optional dependency, needed only for Kafka. */
export function loadKafkajs(): Promise<typeof import('kafkajs')> {
  return importPackage('kafkajs', 'Kafka needs', () => import('kafkajs'))
}
