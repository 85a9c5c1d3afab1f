import {
  SyncError,
  type Connection,
  type ConnectAttempt,
  type ConnectionCredentials,
  type ConnectSession,
  type ConnectSessionSecrets,
  type ConnectSessionStatus,
  type Ports,
  type Store,
} from '../../contract/index.ts'
import { registerSecret } from '../../redaction/known-secrets.ts'
import { withAccessToken, withFormFields } from '../authenticate-request.ts'
import type { ProviderInput } from '../define-provider.ts'
import { fillUrl } from '../fill-template.ts'
import { identifyAccount, type VendorAccount } from '../identify-account.ts'
import { buildAuthorizeUrl } from '../oauth/authorize-url.ts'
import { parseCredentials } from '../credentials.ts'
import { revokeGrant } from '../oauth/revoke-grant.ts'
import { exchangeCode, isClientError, type ClientIdentity } from '../oauth/token-requests.ts'
import {
  authorizeOrigins,
  checkInputs,
  chooseMethod,
  listInputs,
  requireOAuth,
  resolveProvider,
  templateValues,
  type ConnectMethod,
  type InputErrors,
  type InputValues,
  type ResolvedProvider,
} from '../resolve-provider.ts'
import { checkConnectOptions, type CheckedConnectOptions, type ConnectOptions } from './connect-options.ts'
import { createConnectCookie, readBrowserSecret, type ReadCookie } from './connect-cookie.ts'
import { toFormCredentials, toOAuthCredentials } from './credentials.ts'
import { describeFailure, toFailure, type ConnectFailure } from './failure.ts'
import { checkReturnTo } from './return-to.ts'
import {
  createFormToken,
  createToken,
  digestToken,
  isDigestOf,
  isFormToken,
  joinState,
  parseState,
  parseToken,
} from './session-tokens.ts'
import { readTokenSettings } from './token-settings.ts'
import { VendorContexts } from './vendor-context.ts'

/** The account to connect, and the place to return to. */
export interface CreateConnectSession {
  readonly tenant: string
  readonly provider: string
  /** The name of the connection. An existing one is authorized again. Default: the name of the provider. */
  readonly name?: string
  /** A URL that `connect.returnTo` allows. Default: the flow ends on a page of Tidemark. */
  readonly returnTo?: string
  /** Default: OAuth if a client is configured, else the form. */
  readonly method?: ConnectMethod
  /** Replaces the scopes of the provider. */
  readonly scopes?: readonly string[]
  /**
   * Lets an existing connection change to another account. Default: false. Syncs then stop before a sweep, because the
   * rows of the old account would be deleted.
   */
  readonly allowAccountChange?: boolean
}

/** A link for one browser. */
export interface ConnectLink {
  /** Send your user to it, or open it with `connect.js`. */
  readonly url: string
  /**
   * The value of a `Set-Cookie` header. Send it to your signed-in user together with the link: the link works only in
   * the browser that has the cookie, so a link that is passed on connects nothing.
   */
  readonly cookie: string
  readonly expiresAt: Date
}

/** An account was connected, or authorized again. */
export interface ConnectedEvent {
  readonly tenant: string
  readonly connection: string
  readonly provider: string
  readonly account: VendorAccount
  readonly isNew: boolean
}

/** The answer to a request of a browser. */
export type ConnectView =
  | ConnectFormView
  | { readonly kind: 'redirect'; readonly url: string }
  | { readonly kind: 'done'; readonly title: string; readonly result: ConnectResult; readonly openerOrigin: string }
  | { readonly kind: 'refused'; readonly reason: ConnectRefusal }

/** The page on which the user enters values, or continues to the vendor. */
export interface ConnectFormView {
  readonly kind: 'form'
  readonly appName: string
  readonly title: string
  readonly method: ConnectMethod
  readonly steps: readonly string[]
  readonly documentation: string
  readonly inputs: Readonly<Record<string, ProviderInput>>
  /** The entered values, without secrets. */
  readonly entered: Readonly<Record<string, string>>
  readonly errors: InputErrors
  readonly failure: string | null
  /** The account of an existing connection. */
  readonly account: string | null
  readonly formToken: string
  readonly isPopup: boolean
  readonly returnTo: string | null
  /** The origins that the form may lead to. */
  readonly formOrigins: readonly string[]
}

/** The state of a session, for the program that opened it. */
export interface ConnectResult {
  readonly status: ConnectSessionStatus | 'expired'
  readonly connection: string | null
  readonly provider: string | null
}

/** The reason why a browser may not use a link. */
export type ConnectRefusal = 'unknown' | 'other-browser' | 'used' | 'form-token' | 'state'

export interface ConnectFlowOptions extends CheckedConnectOptions {
  /** A store of any tenant. */
  readonly store: Store
  readonly ports: Ports
  readonly vendors: VendorContexts
  readonly onConnected: (event: ConnectedEvent) => void
}

/** The flow of a program, from its options. */
export function createConnectFlow({
  connect,
  ...options
}: Omit<ConnectFlowOptions, keyof CheckedConnectOptions | 'vendors'> & {
  readonly connect: ConnectOptions
}): ConnectFlow {
  return new ConnectFlow({ ...checkConnectOptions(connect), ...options, vendors: new VendorContexts(options.ports) })
}

const NAME_PATTERN = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/
const WRITES_MAX = 3
const REVOKE_MS = 10_000
const ACTOR = 'connect'

interface LoadedSession {
  readonly session: ConnectSession
  readonly secrets: ConnectSessionSecrets
  readonly store: Store
  readonly provider: ResolvedProvider
  readonly browserSecret: string
}

/** The tokens or fields that an authorization returned. */
interface Authorization {
  readonly credentials: ConnectionCredentials
  readonly scopes: readonly string[]
  readonly settings: Readonly<Record<string, string>>
  readonly account: VendorAccount
}

/** Connects accounts of users: sessions, the authorization at the vendor, and the connection that results. */
export class ConnectFlow {
  readonly #options: ConnectFlowOptions

  constructor(options: ConnectFlowOptions) {
    this.#options = options
  }

  /** The origin of the pages, which every form is sent from. */
  get origin(): string {
    return this.#options.publicUrl.origin
  }

  /** The names of the providers that accounts can be connected at. */
  get providers(): readonly string[] {
    return Object.keys(this.#options.providers)
  }

  /** The path of the pages and their files, as browsers see it. */
  get path(): string {
    return `${this.#base.slice(this.origin.length)}/connect`
  }

  async createSession(request: CreateConnectSession): Promise<ConnectLink> {
    const {
      tenant,
      provider: providerName,
      name = providerName,
      returnTo,
      scopes,
      allowAccountChange = false,
    } = request
    const { providers, ports, sessionMs, publicUrl } = this.#options
    const provider = resolveProvider(providerName, providers)
    const method = chooseMethod(provider, request.method)
    if (!NAME_PATTERN.test(name))
      throw new SyncError('CONNECTION_INVALID', `${JSON.stringify(name)} is not a valid name of a connection.`)
    const store = this.#storeOf(tenant)
    checkProvider(await store.connection(name), provider)
    const [token, browserSecret] = [createToken(), createToken()]
    const id = digestToken(token)
    const createdAt = ports.clock.now()
    const expiresAt = createdAt + sessionMs
    const secrets: ConnectSessionSecrets = {
      token,
      provider: providerName,
      method,
      connection: name,
      returnTo: returnTo === undefined ? null : checkReturnTo(returnTo, this.#options.returnTo).href,
      allowAccountChange,
      scopes: scopes ?? null,
      failure: null,
      attempt: null,
    }
    await store.addConnectSession(
      { id, browser: digestToken(browserSecret), createdAt, expiresAt },
      JSON.stringify(secrets),
    )
    return {
      url: this.#urlOf(token),
      cookie: createConnectCookie(id, browserSecret, sessionMs, publicUrl),
      expiresAt: new Date(expiresAt),
    }
  }

  /** The page of a link. Changes nothing: a program that previews links may request it. */
  async open(token: string, readCookie: ReadCookie, isPopup: boolean): Promise<ConnectView> {
    const loaded = await this.#load(token, readCookie)
    if ('kind' in loaded) return loaded
    if (loaded.session.status === 'connected') return this.#viewDone(loaded)
    return this.#viewForm(loaded, { isPopup })
  }

  /** The state of a link, for `connect.js`. A link of another browser looks expired. */
  async result(token: string, readCookie: ReadCookie): Promise<ConnectResult> {
    const loaded = await this.#load(token, readCookie)
    return 'kind' in loaded ? { status: 'expired', connection: null, provider: null } : toResult(loaded)
  }

  /** The form of the page: continues to the vendor, or connects with the entered credentials. */
  async submit(
    token: string,
    readCookie: ReadCookie,
    fields: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<ConnectView> {
    const loaded = await this.#load(token, readCookie)
    if ('kind' in loaded) return loaded
    const { session, secrets, provider, browserSecret } = loaded
    if (session.status === 'connected') return { kind: 'refused', reason: 'used' }
    // CSRF: another site can make the browser send this form, but cannot know the token in it.
    if (!isFormToken(fields['form_token'] ?? '', browserSecret, session.id))
      return { kind: 'refused', reason: 'form-token' }
    const isPopup = fields['popup'] === '1'
    const values = checkInputs(provider, secrets.method, fields)
    if ('errors' in values) return this.#viewForm(loaded, { isPopup, entered: fields, errors: values.errors })
    for (const value of Object.values(values.credentials)) registerSecret(value)
    if (secrets.method === 'oauth') return this.#startOAuth(loaded, values, isPopup)
    try {
      const authorization = await this.#authorizeForm(loaded, values, signal)
      const failure = await this.#connect(loaded, authorization)
      if (failure !== null)
        return await this.#viewForm(loaded, {
          isPopup,
          entered: fields,
          failure: describeFailure(provider.title, failure),
        })
    } catch (error) {
      const failure = toFailure(error)
      if (failure === null) throw error
      return await this.#viewForm(loaded, {
        isPopup,
        entered: fields,
        failure: describeFailure(provider.title, failure),
      })
    }
    return this.#leave(loaded, isPopup)
  }

  /** The redirect from the vendor. */
  async callback(
    providerName: string,
    query: Readonly<Record<string, string>>,
    readCookie: ReadCookie,
    signal: AbortSignal,
  ): Promise<ConnectView> {
    const state = parseState(query['state'] ?? '')
    if (state === null) return { kind: 'refused', reason: 'state' }
    const loaded = await this.#loadById(state.id, readCookie)
    if ('kind' in loaded) return loaded
    const { session, secrets, provider } = loaded
    const { attempt } = secrets
    // A callback is used once: the claim below changes the status.
    if (session.status === 'connected') return { kind: 'refused', reason: 'used' }
    if (session.status !== 'authorizing' || attempt === null || !isDigestOf(state.secret, attempt.state))
      return { kind: 'refused', reason: 'state' }
    // Mix-up: each provider has a redirect URI of its own, so an answer of another vendor arrives elsewhere.
    if (providerName !== provider.name) return { kind: 'refused', reason: 'state' }
    const claimed = await this.#move(loaded, 'finishing', { ...secrets, attempt: null, failure: null })
    if (claimed === null) return { kind: 'refused', reason: 'state' }
    const failure = await this.#finishOAuth(claimed, attempt, query, signal)
    if (failure === null) return this.#leave(claimed, attempt.isPopup)
    await this.#move(claimed, 'open', { ...claimed.secrets, failure: describeFailure(provider.title, failure) })
    return { kind: 'redirect', url: this.#urlOf(secrets.token, attempt.isPopup) }
  }

  /**
   * Ends the grant of a connection at the vendor. False if it has none, or if the vendor did not confirm: the user can
   * remove the app in the vendor's settings.
   */
  async revoke(store: Store, name: string, signal: AbortSignal = AbortSignal.timeout(REVOKE_MS)): Promise<boolean> {
    const { providers, vendors } = this.#options
    const found = await store.connectionCredentials(name)
    if (found === null || !Object.hasOwn(providers, found.connection.provider)) return false
    const credentials = parseCredentials(name, found.credentials)
    if (credentials.kind !== 'oauth') return false
    const provider = resolveProvider(found.connection.provider, providers)
    const own = credentials.client
    const client = own === null ? provider.client : { id: own.clientId, secret: own.clientSecret }
    if (client === null || provider.oauth === undefined) return false
    const settings = Object.entries(found.connection.settings).filter(([, value]) => typeof value === 'string')
    const values = templateValues(provider, Object.fromEntries(settings) as Record<string, string>)
    try {
      return await revokeGrant(provider.oauth, client, credentials, values, vendors.create(provider, signal))
    } catch (error) {
      this.#options.ports.log.warn('a grant was not revoked at the vendor', {
        tenant: store.tenant,
        connection: name,
        reason: error instanceof Error ? error.message : String(error),
      })
      return false
    }
  }

  async #startOAuth(
    loaded: LoadedSession,
    { settings, credentials }: InputValues,
    isPopup: boolean,
  ): Promise<ConnectView> {
    const { session, secrets, provider } = loaded
    const { client_id: ownId, client_secret: ownSecret = null } = credentials
    const client = provider.client ?? (ownId === undefined ? null : { id: ownId, secret: ownSecret })
    if (client === null) throw new SyncError('CONNECTION_INVALID', `The provider ${provider.name} has no client.`)
    const [stateSecret, codeVerifier] = [createToken(), createToken()]
    const attempt: ConnectAttempt = {
      state: digestToken(stateSecret),
      codeVerifier,
      settings,
      client: provider.client === null ? { clientId: client.id, clientSecret: client.secret } : null,
      isPopup,
    }
    const moved = await this.#move(loaded, 'authorizing', { ...secrets, attempt, failure: null })
    // Another request of the same browser was faster; its page continues.
    if (moved === null) return { kind: 'refused', reason: 'used' }
    const oauth = requireOAuth(provider)
    const url = buildAuthorizeUrl(oauth, {
      clientId: client.id,
      redirectUri: this.#redirectUri(provider),
      scopes: secrets.scopes ?? oauth.scopes,
      state: joinState(session.id, stateSecret),
      codeVerifier,
      values: templateValues(provider, settings),
    })
    return { kind: 'redirect', url: url.href }
  }

  async #finishOAuth(
    loaded: LoadedSession,
    attempt: ConnectAttempt,
    query: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<ConnectFailure | null> {
    const { provider } = loaded
    const { code, error, iss } = query
    // RFC 9207: the answer of another server may carry a code that must not be sent to this one, or the reverse.
    if (iss !== undefined && !isIssuer(iss, provider, attempt)) return { kind: 'wrong-issuer' }
    if (error !== undefined) return { kind: error === 'access_denied' ? 'declined' : 'vendor-error' }
    if (code === undefined || code === '') return { kind: 'vendor-error' }
    registerSecret(code)
    try {
      const authorization = await this.#authorizeOAuth(loaded, attempt, code, signal)
      return 'kind' in authorization ? authorization : await this.#connect(loaded, authorization)
    } catch (thrown) {
      const failure = toFailure(thrown)
      if (failure === null) throw thrown
      this.#logFailure(loaded, thrown)
      return failure
    }
  }

  async #authorizeOAuth(
    { provider, secrets }: LoadedSession,
    { codeVerifier, client: own, settings: entered }: ConnectAttempt,
    code: string,
    signal: AbortSignal,
  ): Promise<Authorization | ConnectFailure> {
    const { vendors, ports } = this.#options
    const oauth = requireOAuth(provider)
    const context = vendors.create(provider, signal)
    const client: ClientIdentity =
      own === null ? (provider.client ?? { id: '', secret: null }) : { id: own.clientId, secret: own.clientSecret }
    const answer = await exchangeCode(
      oauth,
      client,
      { code, codeVerifier, redirectUri: this.#redirectUri(provider) },
      templateValues(provider, entered),
      context,
    )
    if (answer.kind === 'refused') {
      if (!isClientError(answer.reason)) return { kind: 'code-refused' }
      ports.log.error('the vendor refused the client of a provider', {
        provider: provider.name,
        reason: answer.reason,
        answer: answer.label,
      })
      return { kind: 'client-refused' }
    }
    const settings = { ...entered, ...readTokenSettings(provider, answer.body) }
    const account = await identifyAccount(
      provider,
      (request) => withAccessToken(request, answer.accessToken),
      templateValues(provider, settings, { access_token: answer.accessToken }),
      context,
    )
    const requested = secrets.scopes ?? oauth.scopes
    return {
      credentials: toOAuthCredentials(provider, answer, own, settings, ports.clock.now()),
      scopes: sortScopes(answer.scope?.split(/[\s,]+/) ?? requested),
      settings,
      account,
    }
  }

  async #authorizeForm(
    { provider }: LoadedSession,
    { settings, credentials }: InputValues,
    signal: AbortSignal,
  ): Promise<Authorization> {
    const { vendors, ports } = this.#options
    const { form } = provider
    if (form === undefined) throw new SyncError('CONNECTION_INVALID', `The provider ${provider.name} has no form.`)
    const account = await identifyAccount(
      provider,
      (request) => withFormFields(request, form.auth, credentials, ports.clock.now()),
      templateValues(provider, settings, credentials),
      vendors.create(provider, signal),
    )
    return { credentials: toFormCredentials(form.auth, credentials), scopes: [], settings, account }
  }

  /** Stores the connection, and ends the session. */
  async #connect(loaded: LoadedSession, authorization: Authorization): Promise<ConnectFailure | null> {
    const { store, secrets, provider, session } = loaded
    const { account, credentials, scopes, settings } = authorization
    for (let write = 0; write < WRITES_MAX; write++) {
      const found = await store.connection(secrets.connection)
      checkProvider(found, provider)
      // The wrong account over an existing connection would replace its rows with those of another company.
      if (found?.account != null && found.account.id !== account.id && !secrets.allowAccountChange)
        return { kind: 'other-account', expected: found.account.label, found: account.label }
      const isDisabled = found?.status === 'disabled'
      const stored = await store.putConnection(
        {
          name: secrets.connection,
          provider: provider.name,
          // An operator stopped it; only an operator starts it again.
          status: isDisabled ? 'disabled' : 'active',
          statusReason: isDisabled ? found.statusReason : null,
          settings: { ...found?.settings, ...settings },
          scopes,
          account,
          replaces: found,
          credentials: JSON.stringify(credentials),
        },
        { actor: ACTOR, at: this.#options.ports.clock.now(), reason: `session ${session.id.slice(0, 16)}` },
      )
      if (stored === null) continue
      await this.#move(loaded, 'connected', { ...secrets, attempt: null, failure: null })
      this.#options.onConnected({
        tenant: session.tenant,
        connection: stored.name,
        provider: stored.provider,
        account,
        isNew: found === null,
      })
      return null
    }
    return { kind: 'changed' }
  }

  /** Compare-and-swap of a session. Null if another request moved it first, or if it has expired. */
  async #move(
    loaded: LoadedSession,
    status: ConnectSessionStatus,
    secrets: ConnectSessionSecrets,
  ): Promise<LoadedSession | null> {
    const { session, store } = loaded
    const isMoved = await store.moveConnectSession(session.id, {
      replaces: session.version,
      status,
      secrets: JSON.stringify(secrets),
      at: this.#options.ports.clock.now(),
    })
    return isMoved ? { ...loaded, secrets, session: { ...session, status, version: session.version + 1 } } : null
  }

  async #load(
    text: string,
    readCookie: ReadCookie,
  ): Promise<LoadedSession | Extract<ConnectView, { kind: 'refused' }>> {
    const token = parseToken(text)
    return token === null ? { kind: 'refused', reason: 'unknown' } : this.#loadById(digestToken(token), readCookie)
  }

  async #loadById(
    id: string,
    readCookie: ReadCookie,
  ): Promise<LoadedSession | Extract<ConnectView, { kind: 'refused' }>> {
    const { store, ports, publicUrl, providers } = this.#options
    const session = await store.connectSession(id, ports.clock.now())
    if (session === null) return { kind: 'refused', reason: 'unknown' }
    // Session fixation: a link of an attacker's tenant does not work in the browser of a victim, and the reverse.
    const browserSecret = readBrowserSecret(id, readCookie, publicUrl)
    if (browserSecret === null || !isDigestOf(browserSecret, session.browser))
      return { kind: 'refused', reason: 'other-browser' }
    const own = this.#storeOf(session.tenant)
    const found = await own.connectSecrets(id)
    if (found === null) return { kind: 'refused', reason: 'unknown' }
    const secrets = JSON.parse(found.secrets) as ConnectSessionSecrets
    return {
      // The secrets may be newer than the session that was read before them.
      session: { ...session, version: found.version },
      secrets,
      store: own,
      provider: resolveProvider(secrets.provider, providers),
      browserSecret,
    }
  }

  async #viewForm(
    { session, secrets, provider, store, browserSecret }: LoadedSession,
    view: Pick<ConnectFormView, 'isPopup'> & Partial<Pick<ConnectFormView, 'entered' | 'errors' | 'failure'>>,
  ): Promise<ConnectFormView> {
    const inputs = listInputs(provider, secrets.method)
    const found = await store.connection(secrets.connection)
    const settings = Object.entries(found?.settings ?? {}).filter(([, value]) => typeof value === 'string')
    return {
      kind: 'form',
      appName: this.#options.appName,
      title: provider.title,
      method: secrets.method,
      steps: secrets.method === 'form' ? (provider.form?.steps ?? []) : [],
      documentation: provider.documentation,
      inputs,
      entered: withoutSecrets(view.entered ?? (Object.fromEntries(settings) as Record<string, string>), inputs),
      errors: view.errors ?? {},
      failure: view.failure ?? secrets.failure,
      account: found?.account?.label ?? null,
      formToken: createFormToken(browserSecret, session.id),
      isPopup: view.isPopup,
      returnTo: this.#returnUrl(secrets, 'cancelled'),
      formOrigins: secrets.method === 'oauth' ? authorizeOrigins(provider) : this.#returnOrigins(secrets),
    }
  }

  #viewDone(loaded: LoadedSession): ConnectView {
    const { secrets, provider } = loaded
    return {
      kind: 'done',
      title: provider.title,
      result: toResult(loaded),
      // The opener is a page of the program: it is where the flow would return to, or it has the origin of the pages.
      openerOrigin: secrets.returnTo === null ? this.origin : new URL(secrets.returnTo).origin,
    }
  }

  /** After success: to the program, or to the last page. */
  #leave({ secrets }: LoadedSession, isPopup: boolean): ConnectView {
    const url = isPopup ? null : this.#returnUrl(secrets, 'connected')
    return { kind: 'redirect', url: url ?? this.#urlOf(secrets.token, isPopup) }
  }

  /** Checked again, because the options may have changed since the session was created. */
  #returnUrl({ returnTo, connection }: ConnectSessionSecrets, status: 'connected' | 'cancelled'): string | null {
    if (returnTo === null) return null
    const url = checkReturnTo(returnTo, this.#options.returnTo)
    url.searchParams.set('connection', connection)
    url.searchParams.set('connection_status', status)
    return url.href
  }

  #returnOrigins({ returnTo }: ConnectSessionSecrets): readonly string[] {
    return returnTo === null ? [] : [new URL(returnTo).origin]
  }

  #redirectUri({ name }: ResolvedProvider): string {
    return `${this.#base}/connect/callback/${name}`
  }

  #urlOf(token: string, isPopup = false): string {
    return `${this.#base}/connect/${token}${isPopup ? '?popup=1' : ''}`
  }

  get #base(): string {
    const { origin, pathname } = this.#options.publicUrl
    return pathname === '/' ? origin : `${origin}${pathname}`
  }

  #storeOf(tenant: string): Store {
    const { store } = this.#options
    return tenant === store.tenant ? store : store.forTenant(tenant)
  }

  #logFailure({ provider, session }: LoadedSession, error: unknown): void {
    this.#options.ports.log.warn('an account was not connected', {
      tenant: session.tenant,
      provider: provider.name,
      reason: error instanceof Error ? error.message : String(error),
    })
  }
}

function checkProvider(found: Connection | null, { name }: ResolvedProvider): void {
  if (found !== null && found.provider !== name)
    throw new SyncError(
      'CONNECTION_INVALID',
      `The connection ${found.name} belongs to the provider ${found.provider}, not ${name}. Choose another \`name\`.`,
    )
}

/** A vendor that declares no issuer is known by the origin of its authorization endpoint. */
function isIssuer(iss: string, provider: ResolvedProvider, { settings }: ConnectAttempt): boolean {
  const { issuer, authorizeUrl } = requireOAuth(provider)
  if (issuer !== undefined) return iss === issuer
  return URL.canParse(iss) && new URL(iss).origin === fillUrl(authorizeUrl, templateValues(provider, settings)).origin
}

function toResult({ session: { status }, secrets: { connection, provider } }: LoadedSession): ConnectResult {
  return { status, connection, provider }
}

function withoutSecrets(
  entered: Readonly<Record<string, string>>,
  inputs: Readonly<Record<string, ProviderInput>>,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(entered).filter(([name]) => Object.hasOwn(inputs, name) && inputs[name]?.isSecret !== true),
  )
}

function sortScopes(scopes: readonly string[]): string[] {
  return [...new Set(scopes.filter((scope) => scope !== ''))].toSorted()
}
