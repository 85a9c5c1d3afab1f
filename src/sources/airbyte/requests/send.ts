import { isSyncError, SyncError, type JsonValue } from '../../../contract/index.ts'
import { parseJson } from '../../../values/json.ts'
import { Origin } from '../../kit/origin.ts'
import { readBytes, sendRequest } from '../../kit/send-request.ts'
import { readServerTime } from '../../../values/retry-after.ts'
import { isComponent, textOf, type Component } from '../manifest/component.ts'
import type { Authentication } from './authenticate.ts'
import type { CallBudget } from './budget.ts'
import { createResponseError, resolveResponse, type ReceivedResponse, type Resolution } from './error-handling.ts'
import { addRequesterParts, createParts, type RequestParts } from './request-parts.ts'
import type { Run } from './run.ts'
import type { Names } from '../jinja/interpolation.ts'
import { stringifyJson } from '../../../values/json.ts'

/** The connections of one manifest in this process. */
export interface Session {
  readonly authentication: Authentication
  readonly calls: CallBudget
  readonly budget: Component | null
}

export interface Answer {
  /** `ignored`: the error handler takes the answer as empty. `reset`: the pagination starts again. */
  readonly kind: 'ok' | 'ignored' | 'reset'
  readonly label: string
  readonly response: ReceivedResponse
  readonly bytes: Buffer
  readonly serverTime: number | null
}

const LIMITS = { bodyBytesMax: 64 * 1024 * 1024, depthMax: 512, bodyDeadlineMs: 120_000 }
const RENEWALS_MAX = 1

/**
 * Sends the request of a requester. `path` is the address of the next page, if the response gave one. Throws an error
 * that the engine waits for and retries, by the error handler of the requester.
 */
export async function send(
  requester: Component,
  run: Run,
  session: Session,
  request: {
    readonly names: Names
    readonly path?: string | undefined
    readonly extend?: (parts: RequestParts) => void
  },
): Promise<Answer> {
  const parts = createParts()
  addRequesterParts(parts, requester, run, request.names)
  request.extend?.(parts)
  const authenticator = isComponent(requester.authenticator) ? requester.authenticator : null
  const renew = await session.authentication.apply(authenticator, parts, run, (login) => sendLogin(login, run, session))
  const base = buildUrl(requester, run, request.names, request.path)
  const method = (textOf(requester.http_method) ?? 'GET').toUpperCase()
  for (let renewals = 0; ; renewals++) {
    const url = appendQuery(new URL(base), parts)
    await session.calls.wait(session.budget, { method, url }, run)
    const label = `${method} ${url.pathname}`
    const { response, bytes } = await exchange(method, url, label, parts, run)
    const handler = isComponent(requester.error_handler) ? requester.error_handler : null
    const resolution = resolveResponse(handler, response, run)
    const answer = { label, response, bytes, serverTime: readServerTime(response.headers) }
    const isRefused = resolution.action === 'REFRESH_TOKEN_THEN_RETRY' || isAuthFailure(resolution, response)
    if (isRefused && renew !== null && renewals < RENEWALS_MAX && (await renew())) continue
    switch (resolution.action) {
      case 'SUCCESS':
        return { ...answer, kind: 'ok' }
      case 'IGNORE':
        // Python takes an answer below 400 as a result even then.
        return { ...answer, kind: response.status < 400 ? 'ok' : 'ignored' }
      case 'RESET_PAGINATION':
        return { ...answer, kind: 'reset' }
      case 'REFRESH_TOKEN_THEN_RETRY':
        throw new SyncError('AUTH_REJECTED', `${label} answered ${response.status}.`)
      default:
        throw createResponseError(resolution, response, label, run)
    }
  }
}

function isAuthFailure({ action }: Resolution, { status }: ReceivedResponse): boolean {
  return action === 'FAIL' && (status === 401 || status === 403)
}

async function sendLogin(login: Component, run: Run, session: Session): Promise<JsonValue | undefined> {
  const { response } = await send(login, run, session, { names: {} })
  return response.json
}

async function exchange(
  method: string,
  url: URL,
  label: string,
  parts: RequestParts,
  run: Run,
): Promise<{ response: ReceivedResponse; bytes: Buffer }> {
  const { context } = run
  const { body, type } = serializeBody(parts)
  const headers = { accept: '*/*', ...(type !== null && { 'content-type': type }), ...parts.headers }
  const received = await sendRequest({ method, url, label, headers, body }, new Origin(url.origin), context)
  const { status } = received
  const isJson = /json/i.test(received.headers.get('content-type') ?? 'json')
  const bytes = await readBytes(
    received,
    `${label} answered ${status}`,
    isJson ? LIMITS : { ...LIMITS, depthMax: Number.POSITIVE_INFINITY },
    context,
  )
  const text = bytes.subarray(0, LIMITS.bodyBytesMax).toString('utf8')
  return { response: { status, headers: received.headers, url, text, json: tryParseJson(text) }, bytes }
}

function tryParseJson(text: string): JsonValue | undefined {
  try {
    return parseJson(text)
  } catch (error) {
    if (isSyncError(error)) throw error
    return undefined
  }
}

function serializeBody({ json, form, text }: RequestParts): { body: string | null; type: string | null } {
  if (text !== null) return { body: text, type: null }
  if (form.length > 0) return { body: new URLSearchParams(form).toString(), type: 'application/x-www-form-urlencoded' }
  if (Object.keys(json).length > 0) return { body: stringifyJson(json), type: 'application/json' }
  return { body: null, type: null }
}

/** Joins the base and the path as texts: a path such as `items:search` is not a URL of its own. */
function buildUrl(requester: Component, run: Run, names: Names, path: string | undefined): string {
  const base = run.text(requester.url_base ?? requester.url ?? '', requester, names).trim()
  const own = textOf(requester.path) === undefined ? '' : run.text(requester.path, requester, names)
  const relative = path ?? own.replace(/^\/+/, '')
  const joined = joinUrl(base, relative)
  if (!URL.canParse(joined) || !/^https?:$/.test(new URL(joined).protocol))
    throw new SyncError('SYNC_INVALID', `Stream "${run.stream}": the address of its requests is not an HTTP URL.`)
  // Invariant 10: no response leads credentials to another host.
  if (path !== undefined && new URL(joined).origin !== new URL(base).origin)
    throw new SyncError('SOURCE_INVALID', `Stream "${run.stream}": the link to the next page leaves its host.`)
  return joined
}

function joinUrl(base: string, path: string): string {
  if (/^https?:\/\//i.test(path)) return path
  if (path === '') return base
  if (path.startsWith('?')) return base.replace(/\?.*$/, '') + path
  if (path.startsWith('/') && URL.canParse(path, base)) return new URL(path, base).href
  return `${base.replace(/\/+$/, '')}/${path}`
}

/** Parameters that the address of the next page has already are not repeated. */
function appendQuery(url: URL, { query }: RequestParts): URL {
  const known = new Set([...url.searchParams].map((pair) => JSON.stringify(pair)))
  const added = query
    .filter((pair) => !known.has(JSON.stringify(pair)))
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
  if (added.length > 0) url.search = [...(url.search === '' ? [] : [url.search.slice(1)]), ...added].join('&')
  return url
}
