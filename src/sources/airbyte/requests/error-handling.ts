import { SyncError, type JsonValue } from '../../../contract/index.ts'
import { rateLimitWaitMs, retryAfterMs } from '../../../values/retry-after.ts'
import { classifyStatus } from '../../kit/http-status.ts'
import { isTemplate, toPython, type Names } from '../jinja/interpolation.ts'
import { compilePattern } from '../jinja/regex.ts'
import { PyObject } from '../jinja/values.ts'
import { components, isRecord, textOf, type Component } from '../manifest/component.ts'
import { headersToPython } from './headers.ts'
import type { Run } from './run.ts'

/** The handling of a response. */
export type Resolution =
  | { readonly action: 'SUCCESS' | 'IGNORE' | 'RESET_PAGINATION' | 'REFRESH_TOKEN_THEN_RETRY' }
  | { readonly action: 'RETRY' | 'RATE_LIMITED' | 'FAIL'; readonly handler: Component | null; readonly reason: string }

export interface ReceivedResponse {
  readonly status: number
  readonly headers: Headers
  readonly url: URL
  readonly text: string
  /** Undefined if it is not JSON. */
  readonly json: JsonValue | undefined
}

/** Decides by the error handlers of a requester, then by the status. */
export function resolveResponse(handler: Component | null, response: ReceivedResponse, run: Run): Resolution {
  if (handler?.type !== 'CompositeErrorHandler') return resolveByHandler(handler, response, run)
  let failure: Resolution | null = null
  for (const part of components(handler.error_handlers)) {
    const found = resolveResponse(part, response, run)
    if (found.action !== 'FAIL') return found
    failure ??= found
  }
  return failure ?? resolveByStatus(null, response)
}

function resolveByHandler(handler: Component | null, response: ReceivedResponse, run: Run): Resolution {
  for (const filter of components(handler?.response_filters)) {
    const action = textOf(filter.action)
    if (action === undefined || !matchesFilter(filter, response, run)) continue
    const message = textOf(filter.error_message)
    // A template may quote the response, and responses are not shown.
    const reason = message === undefined || isTemplate(message) ? '' : message
    return toResolution(action, handler, reason)
  }
  return resolveByStatus(handler, response)
}

function toResolution(action: string, handler: Component | null, reason: string): Resolution {
  switch (action) {
    case 'SUCCESS':
    case 'IGNORE':
    case 'RESET_PAGINATION':
    case 'REFRESH_TOKEN_THEN_RETRY':
      return { action }
    case 'RETRY':
    case 'RATE_LIMITED':
      return { action, handler, reason }
    default:
      return { action: 'FAIL', handler, reason }
  }
}

function resolveByStatus(handler: Component | null, { status, headers }: ReceivedResponse): Resolution {
  if (status < 400) return { action: 'SUCCESS' }
  if (status === 429) return { action: 'RATE_LIMITED', handler, reason: '' }
  const code = classifyStatus(status, headers)
  if (code === 'RATE_LIMITED') return { action: 'RATE_LIMITED', handler, reason: '' }
  return { action: code === 'SOURCE_UNAVAILABLE' ? 'RETRY' : 'FAIL', handler, reason: '' }
}

function matchesFilter(filter: Component, response: ReceivedResponse, run: Run): boolean {
  const codes = Array.isArray(filter.http_codes) ? filter.http_codes.map(Number) : []
  if (codes.includes(response.status)) return true
  const { predicate, error_message_contains: contained } = filter
  if (predicate !== undefined && predicate !== '' && run.test(predicate, filter, responseNames(response))) return true
  return typeof contained === 'string' && contained !== '' && extractMessage(response).includes(contained)
}

export function responseNames({ json, headers, url }: ReceivedResponse): Names {
  return {
    response: isRecord(json) || Array.isArray(json) ? toPython(json) : new PyObject({}),
    headers: headersToPython(headers),
    request_url: `${url.origin}${url.pathname}`,
  }
}

/** Where APIs put their messages. A response of another form is searched as a text. */
function extractMessage({ json, text }: ReceivedResponse): string {
  return findMessage(json) ?? text
}

function findMessage(value: JsonValue | undefined): string | null {
  if (typeof value === 'string') return value
  if (Array.isArray(value)) {
    const found = value.map(findMessage).filter((message) => message !== null)
    return found.length === 0 ? null : found.join(', ')
  }
  if (!isRecord(value)) return null
  for (const name of [
    'message',
    'messages',
    'error',
    'errors',
    'failures',
    'failure',
    'detail',
    'err',
    'error_message',
    'msg',
    'reason',
    'status_message',
  ]) {
    const found = findMessage(value[name])
    if (found !== null) return found
  }
  return null
}

/** The error of a response that is not a result. The engine waits and sends the request again. */
export function createResponseError(
  resolution: Extract<Resolution, { readonly handler: Component | null }>,
  { status, headers }: ReceivedResponse,
  label: string,
  run: Run,
): SyncError {
  const reason = resolution.reason === '' ? '' : `: ${resolution.reason.replace(/[.\s]+$/, '')}`
  const message = `${label} answered ${status}${reason}.`
  if (resolution.action === 'FAIL') {
    const code = classifyStatus(status, headers)
    return new SyncError(code === null || code === 'SOURCE_UNAVAILABLE' ? 'SOURCE_INVALID' : code, message)
  }
  const isLimited = resolution.action === 'RATE_LIMITED'
  const now = run.context.clock.now()
  const waitMs =
    strategyWaitMs(resolution.handler, headers, run, now) ?? (isLimited ? rateLimitWaitMs : retryAfterMs)(headers, now)
  return new SyncError(
    isLimited ? 'RATE_LIMITED' : 'SOURCE_UNAVAILABLE',
    message,
    waitMs === undefined || waitMs <= 0 ? {} : { retryAfterMs: Math.min(waitMs, WAIT_MS_MAX) },
  )
}

const WAIT_MS_MAX = 24 * 60 * 60_000

function strategyWaitMs(handler: Component | null, headers: Headers, run: Run, now: number): number | undefined {
  for (const strategy of components(handler?.backoff_strategies)) {
    const seconds = strategySeconds(strategy, headers, run, now)
    if (seconds !== null) return seconds * 1_000
  }
  return undefined
}

/** Null for an exponential wait, which is the engine's own. */
function strategySeconds(strategy: Component, headers: Headers, run: Run, now: number): number | null {
  if (strategy.type === 'ConstantBackoffStrategy') return run.number(strategy.backoff_time_in_seconds, strategy)
  const isUntil = strategy.type === 'WaitUntilTimeFromHeader'
  if (!isUntil && strategy.type !== 'WaitTimeFromHeader') return null
  const value = readNumber(headers.get(run.text(strategy.header, strategy)), strategy, run)
  if (!isUntil) return value
  const minimum = run.number(strategy.min_wait, strategy)
  if (value === null) return minimum
  const wait = value - now / 1_000
  return minimum === null ? (wait < 0 ? null : wait) : Math.max(wait, minimum)
}

function readNumber(text: string | null, strategy: Component, run: Run): number | null {
  if (text === null) return null
  const pattern = textOf(strategy.regex)
  const digits =
    pattern === undefined ? text : compilePattern(run.text(pattern, strategy)).exec(text.slice(0, 1_024))?.[0]
  const number = digits === undefined || digits.trim() === '' ? Number.NaN : Number(digits)
  return Number.isFinite(number) ? number : null
}
