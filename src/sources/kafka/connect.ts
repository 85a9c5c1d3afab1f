import type { Cluster, KafkaConfig, SASLOptions } from 'kafkajs'
import { SyncError, type SyncContext } from '../../contract/index.ts'
import { Secret } from '../../redaction/secret.ts'

/** The name of a secret, looked up when it is needed, or the secret itself. */
type SecretSource = string | Secret

export interface KafkaOptions {
  /** `host:port` of some brokers, which tell of the others: a list, a text with commas between, or the secret that holds it. */
  readonly brokers: readonly string[] | SecretSource
  /** TLS: true, or the certificates where they are not those of the system, as PEM. */
  readonly ssl?: boolean | { readonly ca?: SecretSource; readonly cert?: SecretSource; readonly key?: SecretSource }
  readonly sasl?:
    | { readonly mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'; readonly username: SecretSource; readonly password: SecretSource }
    | { readonly mechanism: 'oauthbearer'; readonly token: SecretSource }
  /** What the brokers' logs and quotas call this client; `tidemark` unless given. */
  readonly clientId?: string
}

/** The options with their secrets: whoever has the same is the same client. */
export type KafkaClientConfig = KafkaConfig & { readonly brokers: string[] }

export function buildConfig({ brokers, ssl, sasl, clientId = 'tidemark' }: KafkaOptions, { secrets }: Pick<SyncContext, 'secrets'>): KafkaClientConfig {
  const reveal = (source: SecretSource): string => (source instanceof Secret ? source.reveal() : secrets.get(source))
  const revealed = (sources: Readonly<Record<string, SecretSource | undefined>>): Record<string, string> => (
    Object.fromEntries(Object.entries(sources).flatMap(([name, source]) => (source === undefined ? [] : [[name, reveal(source)]])))
  )
  const text = typeof brokers === 'string' ? (brokers.includes(':') ? brokers : secrets.get(brokers)) : brokers instanceof Secret ? brokers.reveal() : brokers.join(',')
  const list = text.split(',').map((broker) => broker.trim()).filter((broker) => broker !== '')
  if (list.length === 0) throw new SyncError('SYNC_INVALID', 'kafka needs the address of at least one broker.')
  return {
    brokers: list,
    clientId,
    ...(ssl !== undefined && { ssl: typeof ssl === 'boolean' ? ssl : revealed(ssl) }),
    ...(sasl !== undefined && { sasl: buildSaslOptions(sasl, reveal) }),
  }
}

function buildSaslOptions(sasl: NonNullable<KafkaOptions['sasl']>, reveal: (source: SecretSource) => string): SASLOptions {
  if (sasl.mechanism === 'oauthbearer') return { mechanism: sasl.mechanism, oauthBearerProvider: async () => ({ value: reveal(sasl.token) }) }
  return { mechanism: sasl.mechanism as 'plain', username: reveal(sasl.username), password: reveal(sasl.password) }
}

/**
 * kafkajs reads by consumer groups alone, whose rebalances and offsets are not ours. Beneath them lies what asks brokers
 * directly; it is handed to whoever divides partitions among a group's members, and no group is ever joined for it.
 */
export async function connectCluster(config: KafkaClientConfig): Promise<Cluster> {
  const { Kafka, logLevel } = await loadKafkajs()
  // The engine tries again, with the patience and the log of the cycle.
  const kafka = new Kafka({ ...config, logLevel: logLevel.NOTHING, connectionTimeout: 5_000, retry: { retries: 1, initialRetryTime: 100 } })
  let cluster: Cluster | undefined
  kafka.consumer({
    groupId: 'none', allowAutoTopicCreation: false, readUncommitted: false,
    partitionAssigners: [(given) => {
      cluster = given.cluster
      return { name: 'none', version: 0, assign: () => Promise.resolve([]), protocol: () => ({ name: 'none', metadata: Buffer.alloc(0) }) }
    }],
  })
  await cluster!.connect()
  return cluster!
}

/** Only who reads from Kafka needs it. */
async function loadKafkajs(): Promise<typeof import('kafkajs')> {
  try {
    return await import('kafkajs')
  } catch (error) {
    throw new SyncError('PACKAGE_UNFIT', 'To read from Kafka, the package kafkajs is needed: npm install kafkajs', { cause: error })
  }
}
