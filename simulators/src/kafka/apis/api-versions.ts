import { ERROR_CODES, type KafkaErrorName } from '../error-codes.ts'
import { WireWriter } from '../wire-writer.ts'
import type { KafkaApi } from './api.ts'

/** The supported versions. A client asks for them first, and is answered in version 0 if it asks in an unknown one. */
export function createApiVersions(apis: () => readonly KafkaApi[]): KafkaApi {
  return {
    key: 18,
    versions: [0, 2],
    respond: ({ version, plannedError: refusal }) => writeApiVersions(apis(), version, refusal ?? 'NONE'),
  }
}

export function writeApiVersions(apis: readonly KafkaApi[], version: number, error: KafkaErrorName): WireWriter {
  const answer = new WireWriter().int16(ERROR_CODES[error])
  answer.nullableArray(apis, ({ key, versions: [least, most] }) => answer.int16(key).int16(least).int16(most))
  return version >= 1 ? answer.int32(0) : answer
}
