import { SyncError, type JsonValue } from '../../../contract/index.ts'
import { registerSecret } from '../../../redaction/known-secrets.ts'
import { Secret } from '../../../redaction/secret.ts'
import type { Auth, Credentials } from '../../kit/auth.ts'
import { clientCredentials, refreshToken } from '../../kit/oauth.ts'
import type { TokenStore } from '../../kit/token-store.ts'
import { parseDuration, PyTimeDelta } from '../jinja/duration.ts'
import { isComponent, isRecord, textOf, texts, type Component } from '../manifest/component.ts'
import { evaluateMapping, injectOption, setHeader, type RequestParts } from './request-parts.ts'
import type { Run } from './run.ts'
import { print } from '../jinja/printing.ts'

/** Sends the request of a login, and returns the parsed response. */
export type SendLogin = (requester: Component, run: Run) => Promise<JsonValue | undefined>

interface SessionToken {
  readonly token: string
  readonly expiresAt: number
}

const SESSION_MS = 24 * 60 * 60_000

/** Authenticates requests. Tokens are shared by the streams of a manifest in this process. */
export class Authentication {
  readonly #tokens: ((account: string) => TokenStore) | undefined
  readonly #accounts = new Map<string, Auth>()
  readonly #sessions = new Map<string, SessionToken>()

  constructor(tokens: ((account: string) => TokenStore) | undefined) {
    this.#tokens = tokens
  }

  /** Adds the credentials, and returns a function that renews them; null if they cannot be renewed. */
  async apply(
    authenticator: Component | null,
    parts: RequestParts,
    run: Run,
    sendLogin: SendLogin,
  ): Promise<(() => Promise<boolean>) | null> {
    const selected = selectAuthenticator(authenticator, run)
    if (selected === null) return null
    switch (selected.type) {
      case 'NoAuth':
        return null
      case 'BearerAuthenticator':
        addSecretHeader(parts, 'Authorization', `Bearer ${run.text(selected.api_token, selected)}`)
        return null
      case 'BasicHttpAuthenticator': {
        const user = run.text(selected.username ?? '', selected)
        const password = run.text(selected.password ?? '', selected)
        addSecretHeader(parts, 'Authorization', `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`)
        return null
      }
      case 'ApiKeyAuthenticator':
        addApiKey(parts, selected, run)
        return null
      case 'OAuthAuthenticator':
        return this.#applyOAuth(selected, parts, run)
      case 'SessionTokenAuthenticator':
      case 'LegacySessionTokenAuthenticator':
        return this.#applySession(selected, parts, run, sendLogin)
      default:
        throw new SyncError('CONNECTOR_FAILED', `Stream "${run.stream}": ${selected.type} is not supported.`)
    }
  }

  async #applyOAuth(component: Component, parts: RequestParts, run: Run): Promise<() => Promise<boolean>> {
    const auth = this.#openAccount(component, run)
    let credentials: Credentials = await auth.credentials(run.context)
    const add = (): void => {
      for (const [name, secret] of Object.entries(credentials.headers)) setHeader(parts, name, secret.reveal())
    }
    add()
    return async () => {
      const renewed = await auth.renew(credentials, run.context)
      if (renewed === null) return false
      credentials = renewed
      add()
      return true
    }
  }

  #openAccount(component: Component, run: Run): Auth {
    const read = (field: JsonValue | undefined): string => print(run.optional(field ?? null, component) ?? '')
    const secret = (field: JsonValue | undefined): Secret => new Secret(read(field))
    const fixed = textOf(component.access_token_value)
    const endpoint = read(component.token_refresh_endpoint)
    if (endpoint === '' && fixed !== undefined) return createFixedAuth(read(fixed))
    const headers = Object.fromEntries(
      evaluateMapping(component.refresh_request_headers, component, run, {}).map(([name, value]) => [
        name.toLowerCase(),
        print(value),
      ]),
    )
    const fields = Object.fromEntries(
      evaluateMapping(component.refresh_request_body, component, run, {}).map(([name, value]) => [name, print(value)]),
    )
    const grant = component.grant_type === undefined ? 'refresh_token' : read(component.grant_type)
    const scopes = texts(component.scopes).map(read)
    const refresh = read(component.refresh_token)
    const account = JSON.stringify([endpoint, read(component.client_id), refresh, grant, fields])
    const known = this.#accounts.get(account)
    if (known !== undefined) return known
    const options = {
      tokenUrl: endpoint,
      clientId: secret(component.client_id),
      clientSecret: secret(component.client_secret),
      fields: { ...fields, ...(grant !== 'refresh_token' && grant !== 'client_credentials' && { grant_type: grant }) },
      ...(scopes.length > 0 && { scope: scopes.join(' ') }),
      clientAuth: /^basic /i.test(headers.authorization ?? '') ? ('basic' as const) : ('form' as const),
      ...(this.#tokens !== undefined && { tokens: this.#tokens }),
    }
    const auth =
      refresh === '' ? clientCredentials(options) : refreshToken({ ...options, refreshToken: new Secret(refresh) })
    this.#accounts.set(account, auth)
    return auth
  }

  async #applySession(
    component: Component,
    parts: RequestParts,
    run: Run,
    sendLogin: SendLogin,
  ): Promise<() => Promise<boolean>> {
    const isLegacy = component.type === 'LegacySessionTokenAuthenticator'
    const login = isLegacy ? createLegacyLogin(component) : component.login_requester
    const account = JSON.stringify([component, run.config])
    const request = async (): Promise<string> => {
      if (!isComponent(login)) throw loginError(run)
      const path = isLegacy ? [component.session_token_response_key ?? 'token'] : component.session_token_path
      const response = await sendLogin(login, run)
      const token = texts(path).reduce<JsonValue | undefined>(
        (value, name) => (isRecord(value) ? value[run.text(name, component)] : undefined),
        response,
      )
      if (typeof token !== 'string' && typeof token !== 'number') throw loginError(run)
      const text = String(token)
      registerSecret(text)
      this.#sessions.set(account, { token: text, expiresAt: run.context.clock.now() + sessionMs(component, run) })
      return text
    }
    const configured = isLegacy ? print(run.optional(component.session_token ?? null, component) ?? '') : ''
    const stored = this.#sessions.get(account)
    const isValid = stored !== undefined && stored.expiresAt > run.context.clock.now()
    addSessionToken(parts, component, configured !== '' ? configured : isValid ? stored.token : await request(), run)
    return async () => {
      if (configured !== '' && !isComponent(login)) return false
      addSessionToken(parts, component, await request(), run)
      return true
    }
  }
}

function loginError(run: Run): SyncError {
  return new SyncError('AUTH_REJECTED', `Stream "${run.stream}": the login returned no session token.`)
}

function createLegacyLogin({
  api_url: base,
  login_url: path,
  username,
  password,
  $parameters: parameters,
}: Component): Component {
  return {
    type: 'HttpRequester',
    ...(parameters !== undefined && { $parameters: parameters }),
    url_base: base,
    path,
    http_method: 'POST',
    request_body_json: { username, password },
  }
}

function sessionMs(component: Component, run: Run): number {
  const text = textOf(component.expiration_duration)
  const duration = text === undefined ? null : parseDuration(run.text(text, component))
  return duration instanceof PyTimeDelta ? Number(duration.micros / 1_000n) : SESSION_MS
}

function addSessionToken(parts: RequestParts, component: Component, token: string, run: Run): void {
  if (component.type === 'LegacySessionTokenAuthenticator')
    return addSecretHeader(parts, run.text(component.header, component), token)
  const { request_authentication: use } = component
  if (isComponent(use) && isComponent(use.inject_into)) return injectOption(parts, use.inject_into, token, run)
  addSecretHeader(parts, 'Authorization', `Bearer ${token}`)
}

function selectAuthenticator(authenticator: Component | null, run: Run): Component | null {
  if (authenticator?.type !== 'SelectiveAuthenticator') return authenticator
  const { authenticator_selection_path: path, authenticators } = authenticator
  const selected = texts(path).reduce<JsonValue | undefined>(
    (value, name) => (isRecord(value) ? value[name] : undefined),
    run.config,
  )
  const found = isRecord(authenticators) ? authenticators[String(selected)] : undefined
  if (isComponent(found)) return selectAuthenticator(found, run)
  throw new SyncError(
    'SYNC_INVALID',
    `Stream "${run.stream}": the config selects no authenticator. Set \`${texts(path).join('.')}\` in \`settings\`.`,
  )
}

function addApiKey(parts: RequestParts, component: Component, run: Run): void {
  const token = run.text(component.api_token ?? '', component)
  registerSecret(token)
  if (isComponent(component.inject_into)) injectOption(parts, component.inject_into, token, run)
  else setHeader(parts, run.text(component.header ?? 'Authorization', component), token)
}

function addSecretHeader(parts: RequestParts, name: string, value: string): void {
  registerSecret(value)
  setHeader(parts, name, value)
}

function createFixedAuth(token: string): Auth {
  const credentials: Credentials = { headers: { authorization: new Secret(`Bearer ${token}`) }, query: {} }
  return { credentials: async () => credentials, renew: async () => null }
}
