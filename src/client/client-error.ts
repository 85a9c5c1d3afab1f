/** Error codes with their remedies. Codes of the server come first; the last ones belong to the client. */
export const CLIENT_ERRORS = {
  INVALID_REQUEST: 'Change the request as the message says.',
  UNAUTHORIZED: 'Give a key that is valid: `tidemark keys create` makes one.',
  FORBIDDEN: 'Give a key with the scope that the message names: `tidemark keys create --scopes …`.',
  NOT_FOUND: 'Check the address and the name of the database.',
  METHOD_NOT_ALLOWED: 'Check the address: this is not the server of the feed.',
  REQUEST_TIMEOUT: 'Check the network between here and the server.',
  PAYLOAD_TOO_LARGE: 'Send less.',
  UNSUPPORTED_MEDIA_TYPE: 'Check the address: this is not the server of the feed.',
  RATE_LIMIT_EXCEEDED: 'Ask less often, or give the key a higher `--rate`.',
  HEADERS_TOO_LARGE: 'Name fewer types.',
  INTERNAL_ERROR: 'Report it with the request id.',
  SERVICE_UNAVAILABLE: 'The server comes back by itself; see its log when it does not.',
  NETWORK_FAILED: 'Check that `url` is right and that the server runs.',
  TIMEOUT: 'Check the network between here and the server.',
  ANSWER_INVALID: 'Check that `url` is that of the feed itself: something in between answered in its place.',
  CHANGE_UNKNOWN: 'Upgrade the client: the server is newer.',
  HISTORY_CHANGED: 'Read everything once more.',
  CHECKPOINT_INVALID: 'Restore the checkpoint, or delete it to read everything from the start.',
  ARGUMENT_INVALID: 'Change the argument as the message says.',
} as const

export type ClientErrorCode = keyof typeof CLIENT_ERRORS

export interface ClientErrorOptions {
  readonly status?: number | undefined
  readonly requestId?: string | undefined
  readonly reason?: string | undefined
  readonly restart?: 'updatedSince' | 'backfill' | undefined
  readonly retryAfterMs?: number | undefined
  readonly cause?: unknown
}

export class ClientError extends Error {
  override readonly name = 'ClientError'
  readonly code: ClientErrorCode
  /** What to do next. */
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

  constructor(code: ClientErrorCode, message: string, { status, requestId, reason, restart, retryAfterMs, cause }: ClientErrorOptions = {}) {
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

const TRANSIENT: ReadonlySet<ClientErrorCode> = new Set(['REQUEST_TIMEOUT', 'RATE_LIMIT_EXCEEDED', 'INTERNAL_ERROR', 'SERVICE_UNAVAILABLE', 'NETWORK_FAILED', 'TIMEOUT', 'ANSWER_INVALID'])
