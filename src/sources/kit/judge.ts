import type { ErrorCode, JsonObject, JsonValue } from '../../contract/index.ts'

/** An answer as a judge sees it. */
export interface Judged {
  readonly status: number
  readonly headers: Headers
  /** Undefined when a failed answer has none that is JSON. */
  readonly body: JsonValue | undefined
}

/** What the body of an answer says against its status. */
export interface Verdict {
  readonly code: ErrorCode
  /** In words of our own, for the message; never words of the answer. */
  readonly reason: string
  readonly retryAfterMs?: number
  /** The moment until which the answer asks to wait, where it names one. */
  readonly retryAt?: number
}

/** Looks into an answer, failed or not, for what its status does not say: a limit, a refusal, an error with status 200. Null when there is nothing. */
export type Judge = (answer: Judged) => Verdict | null

/** A GraphQL answer with errors is none, also when it holds data: what is missing from it would be missing for good. */
export const judgeGraphql: Judge = ({ body }) => {
  if (!isObject(body) || !Array.isArray(body.errors) || body.errors.length === 0) return null
  const words = new Set(body.errors.flatMap(wordsOf))
  if (LIMITS.some((word) => words.has(word))) return { code: 'RATE_LIMITED', reason: 'a GraphQL rate limit' }
  if (CURSORS.some((word) => words.has(word))) return { code: 'CURSOR_REJECTED', reason: 'a refusal of the position' }
  if (REFUSALS.some((word) => words.has(word))) return { code: 'AUTH_REJECTED', reason: 'a GraphQL refusal' }
  return { code: 'SOURCE_INVALID', reason: 'GraphQL errors' }
}

/** Sources put the kind of an error in one of four places, and spell it each in its own way. */
function wordsOf(error: JsonValue): string[] {
  if (!isObject(error)) return []
  const extensions = isObject(error.extensions) ? error.extensions : {}
  return [error.type, error.code, extensions.type, extensions.code].flatMap((word) => (typeof word === 'string' ? [word.toUpperCase().replaceAll(/[^A-Z]/g, '')] : []))
}

const LIMITS = ['RATELIMITED', 'THROTTLED']
/** What only a position can be wrong with, where the query itself is always the same. */
const CURSORS = ['INVALIDCURSORARGUMENTS', 'INVALIDINPUT']
const REFUSALS = ['UNAUTHENTICATED', 'AUTHENTICATIONERROR', 'UNAUTHORIZED', 'FORBIDDEN']

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
