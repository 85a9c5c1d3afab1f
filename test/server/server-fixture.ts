import { onTestFinished } from 'vitest'
import type { Ports, Store } from '../../src/contract/index.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { ConnectFlow } from '../../src/connections/connect/connect-flow.ts'
import { checkConnectOptions } from '../../src/connections/connect/connect-options.ts'
import { VendorContexts } from '../../src/connections/connect/vendor-context.ts'
import { createApiKey } from '../../src/server/api-key.ts'
import { createServer, type Server, type ServerOptions } from '../../src/server/server.ts'
import { SyncDriver, type StoreHarness } from '../../src/testing/store-cases/harness.ts'

export type OpenHarness = () => Promise<StoreHarness>

/** A real server on loopback over a real store; closed with the test. */
export class ServerFixture {
  readonly harness: StoreHarness
  readonly store: Store
  readonly server: Server
  readonly url: string
  /** Reads everything, with a high rate limit. */
  readonly key: string
  /** Warnings and errors that the server logged. */
  readonly lines: string[]
  /** Added to the machine's clock. */
  shift: { ms: number }

  private constructor(given: Pick<ServerFixture, 'harness' | 'store' | 'server' | 'url' | 'key' | 'lines' | 'shift'>) {
    this.harness = given.harness
    this.store = given.store
    this.server = given.server
    this.url = given.url
    this.key = given.key
    this.lines = given.lines
    this.shift = given.shift
  }

  static async open(open: OpenHarness, options: Partial<ServerOptions> = {}): Promise<ServerFixture> {
    const harness = await open()
    const lines: string[] = []
    const shift = { ms: 0 }
    const note = (message: string, fields?: object): void => void lines.push(JSON.stringify({ message, ...fields }))
    const ports: Ports = {
      clock: { now: () => systemClock.now() + shift.ms, sleep: (ms, signal) => systemClock.sleep(ms, signal) },
      random: systemRandom,
      log: { debug: () => {}, info: note, warn: note, error: note },
    }
    const server = createServer({
      store: harness.store,
      ports,
      version: '0.0.0',
      connect: new ConnectFlow({
        ...checkConnectOptions({ publicUrl: 'https://app.example.com', providers: { kraken: {} } }),
        store: harness.store,
        ports,
        vendors: new VendorContexts(ports),
        onConnected: () => {},
      }),
      ...options,
    })
    const url = await server.listen(0)
    onTestFinished(async () => {
      await server.close()
      await harness.close()
    })
    const stand = new ServerFixture({
      harness,
      store: harness.store,
      server,
      url,
      lines,
      shift,
      key: await addKey(harness.store, ['changes:read', '*:read']),
    })
    return stand
  }

  async get(path: string, { key = this.key, ...init }: RequestInit & { key?: string | null } = {}): Promise<Answer> {
    const response = await fetch(`${this.url}${path}`, {
      ...init,
      headers: { ...(key !== null && { authorization: `Bearer ${key}` }), ...(init.headers as object) },
    })
    const text = await response.text()
    return {
      status: response.status,
      headers: response.headers,
      text,
      body:
        text !== '' && /json/.test(response.headers.get('content-type') ?? '')
          ? (JSON.parse(text) as Body)
          : ({} as Body),
    }
  }

  post(path: string, init: RequestInit & { key?: string | null } = {}): Promise<Answer> {
    return this.get(path, { method: 'POST', ...init })
  }

  driver(sync = 'delta'): Promise<SyncDriver> {
    return SyncDriver.acquire(this.store, { sync })
  }
}

// oxlint-disable-next-line typescript/no-explicit-any -- an answer may be anything; the assertions say what it is
export type Body = Record<string, any>

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly body: Body
}

export async function addKey(
  store: Store,
  scopes: readonly string[],
  {
    name = 'test',
    rateLimit = 1_000_000,
    endsAt = null,
  }: { name?: string; rateLimit?: number; endsAt?: number | null } = {},
): Promise<string> {
  const { text, key } = createApiKey({ name, scopes, rateLimit, createdAt: Date.now(), endsAt })
  await store.addApiKey(key)
  return text
}

/** Limits are counted per minute: at the start of a minute none ends during the test. */
export function toNextMinute(): number {
  return 60_000 - (Date.now() % 60_000)
}
