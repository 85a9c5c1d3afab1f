import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach } from 'vitest'
import type { Clock, SyncContext } from '../../../src/contract/index.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { createFetch, type FetchOptions } from '../../../src/platform/fetch.ts'
import { createSecrets } from '../../../src/platform/secrets.ts'
import { NO_PARTITIONS } from '../../../src/values/partition-overlay.ts'

export type Listener = (request: IncomingMessage & { url: string }, response: ServerResponse) => unknown

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

/** A real server on loopback, closed after the test. */
export async function serve(listener: Listener): Promise<string> {
  const server = createServer(
    (request, response) => void listener(request as IncomingMessage & { url: string }, response),
  ).listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

export function json(
  response: ServerResponse,
  body: unknown,
  { status = 200, headers = {} }: { status?: number; headers?: Record<string, string> } = {},
): void {
  response
    .writeHead(status, { 'content-type': 'application/json', ...headers })
    .end(typeof body === 'string' ? body : JSON.stringify(body))
}

export interface ContextOptions {
  secrets?: Record<string, string>
  fetch?: SyncContext['fetch']
  limits?: FetchOptions
  clock?: Clock
  signal?: AbortSignal
  cycle?: Partial<SyncContext['cycle']>
}

/** The context that the engine gives a source, by default over the real transport. */
export function contextOf(options: ContextOptions = {}): SyncContext {
  const { clock = systemClock, signal = new AbortController().signal } = options
  const silent = (): void => {}
  return {
    fetch: options.fetch ?? createFetch({ headersTimeoutMs: 10_000, bodyIdleMs: 10_000, ...options.limits }),
    clock,
    random: { next: () => 0.5 },
    signal,
    log: { debug: silent, info: silent, warn: silent, error: silent },
    pacer: { wait: async () => {} },
    secrets: createSecrets(options.secrets ?? {}),
    partitions: NO_PARTITIONS,
    cycle: { id: 1, mode: 'incremental', startedAt: clock.now(), page: 1, ...options.cycle },
  }
}

/** All text of an error that may appear in a log or on a screen. */
export async function failureOf(promise: Promise<unknown>): Promise<Error & { code?: string; retryAfterMs?: number }> {
  try {
    await promise
  } catch (error) {
    return error as Error
  }
  throw new Error('it did not fail')
}
