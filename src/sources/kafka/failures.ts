import { isSyncError, SyncError, type ErrorCode } from '../../contract/index.ts'

const KAFKA_ERROR_CODES: Readonly<Record<string, ErrorCode>> = {
  OFFSET_OUT_OF_RANGE: 'HISTORY_LOST',
  UNKNOWN_TOPIC_OR_PARTITION: 'SOURCE_NOT_FOUND',
  INVALID_TOPIC_EXCEPTION: 'SOURCE_NOT_FOUND',
  TOPIC_AUTHORIZATION_FAILED: 'SOURCE_FORBIDDEN',
  CLUSTER_AUTHORIZATION_FAILED: 'SOURCE_FORBIDDEN',
  SASL_AUTHENTICATION_FAILED: 'AUTH_REJECTED',
  KafkaJSSASLAuthenticationError: 'AUTH_REJECTED',
  CORRUPT_MESSAGE: 'SOURCE_INVALID',
  // A codec that kafkajs does not bring along.
  KafkaJSNotImplemented: 'PACKAGE_UNFIT',
}

interface KafkaError {
  readonly name?: string
  readonly message?: string
  /** Of an answer of the broker. */
  readonly type?: string
  /** What was tried again in vain. */
  readonly cause?: unknown
}

/** What kafkajs throws, as ours. `where` is the topic, or the brokers. */
export function toSyncError(thrown: unknown, where: string): SyncError {
  if (isSyncError(thrown)) return thrown
  for (let error = thrown as KafkaError | undefined; error !== undefined && error !== null; error = error.cause as KafkaError | undefined) {
    const code = KAFKA_ERROR_CODES[error.type ?? ''] ?? KAFKA_ERROR_CODES[error.name ?? '']
    if (code === undefined) continue
    const what = error.name === 'KafkaJSNotImplemented' ? `${error.message ?? ''}. kafkajs knows gzip; add the codec to its \`CompressionCodecs\` in the worker file` : error.message ?? code
    return new SyncError(code, `${where}: ${what.replace(/\.$/, '')}.`, { cause: thrown })
  }
  return new SyncError('SOURCE_UNAVAILABLE', `${where}: ${(thrown as KafkaError).message ?? 'no answer'}`, { cause: thrown })
}
