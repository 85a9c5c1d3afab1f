import { ApiSimulator, type ApiCall } from '../kit/api-simulator.ts'
import type { SimulatorPorts } from '../kit/simulator.ts'
import { renderMetadata, typeNameOf, type EntitySet } from './metadata.ts'
import { builtInParser } from './parse-query.ts'
import {
  BadQueryError,
  requireProperty,
  compilePredicate,
  type OrderItem,
  type QueryParser,
  type Row,
} from './query.ts'
import { decodeToken, encodeToken, type DeltaToken, type LinkQuery, type SkipToken } from './tokens.ts'
import { unquoteNumbers, compare, toComparable, keyLiteral, renderV2, renderV4, type EdmValue } from './values.ts'
import { required } from '../kit/required.ts'

/**
 * An OData service over HTTP, version 4 or 2, by the rules of the standard. Tests write its rows with `put` and `remove`.
 *
 * It supports: the service document, `$metadata`, entity sets, `Set(key)`, `Set/$count`; `$filter` (comparisons, and, or,
 * not, parentheses, contains/startswith/endswith, the literals of its own version and no others), `$orderby`, `$top`,
 * `$skip`, `$select`, `$count` or `$inlinecount`, `$skiptoken`, `$deltatoken`, `$format`. Any other option that begins with
 * `$`, a property it does not have, or a comparison of two kinds of value is a 400. A `+` in the address is a plus.
 * Version 2 answers in Atom unless JSON is requested by `$format=json` or by `Accept`.
 *
 * Rows equal by `$orderby` follow their key, unless `ties` is set. Links hold their whole state in one token; adding options
 * to one is a 400. `Prefer: odata.maxpagesize=n` and `odata.track-changes` are honoured in version 4.
 *
 * Faults: `faults.plan({ kind })` of the kit (`rate-limit` with `retryAfter`, `server-error`, `unauthorized`, `truncated`,
 * `short-page`, `duplicate-page`, `end-flag`, `expired-token`, `html`, `slow`); `repeatNextLinks`, `expireDeltaLinks`, the
 * options below, and `beforeRequest`, in which a test may change rows between two pages.
 * `requests` logs every request; `urls` has their undecoded addresses.
 */
export interface OdataOptions {
  readonly version: 2 | 4
  readonly sets: Readonly<Record<string, EntitySet>>
  /** Maximum rows of one response; the rest is behind a next link. No limit by default. */
  readonly pageSizeMax?: number
  /** A `$top` beyond this is clamped silently, with no link to the rest. */
  readonly topMax?: number
  /** Content of a next link: the key of its last row (default), or a row count, which is off when rows move. */
  readonly skipToken?: 'keyset' | 'offset'
  /** Order of rows that `$orderby` leaves equal: by key (default), or random with every request. */
  readonly ties?: 'key' | 'shuffled'
  /** Whether deltas are supported (version 4). True by default; if not, `track-changes` is ignored silently. */
  readonly tracksChanges?: boolean
  /** Format of a removed row in a delta: as in 4.01 (default), or as in 4.0. */
  readonly removedAs?: '@removed' | '$deletedEntity'
  /** Links relative to the service, as version 4 allows. Absolute by default. */
  readonly relativeLinks?: boolean
  /** Origin of links instead of the requested address, as behind a misconfigured proxy. */
  readonly linkOrigin?: string
  /** When given, requests without it (bearer, or basic user or password) are refused. */
  readonly token?: string
  /** The query parser; the simulator's own by default. */
  readonly parser?: QueryParser
}

/** The path of the simulated service below its origin. */
export const SERVICE_PATH = '/odata'

interface StoredRow {
  readonly row: Row
  readonly serial: number
  readonly removed: boolean
}

interface DelayedWrite {
  readonly set: string
  readonly row: Row
  readonly removed: boolean
  readonly atMs: number
}

const QUERY_OPTIONS: Record<2 | 4, readonly string[]> = {
  2: ['$filter', '$orderby', '$top', '$skip', '$select', '$inlinecount', '$skiptoken', '$format'],
  4: ['$filter', '$orderby', '$top', '$skip', '$select', '$count', '$skiptoken', '$deltatoken', '$format'],
}

/** Simulates an OData service of version 4 or 2, with delta links and server-driven paging. */
export class OdataSimulator extends ApiSimulator {
  /** The undecoded address of every request. */
  readonly urls: string[] = []
  /** Called before each request is answered, with its number from 1. */
  beforeRequest: ((number: number, url: URL) => void) | undefined
  readonly #options: OdataOptions
  readonly #parser: QueryParser
  readonly #stored = new Map<string, Map<string, StoredRow>>()
  #delayedWrites: DelayedWrite[] = []
  #serial = 0
  #deltaLinkNumber = 0
  #expiredThrough = 0
  #repeats = 0

  constructor(ports: SimulatorPorts, options: OdataOptions) {
    super(ports, options.token)
    this.#options = options
    this.#parser = options.parser ?? builtInParser
    for (const [name, { key, properties }] of Object.entries(options.sets)) {
      for (const property of key) requireProperty(property, properties)
      const foreign = options.version === 4 ? 'Edm.DateTime' : 'Edm.Date'
      if (Object.values(properties).includes(foreign))
        throw new TypeError(`${name}: OData ${options.version} has no ${foreign}.`)
      this.#stored.set(name, new Map())
    }
  }

  /**
   * Writes a whole row: an absent property is null. With `afterMs` it becomes visible only after the clock has advanced
   * by that much, whatever times it contains, as a row of a transaction that commits late.
   */
  put(set: string, row: Row, options: { readonly afterMs?: number } = {}): void {
    const { properties, key } = this.#set(set)
    for (const name of Object.keys(row)) requireProperty(name, properties)
    for (const name of key)
      if (row[name] === undefined || row[name] === null) throw new TypeError(`${set}: a row needs its key ${name}.`)
    this.#write({ set, row, removed: false, atMs: this.clock.now() + (options.afterMs ?? 0) })
  }

  /** `key`: the properties of the key, by name. */
  remove(set: string, key: Row, options: { readonly afterMs?: number } = {}): void {
    this.#applyDelayedWrites()
    if (this.#stored.get(set)?.get(this.#predicate(set, key))?.removed !== false)
      throw new TypeError(`${set}${this.#predicate(set, key)} does not exist.`)
    this.#write({ set, row: key, removed: true, atMs: this.clock.now() + (options.afterMs ?? 0) })
  }

  /** The visible rows as they were written, by key. */
  truth(set: string): Row[] {
    return this.#rows(set, () => true, [])
  }

  /** Answers every delta link issued so far with 410. */
  expireDeltaLinks(): void {
    this.#expiredThrough = this.#deltaLinkNumber
  }

  /** The next so many next links lead to their own page. */
  repeatNextLinks(times: number): void {
    this.#repeats = times
  }

  override handle(request: Request): Promise<Response> {
    this.urls.push(request.url)
    this.beforeRequest?.(this.urls.length, new URL(request.url))
    return super.handle(request)
  }

  protected respond(call: ApiCall): Response {
    if (this.token !== undefined && !this.isAuthorized(call.request)) return this.unauthorized()
    if (call.request.method !== 'GET') return this.#error(405, 'MethodNotAllowed', 'This service is read only.')
    this.#applyDelayedWrites()
    try {
      return this.#route(call)
    } catch (error) {
      if (error instanceof BadQueryError) return this.#error(400, 'BadRequest', error.message)
      throw error
    }
  }

  protected rateLimited(retryAfter: string | undefined): Response {
    return this.#error(429, 'TooManyRequests', 'Too many requests.', { 'retry-after': retryAfter ?? '1' })
  }

  protected unauthorized(): Response {
    return this.#error(401, 'Unauthorized', 'Sign in first.', { 'www-authenticate': 'Bearer' })
  }

  protected serverError(status: number): Response {
    return this.#error(status, 'ServiceUnavailable', 'The service is not available.')
  }

  #route(call: ApiCall): Response {
    const { version, sets } = this.#options
    const path = decodeURIComponent(call.url.pathname)
    if (path === SERVICE_PATH || path === `${SERVICE_PATH}/`) {
      const names = Object.keys(sets)
      return this.#json(
        version === 4
          ? {
              '@odata.context': `${this.#root(call)}$metadata`,
              value: names.map((name) => ({ name, kind: 'EntitySet', url: name })),
            }
          : { d: { EntitySets: names } },
      )
    }
    if (path === `${SERVICE_PATH}/$metadata`)
      return new Response(renderMetadata(version, sets), {
        headers: { 'content-type': 'application/xml', ...this.#versionHeader() },
      })
    const match = /^\/odata\/(\w+)(\(.*\))?(\/\$count)?$/s.exec(path)
    const [, name = '', key, count] = match ?? []
    if (!Object.hasOwn(sets, name))
      return this.#error(
        404,
        'NotFound',
        `Resource not found for the segment '${path.slice(SERVICE_PATH.length + 1)}'.`,
      )
    const options = this.#queryOf(call.url)
    if (
      version === 2 &&
      options.get('$format') !== 'json' &&
      !(call.request.headers.get('accept') ?? '').includes('application/json')
    ) {
      return new Response('<?xml version="1.0" encoding="utf-8"?><feed xmlns="http://www.w3.org/2005/Atom"/>', {
        headers: { 'content-type': 'application/atom+xml;type=feed;charset=utf-8', ...this.#versionHeader() },
      })
    }
    if (key !== undefined) return this.#entity(call, name, key, options)
    if (count !== undefined)
      return new Response(String(this.#rows(name, this.#filterOf(name, options.get('$filter')), []).length), {
        headers: { 'content-type': 'text/plain', ...this.#versionHeader() },
      })
    const token = options.get('$skiptoken') ?? options.get('$deltatoken')
    if (token === undefined)
      return this.#list(call, name, this.#parseQuery(options), call.request.headers.get('prefer') ?? '')
    if (
      [...options.keys()].some((option) => option !== '$format' && option !== '$skiptoken' && option !== '$deltatoken')
    )
      throw new BadQueryError('A link of this service is followed as it is, with no options added.')
    if (call.expiredToken) return this.#gone()
    if (options.has('$deltatoken')) return this.#delta(call, name, decodeToken<DeltaToken>(token))
    return this.#list(call, name, decodeToken<SkipToken>(token), call.request.headers.get('prefer') ?? '')
  }

  /** The query options, decoded as in addresses, not as in forms. */
  #queryOf(url: URL): Map<string, string> {
    const options = new Map<string, string>()
    for (const part of url.search
      .slice(1)
      .split('&')
      .filter((text) => text !== '')) {
      const at = part.indexOf('=')
      const name = decodeURIComponent(at < 0 ? part : part.slice(0, at))
      if (name.startsWith('$') && !QUERY_OPTIONS[this.#options.version].includes(name))
        throw new BadQueryError(`The query option '${name}' is not supported.`)
      if (options.has(name)) throw new BadQueryError(`The query option '${name}' occurs twice.`)
      options.set(name, at < 0 ? '' : decodeURIComponent(part.slice(at + 1)))
    }
    return options
  }

  #parseQuery(options: ReadonlyMap<string, string>): SkipToken {
    const whole = (name: string): number | undefined => {
      const text = options.get(name)
      if (text !== undefined && !/^\d+$/.test(text))
        throw new BadQueryError(`${name} must be a whole number, not '${text}'.`)
      return text === undefined ? undefined : Number(text)
    }
    const top = whole('$top')
    return {
      filter: options.get('$filter'),
      orderby: options.get('$orderby'),
      select: options.get('$select'),
      count: options.get('$count') === 'true' || options.get('$inlinecount') === 'allpages',
      after: whole('$skip') ?? 0,
      remaining: top === undefined ? undefined : Math.min(top, this.#options.topMax ?? Infinity),
    }
  }

  #list(call: ApiCall, name: string, asked: SkipToken, prefer: string): Response {
    const order = asked.orderby === undefined ? [] : this.#orderOf(name, asked.orderby)
    const matching = this.#rows(name, this.#filterOf(name, asked.filter), order)
    const { after } = asked
    const rest =
      typeof after === 'number'
        ? matching.slice(after)
        : matching.filter((row) => this.#compare(name, order, row, after) > 0)
    const preferred = this.#preferences(prefer)
    const pageSize = Math.min(
      preferred.pageSize,
      this.#options.pageSizeMax ?? Infinity,
      asked.remaining ?? Infinity,
      rest.length,
    )
    const page = rest.slice(0, call.shortPage ? Math.ceil(pageSize / 2) : pageSize)
    const left = asked.remaining === undefined ? undefined : asked.remaining - page.length
    const tracked =
      asked.trackedSince ??
      (preferred.trackChanges && asked.remaining === undefined && after === 0 ? this.#serial : undefined)
    const more =
      call.endFlagOverride === undefined ? rest.length > page.length && left !== 0 : call.endFlagOverride === 'more'
    const last = page.at(-1)
    const place =
      last === undefined
        ? after
        : typeof after === 'number' && this.#options.skipToken === 'offset'
          ? after + page.length
          : this.#keysetOf(name, order, last)
    const next = more
      ? this.#nextLink(
          call,
          name,
          '$skiptoken',
          encodeToken({ ...asked, after: place, remaining: left, trackedSince: tracked }),
        )
      : undefined
    const delta = !more && tracked !== undefined ? this.#deltaLink(call, name, asked, tracked) : undefined
    return this.#page(call, name, {
      rows: page.map((row) => this.#render(call, name, row, asked.select)),
      count: asked.count === true ? matching.length : undefined,
      next,
      delta,
      context: name,
      applied: preferred.applied,
    })
  }

  /** Changes since the token, each row once, in its current version. */
  #delta(call: ApiCall, name: string, token: DeltaToken): Response {
    if (token.linkNumber <= this.#expiredThrough) return this.#gone()
    const holds = this.#filterOf(name, token.filter)
    const changed = [...required(this.#stored.get(name), 'an entry of stored').values()]
      .filter(({ serial }) => serial > token.serial)
      .toSorted((a, b) => a.serial - b.serial)
    const preferred = this.#preferences(call.request.headers.get('prefer') ?? '')
    const pageSize = Math.min(preferred.pageSize, this.#options.pageSizeMax ?? Infinity, changed.length)
    const page = changed.slice(0, call.shortPage ? Math.ceil(pageSize / 2) : pageSize)
    const serial = page.at(-1)?.serial ?? token.serial
    const more = call.endFlagOverride === undefined ? page.length < changed.length : call.endFlagOverride === 'more'
    return this.#page(call, name, {
      rows: page.map(({ row, removed }) =>
        removed || !holds(row)
          ? this.#removed(call, name, row, removed ? 'deleted' : 'changed')
          : this.#render(call, name, row, token.select),
      ),
      next: more ? this.#nextLink(call, name, '$deltatoken', encodeToken({ ...token, serial })) : undefined,
      delta: more ? undefined : this.#deltaLink(call, name, token, serial),
      count: undefined,
      context: `${name}/$delta`,
      applied: preferred.applied,
    })
  }

  #page(
    call: ApiCall,
    name: string,
    page: {
      rows: unknown[]
      count: number | undefined
      next: string | undefined
      delta: string | undefined
      context: string
      applied: string
    },
  ): Response {
    const { rows, count, next, delta, context, applied } = page
    if (this.#options.version === 2)
      return this.#json({
        d: {
          ...(count === undefined ? {} : { __count: String(count) }),
          results: rows,
          ...(next === undefined ? {} : { __next: next }),
        },
      })
    const bare = /odata\.metadata=none/.test(call.request.headers.get('accept') ?? '')
    return this.#json(
      {
        ...(bare ? {} : { '@odata.context': `${this.#root(call)}$metadata#${context}` }),
        ...(count === undefined ? {} : { '@odata.count': count }),
        value: rows,
        ...(next === undefined ? {} : { '@odata.nextLink': next }),
        ...(delta === undefined ? {} : { '@odata.deltaLink': delta }),
      },
      applied === '' ? {} : { 'preference-applied': applied },
    )
  }

  #entity(call: ApiCall, name: string, predicate: string, options: ReadonlyMap<string, string>): Response {
    const held = required(this.#stored.get(name), 'an entry of stored').get(predicate)
    if (held === undefined || held.removed) return this.#error(404, 'NotFound', `${name}${predicate} does not exist.`)
    const row = this.#render(call, name, held.row, options.get('$select'))
    return this.#json(
      this.#options.version === 2
        ? { d: row }
        : { '@odata.context': `${this.#root(call)}$metadata#${name}/$entity`, ...row },
    )
  }

  #render(call: ApiCall, name: string, row: Row, select: string | undefined): Record<string, unknown> {
    const { properties } = this.#set(name)
    const shown =
      select === undefined || select.trim() === '*'
        ? Object.keys(properties)
        : select.split(',').map((property) => requireProperty(property.trim(), properties))
    const exact = /IEEE754Compatible=true/i.test(call.request.headers.get('accept') ?? '')
    const { version } = this.#options
    const fields = Object.fromEntries(
      shown.map((property) => [
        property,
        version === 2
          ? renderV2(required(properties[property], 'properties[property]'), row[property] ?? null)
          : renderV4(required(properties[property], 'properties[property]'), row[property] ?? null, exact),
      ]),
    )
    return version === 4
      ? fields
      : {
          __metadata: {
            uri: `${this.#root(call)}${name}${encodeURIComponent(this.#predicate(name, row))}`,
            type: typeNameOf(name),
          },
          ...fields,
        }
  }

  #removed(call: ApiCall, name: string, row: Row, reason: 'deleted' | 'changed'): Record<string, unknown> {
    const id = `${this.#root(call)}${name}${encodeURI(this.#predicate(name, row))}`
    if (this.#options.removedAs === '$deletedEntity')
      return { '@odata.context': `${this.#root(call)}$metadata#${name}/$deletedEntity`, id, reason }
    const key = this.#set(name).key.map((property) => [property, row[property]])
    return { '@removed': { reason }, '@odata.id': id, ...(Object.fromEntries(key) as object) }
  }

  #preferences(prefer: string): { pageSize: number; trackChanges: boolean; applied: string } {
    if (this.#options.version === 2) return { pageSize: Infinity, trackChanges: false, applied: '' }
    const size = /(?:^|[\s,;])(?:odata\.)?maxpagesize=(\d+)/.exec(prefer)?.[1]
    const trackChanges = this.#options.tracksChanges !== false && /(?:^|[\s,;])(?:odata\.)?track-changes/.test(prefer)
    const applied = [
      ...(size === undefined ? [] : [`odata.maxpagesize=${size}`]),
      ...(trackChanges ? ['odata.track-changes'] : []),
    ].join(', ')
    return { pageSize: size === undefined ? Infinity : Math.max(1, Number(size)), trackChanges, applied }
  }

  #nextLink(call: ApiCall, name: string, option: '$skiptoken' | '$deltatoken', token: string): string {
    if (this.#repeats === 0) return this.#link(call, name, option, token)
    this.#repeats--
    return call.url.href
  }

  #deltaLink(call: ApiCall, name: string, query: LinkQuery, serial: number): string {
    return this.#link(
      call,
      name,
      '$deltatoken',
      encodeToken({ filter: query.filter, select: query.select, serial, linkNumber: ++this.#deltaLinkNumber }),
    )
  }

  #link(call: ApiCall, name: string, option: string, token: string): string {
    return `${this.#options.relativeLinks === true ? '' : this.#root(call)}${name}?${option}=${token}${this.#options.version === 2 ? '&$format=json' : ''}`
  }

  #root(call: ApiCall): string {
    return `${this.#options.linkOrigin ?? call.url.origin}${SERVICE_PATH}/`
  }

  #filterOf(name: string, filter: string | undefined): (row: Row) => boolean {
    return filter === undefined
      ? () => true
      : compilePredicate(this.#parser.filter(filter, this.#options.version), this.#set(name).properties)
  }

  #orderOf(name: string, orderby: string): OrderItem[] {
    return this.#parser
      .orderBy(orderby)
      .map((item) => ({ ...item, property: requireProperty(item.property, this.#set(name).properties) }))
  }

  #rows(name: string, holds: (row: Row) => boolean, order: readonly OrderItem[]): Row[] {
    this.#applyDelayedWrites()
    const rows = [...required(this.#stored.get(name), 'an entry of stored').values()]
      .filter(({ row, removed }) => !removed && holds(row))
      .map(({ row }) => row)
    if (this.#options.ties !== 'shuffled') return rows.toSorted((a, b) => this.#compare(name, order, a, b))
    const drawn = new Map(rows.map((row) => [row, this.random.next()]))
    return rows.toSorted(
      (a, b) =>
        this.#compareBy(name, order, a, b) ||
        required(drawn.get(a), 'an entry of drawn') - required(drawn.get(b), 'an entry of drawn'),
    )
  }

  #compare(name: string, order: readonly OrderItem[], a: Row, b: Row): number {
    return this.#compareBy(
      name,
      [...order, ...this.#set(name).key.map((property) => ({ property, descending: false }))],
      a,
      b,
    )
  }

  #compareBy(name: string, order: readonly OrderItem[], a: Row, b: Row): number {
    const { properties } = this.#set(name)
    for (const { property, descending } of order) {
      const by = compare(
        toComparable(required(properties[property], 'properties[property]'), a[property] ?? null).value,
        toComparable(required(properties[property], 'properties[property]'), b[property] ?? null).value,
      )
      if (by !== 0) return descending ? -by : by
    }
    return 0
  }

  #keysetOf(name: string, order: readonly OrderItem[], row: Row): Record<string, EdmValue> {
    return Object.fromEntries(
      [...order.map(({ property }) => property), ...this.#set(name).key].map((property) => [
        property,
        row[property] ?? null,
      ]),
    )
  }

  #predicate(name: string, row: Row): string {
    const { key, properties } = this.#set(name)
    const literal = (property: string): string =>
      keyLiteral(this.#options.version, required(properties[property], 'properties[property]'), row[property] ?? null)
    return key.length === 1
      ? `(${literal(required(key[0], 'key[0]'))})`
      : `(${key.map((property) => `${property}=${literal(property)}`).join(',')})`
  }

  #set(name: string): EntitySet {
    const set = this.#options.sets[name]
    if (set === undefined) throw new TypeError(`There is no entity set ${name}.`)
    return set
  }

  #write(late: DelayedWrite): void {
    this.#delayedWrites.push(late)
    this.#applyDelayedWrites()
  }

  /** A late write enters the journal when it becomes visible, not when it was made. */
  #applyDelayedWrites(): void {
    const now = this.clock.now()
    const due = this.#delayedWrites.filter(({ atMs }) => atMs <= now).toSorted((a, b) => a.atMs - b.atMs)
    this.#delayedWrites = this.#delayedWrites.filter(({ atMs }) => atMs > now)
    for (const { set, row, removed } of due)
      required(this.#stored.get(set), 'an entry of stored').set(this.#predicate(set, row), {
        row,
        removed,
        serial: ++this.#serial,
      })
  }

  #gone(): Response {
    return this.#error(410, 'SyncStateNotFound', 'The token is no longer known. Begin a new listing.')
  }

  #error(status: number, code: string, message: string, headers: Readonly<Record<string, string>> = {}): Response {
    const said = this.#options.version === 4 ? message : { lang: 'en', value: message }
    return this.#json({ error: { code, message: said } }, headers, status)
  }

  #json(body: unknown, headers: Readonly<Record<string, string>> = {}, status = 200): Response {
    const type = this.#options.version === 4 ? 'application/json;odata.metadata=minimal' : 'application/json'
    return new Response(unquoteNumbers(JSON.stringify(body)), {
      status,
      headers: { 'content-type': type, ...this.#versionHeader(), ...headers },
    })
  }

  #versionHeader(): Record<string, string> {
    return this.#options.version === 4 ? { 'odata-version': '4.0' } : { dataserviceversion: '2.0' }
  }
}
