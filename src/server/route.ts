import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Log, Ports } from '../contract/index.ts'
import { createChildLog } from '../telemetry/child-log.ts'
import type { SourceRuntime } from '../runner/call-source.ts'
import type { DeclaredSync } from '../runner/declared-sync.ts'
import type { RunnerCapacity } from '../runner/runner-options.ts'
import type { TenantInboundWebhooks } from '../webhooks/tenant-inbound-webhooks.ts'
import type { ResolveHost } from '../platform/resolve-host.ts'
import type { WebhookSender } from '../webhooks/send.ts'
import type { Caller, Authenticator } from './authenticator.ts'
import type { StateSummaryCache } from './console/state-summaries.ts'
import { COMPRESS_MIN_BYTES } from './encoding.ts'
import type { Metrics } from './metrics.ts'
import type { PageCache } from './page-cache.ts'
import type { JsonSchema } from './schemas.ts'
import type { ResourceTypes } from '../feed/resource-type.ts'
import type { CursorCiphers } from './cursor-ciphers.ts'
import type { FeedHeadWatcher } from './feed-head-watcher.ts'

/** One address, with all that is checked and told of it. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** With `:name` for what varies. */
  readonly path: string
  readonly id: string
  readonly summary: string
  readonly access: Access
  readonly params?: JsonSchema
  readonly query?: JsonSchema
  /** Of a JSON body; one that requires nothing may be left out whole. */
  readonly body?: JsonSchema
  /** By media type; JSON unless said otherwise. */
  readonly response: JsonSchema
  readonly mediaType?: string
  /** The body is taken as bytes, up to this many, whatever it calls itself. */
  readonly rawBytesMax?: number
  handle(ask: RouteRequest): unknown
}

/** public: nobody is asked. open: the same, but who has a key is shown more. key: any valid key. A scope may name a path part: `:database:read`. Control is open to this machine when the server listens to nothing else. */
export type Access = { readonly kind: 'public' } | { readonly kind: 'open' } | { readonly kind: 'key' } | { readonly kind: 'scope'; readonly scope: string } | { readonly kind: 'control'; readonly scope: string }

export interface RouteRequest {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly caller: Caller
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string | number | undefined>>
  readonly context: ServerContext
}

/** What the routes share. */
export interface ServerContext {
  readonly ports: Ports
  readonly version: string
  /** Who is served without a key on this machine, and whose secrets are at hand. */
  readonly tenant: string
  /** Whether the worker runs for this tenant. */
  readonly isServedTenant: (tenant: string) => boolean
  readonly syncs: readonly DeclaredSync[]
  /** What its sources are asked with for one record; null where they are not. */
  readonly sourceRuntime: SourceRuntime | null
  /** Of the records of its databases, where they are declared. */
  readonly schemas: Readonly<Record<string, JsonSchema>>
  readonly resourceTypes: ResourceTypes
  /** Null when the worker takes no webhooks. */
  readonly inbound: TenantInboundWebhooks | null
  /** Sends a message to a webhook, for a try. */
  readonly send: WebhookSender
  /** Resolves the name of a webhook's URL when it is registered. */
  readonly resolve: ResolveHost
  readonly authenticator: Authenticator
  readonly cursorCiphers: CursorCiphers
  readonly feedHead: FeedHeadWatcher
  readonly pageCache: PageCache
  readonly metrics: Metrics
  /** Of the runner in this process; null when there is none. */
  readonly runnerCapacity: () => RunnerCapacity | null
  readonly stateSummaries: StateSummaryCache
  /** How long a stream may go unread. */
  readonly timeoutMs: number
  /** How many streams each key has open. */
  readonly openStreams: Map<string, number>
  readonly stopping: AbortSignal
  readonly routes: readonly Route[]
}

/** Says which request, and whose. */
export function createRequestLog({ context: hall, request, caller }: Pick<RouteRequest, 'context' | 'request' | 'caller'>): Log {
  return createChildLog(hall.ports.log, { tenant: caller.store.tenant, requestId: request.id })
}

export interface RequestRecord {
  readonly requestId: string
  /** Undefined when nobody was let in. */
  readonly tenant: string | undefined
  readonly method: string
  /** By its pattern: the path names records. */
  readonly route: string
  readonly status: number
  readonly ms: number
}

export function recordRequest({ metrics, ports }: ServerContext, answered: RequestRecord): void {
  metrics.recordRequest(answered.route, answered.status, answered.ms / 1_000)
  ports.log.debug('answered', { ...answered, ms: Math.round(answered.ms) })
}

export function sendData(reply: FastifyReply, data: unknown): FastifyReply {
  return sendJson(reply, JSON.stringify({ data }))
}

/** Text that is JSON already; packed where that is wanted and worth it. */
export function sendJson(reply: FastifyReply, text: string | Buffer): FastifyReply {
  void reply.type('application/json; charset=utf-8')
  const packs = text.length >= COMPRESS_MIN_BYTES && reply.request.headers['accept-encoding'] !== undefined
  if (!packs) return reply.send(text)
  reply.compress(text)
  return reply
}
