import { SyncError, type ErrorCode } from '../contract/index.ts'

/**
 * What a failed request means. By code, never by text: the cause stays attached, but its text stays out of the message.
 * Before the first byte of an answer nobody was there; after it, what came is worth nothing.
 */
export function toRequestError(error: unknown, url: URL, signal: AbortSignal | null, during: 'head' | 'body'): unknown {
  if (signal?.aborted === true) return signal.reason
  if (error instanceof SyncError) return error
  const isParserError = error instanceof Error && error.name === 'HTTPParserError'
  const code = isParserError ? 'HPE_INVALID' : (readErrorCode(error) ?? readErrorCode(error instanceof Error ? error.cause : undefined))
  const [kind, what] = classifyErrorCode(code ?? '') ?? (during === 'head' ? ['SOURCE_UNAVAILABLE', 'could not be reached'] : ['SOURCE_INVALID', 'broke its answer off'])
  // A parser that gives up keeps the bytes it could not read, and those may be anybody's.
  const cause = isParserError ? undefined : error
  return new SyncError(kind, `${stripQuery(url)} ${what} (${code ?? 'connection failed'}).`, { cause })
}

function classifyErrorCode(code: string): [ErrorCode, string] | null {
  if (code.endsWith('_TIMEOUT') || code === 'ETIMEDOUT') return ['SOURCE_TIMEOUT', 'did not answer in time']
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') return ['SOURCE_INVALID', 'sent a larger answer than allowed']
  if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') return ['SOURCE_INVALID', 'sent another length than it said']
  if (code === 'HPE_INVALID' || code === 'UND_ERR_HEADERS_OVERFLOW') return ['SOURCE_INVALID', 'answered with something that is not HTTP']
  if (code.startsWith('Z_') || code.startsWith('ERR_BROTLI') || code.startsWith('ERR__ERROR_FORMAT')) return ['SOURCE_INVALID', 'sent a body that does not unpack']
  if (code === 'UND_ERR_INVALID_ARG' || code === 'UND_ERR_NOT_SUPPORTED') return ['CONNECTOR_FAILED', 'was not asked, because the request is not valid']
  return null
}

/** Without the query, which may carry a key. */
export function stripQuery(url: URL): string {
  return `${url.origin}${url.pathname}`
}

function readErrorCode(error: unknown): string | undefined {
  return typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}
