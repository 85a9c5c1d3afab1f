import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ConnectFlow } from '../connections/connect/connect-flow.ts'
import type { Log, Ports, StoreLocation } from '../contract/index.ts'
import { required } from '../values/required.ts'
import { createChildLog } from '../telemetry/child-log.ts'
import type { SourceRuntime } from '../runner/call-source.ts'
import type { ScheduledDestination } from '../destinations/loop/destination-overview.ts'
import type { DeclaredSync } from '../runner/declared-sync.ts'
import type { RunnerCapacity } from '../runner/runner-options.ts'
import type { TenantInboundWebhooks } from '../webhooks/tenant-inbound-webhooks.ts'
import type { ResolveHost } from '../platform/resolve-host.ts'
import type { WebhookSender } from '../webhooks/send.ts'
import type { Caller, Authenticator } from './authenticator.ts'
import type { RunningLimit } from './console/running-limit.ts'
import type { StateSummaryCache } from './console/state-summaries.ts'
import { COMPRESS_MIN_BYTES } from './encoding.ts'
import type { Metrics } from './metrics.ts'
import type { PageCache } from './page-cache.ts'
import type { JsonSchema } from './schemas.ts'
import type { ResourceTypes } from '../feed/resource-type.ts'
import type { CursorCiphers } from './cursor-ciphers.ts'
import type { FeedHeadWatcher } from './feed-head-watcher.ts'

/** An HTTP route with its schemas, access rule and documentation. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** With `:name` for parameters. */
  readonly path: string
  readonly id: string
  readonly summary: string
  readonly access: Access
  readonly params?: JsonSchema
  readonly query?: JsonSchema
  /** Schema of the JSON body; a body without required fields may be omitted. */
  readonly body?: JsonSchema
  /** JSON unless `mediaType` is set. */
  readonly response: JsonSchema
  readonly mediaType?: string
  /** The body is read as raw bytes, up to this limit, whatever its content type. */
  readonly rawBytesMax?: number
  handle(routeRequest: RouteRequest): unknown
}

/**
 * public: no authentication. open: the same, but a key shows more. key: any valid key. A scope may contain a path
 * parameter: `:database:read`. Control routes need no key on loopback.
 */
export type Access =
  | { readonly kind: 'public' }
  | { readonly kind: 'open' }
  | { readonly kind: 'key' }
  | { readonly kind: 'scope'; readonly scope: string }
  | { readonly kind: 'control'; readonly scope: string }

export interface RouteRequest {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly caller: Caller
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string | number | undefined>>
  readonly context: ServerContext
}

export interface ServerContext {
  readonly ports: Ports
  readonly version: string
  /** The tenant of local callers without a key, and of the worker's credentials. */
  readonly tenant: string
  /** Whether the worker runs for this tenant. */
  readonly isServedTenant: (tenant: string) => boolean
  readonly syncs: readonly DeclaredSync[]
  readonly destinations: readonly ScheduledDestination[]
  /** Runtime for lookups of single records at the source; null if lookups are disabled. */
  readonly sourceRuntime: SourceRuntime | null
  /** Declared schemas by database. */
  readonly schemas: Readonly<Record<string, JsonSchema>>
  readonly resourceTypes: ResourceTypes
  /** Null if the worker declares no webhooks. */
  readonly inbound: TenantInboundWebhooks | null
  /** Null if the connect flow is not configured. */
  readonly connect: ConnectFlow | null
  /** Runs a statement of a person; null if the store cannot confine it. See SelectOptions.only. */
  readonly select: StoreLocation['select'] | null
  /** Queries and exports. */
  readonly running: RunningLimit
  /** Sends a test message to a webhook. */
  readonly send: WebhookSender
  /** Resolves the host of a webhook URL at registration. */
  readonly resolve: ResolveHost
  readonly authenticator: Authenticator
  readonly cursorCiphers: CursorCiphers
  readonly feedHead: FeedHeadWatcher
  readonly pageCache: PageCache
  readonly metrics: Metrics
  /** Null if no runner is in this process. */
  readonly runnerCapacity: () => RunnerCapacity | null
  readonly stateSummaries: StateSummaryCache
  /** A stream that is not read for this long is closed. */
  readonly timeoutMs: number
  /** Number of open streams by key. */
  readonly openStreams: Map<string, number>
  readonly stopping: AbortSignal
  readonly routes: readonly Route[]
}

/** Adds tenant and request id. */
export function createRequestLog({
  context,
  request,
  caller,
}: Pick<RouteRequest, 'context' | 'request' | 'caller'>): Log {
  return createChildLog(context.ports.log, { tenant: caller.store.tenant, requestId: request.id })
}

/** A parameter of the route's path, which the router always sets. */
export function pathParam({ params }: Pick<RouteRequest, 'params'>, name: string): string {
  return required(params[name], `the path parameter ${name}`)
}

export interface RequestRecord {
  readonly requestId: string
  /** Undefined if authentication failed. */
  readonly tenant: string | undefined
  readonly method: string
  /** The route pattern, because the path contains record keys. */
  readonly route: string
  readonly status: number
  readonly ms: number
}

export function recordRequest({ metrics, ports }: ServerContext, request: RequestRecord): void {
  metrics.recordRequest(request.route, request.status, request.ms / 1_000)
  ports.log.debug('request', { ...request, ms: Math.round(request.ms) })
}

export function sendData(reply: FastifyReply, data: unknown): FastifyReply {
  return sendJson(reply, JSON.stringify({ data }))
}

/** Sends JSON text, compressed if accepted and large enough. */
export function sendJson(reply: FastifyReply, text: string | Buffer): FastifyReply {
  void reply.type('application/json; charset=utf-8')
  const isCompressed = text.length >= COMPRESS_MIN_BYTES && reply.request.headers['accept-encoding'] !== undefined
  if (!isCompressed) return reply.send(text)
  reply.compress(text)
  return reply
}
