import { SyncError, type JsonObject, type JsonValue, type SyncContext } from '../../contract/index.ts'
import { registerSecret } from '../../redaction/known-secrets.ts'
import { Secret } from '../../redaction/secret.ts'
import { parseJson } from '../../values/json.ts'
import { rateLimitWaitMs, retryAfterMs } from '../../values/retry-after.ts'
import { createBasicHeader } from './auth.ts'
import { isObject } from './classify-response.ts'
import { classifyStatus } from './http-status.ts'
import { Origin } from './origin.ts'
import { readBytes, sendRequest } from './send-request.ts'

/** The token endpoint of a vendor, and the client that it knows. */
export interface TokenEndpoint {
  readonly url: string
  readonly clientId: Secret
  /** Null for a public client. */
  readonly clientSecret: Secret | null
  /** How the client authenticates: with a basic header, or with members of the body. Default: `basic`. */
  readonly clientAuth?: ClientAuth
  /** The format of the request. Default: `form`. */
  readonly format?: 'form' | 'json'
  /** The path of the object that holds the tokens, for a vendor that nests them: `authed_user`. */
  readonly tokensAt?: string
}

/** How a client authenticates at a token endpoint. */
export type ClientAuth = 'basic' | 'form'

/** The answer of a token endpoint, in one form for every vendor. */
export type TokenAnswer = TokenGrant | TokenRefusal

/** The tokens of a successful answer. */
export interface TokenGrant {
  readonly kind: 'granted'
  readonly accessToken: string
  /** Null if the vendor sent none: the one that was used stays valid. */
  readonly refreshToken: string | null
  /** Null if the vendor states no lifetime. */
  readonly lifetimeMs: number | null
  /** The scopes as the vendor wrote them; null if it stated none. */
  readonly scope: string | null
  /** The whole answer, for the URL of an instance or the account. It contains the tokens. */
  readonly body: JsonObject
}

/** The vendor refused the grant or the client. */
export interface TokenRefusal {
  readonly kind: 'refused'
  /** The error of the vendor, such as `invalid_grant`; null if it stated none that is safe to print. */
  readonly reason: string | null
  /** Method, path and status, for error messages. */
  readonly label: string
}

/**
 * Sends one request to a token endpoint. A refusal is a result; SOURCE_UNAVAILABLE, RATE_LIMITED and SOURCE_INVALID are
 * thrown.
 *
 * Vendors answer in ways that strict clients reject: without `token_type` or with `user` as its value, with status 201,
 * with status 200 and an error, as a form, or with the tokens in a nested object. All of these are read.
 */
export async function requestTokens(
  endpoint: TokenEndpoint,
  fields: Readonly<Record<string, string>>,
  context: SyncContext,
): Promise<TokenAnswer> {
  const url = new URL(endpoint.url)
  const label = `POST ${url.pathname}`
  const response = await sendRequest(
    { method: 'POST', url, label, ...encodeClientRequest(endpoint, fields) },
    new Origin(endpoint.url),
    context,
  )
  return readAnswer(response, `${label} answered ${response.status}`, endpoint.tokensAt, context)
}

/** The headers and the body of a request that authenticates the client. */
export function encodeClientRequest(
  { clientId, clientSecret, clientAuth = 'basic', format = 'form' }: Omit<TokenEndpoint, 'url'>,
  fields: Readonly<Record<string, string>>,
): { headers: Record<string, string>; body: string } {
  const isBasic = clientSecret !== null && clientAuth === 'basic'
  const members = {
    ...fields,
    ...(!isBasic && { client_id: clientId.reveal() }),
    ...(!isBasic && clientSecret !== null && { client_secret: clientSecret.reveal() }),
  }
  return {
    headers: {
      accept: 'application/json',
      'content-type': format === 'json' ? 'application/json' : 'application/x-www-form-urlencoded',
      ...(isBasic && { authorization: createBasicHeader(formEncode(clientId), formEncode(clientSecret)).reveal() }),
    },
    body: format === 'json' ? JSON.stringify(members) : new URLSearchParams(members).toString(),
  }
}

async function readAnswer(
  response: Response,
  label: string,
  tokensAt: string | undefined,
  context: SyncContext,
): Promise<TokenAnswer> {
  const { status, headers } = response
  const code = classifyStatus(status, headers)
  // A token endpoint rejects the grant or the client with 400, 401 or 403.
  if (code === 'CONNECTOR_FAILED' || code === 'AUTH_REJECTED') {
    const body = await readBody(response, label, context).catch(() => {
      context.signal.throwIfAborted()
      return {}
    })
    return { kind: 'refused', reason: readReason(body), label }
  }
  if (code !== null) {
    await response.body?.cancel().catch(() => {})
    const waitMs = (code === 'RATE_LIMITED' ? rateLimitWaitMs : retryAfterMs)(headers, context.clock.now())
    throw new SyncError(code, `${label}.`, waitMs === undefined ? {} : { retryAfterMs: waitMs })
  }
  const body = await readBody(response, label, context)
  if (body.ok === false || (body.error !== undefined && body.error !== null && body.error !== false))
    return { kind: 'refused', reason: readReason(body), label: `${label} with an error` }
  const tokens = tokensAt === undefined ? body : readPath(body, tokensAt)
  if (!isObject(tokens) || typeof tokens.access_token !== 'string' || tokens.access_token === '')
    throw new SyncError('SOURCE_INVALID', `${label} without an access token.`)
  registerSecret(tokens.access_token)
  const refreshToken =
    typeof tokens.refresh_token === 'string' && tokens.refresh_token !== '' ? tokens.refresh_token : null
  if (refreshToken !== null) registerSecret(refreshToken)
  const seconds = tokens.expires_in === undefined ? Number.NaN : Number(tokens.expires_in)
  return {
    kind: 'granted',
    accessToken: tokens.access_token,
    refreshToken,
    lifetimeMs: seconds > 0 && Number.isFinite(seconds) ? seconds * 1_000 : null,
    scope: typeof tokens.scope === 'string' ? tokens.scope : null,
    body,
  }
}

const TOKEN_BODY_LIMITS = { bodyBytesMax: 256 * 1024, depthMax: 32, bodyDeadlineMs: 30_000 }

/** By its content, because the content type of a token answer is often wrong. */
async function readBody(response: Response, label: string, context: SyncContext): Promise<JsonObject> {
  const bytes = await readBytes(response, label, TOKEN_BODY_LIMITS, context)
  const text = bytes.toString('utf8').trim()
  const parsed = text.startsWith('{') ? parseObject(text) : parseForm(text)
  // Without the text: it may hold a token.
  if (parsed === null)
    throw new SyncError('SOURCE_INVALID', `${label} with ${bytes.length} bytes that are neither JSON nor a form.`)
  return parsed
}

function parseObject(text: string): JsonObject | null {
  try {
    const value = parseJson(text)
    return isObject(value) ? value : null
  } catch {
    return null
  }
}

function parseForm(text: string): JsonObject | null {
  return /^[\w.~%+*-]+=[^\s<>"]*$/.test(text) ? Object.fromEntries(new URLSearchParams(text)) : null
}

/** Only a code is printed: a description may quote the request. */
function readReason({ error, errorCode }: JsonObject): string | null {
  const reason = isObject(error) ? error.code : (error ?? errorCode)
  return typeof reason === 'string' && /^[\w.-]{1,64}$/.test(reason) ? reason : null
}

/** The value at a path of member names and indexes: `data.0.id`. */
export function readPath(value: JsonValue, path: string): JsonValue | undefined {
  let found: JsonValue | undefined = value
  for (const name of path.split('.'))
    found =
      typeof found === 'object' && found !== null && Object.hasOwn(found, name)
        ? (found as JsonObject)[name]
        : undefined
  return found
}

/** RFC 6749 requires form encoding for both parts of the basic header. */
function formEncode(secret: Secret): Secret {
  return new Secret(new URLSearchParams({ '': secret.reveal() }).toString().slice(1))
}
