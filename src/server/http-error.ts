import { maskSecrets } from '../redaction/known-secrets.ts'

/** HTTP errors. Codes are stable; docs/reference/http.md lists them. */
export const HTTP_ERRORS = {
  INVALID_REQUEST: {
    status: 400,
    meaning:
      'A parameter, a cursor or the body is invalid; see `details.reason`, and `details.restart` for how to recover.',
  },
  QUERY_TOO_LONG: {
    status: 400,
    meaning: 'The query exceeded its time limit. The message names an index that helps, if there is one.',
  },
  UNAUTHORIZED: { status: 401, meaning: 'The key is missing, unknown, expired or revoked.' },
  FORBIDDEN: { status: 403, meaning: 'The key lacks the scope named in the message.' },
  NOT_FOUND: { status: 404, meaning: 'The database, row, sync or path does not exist.' },
  METHOD_NOT_ALLOWED: {
    status: 405,
    meaning: 'The path does not support this method; `Allow` lists the supported ones.',
  },
  CONFLICT: { status: 409, meaning: 'The sync is running, or has changed since it was read. Read it again.' },
  REQUEST_TIMEOUT: { status: 408, meaning: 'The request was not received in time.' },
  PAYLOAD_TOO_LARGE: { status: 413, meaning: 'The body is too large.' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, meaning: 'The body is not JSON.' },
  RATE_LIMIT_EXCEEDED: {
    status: 429,
    meaning: 'Too many requests or too many concurrent streams. Retry at `X-RateLimit-Reset`.',
  },
  HEADERS_TOO_LARGE: { status: 431, meaning: 'The request line or the headers are too long.' },
  INTERNAL_ERROR: { status: 500, meaning: 'Internal error of the server. Report it with the request id.' },
  SERVICE_UNAVAILABLE: { status: 503, meaning: 'The store is unreachable, or the server is stopping. Retry.' },
} as const satisfies Record<string, { status: number; meaning: string }>

export type HttpErrorCode = keyof typeof HTTP_ERRORS

export class HttpError extends Error {
  override readonly name = 'HttpError'
  readonly code: HttpErrorCode
  readonly details: Readonly<Record<string, unknown>> | undefined
  readonly headers: Readonly<Record<string, string>>

  constructor(
    code: HttpErrorCode,
    message: string,
    options: { details?: Record<string, unknown>; headers?: Record<string, string> } = {},
  ) {
    super(message)
    this.code = code
    this.details = options.details
    this.headers = options.headers ?? {}
  }

  get status(): number {
    return HTTP_ERRORS[this.code].status
  }

  /** The stable shape of every error (AX7). */
  body(requestId: string): string {
    return JSON.stringify({
      error: this.code,
      message: maskSecrets(this.message),
      status: this.status,
      requestId,
      ...(this.details && { details: this.details }),
    })
  }
}
