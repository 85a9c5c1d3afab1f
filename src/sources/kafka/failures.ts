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
  // A compression codec that kafkajs does not include.
  KafkaJSNotImplemented: 'PACKAGE_UNFIT',
}

interface KafkaError {
  readonly name?: string
  readonly message?: string
  /** Error type of a broker response. */
  readonly type?: string
  /** The error behind exhausted retries. */
  readonly cause?: unknown
}

/** Converts an error of kafkajs. `where` is the topic or the brokers. */
export function toSyncError(thrown: unknown, where: string): SyncError {
  if (isSyncError(thrown)) return thrown
  for (
    let error = thrown as KafkaError | undefined;
    error !== undefined && error !== null;
    error = error.cause as KafkaError | undefined
  ) {
    const code = KAFKA_ERROR_CODES[error.type ?? ''] ?? KAFKA_ERROR_CODES[error.name ?? '']
    if (code === undefined) continue
    const what =
      error.name === 'KafkaJSNotImplemented'
        ? `${error.message ?? ''}. kafkajs supports only gzip; add the codec to its \`CompressionCodecs\` in the worker file`
        : (error.message ?? code)
    return new SyncError(code, `${where}: ${what.replace(/\.$/, '')}.`, { cause: thrown })
  }
  return new SyncError(
    'SOURCE_UNAVAILABLE',
    `${where}: ${(thrown as KafkaError).message ?? 'no answer from the brokers'}`,
    { cause: thrown },
  )
}
