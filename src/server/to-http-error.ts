import { isSyncError } from '../contract/index.ts'
import { FeedError } from '../feed/feed-error.ts'
import { HttpError, type HttpErrorCode } from './http-error.ts'

interface FrameworkError {
  readonly code?: unknown
  readonly statusCode?: unknown
  readonly validation?: ReadonlyArray<{
    readonly instancePath: string
    readonly message?: string
    readonly params: Record<string, unknown>
  }>
  readonly validationContext?: string
}

/** Converts any thrown value. Unexpected errors become INTERNAL_ERROR without their text. */
export function toHttpError(thrown: unknown): HttpError {
  if (thrown instanceof HttpError) return thrown
  if (thrown instanceof FeedError) {
    return new HttpError('INVALID_REQUEST', thrown.message, {
      details: { reason: thrown.reason, ...(thrown.restart !== null && { restart: thrown.restart }) },
    })
  }
  if (isSyncError(thrown)) {
    if (thrown.code === 'WEBHOOK_UNKNOWN')
      return new HttpError('NOT_FOUND', 'Webhook not found. GET /api/webhooks lists them.')
    if (thrown.code === 'WEBHOOK_URL_REFUSED')
      return new HttpError('INVALID_REQUEST', thrown.message, { details: { reason: 'webhook_url_refused' } })
    if (thrown.code === 'LEASE_HELD')
      return new HttpError('SERVICE_UNAVAILABLE', 'The sync is running. Retry in a few seconds.', {
        headers: { 'retry-after': '5' },
      })
    if (thrown.code === 'STORE_READONLY')
      return new HttpError(
        'SERVICE_UNAVAILABLE',
        'This request requires a write, and the store is read-only here. Send it to a server on the primary once.',
        { headers: { 'retry-after': '5' } },
      )
    return thrown.code.startsWith('STORE_')
      ? new HttpError('SERVICE_UNAVAILABLE', 'The store is unreachable. Retry in a few seconds.', {
          headers: { 'retry-after': '5' },
        })
      : new HttpError('INTERNAL_ERROR', UNEXPECTED_MESSAGE)
  }
  const { code, statusCode, validation, validationContext } = Object(thrown) as FrameworkError
  if (validation?.[0] !== undefined)
    return new HttpError('INVALID_REQUEST', describeValidation(validation[0], validationContext ?? 'request'), {
      details: { reason: 'parameter_invalid' },
    })
  if (code === 'FST_ERR_BAD_URL')
    return new HttpError('INVALID_REQUEST', 'The path is invalid: check its percent-encoding.', {
      details: { reason: 'path_invalid' },
    })
  if (code === 'FST_ERR_MAX_PARAM_LENGTH')
    return new HttpError('INVALID_REQUEST', 'A part of the path is too long.', { details: { reason: 'path_invalid' } })
  const known = ERROR_BY_STATUS[Number(statusCode)]
  return known === undefined ? new HttpError('INTERNAL_ERROR', UNEXPECTED_MESSAGE) : new HttpError(...known)
}

const UNEXPECTED_MESSAGE = 'Internal error. Report it with the request id.'

const ERROR_BY_STATUS: Readonly<Record<number, readonly [HttpErrorCode, string]>> = {
  400: ['INVALID_REQUEST', 'The body is not valid JSON.'],
  404: ['NOT_FOUND', 'Not found.'],
  413: ['PAYLOAD_TOO_LARGE', 'The body is too large.'],
  415: ['UNSUPPORTED_MEDIA_TYPE', 'Send the body as application/json.'],
}

function describeValidation(
  { instancePath, message, params }: NonNullable<FrameworkError['validation']>[number],
  context: string,
): string {
  const unknown = params['additionalProperty']
  if (context === 'querystring' && typeof unknown === 'string')
    return `Unknown parameter \`${unknown.slice(0, 63)}\`. /openapi.json lists the valid ones.`
  const name = instancePath.slice(1) || String(params['missingProperty'] ?? params['additionalProperty'] ?? '')
  const where = context === 'querystring' ? 'parameter' : context === 'params' ? 'path part' : 'body field'
  return name === '' ? `The ${context} ${message}.` : `The ${where} \`${name}\` ${message}.`
}
