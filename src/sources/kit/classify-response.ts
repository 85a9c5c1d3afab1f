import type { ErrorCode, JsonObject, JsonValue } from '../../contract/index.ts'

/** The parts of a response that a classifier sees. */
export interface ResponseFacts {
  readonly status: number
  readonly headers: Headers
  /** Undefined if a failed response has no JSON body. */
  readonly body: JsonValue | undefined
  /** The text of a failed response. */
  readonly text?: string
}

/** A failure found in a response, which takes precedence over its status. */
export interface ResponseClass {
  readonly code: ErrorCode
  /** Completes the error message "… with <reason>". Must not quote the response. */
  readonly reason: string
  readonly retryAfterMs?: number
  /** The time until which the response asks to wait, if it names one. */
  readonly retryAt?: number
}

/**
 * Finds failures that the status does not show, in failed and successful responses: a rate limit, a rejected credential, an error
 * with status 200. Returns null if there are none.
 */
export type ResponseClassifier = (response: ResponseFacts) => ResponseClass | null

/** A GraphQL response with errors is a failure, even with data: the missing part would be skipped. */
export const classifyGraphqlResponse: ResponseClassifier = ({ body }) => {
  if (!isObject(body) || !Array.isArray(body.errors) || body.errors.length === 0) return null
  const kinds = new Set(body.errors.flatMap(extractErrorKinds))
  if (RATE_LIMIT_KINDS.some((kind) => kinds.has(kind))) return { code: 'RATE_LIMITED', reason: 'a GraphQL rate limit' }
  if (CURSOR_KINDS.some((kind) => kinds.has(kind))) return { code: 'CURSOR_REJECTED', reason: 'a rejected cursor' }
  if (AUTH_KINDS.some((kind) => kinds.has(kind)))
    return { code: 'AUTH_REJECTED', reason: 'a GraphQL authorization error' }
  return { code: 'SOURCE_INVALID', reason: 'GraphQL errors' }
}

/** The kind of an error is in one of four fields, and its spelling varies by source. */
function extractErrorKinds(error: JsonValue): string[] {
  if (!isObject(error)) return []
  const extensions = isObject(error.extensions) ? error.extensions : {}
  return [error.type, error.code, extensions.type, extensions.code].flatMap((kind) =>
    typeof kind === 'string' ? [kind.toUpperCase().replaceAll(/[^A-Z]/g, '')] : [],
  )
}

const RATE_LIMIT_KINDS = ['RATELIMITED', 'THROTTLED']
/** The query itself never changes, so these kinds can only mean the cursor. */
const CURSOR_KINDS = ['INVALIDCURSORARGUMENTS', 'INVALIDINPUT']
const AUTH_KINDS = ['UNAUTHENTICATED', 'AUTHENTICATIONERROR', 'UNAUTHORIZED', 'FORBIDDEN']

/** Whether a JSON value is an object: neither null nor an array. */
export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
