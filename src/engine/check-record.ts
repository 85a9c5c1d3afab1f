import type { ErrorCode, JsonObject } from '../contract/index.ts'
import { stringifyJson } from '../values/json.ts'
import { describeType } from './describe-type.ts'
import type { SyncLimits } from './sync-plan.ts'

/** Checks that make a record storable in every database alike. Messages name the fault, never the value. */

const KEY_BYTES_MAX = 1_024

export function findKeyFault(key: unknown): string | null {
  if (typeof key !== 'string') return `the key is ${describeType(key)}, not a string`
  if (key === '') return 'the key is empty'
  if (key.includes('\0')) return 'the key contains NUL'
  if (!key.isWellFormed()) return 'the key has a lone surrogate'
  if (key.length > KEY_BYTES_MAX / 3 && Buffer.byteLength(key) > KEY_BYTES_MAX)
    return `the key has ${Buffer.byteLength(key)} bytes; at most ${KEY_BYTES_MAX} are allowed`
  return null
}

export interface RecordFault {
  readonly code: ErrorCode
  readonly message: string
}

export function findRecordFault(record: unknown, limits: SyncLimits): RecordFault | null {
  if (typeof record !== 'object' || record === null || Array.isArray(record))
    return { code: 'RECORD_INVALID', message: `the record is ${describeType(record)}, not an object` }
  return findValueFault(record, 1, limits, { members: 0 })
}

function findValueFault(
  value: unknown,
  depth: number,
  limits: SyncLimits,
  sum: { members: number },
): RecordFault | null {
  switch (typeof value) {
    case 'number':
      return Number.isFinite(value) ? null : { code: 'RECORD_INVALID', message: `the record contains ${value}` }
    case 'function':
    case 'symbol':
      return { code: 'RECORD_INVALID', message: `the record contains a ${typeof value}` }
    case 'object':
      return value === null ? null : findObjectFault(value, depth, limits, sum)
    default:
      return null
  }
}

function findObjectFault(
  value: object,
  depth: number,
  limits: SyncLimits,
  sum: { members: number },
): RecordFault | null {
  if (depth > limits.recordDepthMax)
    return {
      code: 'RECORD_TOO_DEEP',
      message: `the record is nested more than ${limits.recordDepthMax} deep, or contains itself`,
    }
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    return value instanceof Date && Number.isNaN(value.getTime())
      ? { code: 'RECORD_INVALID', message: 'the record contains an invalid Date' }
      : null
  }
  // As JSON, each of them would lose its content without an error.
  if (value instanceof Map || value instanceof Set || value instanceof Error || ArrayBuffer.isView(value))
    return { code: 'RECORD_INVALID', message: `the record contains a ${describeType(value)}` }
  if (Array.isArray(value)) {
    for (const item of value as unknown[]) {
      const fault = findValueFault(item, depth + 1, limits, sum)
      if (fault !== null) return fault
    }
    return null
  }
  const names = Object.keys(value)
  sum.members += names.length
  if (sum.members > limits.recordMembersMax)
    return { code: 'RECORD_TOO_WIDE', message: `the record has more than ${limits.recordMembersMax} fields` }
  for (const name of names) {
    const fault = findValueFault((value as Record<string, unknown>)[name], depth + 1, limits, sum)
    if (fault !== null) return fault
  }
  return null
}

/** Null if a `toJSON` inside throws, or if the result is not an object. */
export function serializeRecord(record: JsonObject): string | null {
  try {
    const text = stringifyJson(record) as string | undefined
    return text !== undefined && text.startsWith('{') ? text : null
  } catch {
    return null
  }
}

/**
 * Databases differ on NUL and lone surrogates: one truncates the text, one rejects it, one replaces it. In JSON text
 * both appear only as \u escapes, which are rare, so one search clears nearly every record.
 */
export function findTextFault(text: string): string | null {
  if (!text.includes('\\u')) return null
  for (const [, backslashes = '', code = ''] of text.matchAll(/(\\+)u([0-9a-f]{4})/gi)) {
    if (backslashes.length % 2 === 0) continue
    if (code === '0000') return 'the record contains NUL'
    if (/^d[89a-f]/i.test(code)) return 'the record has a lone surrogate'
  }
  return null
}
