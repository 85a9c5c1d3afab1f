import { isSyncError, SyncError, type ErrorCode } from '../../contract/index.ts'

/** By the type of a broker's response, or the name of an error of kafkajs. Anything else is temporary. */
const ERROR_CODES: Readonly<Record<string, ErrorCode>> = {
  TOPIC_AUTHORIZATION_FAILED: 'DESTINATION_REFUSED',
  CLUSTER_AUTHORIZATION_FAILED: 'DESTINATION_REFUSED',
  TRANSACTIONAL_ID_AUTHORIZATION_FAILED: 'DESTINATION_REFUSED',
  SASL_AUTHENTICATION_FAILED: 'DESTINATION_REFUSED',
  KafkaJSSASLAuthenticationError: 'DESTINATION_REFUSED',
  POLICY_VIOLATION: 'DESTINATION_REFUSED',
  INVALID_REPLICATION_FACTOR: 'DESTINATION_REFUSED',
  INVALID_PARTITIONS: 'DESTINATION_REFUSED',
  INVALID_TOPIC_EXCEPTION: 'DESTINATION_INVALID',
  KAFKA_STORAGE_ERROR: 'DESTINATION_FULL',
  KafkaJSServerDoesNotSupportApiKey: 'DESTINATION_REFUSED',
}

/** Another producer with the same transactional id was initialized. */
const FENCED_TYPES: ReadonlySet<string> = new Set([
  'INVALID_PRODUCER_EPOCH',
  'INVALID_PRODUCER_ID_MAPPING',
  'PRODUCER_FENCED',
  'TRANSACTION_COORDINATOR_FENCED',
])

interface KafkaError {
  readonly name?: string
  readonly message?: string
  readonly type?: string
  /** The error behind exhausted retries. */
  readonly cause?: unknown
  /** The errors of several topics. */
  readonly errors?: readonly unknown[]
}

export function isFenced(thrown: unknown): boolean {
  return listErrors(thrown).some(({ type }) => FENCED_TYPES.has(type ?? ''))
}

export function isTooLarge(thrown: unknown): boolean {
  return listErrors(thrown).some(({ type }) => type === 'MESSAGE_TOO_LARGE' || type === 'RECORD_LIST_TOO_LARGE')
}

/** Converts an error of kafkajs. `where` is the topic or the brokers. */
export function toDestinationError(thrown: unknown, where: string): SyncError {
  if (isSyncError(thrown)) return thrown
  const errors = listErrors(thrown)
  for (const { type, name, message } of errors) {
    const code = ERROR_CODES[type ?? ''] ?? ERROR_CODES[name ?? '']
    if (code !== undefined) return new SyncError(code, `${where}: ${endSentence(message ?? code)}`, { cause: thrown })
  }
  const message = errors[0]?.message ?? 'no answer from the brokers'
  return new SyncError('DESTINATION_UNAVAILABLE', `${where}: ${endSentence(message)}`, { cause: thrown })
}

function listErrors(thrown: unknown): KafkaError[] {
  const found: KafkaError[] = []
  const add = (error: unknown): void => {
    if (typeof error !== 'object' || error === null) return
    found.push(error)
    const { cause, errors = [] } = error as KafkaError
    for (const next of [cause, ...errors]) add(next)
  }
  add(thrown)
  return found
}

function endSentence(text: string): string {
  return text.endsWith('.') ? text : `${text}.`
}
