import { randomUuid } from '../kit/ids.ts'
import { jsonResponse } from '../kit/json-response.ts'
import { RateWindow, type RateLimit } from '../kit/rate-window.ts'
import type { Fields, SimulatorPorts } from '../kit/simulator.ts'
import { countLeading, type RecordView } from '../kit/sorted-view.ts'
import type { RecordVersion } from '../kit/versioned-records.ts'
import { VendorSimulator, type ApiCall, type VendorOptions } from '../kit/vendor-simulator.ts'
import { HubspotError } from './hubspot-error.ts'
import { compareIds, RESULTS_MAX, search, parseSearchRequest, type Properties } from './search.ts'
import { required } from '../kit/required.ts'

/** Options of `HubspotSimulator`. */
export interface HubspotOptions extends VendorOptions {
  /** Properties beyond the ones every object has, per object type. */
  readonly types?: Readonly<Record<string, readonly string[]>>
  /** The burst limit of an app, see `DOCUMENTED_LIMITS`. Enforced only when given. */
  readonly rateLimit?: RateLimit
  /** Search has a separate limit. Enforced only when given. */
  readonly searchRateLimit?: RateLimit
  /** Associations of one object in a response. The documented limit is 500; tests of many pages lower it. */
  readonly associationsMax?: number
}

/** The rate limits that HubSpot documents for an app. */
export const DOCUMENTED_LIMITS = {
  rateLimit: { requests: 190, perMs: 10_000 },
  searchRateLimit: { requests: 5, perMs: 1_000 },
} satisfies HubspotOptions

const LIST_LIMIT_DEFAULT = 10
const LIST_LIMIT_MAX = 100
const DEFAULT_TYPES: Readonly<Record<string, readonly string[]>> = {
  contacts: ['email', 'firstname', 'lastname'],
  companies: ['name', 'domain'],
  deals: ['dealname', 'amount', 'dealstage'],
  tickets: ['subject', 'content'],
}

const LIST_VIEW: RecordView = {
  reads: 'primary',
  includes: ({ deleted }) => !deleted,
  order: (a, b) => compareIds(a.id, b.id),
}
const ARCHIVE_VIEW: RecordView = { ...LIST_VIEW, includes: ({ deleted }) => deleted }
const SEARCH_VIEW: RecordView = {
  reads: 'index',
  includes: ({ deleted }) => !deleted,
  order: (a, b) => a.modifiedAtMs - b.modifiedAtMs || compareIds(a.id, b.id),
}

/**
 * The CRM of one portal. Lists read the primary store; search reads an index that lags, sorts by one property only, and
 * returns no more than 10,000 results.
 */
export class HubspotSimulator extends VendorSimulator {
  readonly #types: Readonly<Record<string, readonly string[]>>
  readonly #rateLimit: RateLimit
  readonly #window: RateWindow
  readonly #searchWindow: RateWindow
  readonly #associationsMax: number
  #ids = 1_000n

  constructor(ports: SimulatorPorts, options: HubspotOptions = {}) {
    super(ports, options)
    this.#types = options.types ?? DEFAULT_TYPES
    this.#rateLimit = options.rateLimit ?? DOCUMENTED_LIMITS.rateLimit
    this.#window = new RateWindow(ports.clock, options.rateLimit)
    this.#searchWindow = new RateWindow(ports.clock, options.searchRateLimit)
    this.#associationsMax = options.associationsMax ?? ASSOCIATIONS_MAX
  }

  /** Associates two objects, which gives a record of the type `<from>_<to>`; returns its id. */
  associate(from: string, fromId: string, to: string, toId: string, label: string | null = null): string {
    return this.create(`${from}_${to}`, { fromId, toId, label })
  }

  /** An association has the ids of its two objects. */
  override create(type: string, fields: Fields = {}): string {
    if (fields['fromId'] === undefined) return super.create(type, fields)
    const id = `${String(fields['fromId'])}-${String(fields['toId'])}`
    this.onWrite('created', this.records.insert(type, id, fields), undefined)
    return id
  }

  /** Ids grow, with gaps and in length: 9998 is followed by 10003, so they must be compared as numbers. */
  protected newId(): string {
    this.#ids += 1n + BigInt(Math.floor(this.random.next() * 9))
    return this.#ids.toString()
  }

  protected render(version: RecordVersion): Fields {
    if (version.fields['fromId'] !== undefined) return { id: version.id, ...renderAssociation(version) }
    return this.#renderSelected(version, undefined)
  }

  protected respond(call: ApiCall): Response {
    try {
      return this.#route(call)
    } catch (error) {
      if (error instanceof HubspotError)
        return this.#error(error.status, { message: error.message, category: error.category })
      throw error
    }
  }

  protected rateLimited(retryAfter: string | undefined): Response {
    const headers = retryAfter === undefined ? {} : { 'retry-after': retryAfter }
    return this.#error(
      429,
      {
        message: 'You have reached your ten_secondly_rolling limit.',
        errorType: 'RATE_LIMIT',
        policyName: 'TEN_SECONDLY_ROLLING',
        groupName: 'publicapi:private-apps',
        category: 'RATE_LIMITS',
      },
      { ...this.#limits(), ...headers },
    )
  }

  protected unauthorized(): Response {
    return this.#error(401, {
      message: 'Authentication credentials not found. This API supports OAuth 2.0 authentication.',
      category: 'INVALID_AUTHENTICATION',
    })
  }

  protected serverError(status: number): Response {
    return this.#error(status, { message: 'internal error', category: 'INTERNAL_ERROR' })
  }

  /** Only for the account's own types, which are named by the account's number and their name. */
  #schemas(wanted: string | undefined, call: ApiCall): Response {
    if (!this.isAuthorized(call.request)) return this.unauthorized()
    const own = Object.entries(this.#types).filter(([type]) => !(type in DEFAULT_TYPES))
    const schemas = own.map(([type, properties], at) => ({
      id: String(100 + at),
      objectTypeId: `2-${100 + at}`,
      fullyQualifiedName: type,
      name: type.replace(/^p\d+_/, ''),
      labels: { singular: type, plural: type },
      metaType: 'PORTAL_SPECIFIC',
      primaryDisplayProperty: properties[0] ?? null,
      requiredProperties: [],
      searchableProperties: [],
      associations: [],
      properties: [
        ...properties.map((name) => describeProperty(name, false)),
        ...['createdate', 'hs_lastmodifieddate', 'hs_object_id'].map((name) => describeProperty(name, true)),
      ],
    }))
    if (wanted === undefined) return this.#ok({ results: schemas })
    const schema = schemas.find(({ fullyQualifiedName, objectTypeId }) =>
      [fullyQualifiedName, objectTypeId].includes(wanted),
    )
    if (schema === undefined)
      throw new HubspotError(404, 'OBJECT_NOT_FOUND', 'Unable to infer object type from: ' + wanted)
    return this.#ok(schema)
  }

  /** Up to 1,000 objects of one type. An object without associations is an error of its own, not an empty result. */
  #readAssociations(from: string, to: string, call: ApiCall): Response {
    const { inputs } = parseBatch(call.body)
    if (inputs.length === 0 || inputs.length > BATCH_MAX)
      throw new HubspotError(400, 'VALIDATION_ERROR', `The batch must have 1 to ${BATCH_MAX} inputs`)
    const results: Fields[] = []
    const errors: Fields[] = []
    for (const { id, after } of inputs) {
      const page = this.#pageOfAssociations(from, id, to, after, this.#associationsMax)
      if (page.to.length > 0) results.push({ from: { id }, ...page })
      else errors.push(describeMissingAssociations(from, id, to))
    }
    const at = new Date(this.clock.now()).toISOString()
    const body = { status: 'COMPLETE', results, startedAt: at, completedAt: at }
    return errors.length === 0
      ? this.#ok(body)
      : jsonResponse({ ...body, numErrors: errors.length, errors }, 207, this.#limits())
  }

  #pageOfAssociations(
    from: string,
    fromId: string,
    to: string,
    after: string | undefined,
    limit: number,
  ): { readonly to: Fields[]; readonly paging?: Fields } {
    const start = after === undefined ? '0' : Buffer.from(after, 'base64').toString()
    if (!/^\d+$/.test(start)) throw new HubspotError(400, 'VALIDATION_ERROR', `Invalid paging cursor: ${String(after)}`)
    const isLive = (type: string, id: unknown): boolean => this.records.find(type, String(id))?.deleted === false
    const found = this.records
      .sorted(`${from}_${to}`, ASSOCIATION_VIEW, fromId)
      .filter(({ fields }) => isLive(from, fromId) && isLive(to, fields['toId']))
    const rest = found.filter(({ fields }) => compareIds(String(fields['toId']), start) > 0)
    const page = rest.slice(0, limit)
    const last = String(page.at(-1)?.fields['toId'] ?? '')
    return {
      to: page.map((version) => {
        const { toObjectId, associationTypes } = renderAssociation(version)
        return { toObjectId, associationTypes }
      }),
      ...(rest.length > limit && { paging: { next: { after: Buffer.from(last).toString('base64'), link: '' } } }),
    }
  }

  #route(call: ApiCall): Response {
    const schema = /^\/crm\/v3\/schemas(?:\/([\w-]+))?\/?$/.exec(call.url.pathname)
    if (schema !== null) return this.#schemas(schema[1], call)
    const batch = /^\/crm\/v4\/associations\/([\w-]+)\/([\w-]+)\/batch\/read\/?$/.exec(call.url.pathname)
    const single = /^\/crm\/v4\/objects\/([\w-]+)\/(\d+)\/associations\/([\w-]+)\/?$/.exec(call.url.pathname)
    if (batch !== null || single !== null) return this.#associations(batch, single, call)
    const match = /^\/crm\/v3\/objects\/([\w-]+)(?:\/([\w-]+))?\/?$/.exec(call.url.pathname)
    const type = match?.[1] ?? ''
    if (match === null || this.#types[type] === undefined)
      throw new HubspotError(404, 'OBJECT_NOT_FOUND', 'Unable to infer object type from: ' + type)
    if (!this.isAuthorized(call.request)) return this.unauthorized()
    const searching = match[2] === 'search'
    if (searching && call.request.method === 'POST') {
      if (!this.#searchWindow.take())
        return this.#error(429, {
          message: 'You have reached your secondly limit.',
          errorType: 'RATE_LIMIT',
          policyName: 'SECONDLY',
          category: 'RATE_LIMITS',
        })
      return this.#search(type, call)
    }
    if (!this.#window.take()) return this.rateLimited(undefined)
    if (call.request.method !== 'GET') throw new HubspotError(405, 'VALIDATION_ERROR', 'HTTP 405 Method Not Allowed')
    return match[2] === undefined ? this.#list(type, call) : this.#one(type, match[2], call)
  }

  #associations(batch: RegExpExecArray | null, single: RegExpExecArray | null, call: ApiCall): Response {
    if (!this.isAuthorized(call.request)) return this.unauthorized()
    if (!this.#window.take()) return this.rateLimited(undefined)
    const [from = '', to = ''] = batch === null ? [single?.[1], single?.[3]] : [batch[1], batch[2]]
    for (const type of [from, to])
      if (this.#types[type] === undefined)
        throw new HubspotError(404, 'OBJECT_NOT_FOUND', 'Unable to infer object type from: ' + type)
    if (call.request.method !== (batch === null ? 'GET' : 'POST'))
      throw new HubspotError(405, 'VALIDATION_ERROR', 'HTTP 405 Method Not Allowed')
    if (batch !== null) return this.#readAssociations(from, to, call)
    const query = call.url.searchParams
    const limit = Math.min(Number(query.get('limit') ?? ASSOCIATIONS_MAX), this.#associationsMax)
    const page = this.#pageOfAssociations(from, single?.[2] ?? '', to, query.get('after') ?? undefined, limit)
    return this.#ok({ results: page.to, ...(page.paging !== undefined && { paging: page.paging }) })
  }

  #list(type: string, call: ApiCall): Response {
    const query = call.url.searchParams
    const asked = Number(query.get('limit') ?? LIST_LIMIT_DEFAULT)
    if (!Number.isInteger(asked) || asked < 1 || asked > LIST_LIMIT_MAX)
      throw new HubspotError(
        400,
        'VALIDATION_ERROR',
        `The limit ${query.get('limit')} is outside of the range 1 to ${LIST_LIMIT_MAX}`,
      )
    const limit = call.shortPage ? Math.max(1, Math.floor(asked / 2)) : asked
    const after = query.get('after') ?? '0'
    if (!/^\d+$/.test(after) || (call.expiredToken && query.has('after')))
      throw new HubspotError(400, 'VALIDATION_ERROR', `Invalid paging cursor: ${after}`)
    const archived = query.get('archived') === 'true'
    const listed = this.records.sorted(type, archived ? ARCHIVE_VIEW : LIST_VIEW)
    const from = countLeading(listed, ({ id }) => compareIds(id, after) < 0)
    const page = listed.slice(from, from + limit)
    const more =
      call.endFlagOverride === undefined ? listed.length > from + page.length : call.endFlagOverride === 'more'
    const next = listed[from + limit]?.id ?? (BigInt(page.at(-1)?.id ?? after) + 1n).toString()
    const link = new URL(call.url)
    link.searchParams.set('after', next)
    return this.#ok({
      results: page.map((version) => this.#renderSelected(version, parseNames(query))),
      ...(more ? { paging: { next: { after: next, link: link.href } } } : {}),
    })
  }

  #one(type: string, id: string, call: ApiCall): Response {
    const version = this.records.find(type, id)
    const archived = call.url.searchParams.get('archived') === 'true'
    if (version === undefined || version.deleted !== archived)
      throw new HubspotError(404, 'OBJECT_NOT_FOUND', 'resource not found')
    return this.#ok(this.#renderSelected(version, parseNames(call.url.searchParams)))
  }

  /** Search responses have no rate limit headers. */
  #search(type: string, call: ApiCall): Response {
    const request = parseSearchRequest(call.body)
    const known = new Set([
      ...required(this.#types[type], 'types[type]'),
      'createdate',
      'hs_object_id',
      modifiedProperty(type),
    ])
    const limit = call.shortPage ? Math.max(1, Math.floor(request.limit / 2)) : request.limit
    const asked = call.unsorted ? { ...request, after: 0 } : request
    const found = search(
      asked,
      call.unsorted ? RESULTS_MAX : limit,
      {
        sorted: this.records.sorted(type, SEARCH_VIEW),
        modifiedProperty: modifiedProperty(type),
        modifiedMs: ({ modifiedAtMs }) => modifiedAtMs,
        id: ({ id }) => id,
        properties: (version) => this.#properties(version),
      },
      known,
      this.random,
    )
    const { total } = found
    const page = call.unsorted ? this.#shuffle(found.page, request.after, limit) : found.page
    const end = request.after + page.length
    const more = call.endFlagOverride === undefined ? end < total : call.endFlagOverride === 'more'
    const results = page.map((version) => this.#renderSelected(version, request.properties))
    return jsonResponse({ total, results, ...(more ? { paging: { next: { after: String(end) } } } : {}) })
  }

  /** Any of the matches, in a visibly wrong order if their times differ. */
  #shuffle(found: readonly RecordVersion[], after: number, limit: number): RecordVersion[] {
    const shuffled = found
      .map((version) => ({ version, at: this.random.next() }))
      .toSorted((a, b) => a.at - b.at)
      .map(({ version }) => version)
    const page = shuffled.slice(after, after + limit).toSorted((a, b) => b.modifiedAtMs - a.modifiedAtMs)
    return page.length > 1 &&
      required(page[0], 'page[0]').modifiedAtMs > required(page.at(-1), 'an entry of page').modifiedAtMs
      ? page
      : found.slice(after, after + limit)
  }

  #renderSelected(version: RecordVersion, asked: readonly string[] | undefined): Fields {
    const all = this.#properties(version)
    const defaults = ['createdate', modifiedProperty(version.type), 'hs_object_id']
    const wanted = asked === undefined || asked.length === 0 ? Object.keys(all) : [...new Set([...defaults, ...asked])]
    const stampedAt = new Date(version.modifiedAtMs).toISOString()
    return {
      id: version.id,
      properties: Object.fromEntries(wanted.filter((name) => name in all).map((name) => [name, all[name]])),
      createdAt: new Date(version.createdAtMs).toISOString(),
      updatedAt: stampedAt,
      archived: version.deleted,
      ...(version.deleted ? { archivedAt: stampedAt } : {}),
    }
  }

  #properties(version: RecordVersion): Properties {
    const properties: Record<string, string | null> = {}
    for (const name of this.#types[version.type] ?? []) {
      const value = version.fields[name] ?? null
      properties[name] = value === null ? null : typeof value === 'string' ? value : JSON.stringify(value)
    }
    return {
      ...properties,
      createdate: new Date(version.createdAtMs).toISOString(),
      [modifiedProperty(version.type)]: new Date(version.modifiedAtMs).toISOString(),
      hs_object_id: version.id,
    }
  }

  #ok(body: unknown): Response {
    return jsonResponse(body, 200, this.#limits())
  }

  #error(status: number, body: Fields, headers: Record<string, string> = {}): Response {
    const correlationId = randomUuid(this.random)
    return jsonResponse({ status: 'error', ...body, correlationId }, status, {
      'x-hubspot-correlation-id': correlationId,
      ...headers,
    })
  }

  #limits(): Record<string, string> {
    return {
      'x-hubspot-ratelimit-daily': '625000',
      'x-hubspot-ratelimit-daily-remaining': String(625_000 - this.requests.count()),
      'x-hubspot-ratelimit-interval-milliseconds': String(this.#rateLimit.perMs),
      'x-hubspot-ratelimit-max': String(this.#rateLimit.requests),
      'x-hubspot-ratelimit-remaining': String(Math.min(this.#rateLimit.requests, this.#window.remaining)),
    }
  }
}

const ASSOCIATIONS_MAX = 500
const BATCH_MAX = 1_000
const ASSOCIATION_VIEW: RecordView = {
  reads: 'primary',
  includes: ({ deleted }) => !deleted,
  order: (a, b) => compareIds(String(a.fields['toId']), String(b.fields['toId'])),
  group: ({ fields }) => String(fields['fromId']),
}

function renderAssociation({ fields }: RecordVersion): Fields {
  return {
    fromObjectId: String(fields['fromId']),
    toObjectId: String(fields['toId']),
    associationTypes: [
      { category: 'HUBSPOT_DEFINED', typeId: 279, label: null },
      ...(fields['label'] === null ? [] : [{ category: 'USER_DEFINED', typeId: 28, label: fields['label'] }]),
    ],
  }
}

function describeMissingAssociations(from: string, id: string, to: string): Fields {
  return {
    status: 'error',
    category: 'OBJECT_NOT_FOUND',
    subCategory: 'crm.associations.NO_ASSOCIATIONS_FOUND',
    message: `No ${to} is associated with ${from} ${id}.`,
    context: { fromObjectId: [id], fromObjectType: [from], toObjectType: [to] },
  }
}

function describeProperty(name: string, hubspotDefined: boolean): Fields {
  return {
    name,
    label: name,
    type: 'string',
    fieldType: 'text',
    groupName: 'own',
    archived: false,
    ...(hubspotDefined && { hubspotDefined }),
  }
}

function parseBatch(body: string): {
  readonly inputs: ReadonlyArray<{ readonly id: string; readonly after?: string }>
} {
  try {
    const { inputs } = JSON.parse(body) as Fields
    if (Array.isArray(inputs) && inputs.every((input) => typeof input?.id === 'string')) return { inputs }
  } catch {
    // The request is refused below.
  }
  throw new HubspotError(400, 'VALIDATION_ERROR', 'Invalid input JSON')
}

/** Contacts use a different property name. */
function modifiedProperty(type: string): string {
  return type === 'contacts' ? 'lastmodifieddate' : 'hs_lastmodifieddate'
}

function parseNames(query: URLSearchParams): string[] {
  return query.getAll('properties').flatMap((list) => list.split(','))
}
