import type { JsonObject, JsonValue } from '../../contract/index.ts'
import { isObject } from './classify-response.ts'

/**
 * The vendor's own explanation of a failed request, for the error's message: one short line, or null when the body has
 * none that is known. Values that were sent are left out, because a vendor may quote the cursor it refuses, and so is
 * everything that looks like a token (invariant 10).
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
/** Control characters, and those that change the direction of a line. */
const UNPRINTABLE_PATTERN = /[\p{Cc}\p{Cf}]/gu
/** A run of letters and digits that no person wrote: a key, a cursor, a signature. */
const TOKEN_PATTERN = /(?=[\w+/=.~-]*\d)(?=[\w+/=.~-]*[A-Za-z])[\w+/=.~-]{24,}/g

/** Field names and words of a query are shown; ids, cursors and times are not. */
function isIdentifying(value: string): boolean {
  return value.length >= 6 && /\d/.test(value)
}

/** The members in which vendors put their explanation, the most telling first. */
const MESSAGE_FIELDS = ['error_description', 'message', 'detail', 'errorMessage', 'title', 'error', 'errors', 'code'] as const
const DEPTH_MAX = 4

function findMessage(value: JsonValue | undefined, depth: number): string | null {
  if (typeof value === 'string') return value === '' ? null : value
  if (depth > DEPTH_MAX) return null
  if (Array.isArray(value)) return value.length === 0 ? null : findMessage(value[0], depth + 1)
  if (!isObject(value)) return null
  for (const member of MESSAGE_FIELDS) {
    const found = findMessage(value[member], depth + 1)
    if (found !== null) return appendDetail(found, value)
  }
  return null
}

/** ServiceNow and problem documents explain in `detail` what `message` or `title` only names. */
function appendDetail(message: string, { detail, errorCode, error_description: description, error }: JsonObject): string {
  if (typeof errorCode === 'string') return `${errorCode}: ${message}`
  if (description !== undefined && typeof error === 'string') return `${error}: ${message}`
  return typeof detail === 'string' && detail !== '' && detail !== message ? `${message}: ${detail}` : message
}
