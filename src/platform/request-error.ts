import { SyncError, type ErrorCode } from '../contract/index.ts'

/**
 * Classifies a failed request by its code, never by its text. The cause is attached, but its text is not in the message.
 * Before the first byte of a response the source is unavailable; after it, the response is invalid.
 */
export function toRequestError(error: unknown, url: URL, signal: AbortSignal | null, during: 'head' | 'body'): unknown {
  if (signal?.aborted === true) return signal.reason
  if (error instanceof SyncError) return error
  const isParserError = error instanceof Error && error.name === 'HTTPParserError'
  const code = isParserError
    ? 'HPE_INVALID'
    : (readErrorCode(error) ?? readErrorCode(error instanceof Error ? error.cause : undefined))
  const [kind, what] =
    classifyErrorCode(code ?? '') ??
    (during === 'head'
      ? ['SOURCE_UNAVAILABLE', 'could not be reached']
      : ['SOURCE_INVALID', 'ended its response early'])
  // The parser error contains the unparsed bytes, which may hold data of another request.
  const cause = isParserError ? undefined : error
  return new SyncError(kind, `${stripQuery(url)} ${what} (${code ?? 'connection failed'}).`, { cause })
}

function classifyErrorCode(code: string): [ErrorCode, string] | null {
  if (code.endsWith('_TIMEOUT') || code === 'ETIMEDOUT') return ['SOURCE_TIMEOUT', 'did not respond in time']
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') return ['SOURCE_INVALID', 'sent a response larger than allowed']
  if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH')
    return ['SOURCE_INVALID', 'sent a body that does not match its content-length']
  if (code === 'HPE_INVALID' || code === 'UND_ERR_HEADERS_OVERFLOW')
    return ['SOURCE_INVALID', 'sent an invalid HTTP response']
  if (code.startsWith('Z_') || code.startsWith('ERR_BROTLI') || code.startsWith('ERR__ERROR_FORMAT'))
    return ['SOURCE_INVALID', 'sent a body that cannot be decompressed']
  if (code === 'UND_ERR_INVALID_ARG' || code === 'UND_ERR_NOT_SUPPORTED')
    return ['CONNECTOR_FAILED', 'was not contacted because the request is invalid']
  return null
}

/** Removes the query, which may contain a key. */
export function stripQuery(url: URL): string {
  return `${url.origin}${url.pathname}`
}

function readErrorCode(error: unknown): string | undefined {
  return typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined
}
