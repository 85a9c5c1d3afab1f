import { isCutOff } from '../kit/cut-off.ts'
import { randomText } from '../kit/ids.ts'
import { jsonResponse } from '../kit/json-response.ts'
import { RateWindow, type RateLimit } from '../kit/rate-window.ts'
import type { Fields, SimulatorPorts } from '../kit/simulator.ts'
import { countLeading, type RecordView } from '../kit/sorted-view.ts'
import type { RecordVersion } from '../kit/versioned-records.ts'
import { VendorSimulator, type ApiCall, type VendorOptions } from '../kit/vendor-simulator.ts'
import { parseListRequest, compareNewestFirst, paginate, type ListSortKey } from './list.ts'
import { RESOURCES, findResource, type StripeResource } from './resources.ts'
import { StripeError } from './stripe-error.ts'
import { required } from '../kit/required.ts'

/** Options of `StripeSimulator`. */
export interface StripeOptions extends VendorOptions {
  /** Test mode allows 25 requests a second. */
  readonly rateLimit?: RateLimit
  readonly eventRetentionMs?: number
  readonly apiVersion?: string
}

/** Network conditions between the account and its reader. May be replaced at any time. */
export interface StripeConditions {
  /** The current `Date` header, in milliseconds; null for a response without one. */
  readonly dateMs?: (nowMs: number) => number | null
  /** Answers a request from a cache by its URL, if the URL was requested before. */
  readonly isCached?: (request: Request) => boolean
  /** Latency of a response. */
  readonly latencyMs?: number
}

type RenderedObject = Record<string, unknown> & ListSortKey

const EVENT = 'event'
const NESTED_INLINE = 10
const EXPAND_DEPTH_MAX = 4
const PAGING = ['limit', 'starting_after', 'ending_before']

const OBJECTS: RecordView = {
  reads: 'primary',
  includes: ({ deleted }) => !deleted,
  order: (a, b) => compareNewestFirst(sortKeyOf(a), sortKeyOf(b)),
}
const EVENTS: RecordView = { ...OBJECTS, reads: 'index' }

/**
 * The API of one account. Lists are consistent; the event log is not: an event may become visible seconds after its
 * timestamp, below events that were already listed.
 */
export class StripeSimulator extends VendorSimulator {
  readonly #retentionMs: number
  readonly #apiVersion: string
  readonly #window: RateWindow
  readonly #answers = new Map<string, { readonly status: number; readonly headers: Headers; readonly text: string }>()
  conditions: StripeConditions = {}

  constructor(ports: SimulatorPorts, options: StripeOptions = {}) {
    super(ports, options)
    this.#retentionMs = options.eventRetentionMs ?? 30 * 86_400_000
    this.#apiVersion = options.apiVersion ?? '2025-12-15.clover'
    this.#window = new RateWindow(ports.clock, options.rateLimit)
  }

  override async handle(request: Request): Promise<Response> {
    const { dateMs, isCached, latencyMs = 0 } = this.conditions
    if (latencyMs > 0) await this.clock.sleep(latencyMs, request.signal)
    const answer = this.#answers.get(request.url)
    const response =
      answer !== undefined && isCached?.(request) === true ? this.#replay(request, answer) : await super.handle(request)
    if (response.ok && isCached !== undefined && !isCutOff(response)) {
      const { status, headers } = response
      this.#answers.set(request.url, { status, headers: new Headers(headers), text: await response.clone().text() })
    }
    if (dateMs === undefined) return response
    const stamp = dateMs(this.clock.now())
    if (stamp === null) response.headers.delete('date')
    else response.headers.set('date', new Date(stamp).toUTCString())
    return response
  }

  #replay(request: Request, { status, headers, text }: { status: number; headers: Headers; text: string }): Response {
    this.requests.add(request, '', this.clock.now()).status = status
    return new Response(text, { status, headers })
  }

  /** Changes every record of a type this many times, all within the current second. */
  updateAll(type: string, times: number, fields: (id: string, round: number) => Fields): void {
    const ids = this.records.current(type).map(({ id }) => id)
    for (let round = 1; round <= times; round++) for (const id of ids) this.update(type, id, fields(id, round))
  }

  /** The events visible to a reader that misses nothing, newest first. */
  events(): Fields[] {
    return this.records
      .current(EVENT)
      .map((version) => this.render(version) as RenderedObject)
      .toSorted(compareNewestFirst)
  }

  override remove(type: string, id: string): void {
    const { isUndeletable: permanent, endStatus: endsAs } = findResource(type) ?? {}
    if (permanent === true) throw new Error(`Stripe cannot delete a ${type}.`)
    if (endsAs === undefined) return super.remove(type, id)
    const before = this.records.find(type, id)
    this.onWrite('deleted', this.records.update(type, id, { status: endsAs }), before)
  }

  /** Truncates its event log as well. */
  override prune(beforeMs: number): void {
    this.records.prune(beforeMs, ({ type, deleted }) => deleted || type === EVENT)
    this.requests.clear()
  }

  protected newId(type: string): string {
    const resource = findResource(type)
    if (resource === undefined)
      throw new Error(`Stripe has no ${type}. It has ${RESOURCES.map((known) => known.object).join(', ')}.`)
    return resource.idPrefix + randomText(this.random, 14)
  }

  protected render(version: RecordVersion): Fields {
    const created = Math.floor(version.createdAtMs / 1_000)
    if (version.type === EVENT) return { id: version.id, object: EVENT, ...version.fields, created }
    const resource = required(findResource(version.type), 'the result of findResource')
    const shown: Record<string, unknown> = {
      id: version.id,
      object: resource.object,
      ...resource.defaults,
      ...version.fields,
      created,
    }
    const { nested } = resource
    if (nested !== undefined) {
      const items = this.#nestedItems(version, resource)
      const url =
        nested.path === undefined
          ? `/v1/${resource.path}/${version.id}/${nested.field}`
          : `/v1/${nested.path}?${resource.object}=${version.id}`
      shown[nested.field] = {
        object: 'list',
        data: items.slice(0, NESTED_INLINE),
        has_more: items.length > NESTED_INLINE,
        total_count: items.length,
        url,
      }
    }
    return shown
  }

  protected override onWrite(
    kind: 'created' | 'updated' | 'deleted',
    version: RecordVersion,
    before: RecordVersion | undefined,
  ): void {
    const resource = findResource(version.type)
    if (resource?.events === undefined) return
    const { [kind]: eventName = kind } = resource.eventNames ?? {}
    if (eventName === null) return
    const object = this.render(version)
    const changed =
      kind !== 'updated' || before === undefined
        ? undefined
        : Object.fromEntries(
            Object.keys(version.fields)
              .filter((name) => version.fields[name] !== before.fields[name])
              .map((name) => [name, before.fields[name] ?? null]),
          )
    this.records.insert(EVENT, `evt_1${randomText(this.random, 23)}`, {
      api_version: this.#apiVersion,
      data: { object, ...(changed === undefined ? {} : { previous_attributes: changed }) },
      livemode: false,
      pending_webhooks: 0,
      request: { id: null, idempotency_key: null },
      type: `${resource.events}.${eventName}`,
    })
  }

  protected respond(call: ApiCall): Response {
    const headers = this.#headers(call.request)
    try {
      if (!this.isAuthorized(call.request)) return this.unauthorized()
      if (!this.#window.take()) return this.rateLimited(undefined)
      return jsonResponse(this.#route(call), 200, headers)
    } catch (error) {
      if (error instanceof StripeError) return jsonResponse(error.body, error.status, headers)
      throw error
    }
  }

  /** Stripe sends no Retry-After with its rate limit; a fault may add one. */
  protected rateLimited(retryAfter: string | undefined): Response {
    const body = {
      error: {
        code: 'rate_limit',
        doc_url: 'https://stripe.com/docs/error-codes/rate-limit',
        message: 'Request rate limit exceeded. Learn more about rate limits here https://stripe.com/docs/rate-limits.',
        type: 'invalid_request_error',
      },
    }
    return jsonResponse(body, 429, {
      ...this.#headers(),
      'stripe-rate-limited-reason': 'global-rate',
      ...(retryAfter === undefined ? {} : { 'retry-after': retryAfter }),
    })
  }

  protected unauthorized(): Response {
    return jsonResponse({ error: { message: 'Invalid API Key provided.', type: 'invalid_request_error' } }, 401, {
      ...this.#headers(),
      'www-authenticate': 'Basic realm="Stripe"',
    })
  }

  protected serverError(status: number): Response {
    return jsonResponse({ error: { message: 'An unknown error occurred', type: 'api_error' } }, status, this.#headers())
  }

  #route(call: ApiCall): unknown {
    const [version, ...segments] = call.url.pathname.slice(1).split('/')
    const isNamespaced = RESOURCES.some((known) => known.path === `${segments[0]}/${segments[1]}`)
    const path = segments.slice(0, isNamespaced ? 2 : 1).join('/')
    const [id, nested] = segments.slice(isNamespaced ? 2 : 1)
    const unknown = () =>
      new StripeError(404, `Unrecognized request URL (${call.request.method}: ${call.url.pathname}).`)
    if (version !== 'v1' || call.request.method !== 'GET') throw unknown()
    const query = call.url.searchParams
    if (path === 'events') return id === undefined ? this.#listEvents(call) : this.#event(id)
    const holder = RESOURCES.find((known) => known.nested?.path === path)
    if (holder !== undefined && id === undefined)
      return this.#listNested(this.#findParent(holder, query), holder, call, [holder.object])
    const resource = RESOURCES.find((known) => known.path === path)
    if (resource === undefined) throw unknown()
    if (id === undefined) return this.#list(resource, call)
    const found = this.records.find(resource.object, id)
    if (found === undefined) throw createMissingError(resource.object, id, 'id', 404)
    if (nested !== undefined) {
      if (nested !== resource.nested?.field || resource.nested.path !== undefined) throw unknown()
      return this.#listNested(found, resource, call, [])
    }
    if (found.deleted) return { id, object: resource.object, deleted: true }
    return this.#expanded(this.render(found) as RenderedObject, parseExpansions(query))
  }

  #list(resource: StripeResource, call: ApiCall): unknown {
    const query = call.url.searchParams
    const filters = resource.filters ?? []
    rejectUnknownParams(query, [...filters, ...(resource.isWithoutCreatedFilter === true ? [] : createdParams(query))])
    const isAll = resource.endStatus !== undefined && query.get('status') === 'all'
    const given = filters.filter((name) => query.has(name) && !(isAll && name === 'status'))
    const all = this.records.sorted(resource.object, OBJECTS)
    const isWithoutEnded = resource.endStatus !== undefined && !query.has('status')
    const isFiltered = given.length > 0 || createdParams(query).length > 0 || isWithoutEnded
    const matching = isFiltered
      ? all.filter(
          (version) =>
            !(isWithoutEnded && version.fields['status'] === resource.endStatus) &&
            this.#matches(this.render(version) as RenderedObject, given, query),
        )
      : all
    const page = this.#page(
      matching,
      call,
      `/v1/${resource.path}`,
      (id) => this.records.find(resource.object, id),
      resource.object,
    )
    const expand = parseExpansions(query)
    if (expand.some((path) => path[0] !== 'data'))
      throw new StripeError(
        400,
        `This property cannot be expanded (${required(
          expand.find((path) => path[0] !== 'data'),
          'the match in expand',
        ).join('.')}). You may want to try expanding 'data.${required(expand[0], 'expand[0]').join('.')}' instead.`,
      )
    return {
      ...page,
      data: page.data.map((item) =>
        this.#expanded(
          item,
          expand.map((path) => path.slice(1)),
        ),
      ),
    }
  }

  #listEvents(call: ApiCall): unknown {
    const query = call.url.searchParams
    rejectUnknownParams(query, [
      'type',
      'delivery_success',
      'types[]',
      ...[...query.keys()].filter((name) => /^types\[\d*\]$/.test(name)),
      ...createdParams(query),
    ])
    const types = [...query].filter(([name]) => /^types\[\d*\]$/.test(name)).map(([, value]) => value)
    const type = query.get('type')
    const isFiltered = type !== null || types.length > 0 || createdParams(query).length > 0
    const accepts = (event: RecordVersion): boolean =>
      createdMatches(sortKeyOf(event).created, query) &&
      (type === null || matchesType(String(event.fields['type']), type)) &&
      (types.length === 0 || types.includes(String(event.fields['type'])))
    const kept = this.#retainedEvents()
    return this.#page(
      isFiltered ? kept.filter(accepts) : kept,
      call,
      '/v1/events',
      (id) => this.#retainedEvent(id),
      EVENT,
    )
  }

  #event(id: string): unknown {
    const event = this.#retainedEvent(id)
    if (event === undefined) throw createMissingError(EVENT, id, 'id', 404)
    return this.render(event)
  }

  #retainedEvents(): readonly RecordVersion[] {
    const events = this.records.sorted(EVENT, EVENTS)
    const kept = countLeading(events, (event) => this.#isRetained(event))
    return kept === events.length ? events : events.slice(0, kept)
  }

  #retainedEvent(id: string): RecordVersion | undefined {
    const event = this.records.find(EVENT, id)
    return event !== undefined && event.visibleAtMs <= this.clock.now() && this.#isRetained(event) ? event : undefined
  }

  #isRetained(event: RecordVersion): boolean {
    return sortKeyOf(event).created * 1_000 >= this.clock.now() - this.#retentionMs
  }

  #matches(item: RenderedObject, filters: readonly string[], query: URLSearchParams): boolean {
    return filters.every((name) => String(item[name]) === query.get(name)) && createdMatches(item.created, query)
  }

  /** Items of a nested list keep their own order, first to last. */
  #listNested(parent: RecordVersion, resource: StripeResource, call: ApiCall, known: readonly string[]): unknown {
    const query = call.url.searchParams
    rejectUnknownParams(query, known)
    const request = parseListRequest(query)
    const items = this.#nestedItems(parent, resource)
    const cursor = request.startingAfter ?? request.endingBefore
    const at = cursor === undefined ? -1 : items.findIndex((item) => item['id'] === cursor)
    if (cursor !== undefined && (at < 0 || call.expiredToken))
      throw createMissingError(
        required(resource.nested, 'resource.nested').object,
        cursor,
        request.startingAfter === undefined ? 'ending_before' : 'starting_after',
        400,
      )
    const rest = request.endingBefore === undefined ? items.slice(at + 1) : items.slice(0, at)
    const data = request.endingBefore === undefined ? rest.slice(0, request.limit) : rest.slice(-request.limit)
    return {
      object: 'list',
      data,
      has_more: call.endFlagOverride === undefined ? rest.length > data.length : call.endFlagOverride === 'more',
      url: call.url.pathname,
    }
  }

  /** The record whose items are requested. */
  #findParent({ object }: StripeResource, query: URLSearchParams): RecordVersion {
    const id = query.get(object)
    if (id === null)
      throw new StripeError(400, `Missing required param: ${object}.`, { code: 'parameter_missing', param: object })
    const found = this.records.find(object, id)
    if (found === undefined) throw createMissingError(object, id, object, 404)
    return found
  }

  #nestedItems(parent: RecordVersion, resource: StripeResource): RenderedObject[] {
    const { field, object, idPrefix, path, whole = {} } = required(resource.nested, 'resource.nested')
    const items = (parent.fields[field] ?? []) as Fields[]
    return items.map((item, at) => {
      const id = `${idPrefix}${parent.id.slice(resource.idPrefix.length)}${String(at).padStart(4, '0')}`
      const shown: Record<string, unknown> = {
        id,
        object,
        ...(path !== undefined && { [resource.object]: parent.id }),
        ...item,
      }
      for (const [name, type] of Object.entries(whole)) {
        const version = typeof shown[name] === 'string' ? this.records.find(type, shown[name]) : undefined
        if (version !== undefined) shown[name] = this.render(version)
      }
      return shown as RenderedObject
    })
  }

  #page(
    sorted: readonly RecordVersion[],
    call: ApiCall,
    url: string,
    find: (id: string) => RecordVersion | undefined,
    object: string,
  ): { object: string; data: RenderedObject[]; has_more: boolean; url: string } {
    const asked = parseListRequest(call.url.searchParams)
    const request = call.shortPage ? { ...asked, limit: Math.max(1, Math.floor(asked.limit / 2)) } : asked
    const id = request.startingAfter ?? request.endingBefore
    const cursor = id === undefined || call.expiredToken ? undefined : find(id)
    if (id !== undefined && cursor === undefined)
      throw createMissingError(
        object,
        id,
        request.startingAfter === undefined ? 'ending_before' : 'starting_after',
        400,
      )
    const { data, hasMore } = paginate(sorted, request, cursor && sortKeyOf(cursor), sortKeyOf)
    return {
      object: 'list',
      data: data.map((version) => this.render(version) as RenderedObject),
      has_more: call.endFlagOverride === undefined ? hasMore : call.endFlagOverride === 'more',
      url,
    }
  }

  #expanded(item: RenderedObject, paths: ReadonlyArray<readonly string[]>): RenderedObject {
    let shown = item
    for (const path of paths) {
      const [field, ...rest] = path
      if (field === undefined) continue
      if (path.length > EXPAND_DEPTH_MAX)
        throw new StripeError(400, 'You cannot expand more than 4 levels of a property.')
      const target = findResource(String(item['object']))?.expandable?.[field]
      if (target === undefined) throw new StripeError(400, `This property cannot be expanded (${field}).`)
      const value = shown[field]
      if (value === null || value === undefined) continue
      const inner = typeof value === 'string' ? this.records.find(target, value) : undefined
      const object =
        inner === undefined
          ? (value as RenderedObject)
          : inner.deleted
            ? { id: inner.id, object: target, deleted: true, created: 0 }
            : (this.render(inner) as RenderedObject)
      shown = {
        ...shown,
        [field]: rest.length === 0 || typeof object === 'string' ? object : this.#expanded(object, [rest]),
      }
    }
    return shown
  }

  #headers(request?: Request): Record<string, string> {
    return {
      'request-id': `req_${randomText(this.random, 14)}`,
      'stripe-version': request?.headers.get('stripe-version') ?? this.#apiVersion,
    }
  }
}

function sortKeyOf({ id, createdAtMs }: RecordVersion): ListSortKey {
  return { id, created: Math.floor(createdAtMs / 1_000) }
}

function createMissingError(object: string, id: string, param: string, status: number): StripeError {
  return new StripeError(status, `No such ${object}: '${id}'`, { code: 'resource_missing', param })
}

function rejectUnknownParams(query: URLSearchParams, known: readonly string[]): void {
  for (const name of query.keys()) {
    if (PAGING.includes(name) || known.includes(name) || /^expand\[\d*\]$/.test(name)) continue
    throw new StripeError(400, `Received unknown parameter: ${name}`, { code: 'parameter_unknown', param: name })
  }
}

function parseExpansions(query: URLSearchParams): string[][] {
  return [...query].filter(([name]) => /^expand\[\d*\]$/.test(name)).map(([, value]) => value.split('.'))
}

function createdParams(query: URLSearchParams): string[] {
  return [...query.keys()].filter((name) => /^created(?:\[(?:gt|gte|lt|lte)\])?$/.test(name))
}

function createdMatches(created: number, query: URLSearchParams): boolean {
  return createdParams(query).every((name) => {
    const bound = Number(query.get(name))
    switch (name) {
      case 'created[gt]':
        return created > bound
      case 'created[gte]':
        return created >= bound
      case 'created[lt]':
        return created < bound
      case 'created[lte]':
        return created <= bound
      default:
        return created === bound
    }
  })
}

function matchesType(type: string, pattern: string): boolean {
  return pattern.endsWith('*') ? type.startsWith(pattern.slice(0, -1)) : type === pattern
}
