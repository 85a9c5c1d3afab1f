import type { JsonObject, JsonValue } from '../../../contract/index.ts'
import { toObject, type OpenApiDocument } from './document.ts'

/** `auth` of a manifest; secrets are written as names of variables. */
export interface AuthGuess {
  readonly auth: JsonObject | null
  /** Variables of `.env`, without the prefix of the project, with the setting that fills them. */
  readonly secrets: readonly string[]
  readonly notes: readonly string[]
}

const NONE: AuthGuess = { auth: null, secrets: [], notes: [] }

/** The first security requirement that a manifest can express: of the document, else of its operations. */
export function guessAuth(document: OpenApiDocument, operations: readonly JsonObject[]): AuthGuess {
  const { security } = document.root
  const own = operations.flatMap((operation) => (Array.isArray(operation.security) ? operation.security : []))
  const required = (Array.isArray(security) && security.length > 0 ? security : own).map(toObject)
  if (required.length === 0) return { ...NONE, notes: ['it does not state how requests are authenticated'] }
  const refused: string[] = []
  for (const requirement of required) {
    const names = Object.keys(requirement)
    const [name] = names
    if (name === undefined) continue
    if (names.length > 1) {
      refused.push(`${names.join(' and ')} together are not supported`)
      continue
    }
    const guess = guessScheme(document, name, requirement[name])
    if (typeof guess !== 'string') return guess
    refused.push(guess)
  }
  return refused.length === 0 ? NONE : { ...NONE, notes: [...new Set(refused)] }
}

function guessScheme(document: OpenApiDocument, name: string, scopes: JsonValue | undefined): AuthGuess | string {
  const schemes = document.resolve(toObject(document.root.components).securitySchemes, 'components')
  const place = `components.securitySchemes.${name}`
  const scheme = document.resolve(schemes[name], place)
  const httpScheme = typeof scheme.scheme === 'string' ? scheme.scheme.toLowerCase() : ''
  if (scheme.type === 'http' && httpScheme === 'bearer') return bearer([])
  if (scheme.type === 'http' && httpScheme === 'basic')
    return {
      auth: { kind: 'basic', user: '${USER}', password: '${PASSWORD}' },
      secrets: ['user', 'password'],
      notes: [],
    }
  if (scheme.type === 'apiKey' && typeof scheme.name === 'string') {
    if (scheme.in === 'header') return apiKey({ header: scheme.name })
    if (scheme.in === 'query') return apiKey({ query: scheme.name })
    return `${place}: an API key in a cookie is not supported`
  }
  if (scheme.type === 'oauth2') return guessOAuth(document.resolve(scheme.flows, place), place, scopes)
  if (scheme.type === 'openIdConnect')
    return bearer([`${place}: an access token is expected, because OpenID Connect names no token endpoint`])
  return `${place}: its type ${String(scheme.type ?? 'is missing')}${httpScheme === '' ? '' : ` ${httpScheme}`} is not supported`
}

function bearer(notes: readonly string[]): AuthGuess {
  return { auth: { kind: 'bearer', token: '${TOKEN}' }, secrets: ['token'], notes }
}

function apiKey(location: JsonObject): AuthGuess {
  return { auth: { kind: 'api_key', key: '${API_KEY}', ...location }, secrets: ['api_key'], notes: [] }
}

function guessOAuth(flows: JsonObject, place: string, scopes: JsonValue | undefined): AuthGuess {
  const names = Array.isArray(scopes) ? scopes.map(String) : []
  const scope = names.length === 0 ? {} : { scope: names.join(' ') }
  const client = { client_id: '${CLIENT_ID}', client_secret: '${CLIENT_SECRET}' }
  for (const [flow, isRefreshed] of [
    ['clientCredentials', false],
    ['authorizationCode', true],
  ] as const) {
    const found = toObject(flows[flow])
    const url = isRefreshed ? (found.refreshUrl ?? found.tokenUrl) : found.tokenUrl
    if (typeof url !== 'string' || !URL.canParse(url)) continue
    const refresh = isRefreshed ? { refresh_token: '${REFRESH_TOKEN}' } : {}
    return {
      auth: { kind: 'oauth', token_url: url, ...client, ...refresh, ...scope },
      secrets: ['client_id', 'client_secret', ...(isRefreshed ? ['refresh_token'] : [])],
      notes: isRefreshed ? [`${place}: the refresh token of an authorization is expected`] : [],
    }
  }
  return bearer([`${place}: an access token is expected, because none of its flows can run without a user`])
}
