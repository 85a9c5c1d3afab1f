import { randomUUID } from 'node:crypto'
import { createServer as createHttpServer, STATUS_CODES, type RequestListener } from 'node:http'
import type { Socket } from 'node:net'
import compress from '@fastify/compress'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest, type HTTPMethods } from 'fastify'
import type { ConnectFlow } from '../connections/connect/connect-flow.ts'
import type { Ports, Store, StoreLocation } from '../contract/index.ts'
import type { ResourceTypes } from '../feed/resource-type.ts'
import type { SourceRuntime } from '../runner/call-source.ts'
import type { ScheduledDestination } from '../destinations/loop/destination-overview.ts'
import type { DeclaredSync } from '../runner/declared-sync.ts'
import type { RunnerCapacity } from '../runner/runner-options.ts'
import type { TenantInboundWebhooks } from '../webhooks/tenant-inbound-webhooks.ts'
import { systemResolveHost, type ResolveHost } from '../platform/resolve-host.ts'
import { createSender } from '../webhooks/send.ts'
import { allowsScope, databaseReadScope } from './api-key.ts'
import { Authenticator, type Caller } from './authenticator.ts'
import { connectRoutes } from './connect/routes.ts'
import { connectSessionRoutes } from './connect/session-routes.ts'
import { consoleConnectionRoutes } from './console/connection-routes.ts'
import { consoleRoutes } from './console/routes.ts'
import { RunningLimit } from './console/running-limit.ts'
import { StateSummaryCache } from './console/state-summaries.ts'
import { controlRoutes } from './control-routes.ts'
import { destinationRoutes } from './destination-routes.ts'
import { consumerRoutes } from './consumer-routes.ts'
import { Cors } from './cors.ts'
import { COMPRESS_MIN_BYTES } from './encoding.ts'
import { feedRoutes } from './feed-routes.ts'
import { sendCachedPage } from './send-cached-page.ts'
import { HttpError } from './http-error.ts'
import { isLocalRequest, isLoopback, passesCsrfCheck } from './loopback.ts'
import { metaRoutes } from './meta-routes.ts'
import { Metrics } from './metrics.ts'
import { serializeRequests } from './serialize-requests.ts'
import { PageCache } from './page-cache.ts'
import { rateLimitHeaders } from './rate-limiter.ts'
import { recordRequest, type Access, type ServerContext, type Route } from './route.ts'
import { objectSchema, type JsonSchema } from './schemas.ts'
import { CursorCiphers } from './cursor-ciphers.ts'
import { FeedHeadWatcher } from './feed-head-watcher.ts'
import { required } from '../values/required.ts'
import { toHttpError } from './to-http-error.ts'
import { CONSOLE_FOLDER, DOCS_FOLDER, serveStaticFolder } from './static-folder.ts'
import { connectionRoutes } from './connection-routes.ts'
import { webhookControlRoutes } from './webhook-control-routes.ts'
import { inboundWebhookRoutes } from './inbound-webhook-routes.ts'
import { createValidatorCompiler } from './validator-compiler.ts'

export interface ServerOptions {
  readonly store: Store
  readonly ports: Ports
  readonly version: string
  /** The syncs that the worker declares; syncs that only the store knows are shown too. */
  readonly syncs?: readonly DeclaredSync[]
  /** The destinations that the worker declares. */
  readonly destinations?: readonly ScheduledDestination[]
  /** Runtime for lookups of single records at the source; without it, lookups are disabled. */
  readonly sourceRuntime?: SourceRuntime
  /** JSON Schemas of the records by database. */
  readonly schemas?: Readonly<Record<string, JsonSchema>>
  /** Resource types by database; defaults to the singular of its name. */
  readonly resourceTypes?: ResourceTypes
  /** Connects accounts of users. */
  readonly connect?: ConnectFlow
  /** Runs confined statements on the store; see `confinedSelectOf`. Without it, the console offers no SQL. */
  readonly select?: StoreLocation['select'] | undefined
  /** Handles webhooks of vendors. */
  readonly inbound?: TenantInboundWebhooks
  /** Tenants that the worker runs for; defaults to the store's tenant. */
  readonly isServedTenant?: (tenant: string) => boolean
  /** Defaults to loopback. */
  readonly host?: string
  /** Origins whose pages may send requests with a key; `*` for all. None by default. */
  readonly corsOrigins?: readonly string[]
  /** Requires a key for control routes even on loopback: a local proxy may forward requests from anywhere. */
  readonly keysOnly?: boolean
  /** Time limit for receiving a request, and for a stream that is not read. */
  readonly timeoutMs?: number
  /** Registry for the other metrics served at /metrics. */
  readonly metrics?: Metrics
  readonly runnerCapacity?: () => RunnerCapacity
  /** Resolves hosts of webhooks at registration; defaults to the system resolver. */
  readonly resolve?: ResolveHost
}

export interface Server {
  readonly app: FastifyInstance
  /** Handles a request of another HTTP server. Call `app.ready()` before the first one. */
  readonly listener: RequestListener
  /** Returns the address. */
  listen(port: number): Promise<string>
  /** Ends streams and long polls, finishes requests in progress, and closes. */
  close(): Promise<void>
}

export const ROUTES: readonly Route[] = [
  ...metaRoutes,
  ...consumerRoutes,
  ...feedRoutes,
  ...controlRoutes,
  ...destinationRoutes,
  ...webhookControlRoutes,
  ...consoleConnectionRoutes,
  ...connectionRoutes,
  ...consoleRoutes,
  ...inboundWebhookRoutes,
  ...connectRoutes,
  ...connectSessionRoutes,
]

const HEADERS_MAX_BYTES = 16_384
/** Queries and exports at once. */
const RUNNING_MAX = 4
const BODY_MAX_BYTES = 65_536
/** A key has at most 1024 bytes, each percent-encoded as three characters. */
const PATH_PART_MAX = 3_200

export function createServer({
  store,
  ports,
  version,
  syncs = [],
  destinations = [],
  sourceRuntime,
  schemas = {},
  resourceTypes = {},
  inbound,
  connect,
  select,
  host = '127.0.0.1',
  corsOrigins = [],
  keysOnly = false,
  isServedTenant = (tenant) => tenant === store.tenant,
  timeoutMs = 30_000,
  metrics = new Metrics(),
  runnerCapacity,
  resolve = systemResolveHost,
}: ServerOptions): Server {
  const cors = new Cors(corsOrigins)
  const stop = new AbortController()
  const send = createSender({ resolve })
  const routes = store.isReplica === true ? ROUTES.filter(({ method }) => method === 'GET') : ROUTES
  const context: ServerContext = {
    ports,
    version,
    tenant: store.tenant,
    isServedTenant,
    syncs,
    destinations,
    sourceRuntime: sourceRuntime ?? null,
    schemas,
    resourceTypes,
    inbound: inbound ?? null,
    connect: connect ?? null,
    select: select ?? null,
    running: new RunningLimit(RUNNING_MAX),
    routes,
    send,
    resolve,
    timeoutMs,
    stopping: stop.signal,
    openStreams: new Map(),
    authenticator: new Authenticator(store, ports.clock, stop.signal),
    cursorCiphers: new CursorCiphers(ports.clock),
    feedHead: new FeedHeadWatcher(ports.clock, stop.signal),
    metrics,
    runnerCapacity: () => runnerCapacity?.() ?? null,
    stateSummaries: new StateSummaryCache(),
    pageCache: new PageCache(),
  }
  const callers: CallerByRequest = new WeakMap()
  const nextId = createRequestIds()
  const listener = serializeRequests((request, response) => {
    if (!sendCachedPage(context, request, response, nextId)) app.routing(request, response)
  })
  const app = fastify({
    serverFactory: () =>
      createHttpServer(
        {
          maxHeaderSize: HEADERS_MAX_BYTES,
          headersTimeout: timeoutMs,
          requestTimeout: timeoutMs,
          connectionsCheckingInterval: Math.min(timeoutMs, 5_000),
        },
        listener,
      ),
    logger: false,
    trustProxy: false,
    bodyLimit: BODY_MAX_BYTES,
    routerOptions: { maxParamLength: PATH_PART_MAX },
    genReqId: nextId,
    forceCloseConnections: true,
    return503OnClosing: false,
    frameworkErrors: (error, request, reply) => void sendError(toHttpError(error), request, reply as FastifyReply),
    clientErrorHandler: handleClientError,
  })
  app.setValidatorCompiler(createValidatorCompiler())
  // Callback hooks: a promise per hook would cost as much as the response.
  app.addHook('onRequest', (request, reply, next) => {
    void reply
      .header('x-request-id', request.id)
      .header('cache-control', 'no-store')
      .header('x-content-type-options', 'nosniff')
      .headers(cors.headersFor(request.headers))
    const preflight = cors.preflightFor(request.method, request.headers)
    if (preflight === null) next()
    else void reply.code(204).headers(preflight).send()
  })
  app.addHook('onResponse', (request, reply, next) => {
    recordRequest(context, {
      requestId: request.id,
      tenant: callers.get(request)?.store.tenant,
      method: request.method,
      route: request.routeOptions.url ?? 'none',
      status: reply.statusCode,
      ms: reply.elapsedTime,
    })
    next()
  })
  app.setErrorHandler((thrown, request, reply) => {
    const error = toHttpError(thrown)
    if (error.code === 'INTERNAL_ERROR')
      ports.log.error('request failed', {
        requestId: request.id,
        tenant: callers.get(request)?.store.tenant,
        route: request.routeOptions.url,
        reason: thrown instanceof Error ? thrown.message : String(thrown),
      })
    return sendError(error, request, reply)
  })
  app.setNotFoundHandler((request, reply) =>
    sendError(new HttpError('NOT_FOUND', 'Not found. /openapi.json lists the available paths.'), request, reply),
  )
  void app.register(compress, {
    global: false,
    threshold: COMPRESS_MIN_BYTES,
    encodings: ['br', 'gzip', 'deflate'],
    brotliOptions: { params: { 1: 4 } },
    zlibOptions: { level: 4 },
  })
  // The routes use decorators of the plugin.
  app.after(() => {
    for (const route of routes) registerRoute(app, route, context, callers, isLoopback(host) && !keysOnly)
    rejectOtherMethods(app, routes)
    app.get('/', (_request, reply) => void reply.redirect('/console/'))
    serveStaticFolder(app, CONSOLE_FOLDER)
    serveStaticFolder(app, DOCS_FOLDER)
  })
  return {
    app,
    listener,
    listen: (port) => app.listen({ host, port }),
    async close() {
      stop.abort(new Error('the server is stopping'))
      await app.close()
      await send.close()
    },
  }
}

/** Authenticated callers. */
type CallerByRequest = WeakMap<FastifyRequest, Caller>

function registerRoute(
  app: FastifyInstance,
  route: Route,
  context: ServerContext,
  callers: CallerByRequest,
  isLoopbackOnly: boolean,
): void {
  const { rawBytesMax } = route
  if (rawBytesMax === undefined) return addRoute(app, route, context, callers, isLoopbackOnly)
  // Content type parsers apply to a whole scope.
  void app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser(
      '*',
      { parseAs: 'buffer', bodyLimit: rawBytesMax },
      async (_request: FastifyRequest, body: Buffer) => body,
    )
    addRoute(scope, route, context, callers, isLoopbackOnly)
  })
}

function addRoute(
  app: FastifyInstance,
  route: Route,
  context: ServerContext,
  callers: CallerByRequest,
  isLoopbackOnly: boolean,
): void {
  app.route({
    method: route.method,
    url: route.path,
    ...(route.rawBytesMax !== undefined && { bodyLimit: route.rawBytesMax }),
    schema: {
      ...(route.params && { params: route.params }),
      ...querySchema(route),
      ...(route.body && { body: route.body }),
    },
    preValidation: (request, _reply, next) => {
      if (route.body !== undefined) request.body ??= {}
      // Cursors are checked when they are decoded, with errors of their own.
      const { cursor: _, ...query } = (request.query ?? {}) as Record<string, unknown>
      const isInvalid = route.rawBytesMax === undefined && [request.params, query, request.body].some(hasNul)
      next(
        isInvalid
          ? new HttpError('INVALID_REQUEST', 'The request contains a NUL character.', {
              details: { reason: 'parameter_invalid' },
            })
          : undefined,
      )
    },
    // Runs before parsing: an unauthorized caller learns nothing about valid parameters.
    onRequest: (request, reply, next) => {
      const enter = (caller: Caller): void => {
        if (caller.rateLimit !== null) void reply.headers(rateLimitHeaders(caller.rateLimit))
        callers.set(request, caller)
        next()
      }
      const refuse = (error: Error): void => next(error)
      try {
        const authorized = authorize(route.access, request, context, isLoopbackOnly)
        if (authorized instanceof Promise) authorized.then(enter).catch(refuse)
        else enter(authorized)
      } catch (error) {
        refuse(error as Error)
      }
    },
    handler: (request, reply) => {
      const handled = route.handle({
        request,
        reply,
        context,
        caller: required(callers.get(request), 'the caller of the request'),
        params: (request.params ?? {}) as Record<string, string>,
        query: (request.query ?? {}) as Record<string, string>,
      })
      // A synchronous response needs no promise.
      return handled instanceof Promise ? handled : undefined
    },
  })
}

/**
 * Unknown parameters are rejected, because a misspelt one would silently change the result. Webhooks of vendors add
 * parameters of their own, and lists accept calls of older clients (A29).
 */
function querySchema({ id, query = objectSchema({}, []), rawBytesMax }: Route): { querystring?: JsonSchema } {
  if (rawBytesMax !== undefined) return {}
  return { querystring: id === 'listRows' ? query : { ...query, additionalProperties: false } }
}

/** No store accepts NUL, and PostgreSQL fails on it. */
function hasNul(value: unknown): boolean {
  if (typeof value === 'string') return value.includes('\0')
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.entries(value).some(([name, field]) => name.includes('\0') || hasNul(field))
  )
}

function authorize(
  access: Access,
  request: FastifyRequest,
  context: ServerContext,
  isLoopbackOnly: boolean,
): Caller | Promise<Caller> {
  const key = extractKey(request)
  if (access.kind === 'public') return context.authenticator.localCaller()
  if (access.kind === 'open' && key === undefined)
    return isLoopbackOnly && isLocalRequest(request.headers)
      ? context.authenticator.localCaller()
      : context.authenticator.anonymousCaller()
  if (access.kind === 'control' && isLoopbackOnly && key === undefined) {
    if (!isLocalRequest(request.headers) || !passesCsrfCheck(request))
      throw new HttpError(
        'FORBIDDEN',
        'Requests without a key are accepted from this machine only, not from web pages of other origins.',
      )
    return context.authenticator.localCaller()
  }
  const caller = context.authenticator.identify(key, request.socket.remoteAddress ?? '')
  return caller instanceof Promise
    ? caller.then((found) => checkScope(access, request, found))
    : checkScope(access, request, caller)
}

function checkScope(access: Exclude<Access, { kind: 'public' }>, request: FastifyRequest, caller: Caller): Caller {
  if (access.kind === 'key' || access.kind === 'open') return caller
  const scope =
    access.scope === ':database:read'
      ? databaseReadScope((request.params as { database: string }).database)
      : access.scope
  if (!allowsScope(caller.scopes, scope)) {
    throw new HttpError(
      'FORBIDDEN',
      `The key lacks the scope \`${scope.slice(0, 80)}\`.`,
      caller.rateLimit === null ? {} : { headers: rateLimitHeaders(caller.rateLimit) },
    )
  }
  return caller
}

/** Unique and cheap: process id and counter. */
function createRequestIds(): () => string {
  const processId = randomUUID()
  let count = 0
  return () => `${processId}-${++count}`
}

function extractKey({ headers }: FastifyRequest): string | undefined {
  const bearer = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1]
  const token = headers['x-agents-token']
  // An Authorization header of another scheme is rejected as an invalid key, not ignored.
  return bearer ?? headers.authorization ?? (typeof token === 'string' ? token : token?.[0])
}

function sendError(error: HttpError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return reply
    .code(error.status)
    .headers({ 'x-request-id': request.id, 'cache-control': 'no-store', ...error.headers })
    .type('application/json; charset=utf-8')
    .send(error.body(request.id))
}

function rejectOtherMethods(app: FastifyInstance, served: readonly Route[]): void {
  const allowed = new Map<string, string[]>(ROUTES.map(({ path }) => [path, []]))
  for (const { path, method } of served) allowed.get(path)?.push(...(method === 'GET' ? ['GET', 'HEAD'] : [method]))
  const replicaHint =
    served === ROUTES ? '' : ' The store is a read-only replica. Send writes to a server on the primary.'
  for (const [url, methods] of allowed) {
    const rejected = (['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as HTTPMethods[]).filter(
      (method) => !methods.includes(method as string),
    )
    app.route({
      method: rejected,
      url,
      exposeHeadRoute: false,
      onRequest: async () => {
        throw new HttpError(
          'METHOD_NOT_ALLOWED',
          `This path supports ${methods.join(' and ') || 'no method'}.${replicaHint}`,
          { headers: { allow: methods.join(', ') } },
        )
      },
      handler: async () => {},
    })
  }
}

/** Responds to malformed or incomplete requests on the socket, in the same error shape. */
function handleClientError({ code = '' }: Error & { code?: string }, socket: Socket): void {
  if (!socket.writable) return
  const error = SOCKET_ERRORS[code] ?? new HttpError('INVALID_REQUEST', 'Not an HTTP request.')
  const id = randomUUID()
  const body = error.body(id)
  socket.end(
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: ${Buffer.byteLength(body)}\r\nx-request-id: ${id}\r\ncache-control: no-store\r\nconnection: close\r\n\r\n${body}`,
  )
}

const SOCKET_ERRORS: Readonly<Record<string, HttpError>> = {
  HPE_HEADER_OVERFLOW: new HttpError('HEADERS_TOO_LARGE', 'The request line or the headers are too long.'),
  ERR_HTTP_REQUEST_TIMEOUT: new HttpError('REQUEST_TIMEOUT', 'The request was not received in time.'),
}
