import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** The differences of a vendor from the standard, as far as they are played. */
export interface VendorQuirks {
  /** The vendor's paths. Default: those of the standard server. */
  readonly authorizePath?: string
  readonly tokenPath?: string
  readonly revokePath?: string
  /** Between scopes in the authorization request and in the token answer. Default: a space. */
  readonly scopeSeparator?: ' ' | ','
  /** Rewrites a successful token answer: its status, its format or its members. */
  readonly rewriteTokens?: (
    tokens: Record<string, unknown>,
    url: string,
  ) => { readonly status?: number; readonly type?: string; readonly body: string }
  /** Answers a refusal with status 200, as some vendors do. */
  readonly refusesWith200?: boolean
  /** Leaves `iss` out of the callback, as most vendors do. */
  readonly statesNoIssuer?: boolean
  /** Does not require a code challenge. */
  readonly ignoresPkce?: boolean
}

export interface OAuthVendorOptions {
  readonly clientId: string
  readonly clientSecret: string
  readonly redirectUris: readonly string[]
  readonly clientAuth?: 'basic' | 'form'
  readonly accessTokenSeconds?: number
  readonly quirks?: VendorQuirks
  /** The accounts that a user may sign in as: id and name. The page offers them. */
  readonly accounts: Readonly<Record<string, string>>
  /** The vendor's API. `account` is the owner of the access token; null without a valid one. */
  readonly api: (request: IncomingMessage, response: ServerResponse, account: string | null) => unknown
}

/** A vendor whose OAuth is a certified server, behind a thin layer that plays the vendor's differences. */
export interface OAuthVendor {
  readonly url: string
  /** Signs the next user in without a page; null shows the page. */
  signIn: string | null
  /** Method and path of every request. */
  readonly requests: string[]
  close(): Promise<void>
}

/** The used parts of oidc-provider, which has no types. */
interface OidcProvider {
  callback(): RequestListener
  interactionDetails(
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<{ params: Record<string, string>; session?: { accountId: string } }>
  interactionFinished(
    request: IncomingMessage,
    response: ServerResponse,
    result: object,
    options: { mergeWithLastSubmission: boolean },
  ): Promise<void>
  AccessToken: { find(token: string): Promise<{ accountId: string; isExpired: boolean } | undefined> }
  Grant: new (of: { clientId: string; accountId: string }) => {
    addOIDCScope(scope: string): void
    save(): Promise<string>
  }
}

const OIDC_PROVIDER = 'oidc-provider'

export async function startOAuthVendor(options: OAuthVendorOptions): Promise<OAuthVendor> {
  const { quirks = {}, clientAuth = 'form' } = options
  const { default: Provider } = (await import(OIDC_PROVIDER)) as {
    default: new (issuer: string, options: object) => OidcProvider
  }
  let handle: (request: IncomingMessage, response: ServerResponse) => Promise<void> = async () => {}
  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      if (!response.headersSent) response.writeHead(500, { 'content-type': 'text/plain' })
      response.end(String(error))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const provider = new Provider(url, {
    clients: [
      {
        client_id: options.clientId,
        client_secret: options.clientSecret,
        token_endpoint_auth_method: clientAuth === 'basic' ? 'client_secret_basic' : 'client_secret_post',
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        redirect_uris: options.redirectUris,
      },
    ],
    cookies: { keys: ['a key of the example'] },
    features: { devInteractions: { enabled: false }, revocation: { enabled: true } },
    pkce: { required: () => quirks.ignoresPkce !== true },
    scopes: ['openid', 'offline_access'],
    rotateRefreshToken: true,
    issueRefreshToken: async () => true,
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    findAccount: (_context: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id }) }),
    ttl: { AccessToken: options.accessTokenSeconds ?? 3_600 },
  })
  const listener = provider.callback()
  const scopes = new Map<string, string>()
  const requests: string[] = []

  const interact = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { params } = await provider.interactionDetails(request, response)
    const chosen =
      vendor.signIn ??
      (request.method === 'POST' ? (new URLSearchParams(await readText(request)).get('account') ?? '') : null)
    if (chosen === null) {
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' })
      response.end(renderSignIn(options.accounts))
      return
    }
    const clientId = params['client_id'] ?? ''
    if (!Object.hasOwn(options.accounts, chosen)) {
      await provider.interactionFinished(
        request,
        response,
        { error: 'access_denied' },
        { mergeWithLastSubmission: false },
      )
      return
    }
    const grant = new provider.Grant({ clientId, accountId: chosen })
    grant.addOIDCScope('openid offline_access')
    await provider.interactionFinished(
      request,
      response,
      { login: { accountId: chosen, remember: false }, consent: { grantId: await grant.save() } },
      { mergeWithLastSubmission: false },
    )
  }

  handle = async (request, response) => {
    const asked = new URL(request.url ?? '/', url)
    requests.push(`${request.method} ${asked.pathname}`)
    const { authorizePath = '/auth', tokenPath = '/token', revokePath = '/token/revocation' } = quirks
    if (asked.pathname.startsWith('/interaction/')) return interact(request, response)
    if (asked.pathname === authorizePath) {
      signOut(request)
      // The standard server knows only its own scopes.
      scopes.set(asked.searchParams.get('client_id') ?? '', asked.searchParams.get('scope') ?? '')
      asked.searchParams.set('scope', 'openid offline_access')
      asked.searchParams.set('prompt', 'login consent')
      request.url = `/auth${asked.search}`
      return withoutIssuer(listener, request, response, quirks)
    }
    if (asked.pathname === tokenPath || asked.pathname === '/token')
      return answerTokens(url, request, response, quirks, scopes.get(options.clientId) ?? '')
    if (asked.pathname === '/internal-token') {
      request.url = '/token'
      return listener(request, response)
    }
    if (asked.pathname === revokePath) {
      request.url = '/token/revocation'
      return listener(request, response)
    }
    if (asked.pathname.startsWith('/auth/')) {
      signOut(request)
      return withoutIssuer(listener, request, response, quirks)
    }
    const bearer = /^Bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1]
    const token = bearer === undefined ? undefined : await provider.AccessToken.find(bearer)
    await options.api(request, response, token === undefined || token.isExpired ? null : token.accountId)
  }

  const vendor: OAuthVendor = {
    url,
    signIn: null,
    requests,
    async close() {
      server.closeAllConnections()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
  return vendor
}

/** Every authorization begins signed out, so that a user can choose the account. */
function signOut(request: IncomingMessage): void {
  const cookies = (request.headers.cookie ?? '').split('; ').filter((cookie) => !cookie.startsWith('_session'))
  request.headers.cookie = cookies.join('; ')
}

/** Passes a token request to the standard server, and rewrites its answer. */
async function answerTokens(
  url: string,
  request: IncomingMessage,
  response: ServerResponse,
  { rewriteTokens, refusesWith200 = false, scopeSeparator = ' ' }: VendorQuirks,
  scope: string,
): Promise<void> {
  const isJson = request.headers['content-type']?.startsWith('application/json') === true
  const text = await readText(request)
  const answer = await fetch(`${url}/internal-token`, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      ...(request.headers.authorization !== undefined && { authorization: request.headers.authorization }),
    },
    body: isJson ? new URLSearchParams(JSON.parse(text) as Record<string, string>).toString() : text,
  })
  const tokens = (await answer.json()) as Record<string, unknown>
  if (!answer.ok) {
    response.writeHead(refusesWith200 ? 200 : answer.status, { 'content-type': 'application/json' })
    response.end(JSON.stringify(tokens))
    return
  }
  delete tokens['id_token']
  tokens['scope'] = scope.split(/[ ,]/).join(scopeSeparator)
  const {
    status = 200,
    type = 'application/json',
    body,
  } = rewriteTokens?.(tokens, url) ?? { body: JSON.stringify(tokens) }
  response.writeHead(status, { 'content-type': type }).end(body)
}

/** Removes `iss` from the redirect to the program. */
function withoutIssuer(
  listener: RequestListener,
  request: IncomingMessage,
  response: ServerResponse,
  { statesNoIssuer = false }: VendorQuirks,
): void {
  if (statesNoIssuer) {
    const setHeader = response.setHeader.bind(response)
    response.setHeader = (name, value) => {
      if (name.toLowerCase() !== 'location' || typeof value !== 'string' || !URL.canParse(value))
        return setHeader(name, value)
      const location = new URL(value)
      location.searchParams.delete('iss')
      return setHeader(name, location.href)
    }
  }
  listener(request, response)
}

function renderSignIn(accounts: Readonly<Record<string, string>>): string {
  const buttons = Object.entries(accounts).map(
    ([id, name]) => `<p><button name="account" value="${id}">Sign in as ${name}</button></p>`,
  )
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>Vendor</title><h1>Sign in at the vendor</h1>
<form method="post">${buttons.join('')}<p><button name="account" value="">Cancel</button></p></form></html>`
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}
