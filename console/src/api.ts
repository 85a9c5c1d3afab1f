import { noteServerTime } from './clock.ts'
import { parseExact } from './exact-json.ts'

/** An error response of the server, for display. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly requestId: string | null

  constructor(status: number, code: string, message: string, requestId: string | null) {
    super(message)
    this.status = status
    this.code = code
    this.requestId = requestId
  }
}

const KEY_STORAGE_NAME = 'tidemark.key'

/** Stored for this tab only. */
export const apiKeyStorage = {
  get: (): string | null => sessionStorage.getItem(KEY_STORAGE_NAME),
  set: (text: string): void => sessionStorage.setItem(KEY_STORAGE_NAME, text),
  clear: (): void => {
    sessionStorage.removeItem(KEY_STORAGE_NAME)
    responseCache.clear()
  },
}

/** The last response by URL with its ETag: on 304 the same value is returned, and nothing is rendered again. */
const responseCache = new Map<string, { tag: string; value: unknown }>()
const RESPONSE_CACHE_MAX = 200

export async function get<Answer>(path: string, signal?: AbortSignal): Promise<Answer> {
  const before = responseCache.get(path)
  const response = await sendRequest(path, {
    headers: before === undefined ? {} : { 'if-none-match': before.tag },
    ...(signal && { signal }),
  })
  if (response.status === 304 && before !== undefined) return before.value as Answer
  const value = parseExact(await response.text())
  const tag = response.headers.get('etag')
  if (tag !== null) {
    if (responseCache.size > RESPONSE_CACHE_MAX) responseCache.clear()
    responseCache.set(path, { tag, value })
  }
  return value as Answer
}

export function post<Answer>(path: string, body?: unknown): Promise<Answer> {
  return sendJson('POST', path, body)
}

export function patch<Answer>(path: string, body: unknown): Promise<Answer> {
  return sendJson('PATCH', path, body)
}

export function remove<Answer>(path: string): Promise<Answer> {
  return sendJson('DELETE', path, undefined)
}

/** Every write carries a custom header that a cross-site page cannot send. */
async function sendJson<Answer>(method: 'POST' | 'PATCH' | 'DELETE', path: string, body: unknown): Promise<Answer> {
  const response = await sendRequest(path, {
    method,
    headers: { 'x-tidemark-console': '1', ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return parseExact(await response.text()) as Answer
}

/** Throws ApiError for every error response. */
export async function sendRequest(path: string, init: RequestInit = {}): Promise<Response> {
  const secret = apiKeyStorage.get()
  let response: Response
  try {
    response = await fetch(path, {
      ...init,
      cache: 'no-store',
      headers: {
        ...(secret !== null && { authorization: `Bearer ${secret}` }),
        ...(init.headers as Record<string, string>),
      },
    })
  } catch (cause) {
    if (init.signal?.aborted) throw cause
    throw new ApiError(0, 'UNREACHABLE', 'The server is unreachable. Is `tidemark start` running?', null)
  }
  noteServerTime(response.headers.get('date'))
  if (response.ok || response.status === 304) return response
  const body = (await response.json().catch(() => ({}))) as { error?: string; message?: string; requestId?: string }
  throw new ApiError(
    response.status,
    body.error ?? 'UNKNOWN',
    body.message ?? `The server responded with ${response.status}.`,
    body.requestId ?? null,
  )
}

/** Builds a path with encoded parts. */
export function path(parts: TemplateStringsArray, ...values: readonly (string | number)[]): string {
  return parts.map((part, index) => part + encodeURIComponent(values[index] ?? '')).join('')
}
