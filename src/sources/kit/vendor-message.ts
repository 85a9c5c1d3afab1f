import type { JsonObject, JsonValue } from '../../contract/index.ts'
import { isObject } from './classify-response.ts'

/**
 * Extracts the vendor's explanation of a failed request for the error message: one short line, or null if there is none.
 * Invariant 10: sent values are masked, because a vendor may quote the cursor it rejects, and so is anything like a token.
 */
export function extractVendorMessage(body: JsonValue | undefined, sent: readonly string[]): string | null {
  const text = findMessage(body, 0)
  if (text === null) return null
  const hidden = sent.filter(isIdentifying).toSorted((a, b) => b.length - a.length)
  const safe = hidden.reduce((shown, value) => shown.replaceAll(value, '…'), text).replaceAll(TOKEN_PATTERN, '…')
  const line = safe.toWellFormed().replaceAll(UNPRINTABLE_PATTERN, ' ').replaceAll(/\s+/g, ' ').trim()
  if (line === '' || line === '…') return null
  return line.length > MESSAGE_CHARS_MAX ? `${line.slice(0, MESSAGE_CHARS_MAX)}…` : line
}

const MESSAGE_CHARS_MAX = 300
/** Control characters, and characters that change the text direction. */
const UNPRINTABLE_PATTERN = /[\p{Cc}\p{Cf}]/gu
/** A long run of letters and digits: a key, a cursor, a signature. */
const TOKEN_PATTERN = /(?=[\w+/=.~-]*\d)(?=[\w+/=.~-]*[A-Za-z])[\w+/=.~-]{24,}/g

/** Ids, cursors and times are masked; field names and query keywords are not. */
function isIdentifying(value: string): boolean {
  return value.length >= 6 && /\d/.test(value)
}

/** The fields that hold a vendor's explanation, the most specific first. */
const MESSAGE_FIELDS = [
  'error_description',
  'message',
  'detail',
  'errorMessage',
  'title',
  'error',
  'errors',
  'code',
] as const
const DEPTH_MAX = 4

function findMessage(value: JsonValue | undefined, depth: number): string | null {
  if (typeof value === 'string') return value === '' ? null : value
  if (depth > DEPTH_MAX) return null
  if (Array.isArray(value)) return value.length === 0 ? null : findMessage(value[0], depth + 1)
  if (!isObject(value)) return null
  for (const field of MESSAGE_FIELDS) {
    const found = findMessage(value[field], depth + 1)
    if (found !== null) return appendDetail(found, value)
  }
  return null
}

/** ServiceNow and problem documents explain `message` or `title` in `detail`. */
function appendDetail(
  message: string,
  { detail, errorCode, error_description: description, error }: JsonObject,
): string {
  if (typeof errorCode === 'string') return `${errorCode}: ${message}`
  if (description !== undefined && typeof error === 'string') return `${error}: ${message}`
  return typeof detail === 'string' && detail !== '' && detail !== message ? `${message}: ${detail}` : message
}
