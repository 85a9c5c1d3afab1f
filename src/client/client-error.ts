/** Error codes with their remedies. Codes of the server come first; the last ones belong to the client. */
export const CLIENT_ERRORS = {
  INVALID_REQUEST: 'Correct the request as described in the message.',
  UNAUTHORIZED: 'Use a valid key. `tidemark keys create` creates one.',
  FORBIDDEN: 'Use a key with the scope named in the message: `tidemark keys create --scopes …`.',
  NOT_FOUND: 'Check the URL and the name of the database.',
  METHOD_NOT_ALLOWED: 'Check `url`: this is not a Tidemark server.',
  REQUEST_TIMEOUT: 'Check the network connection to the server.',
  PAYLOAD_TOO_LARGE: 'Reduce the size of the request body.',
  UNSUPPORTED_MEDIA_TYPE: 'Check `url`: this is not a Tidemark server.',
  RATE_LIMIT_EXCEEDED: 'Send fewer requests, or give the key a higher `--rate`.',
  HEADERS_TOO_LARGE: 'Request fewer types.',
  INTERNAL_ERROR: 'Report it with the request id.',
  SERVICE_UNAVAILABLE: 'Retry later. If the error persists, check the log of the server.',
  NETWORK_FAILED: 'Check `url` and that the server is running.',
  TIMEOUT: 'Check the network connection to the server.',
  ANSWER_INVALID: 'Check `url`: the response did not come from a Tidemark server.',
  CHANGE_UNKNOWN: 'Upgrade the client: the server is newer.',
  HISTORY_CHANGED: 'Read everything again.',
  CHECKPOINT_INVALID: 'Restore the checkpoint, or delete it to read everything from the start.',
  ARGUMENT_INVALID: 'Correct the argument as described in the message.',
} as const

/** A code of `CLIENT_ERRORS`. Codes are permanent; messages may change. */
export type ClientErrorCode = keyof typeof CLIENT_ERRORS

/** Details of a failed request, as far as they are known. */
export interface ClientErrorOptions {
  readonly status?: number | undefined
  readonly requestId?: string | undefined
  readonly reason?: string | undefined
  readonly restart?: 'updatedSince' | 'backfill' | undefined
  readonly retryAfterMs?: number | undefined
  readonly cause?: unknown
}

/** An error of the client. Recognize it by `code`; `advice` describes the next step. */
export class ClientError extends Error {
  override readonly name = 'ClientError'
  readonly code: ClientErrorCode
  /** The next step for the caller. */
  readonly advice: string
  /** HTTP status; null without a response. */
  readonly status: number | null
  /** Identifies the request in the server's log; null if it did not reach the server. */
  readonly requestId: string | null
  /** The server's reason code, such as `cursor_expired`. */
  readonly reason: string | null
  /** How to recover when the position in the feed is lost. */
  readonly restart: 'updatedSince' | 'backfill' | null
  /** Wait requested by the server. */
  readonly retryAfterMs: number | null

  constructor(
    code: ClientErrorCode,
    message: string,
    { status, requestId, reason, restart, retryAfterMs, cause }: ClientErrorOptions = {},
  ) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
    this.advice = CLIENT_ERRORS[code]
    this.status = status ?? null
    this.requestId = requestId ?? null
    this.reason = reason ?? null
    this.restart = restart ?? null
    this.retryAfterMs = retryAfterMs ?? null
  }

  /** Whether a retry of the same request may succeed. */
  get isTransient(): boolean {
    return TRANSIENT.has(this.code)
  }
}

const TRANSIENT: ReadonlySet<ClientErrorCode> = new Set([
  'REQUEST_TIMEOUT',
  'RATE_LIMIT_EXCEEDED',
  'INTERNAL_ERROR',
  'SERVICE_UNAVAILABLE',
  'NETWORK_FAILED',
  'TIMEOUT',
  'ANSWER_INVALID',
])
