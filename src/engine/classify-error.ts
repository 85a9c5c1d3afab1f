import { isSyncError, SyncError } from '../contract/index.ts'
import { maskSecrets } from '../redaction/known-secrets.ts'
import { findThrowSite } from '../values/stack-frames.ts'

/**
 * Converts anything a connector threw to an error with a code that the engine can act on. Recognized by structure,
 * never by text. Invariant 10: secrets in the message, which vendors may quote, are masked from here on.
 */
export function classifyError(thrown: unknown): SyncError {
  if (isSyncError(thrown)) {
    const message = maskSecrets(thrown.message)
    if (thrown instanceof SyncError && message === thrown.message) return thrown
    const retryAfterMs = (thrown as { retryAfterMs?: unknown }).retryAfterMs
    return new SyncError(thrown.code, message, {
      cause: thrown,
      ...(typeof retryAfterMs === 'number' && { retryAfterMs }),
    })
  }
  const error = thrown as {
    name?: unknown
    message?: unknown
    retryAfter?: unknown
    code?: unknown
    cause?: { code?: unknown }
  } | null
  const message = maskSecrets(
    typeof error?.message === 'string' && error.message !== '' ? error.message : `threw ${String(thrown)}`,
  )
  if (error?.name === 'RateLimitError') {
    const seconds = Number(error.retryAfter)
    return new SyncError('RATE_LIMITED', message, {
      cause: thrown,
      ...(Number.isFinite(seconds) && { retryAfterMs: seconds * 1_000 }),
    })
  }
  const code = error?.code ?? error?.cause?.code
  if (typeof code === 'string') {
    if (TIMEOUT_CODES.has(code)) return new SyncError('SOURCE_TIMEOUT', `${message} (${code})`, { cause: thrown })
    if (NETWORK_CODES.has(code)) return new SyncError('SOURCE_UNAVAILABLE', `${message} (${code})`, { cause: thrown })
  }
  if (error?.name === 'TimeoutError') return new SyncError('SOURCE_TIMEOUT', message, { cause: thrown })
  const site = findThrowSite(thrown)
  return new SyncError('CONNECTOR_FAILED', site === null ? message : `${message} (at ${site})`, { cause: thrown })
}

const TIMEOUT_CODES = new Set([
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
])
const NETWORK_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_SOCKET',
])
