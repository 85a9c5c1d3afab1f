import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished } from 'vitest'
import { startOAuthVendor, type OAuthVendor, type OAuthVendorOptions } from '../../examples/saas-app/oauth-vendor.ts'
import {
  ConnectFlow,
  type ConnectedEvent,
  type CreateConnectSession,
} from '../../src/connections/connect/connect-flow.ts'
import { checkConnectOptions, type ConnectOptions } from '../../src/connections/connect/connect-options.ts'
import { VendorContexts } from '../../src/connections/connect/vendor-context.ts'
import type { ProviderOptions } from '../../src/connections/resolve-provider.ts'
import type { Ports, Store } from '../../src/contract/index.ts'
import { createServer as createApi } from '../../src/server/server.ts'
import { openStore } from '../../src/stores/open-store.ts'
import { systemClock } from '../../src/platform/clock.ts'

export const CLIENT = { clientId: 'tidemark-client', clientSecret: 's:cret/+%' }

/** The API of a vendor: the account at the path of HubSpot. */
export function hubspotApi(
  accounts: Readonly<Record<string, string>>,
): (request: IncomingMessage, response: ServerResponse, account: string | null) => void {
  return (_request, response, account) => {
    if (account === null) return void response.writeHead(401, { 'content-type': 'application/json' }).end('{}')
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ portalId: account, uiDomain: accounts[account] }))
  }
}

export const ACCOUNTS = { '1001': 'ada.example', '2002': 'grace.example' }

/** A vendor with the paths of HubSpot. */
export async function startHubspot(
  base: string,
  { provider = 'hubspot', ...options }: Partial<OAuthVendorOptions> & { readonly provider?: string } = {},
): Promise<OAuthVendor> {
  const vendor = await startOAuthVendor({
    ...CLIENT,
    redirectUris: [`${base}/connect/callback/${provider}`],
    accounts: ACCOUNTS,
    api: hubspotApi(ACCOUNTS),
    ...options,
    quirks: { authorizePath: '/oauth/authorize', tokenPath: '/oauth/v3/token', ...options.quirks },
  })
  onTestFinished(() => vendor.close())
  return vendor
}

export interface ConnectFixture {
  readonly base: string
  readonly store: Store
  readonly flow: ConnectFlow
  readonly events: ConnectedEvent[]
  readonly logs: string[]
  /** Time can be moved forward. */
  readonly clock: { offsetMs: number }
  configure(options: Partial<ConnectOptions>): void
  /** Opens a link as the signed-in user of the program would: with the cookie. */
  start(session: Partial<CreateConnectSession>, browser?: TestBrowser): Promise<{ browser: TestBrowser; url: string }>
}

/** A server with the connect flow on a loopback port. */
export async function openConnectFixture(file?: string, prefix = ''): Promise<ConnectFixture> {
  const clock = { offsetMs: 0 }
  const logs: string[] = []
  const write = (...line: readonly unknown[]): void => void logs.push(JSON.stringify(line))
  const ports: Ports = {
    clock: { now: () => systemClock.now() + clock.offsetMs, sleep: systemClock.sleep },
    random: { next: Math.random },
    log: { debug: write, info: write, warn: write, error: write },
  }
  const store = await openStore(file === undefined ? 'sqlite::memory:' : `sqlite:${file}`)
  onTestFinished(() => store.close())
  const events: ConnectedEvent[] = []
  let listener: (request: IncomingMessage, response: ServerResponse) => void = () => {}
  const server = createServer((request, response) => {
    if (prefix !== '') request.url = (request.url ?? '/').slice(prefix.length)
    listener(request, response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
  })
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}${prefix}`
  let options: ConnectOptions = { publicUrl: base, providers: {}, returnTo: [`${new URL(base).origin}/app/`] }
  const createFlow = (): ConnectFlow =>
    new ConnectFlow({
      ...checkConnectOptions(options),
      store,
      ports,
      vendors: new VendorContexts(ports),
      onConnected: (event) => void events.push(event),
    })
  let flow = createFlow()
  const proxy = new Proxy({} as ConnectFlow, {
    get: (_target, name) => {
      const value = Reflect.get(flow, name, flow) as unknown
      return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(flow) : value
    },
  })
  const api = createApi({ store, ports, version: 'test', connect: proxy })
  await api.app.ready()
  listener = api.listener
  onTestFinished(() => api.close())
  return {
    base,
    store,
    flow: proxy,
    events,
    logs,
    clock,
    configure(given) {
      options = { ...options, ...given }
      flow = createFlow()
    },
    async start(session, browser = new TestBrowser()) {
      const { url, cookie } = await flow.createSession({ tenant: 'acme', provider: 'hubspot', ...session })
      browser.setCookie(base, cookie)
      return { browser, url }
    },
  }
}

export interface Page {
  readonly status: number
  readonly url: string
  readonly text: string
  readonly headers: Headers
  /** The URLs that the browser was redirected through. */
  readonly via: readonly string[]
}

/** Sends requests as a browser does: cookies by origin, redirects, and the headers of a form. */
export class TestBrowser {
  readonly #jar = new Map<string, Map<string, string>>()

  setCookie(url: string, header: string): void {
    const [pair = ''] = header.split(';')
    const { host } = new URL(url)
    const cookies = this.#jar.get(host) ?? new Map<string, string>()
    this.#jar.set(host, cookies)
    const [name = '', ...value] = pair.split('=')
    if (/expires=Thu, 01 Jan 1970/i.test(header)) cookies.delete(name)
    else cookies.set(name, value.join('='))
  }

  cookies(url: string): Map<string, string> {
    return this.#jar.get(new URL(url).host) ?? new Map()
  }

  open(url: string, stopAt?: (url: URL) => boolean): Promise<Page> {
    return this.#go('GET', url, null, stopAt)
  }

  /** Submits the form of a page with its hidden fields. */
  submit(page: Page, fields: Record<string, string> = {}, stopAt?: (url: URL) => boolean): Promise<Page> {
    const hidden = Object.fromEntries(
      [...page.text.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)"/g)].map(([, name, value]) => [
        name!,
        value!,
      ]),
    )
    return this.#go('POST', page.url, new URLSearchParams({ ...hidden, ...fields }).toString(), stopAt)
  }

  async #go(
    method: string,
    first: string,
    body: string | null,
    stopAt: (url: URL) => boolean = () => false,
  ): Promise<Page> {
    let url = new URL(first)
    const via: string[] = []
    for (let hop = 0; hop < 20; hop++) {
      const cookies = [...this.cookies(url.href)].map(([name, value]) => `${name}=${value}`).join('; ')
      const response = await fetch(url, {
        method,
        redirect: 'manual',
        headers: {
          ...(cookies !== '' && { cookie: cookies }),
          ...(body !== null && {
            'content-type': 'application/x-www-form-urlencoded',
            origin: url.origin,
            'sec-fetch-site': 'same-origin',
          }),
        },
        ...(body !== null && { body }),
      })
      for (const header of response.headers.getSetCookie()) this.setCookie(url.href, header)
      const location = response.headers.get('location')
      if (location === null)
        return { status: response.status, url: url.href, text: await response.text(), headers: response.headers, via }
      await response.body?.cancel()
      const next = new URL(location, url)
      via.push(next.href)
      url = next
      method = 'GET'
      body = null
      if (stopAt(next)) return { status: response.status, url: next.href, text: '', headers: response.headers, via }
    }
    throw new Error(`too many redirects: ${via.join(' ')}`)
  }
}

export const isCallback = (url: URL): boolean => url.pathname.includes('/connect/callback/')
export const isAppPage = (url: URL): boolean => url.pathname.startsWith('/app/')

export function hubspotOptions(vendor: OAuthVendor): Record<string, ProviderOptions> {
  return { hubspot: { ...CLIENT, baseUrl: vendor.url } }
}

export async function credentialsOf(store: Store, name = 'hubspot'): Promise<Record<string, unknown> | null> {
  const found = await store.connectionCredentials(name)
  return found === null ? null : (JSON.parse(found.credentials) as Record<string, unknown>)
}

export function expectRefused(page: Page, title: string): void {
  expect(page.text).toContain(`<h1>${title}</h1>`)
  expect(page.status).toBe(403)
}
