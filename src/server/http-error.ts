import { maskSecrets } from '../redaction/known-secrets.ts'

/** HTTP errors. Codes are stable; docs/reference/http.md lists them. */
export const HTTP_ERRORS = {
  INVALID_REQUEST: { status: 400, meaning: 'A parameter, a cursor or the body is not valid; `details.reason` says which and `details.restart` the way back.' },
  UNAUTHORIZED: { status: 401, meaning: 'There is no key, or it is not known, or it has ended.' },
  FORBIDDEN: { status: 403, meaning: 'The key lacks the scope that the message names.' },
  NOT_FOUND: { status: 404, meaning: 'There is no such database, row, sync or address.' },
  METHOD_NOT_ALLOWED: { status: 405, meaning: 'The address exists, but not with this method; `Allow` names those it has.' },
  CONFLICT: { status: 409, meaning: 'The sync is being run, or has moved since it was looked at. Look again.' },
  REQUEST_TIMEOUT: { status: 408, meaning: 'The request took too long to come in.' },
  PAYLOAD_TOO_LARGE: { status: 413, meaning: 'The body is larger than a request needs.' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, meaning: 'The body is not JSON.' },
  RATE_LIMIT_EXCEEDED: { status: 429, meaning: 'Too many requests, or too many streams at once. Ask again at `X-RateLimit-Reset`.' },
  HEADERS_TOO_LARGE: { status: 431, meaning: 'The request line or the headers are too long.' },
  INTERNAL_ERROR: { status: 500, meaning: 'A defect of the server. Report it with the request id.' },
  SERVICE_UNAVAILABLE: { status: 503, meaning: 'The store cannot be asked at the moment, or the server is stopping. Ask again.' },
} as const satisfies Record<string, { status: number; meaning: string }>

export type HttpErrorCode = keyof typeof HTTP_ERRORS

export class HttpError extends Error {
  override readonly name = 'HttpError'
  readonly code: HttpErrorCode
  readonly details: Readonly<Record<string, unknown>> | undefined
  readonly headers: Readonly<Record<string, string>>

  constructor(code: HttpErrorCode, message: string, options: { details?: Record<string, unknown>; headers?: Record<string, string> } = {}) {
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
    return JSON.stringify({ error: this.code, message: maskSecrets(this.message), status: this.status, requestId, ...(this.details && { details: this.details }) })
  }
}
