import type { ErrorCode, JsonObject, JsonValue } from '../../contract/index.ts'

/** An answer as a judge sees it. */
export interface ResponseFacts {
  readonly status: number
  readonly headers: Headers
  /** Undefined when a failed answer has none that is JSON. */
  readonly body: JsonValue | undefined
}

/** What the body of an answer says against its status. */
export interface ResponseClass {
  readonly code: ErrorCode
  /** In words of our own, for the message; never words of the answer. */
  readonly reason: string
  readonly retryAfterMs?: number
  /** The moment until which the answer asks to wait, where it names one. */
  readonly retryAt?: number
}

/** Looks into an answer, failed or not, for what its status does not say: a limit, a refusal, an error with status 200. Null when there is nothing. */
export type ResponseClassifier = (answer: ResponseFacts) => ResponseClass | null

/** A GraphQL answer with errors is none, also when it holds data: what is missing from it would be missing for good. */
export const classifyGraphqlResponse: ResponseClassifier = ({ body }) => {
  if (!isObject(body) || !Array.isArray(body.errors) || body.errors.length === 0) return null
  const words = new Set(body.errors.flatMap(extractErrorKinds))
  if (RATE_LIMIT_KINDS.some((word) => words.has(word))) return { code: 'RATE_LIMITED', reason: 'a GraphQL rate limit' }
  if (CURSOR_KINDS.some((word) => words.has(word))) return { code: 'CURSOR_REJECTED', reason: 'a refusal of the position' }
  if (AUTH_KINDS.some((word) => words.has(word))) return { code: 'AUTH_REJECTED', reason: 'a GraphQL refusal' }
  return { code: 'SOURCE_INVALID', reason: 'GraphQL errors' }
}

/** Sources put the kind of an error in one of four places, and spell it each in its own way. */
function extractErrorKinds(error: JsonValue): string[] {
  if (!isObject(error)) return []
  const extensions = isObject(error.extensions) ? error.extensions : {}
  return [error.type, error.code, extensions.type, extensions.code].flatMap((word) => (typeof word === 'string' ? [word.toUpperCase().replaceAll(/[^A-Z]/g, '')] : []))
}

const RATE_LIMIT_KINDS = ['RATELIMITED', 'THROTTLED']
/** What only a position can be wrong with, where the query itself is always the same. */
const CURSOR_KINDS = ['INVALIDCURSORARGUMENTS', 'INVALIDINPUT']
const AUTH_KINDS = ['UNAUTHENTICATED', 'AUTHENTICATIONERROR', 'UNAUTHORIZED', 'FORBIDDEN']

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
