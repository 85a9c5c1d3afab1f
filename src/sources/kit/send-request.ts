import { gunzipSync } from 'node:zlib'
import { isSyncError, SyncError, type JsonValue, type SyncContext } from '../../contract/index.ts'
import { followRedirects, readRedirect, type RedirectPolicy } from '../../http/follow-redirects.ts'
import { parseJson } from '../../values/json.ts'
import { readBody, type BodyLimits } from '../../http/read-body.ts'
import type { ResponseFormat } from './http-client.ts'
import type { Origin } from './origin.ts'

export interface OutgoingRequest {
  readonly method: string
  readonly url: URL
  /** Method and path, for error messages. */
  readonly label: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
}

const REDIRECTS_MAX = 5

/**
 * Sends one request and returns the response, whatever its status. Follows redirects only within the origin of the source
 * and only for GET, so no response can redirect credentials or reach a private network.
 */
export async function sendRequest(request: OutgoingRequest, origin: Origin, context: SyncContext): Promise<Response> {
  const send = ({ url, method, headers, body }: OutgoingRequest): Promise<Response> =>
    context.fetch(url, { method, headers, body, redirect: 'manual', signal: context.signal })
  return followRedirects(request, send, createOriginPolicy(origin))
}

function createOriginPolicy(origin: Origin): RedirectPolicy<OutgoingRequest> {
  return {
    max: REDIRECTS_MAX,
    resolve(response, request) {
      const redirect = readRedirect(response, request.url)
      if (redirect === null) return null
      const { url } = redirect
      const { label, method } = request
      if (url === null || !origin.contains(url))
        throw new SyncError(
          'SOURCE_INVALID',
          `${label} redirects away from ${origin.base.origin}${origin.base.pathname}. The redirect was not followed.`,
        )
      if (method !== 'GET')
        throw new SyncError(
          'SOURCE_INVALID',
          `${label} redirects a request with a body. The redirect was not followed.`,
        )
      return { ...request, url }
    },
    tooMany: ({ label }) => new SyncError('SOURCE_INVALID', `${label} redirects more than ${REDIRECTS_MAX} times.`),
  }
}

/** Reads the body as bytes. Checks its size. */
export function readBytes(
  response: Response,
  label: string,
  limits: BodyLimits,
  { clock, signal }: SyncContext,
): Promise<Buffer> {
  return readBody({ response, label, clock, signal }, limits)
}

/** Reads the body as JSON. Checks its size, content type, encoding and syntax. */
export async function readJson(
  response: Response,
  label: string,
  limits: BodyLimits,
  context: SyncContext,
): Promise<JsonValue> {
  const { text, bytes } = await decodeBody(response, label, 'JSON', isJsonType, limits, context)
  try {
    return parseJson(text)
  } catch {
    // Without the cause: it quotes the body.
    throw new SyncError('SOURCE_INVALID', `${label} with ${bytes} bytes that are not valid JSON.`)
  }
}

/** Reads the body as text. Checks its size, content type and encoding. */
export async function readText(
  response: Response,
  label: string,
  types: readonly string[],
  limits: BodyLimits,
  context: SyncContext,
): Promise<string> {
  const { text } = await decodeBody(
    response,
    label,
    types[0] ?? 'text',
    (essence) => types.includes(essence),
    { ...limits, depthMax: Number.POSITIVE_INFINITY },
    context,
  )
  return text
}

/** Reads the body in a format. A body that is compressed as a file, without a `Content-Encoding`, is decompressed. */
export async function readFormat(
  response: Response,
  label: string,
  format: ResponseFormat,
  limits: BodyLimits,
  context: SyncContext,
): Promise<JsonValue> {
  // The depth of JSON means nothing for other formats, nor for compressed bytes.
  const bytes = await readBody(
    { response, label, clock: context.clock, signal: context.signal },
    { ...limits, depthMax: Number.POSITIVE_INFINITY },
  )
  const plain = isGzip(bytes) ? decompress(bytes, label, limits) : bytes
  try {
    return format.parse(plain)
  } catch (error) {
    // Without the cause: it may quote the body.
    const reason = isSyncError(error) ? error.message : `it is not valid ${format.accept}.`
    throw new SyncError('SOURCE_INVALID', `${label} with ${plain.length} bytes that cannot be read: ${reason}`)
  }
}

function isGzip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b
}

function decompress(bytes: Uint8Array, label: string, { bodyBytesMax }: BodyLimits): Uint8Array {
  try {
    return gunzipSync(bytes, { maxOutputLength: bodyBytesMax })
  } catch {
    throw new SyncError(
      'SOURCE_INVALID',
      `${label} with a gzip file that is damaged or holds more than ${bodyBytesMax} bytes.`,
    )
  }
}

/** Reads a failed response: its value if it is JSON, and its text. Another text is read only if it is needed. */
export async function readFailedText(
  response: Response,
  label: string,
  needsText: boolean,
  limits: BodyLimits,
  context: SyncContext,
): Promise<{ body: JsonValue | undefined; text?: string }> {
  const type = parseContentType(response)
  if (!needsText && type !== null && !isJsonType(type.essence)) {
    await response.body?.cancel().catch(() => {})
    return { body: undefined }
  }
  const bytes = await readBody({ response, label, clock: context.clock, signal: context.signal }, limits)
  const text = new TextDecoder(type?.charset ?? 'utf-8').decode(bytes)
  if (type !== null && !isJsonType(type.essence)) return { body: undefined, text }
  try {
    return { body: parseJson(text), text }
  } catch {
    return { body: undefined, text }
  }
}

async function decodeBody(
  response: Response,
  label: string,
  expected: string,
  accepts: (essence: string) => boolean,
  limits: BodyLimits,
  context: SyncContext,
): Promise<{ text: string; bytes: number }> {
  const type = parseContentType(response)
  if (type !== null && !accepts(type.essence)) {
    await response.body?.cancel().catch(() => {})
    throw new SyncError(
      'SOURCE_INVALID',
      `${label} with ${isPrintableType(type.essence) ? type.essence : 'another content type'} instead of ${expected}.`,
    )
  }
  const bytes = await readBody({ response, label, clock: context.clock, signal: context.signal }, limits)
  try {
    return { text: new TextDecoder(type?.charset ?? 'utf-8', { fatal: true }).decode(bytes), bytes: bytes.length }
  } catch {
    throw new SyncError('SOURCE_INVALID', `${label} with ${bytes.length} bytes that are not valid ${expected}.`)
  }
}

/** Null without a content type header; the parser decides then. */
function parseContentType({ headers }: Response): { essence: string; charset: string | null } | null {
  const text = headers.get('content-type')
  if (text === null) return null
  const [essence = '', ...parameters] = text
    .toLowerCase()
    .split(';')
    .map((part) => part.trim())
  const charset = parameters
    .find((parameter) => parameter.startsWith('charset='))
    ?.slice('charset='.length)
    .replaceAll('"', '')
  return { essence, charset: charset === undefined || charset === '' ? null : charset }
}

function isJsonType(essence: string): boolean {
  return essence === 'application/json' || essence === 'text/json' || essence.endsWith('+json')
}

/** Safe to print in an error: a header may hold anything. */
function isPrintableType(essence: string): boolean {
  return /^[a-z]{1,20}\/[a-z\d.+-]{1,40}$/.test(essence)
}
