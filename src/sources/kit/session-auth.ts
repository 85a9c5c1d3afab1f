import { SyncError, type JsonValue, type SyncContext } from '../../contract/index.ts'
import { registerSecret } from '../../redaction/known-secrets.ts'
import { Secret } from '../../redaction/secret.ts'
import { rateLimitWaitMs, retryAfterMs } from '../../values/retry-after.ts'
import { resolveSecret, type Auth, type Credentials, type SecretSource } from './auth.ts'
import { classifyStatus } from './http-status.ts'
import { Origin } from './origin.ts'
import { readJson, sendRequest } from './send-request.ts'
import { readPath } from './token-endpoint.ts'

/** Describes a login that returns a token. */
export interface SessionOptions {
  /** Receives the credentials as JSON. */
  readonly loginUrl: string
  /** The members of the login request. */
  readonly credentials: Readonly<Record<string, SecretSource>>
  /** The path of the token in the response: `data.token`. */
  readonly token: string
  /** The header of the token. The default is `Authorization`. */
  readonly header?: string
  /** The default is `Bearer ` for `Authorization`, and nothing for another header. */
  readonly prefix?: string
}

/** Logs in with a request, sends the token of the response, and logs in again when the source rejects it. */
export function session(options: SessionOptions): Auth {
  new Origin(options.loginUrl) // Rejects an invalid URL at declaration instead of in the first cycle.
  const accounts = new Map<string, SessionAccount>()
  const getAccount = (context: SyncContext): SessionAccount => {
    const body = Object.fromEntries(
      Object.entries(options.credentials).map(([name, source]) => [name, resolveSecret(source, context).reveal()]),
    )
    // Two tenants with different credentials never share a session.
    const name = JSON.stringify(body)
    let account = accounts.get(name)
    if (account === undefined) accounts.set(name, (account = new SessionAccount(options, body)))
    return account
  }
  return {
    credentials: (context) => getAccount(context).credentials(context),
    renew: (refused, context) => getAccount(context).renew(refused, context),
  }
}

/** One session, shared by all syncs of the account. */
class SessionAccount {
  readonly #options: SessionOptions
  readonly #body: Readonly<Record<string, string>>
  #current: Credentials | null = null
  #login: { readonly promise: Promise<Credentials>; readonly signal: AbortSignal } | null = null

  constructor(options: SessionOptions, body: Readonly<Record<string, string>>) {
    this.#options = options
    this.#body = body
  }

  async credentials(context: SyncContext): Promise<Credentials> {
    return this.#current ?? this.#joinLogin(context)
  }

  async renew(refused: Credentials, context: SyncContext): Promise<Credentials> {
    if (this.#current !== null && this.#current !== refused) return this.#current
    return this.#joinLogin(context)
  }

  /** Concurrent callers share one login. */
  async #joinLogin(context: SyncContext): Promise<Credentials> {
    for (;;) {
      context.signal.throwIfAborted()
      this.#login ??= this.#start(context)
      const { promise, signal } = this.#login
      try {
        return await promise
      } catch (error) {
        context.signal.throwIfAborted()
        // Only the caller that started the login was aborted; the others start a new one.
        if (!signal.aborted) throw error
      }
    }
  }

  #start(context: SyncContext): { promise: Promise<Credentials>; signal: AbortSignal } {
    const promise = this.#requestToken(context)
      .then((credentials) => (this.#current = credentials))
      .finally(() => (this.#login = null))
    promise.catch(() => {})
    return { promise, signal: context.signal }
  }

  async #requestToken(context: SyncContext): Promise<Credentials> {
    const { loginUrl, token: path, header = 'authorization' } = this.#options
    const url = new URL(loginUrl)
    const label = `POST ${url.pathname}`
    const headers = { accept: 'application/json', 'content-type': 'application/json' }
    const body = JSON.stringify(this.#body)
    const response = await sendRequest({ method: 'POST', url, label, headers, body }, new Origin(loginUrl), context)
    const answered = `${label} answered ${response.status}`
    const code = classifyStatus(response.status, response.headers)
    if (code !== null) {
      await response.body?.cancel().catch(() => {})
      if (code === 'CONNECTOR_FAILED')
        throw new SyncError('AUTH_REJECTED', `${answered}: the login failed. Check the credentials.`)
      const waitMs = (code === 'RATE_LIMITED' ? rateLimitWaitMs : retryAfterMs)(response.headers, context.clock.now())
      throw new SyncError(code, `${answered}.`, waitMs === undefined ? {} : { retryAfterMs: waitMs })
    }
    const token = findToken(await readJson(response, answered, LOGIN_BODY_LIMITS, context), path)
    if (token === null) throw new SyncError('SOURCE_INVALID', `${answered} without a token at \`${path}\`.`)
    registerSecret(token)
    const { prefix = header.toLowerCase() === 'authorization' ? 'Bearer ' : '' } = this.#options
    return { headers: { [header]: new Secret(`${prefix}${token}`) }, query: {} }
  }
}

const LOGIN_BODY_LIMITS = { bodyBytesMax: 256 * 1024, depthMax: 32, bodyDeadlineMs: 30_000 }

function findToken(body: JsonValue, path: string): string | null {
  const found = readPath(body, path)
  return typeof found === 'string' && found !== '' ? found : null
}
