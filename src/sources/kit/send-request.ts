import { SyncError, type JsonValue, type SyncContext } from '../../contract/index.ts'
import { parseJson } from '../../values/json.ts'
import { readBody, type BodyLimits } from './read-body.ts'
import type { Origin } from './origin.ts'

export interface OutgoingRequest {
  readonly method: 'GET' | 'POST'
  readonly url: URL
  /** As an error may name it: method and path. */
  readonly label: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
}

const REDIRECTS_MAX = 5

/**
 * One question, one answer, whatever its status. A redirect is followed only where the source lives, and only when
 * nothing was sent: credentials go nowhere else, and no answer can point us into a private network.
 */
export async function sendRequest(request: OutgoingRequest, origin: Origin, context: SyncContext): Promise<Response> {
  const { method, headers, body, label: place } = request
  let { url } = request
  for (let redirects = 0; ; redirects++) {
    const response = await context.fetch(url, { method, headers, body, redirect: 'manual', signal: context.signal })
    const location = response.headers.get('location')
    if (!REDIRECT_STATUSES.has(response.status) || location === null) return response
    await response.body?.cancel().catch(() => {})
    const target = URL.canParse(location, url.href) ? new URL(location, url) : null
    if (target === null || !origin.contains(target)) throw new SyncError('SOURCE_INVALID', `${place} redirects away from ${origin.base.origin}${origin.base.pathname}. It was not followed.`)
    if (method !== 'GET') throw new SyncError('SOURCE_INVALID', `${place} redirects what was sent. It was not followed.`)
    if (redirects === REDIRECTS_MAX) throw new SyncError('SOURCE_INVALID', `${place} redirects without end.`)
    url = target
  }
}

const REDIRECT_STATUSES = new Set([301, 302, 303, 307, 308])

/** The answer's body as JSON, exactly: bounded, whole, in a content type that says so, and in valid text. */
export async function readJson(response: Response, place: string, limits: BodyLimits, context: SyncContext): Promise<JsonValue> {
  const { text, bytes } = await decodeBody(response, place, 'JSON', isJsonType, limits, context)
  try {
    return parseJson(text)
  } catch {
    // Without the cause: it quotes what it could not parse.
    throw new SyncError('SOURCE_INVALID', `${place} with ${bytes} bytes that are not whole and valid JSON.`)
  }
}

/** The answer's body as text of one of these types: bounded and valid, and whole as far as its framing tells. */
export async function readText(response: Response, place: string, types: readonly string[], limits: BodyLimits, context: SyncContext): Promise<string> {
  const { text } = await decodeBody(response, place, types[0]!, (essence) => types.includes(essence), { ...limits, depthMax: Number.POSITIVE_INFINITY }, context)
  return text
}

async function decodeBody(response: Response, place: string, wanted: string, fits: (essence: string) => boolean, limits: BodyLimits, context: SyncContext): Promise<{ text: string; bytes: number }> {
  const type = parseContentType(response)
  if (type !== null && !fits(type.essence)) {
    await response.body?.cancel().catch(() => {})
    throw new SyncError('SOURCE_INVALID', `${place} with ${isPrintableType(type.essence) ? type.essence : 'something'} instead of ${wanted}.`)
  }
  const bytes = await readBody({ response, label: place, clock: context.clock, signal: context.signal }, limits)
  try {
    return { text: new TextDecoder(type?.charset ?? 'utf-8', { fatal: true }).decode(bytes), bytes: bytes.length }
  } catch {
    throw new SyncError('SOURCE_INVALID', `${place} with ${bytes.length} bytes that are not whole and valid ${wanted}.`)
  }
}

/** Null when the answer does not say; the parser decides then. */
function parseContentType({ headers }: Response): { essence: string; charset: string | null } | null {
  const text = headers.get('content-type')
  if (text === null) return null
  const [essence = '', ...parameters] = text.toLowerCase().split(';').map((part) => part.trim())
  const charset = parameters.find((parameter) => parameter.startsWith('charset='))?.slice('charset='.length).replaceAll('"', '')
  return { essence, charset: charset === undefined || charset === '' ? null : charset }
}

function isJsonType(essence: string): boolean {
  return essence === 'application/json' || essence === 'text/json' || essence.endsWith('+json')
}

/** Fit to be shown: a header may hold anything. */
function isPrintableType(essence: string): boolean {
  return /^[a-z]{1,20}\/[a-z\d.+-]{1,40}$/.test(essence)
}
