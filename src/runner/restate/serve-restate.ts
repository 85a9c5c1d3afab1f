import { once } from 'node:events'
import { createServer, type Http2Server, type ServerHttp2Session } from 'node:http2'
import type { AddressInfo } from 'node:net'
import type { LoggerTransport } from '@restatedev/restate-sdk'
import { SyncError } from '../../contract/index.ts'
import { classifyError } from '../../engine/classify-error.ts'
import { guardStrayRejections } from '../../platform/stray-rejections.ts'
import type { ConnectionFacts } from '../due.ts'
import type { Job } from '../job.ts'
import { JobSet } from '../job-set.ts'
import type { RunnerEvent, RunnerOptions } from '../runner-options.ts'
import { CONTINUOUS_PAUSE_MS } from '../status.ts'
import { StoreClock } from '../store-clock.ts'
import { loadSdk } from './sdk.ts'
import { objectKey, serviceName, createSyncObject } from './sync-object.ts'
import { QUEUE_WAIT_MS, TurnRunner, WAIT_MAX_MS } from './turn-runner.ts'
import { Waker } from './waker.ts'

export interface RestateOptions extends Omit<RunnerOptions, 'pollBatchMax'> {
  /** Ingress address, such as http://127.0.0.1:8080. */
  readonly ingress: string
  /** Listen address for calls from Restate; defaults to loopback and a free port. */
  readonly host?: string
  readonly port?: number
  /**
   * Public keys (publickeyv1_…) of the Restate servers whose calls are accepted. Without keys, every caller that
   * reaches the address is accepted.
   */
  readonly identityKeys?: readonly string[]
  /** Maximum time a cycle runs before it yields to other syncs; defaults to five minutes. */
  readonly sliceMs?: number
}

export interface RestateService {
  /** The address to register with Restate, unless a load balancer is in front of it. */
  readonly url: string
  /** Also runs the syncs for another tenant from now on. */
  addTenant(tenant: string): void
  /** Runs the syncs of a tenant that read with one of these connections, and no other that names a connection. */
  setConnections(tenant: string, connections: readonly ConnectionFacts[]): void
  /** Starts no new cycle and stops running ones between two pages. Resolves when all have ended, or after `graceMs`. */
  close(options?: { readonly graceMs?: number }): Promise<void>
}

/**
 * Runs syncs when Restate calls, and wakes Restate objects when other processes change the registry. Any number of
 * processes can serve at once.
 */
export async function serveRestate(options: RestateOptions): Promise<RestateService> {
  const {
    store,
    syncs,
    ports,
    ingress,
    tenants = [store.tenant],
    concurrency = 4,
    pollMs = 1_000,
    pauseMs = CONTINUOUS_PAUSE_MS,
    sliceMs = SLICE_DEFAULT_MS,
    host = '127.0.0.1',
    port = 0,
    identityKeys = [],
  } = options
  const sdk = await loadSdk()
  const clock = new StoreClock(ports.clock)
  const jobs = new JobSet({ store, syncs, random: ports.random })
  const byKey = new Map<string, Job>()
  const toKey = ({ ref }: Job): string => `${ref.worker} ${objectKey(ref)}`
  const register = (added: readonly Job[]): readonly Job[] => {
    for (const job of added) byKey.set(toKey(job), job)
    return added
  }
  for (const tenant of tenants) register(jobs.addTenant(tenant))
  const emit = (event: RunnerEvent): void => {
    try {
      options.onEvent?.(event)
    } catch (thrown) {
      ports.log.error('an event listener threw', { event: event.kind, reason: classifyError(thrown).message })
    }
  }
  const turns = new TurnRunner({ ...options, clock, concurrency, pollMs, pauseMs, sliceMs, onEvent: emit })
  const services = [...new Set(syncs.map(({ plan }) => plan.worker))].map((worker) =>
    createSyncObject({
      sdk,
      worker,
      findJob: (key) => byKey.get(`${worker} ${key}`),
      turns,
      clock,
      pauseMs,
      turnMaxMs: computeTurnMaxMs(options, sliceMs),
    }),
  )
  const isPublic = !LOOPBACK.includes(host)
  const logger: LoggerTransport = ({ level, replaying }, message: unknown) => {
    const name: string = level
    // On loopback the SDK's warning about unsigned requests is noise.
    if (!isPublic && String(message).includes('request signatures')) return
    if (!replaying && (name === 'error' || name === 'warn'))
      ports.log[name]('message of the Restate SDK', { reason: String(message) })
  }
  const handler = withKeyError(identityKeys, () =>
    sdk.createEndpointHandler({ services, identityKeys: [...identityKeys], logger }),
  )
  // No limit on concurrent calls: they queue here, where tenants get fair shares. Restate's own queue does not know
  // tenants.
  const server = createServer(handler)
  const sessions = new Set<ServerHttp2Session>()
  server.on('session', (session) => {
    sessions.add(session)
    session.once('close', () => sessions.delete(session))
  })
  await listen(server, port, host)

  const guard = guardStrayRejections((message) => {
    ports.log.error('unhandled promise rejection in a connector', { reason: message })
    emit({ kind: 'stray', message })
  })
  const waker = new Waker([...byKey.values()], {
    clock,
    ports,
    pollMs,
    pauseMs,
    isDead: (holder) => options.isDead?.(holder) === true,
    wake: ({ ref }, at) =>
      postJson(
        `${ingress.replace(/\/+$/, '')}/${serviceName(ref.worker)}/${encodeURIComponent(objectKey(ref))}/wake/send`,
        { at },
      ),
    onStoreFailure: (failure) => {
      const { message, ...fields } = failure
      ports.log.warn('the store is unreachable', { ...fields, reason: message })
      emit({ kind: 'store', ...failure })
    },
  })
  await waker.start()
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${(server.address() as AddressInfo).port}`,
    addTenant(tenant) {
      if (!jobs.has(tenant)) waker.add(register(jobs.addTenant(tenant)))
    },
    setConnections(tenant, connections) {
      const { added, removed, changed } = jobs.setConnections(tenant, connections)
      for (const job of removed) {
        byKey.delete(toKey(job))
        waker.remove(job)
      }
      for (const job of changed) waker.updateDue(job)
      if (added.length > 0) waker.add(register(added))
    },
    async close({ graceMs = 10_000 } = {}) {
      const closed = new Promise((resolve) => server.close(resolve))
      // Calls in progress can still send their result to Restate.
      for (const session of sessions) session.close()
      const graceOver = new AbortController()
      await Promise.race([
        Promise.all([waker.stop(), turns.stop(), closed]),
        ports.clock.sleep(graceMs, graceOver.signal).catch(() => {}),
      ])
      graceOver.abort(new Error('all cycles have ended'))
      for (const session of sessions) session.destroy()
      guard.remove()
    },
  }
}

function withKeyError<T>(keys: readonly string[], act: () => T): T {
  try {
    return act()
  } catch (cause) {
    if (keys.length === 0) throw cause
    throw new SyncError(
      'ARGUMENT_INVALID',
      `A public key of Restate is invalid (${String(cause)}). restate-server logs its key when it starts: publickeyv1_…`,
      { cause },
    )
  }
}

const LOOPBACK: readonly string[] = ['127.0.0.1', '::1', 'localhost']
const SLICE_DEFAULT_MS = 5 * 60_000
const CALL_TIMEOUT_MS = 10_000

/** Queue wait, one slice, and its last page with all retries: a turn sends nothing to Restate before it ends. */
function computeTurnMaxMs({ syncs }: RestateOptions, sliceMs: number): number {
  const pages = syncs.map(({ plan: { limits } }) => (limits.retriesMax + 1) * (limits.deadlineMs + WAIT_MAX_MS))
  return QUEUE_WAIT_MS + sliceMs + Math.max(0, ...pages) + 60_000
}

async function postJson(url: string, body: unknown): Promise<void> {
  let response: Response
  let text: string
  try {
    response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
    })
    text = await response.text()
  } catch (cause) {
    throw new SyncError('RESTATE_UNAVAILABLE', `The Restate ingress at ${new URL(url).origin} does not respond.`, {
      cause,
    })
  }
  if (!response.ok)
    throw new SyncError(
      response.status === 404 ? 'RESTATE_REFUSED' : 'RESTATE_UNAVAILABLE',
      `Restate responded with ${response.status}: ${text.slice(0, 200)}`,
    )
}

async function listen(server: Http2Server, port: number, host: string): Promise<void> {
  try {
    server.listen(port, host)
    await once(server, 'listening')
  } catch (cause) {
    throw new SyncError(
      'PORT_TAKEN',
      `The service for Restate cannot listen on ${host}:${port} (${(cause as NodeJS.ErrnoException).code ?? 'unknown error'}).`,
      { cause },
    )
  }
}
