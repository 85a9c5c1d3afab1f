import { compareText, randomHex } from '../kit/ids.ts'
import { jsonResponse } from '../kit/json-response.ts'
import { RateWindow } from '../kit/rate-window.ts'
import type { Fields, SimulatorPorts } from '../kit/simulator.ts'
import type { RecordView } from '../kit/sorted-view.ts'
import type { RecordVersion } from '../kit/versioned-records.ts'
import { VendorSimulator, type ApiCall, type VendorOptions } from '../kit/vendor-simulator.ts'
import {
  matchesQuery,
  orderRows,
  parseEncodedQuery,
  findIndexRanges,
  type EncodedQuery,
  type TextRow,
} from './encoded-query.ts'
import { required } from '../kit/required.ts'

/** Options of `ServicenowSimulator`. */
export interface ServicenowOptions extends VendorOptions {
  /** Columns beyond the system ones, per table. */
  readonly tables?: Readonly<Record<string, readonly string[]>>
  /** Column types as the dictionary names them, by column; `string` by default. */
  readonly types?: Readonly<Record<string, string>>
  /** Tables that the reader may not query at all. */
  readonly refused?: readonly string[]
  /** The parent of a table that extends another, whose columns it inherits. */
  readonly extends?: Readonly<Record<string, string>>
  /** Rows hidden from the reader. They count towards a page and are then left out of it. */
  readonly hidden?: (table: string, row: TextRow) => boolean
  /** Requests allowed in an hour, as in a rate limit rule of the instance. Unlimited by default. */
  readonly requestsPerHour?: number
  /**
   * An instance may be configured to return no rows for an unparsable query. By default it drops the unparsable parts.
   */
  readonly invalidQueryReturnsNoRows?: boolean
}

const AUDIT = 'sys_audit'
const LIMIT_DEFAULT = 10_000
const HOUR_MS = 3_600_000
const SYSTEM_COLUMNS = ['sys_id', 'sys_created_on', 'sys_updated_on', 'sys_mod_count']
const TABLES: Readonly<Record<string, readonly string[]>> = {
  incident: ['number', 'short_description', 'state', 'active'],
  sys_user: ['user_name', 'email'],
}
const TYPES: Readonly<Record<string, string>> = {
  sys_id: 'GUID',
  sys_created_on: 'glide_date_time',
  sys_updated_on: 'glide_date_time',
  sys_mod_count: 'integer',
  state: 'integer',
  active: 'boolean',
}
const DICTIONARY: Readonly<Record<string, readonly string[]>> = {
  sys_db_object: ['name', 'label', 'super_class'],
  sys_dictionary: ['name', 'element', 'internal_type', 'active'],
}
const AUDIT_COLUMNS = ['tablename', 'documentkey', 'fieldname', 'oldvalue', 'newvalue', 'user', 'reason']

const TIMESTAMP_VIEWS = {
  sys_created_on: createTimestampView(({ createdAtMs }) => createdAtMs),
  sys_updated_on: createTimestampView(({ modifiedAtMs }) => modifiedAtMs),
}

/** The Table API of one instance: encoded queries, offsets, whole seconds in UTC, and an audit of changes. */
export class ServicenowSimulator extends VendorSimulator {
  readonly #tables: Readonly<Record<string, readonly string[]>>
  readonly #extends: Readonly<Record<string, string>>
  readonly #types: Readonly<Record<string, string>>
  readonly #refused: ReadonlySet<string>
  readonly #hidden: (table: string, row: TextRow) => boolean
  readonly #returnsNoRowsIfInvalid: boolean
  readonly #perHour: number | undefined
  readonly #window: RateWindow
  readonly #rule: string
  /** The modification count of each version's record; also when earlier versions are dropped. */
  readonly #changes = new WeakMap<RecordVersion, number>()

  constructor(ports: SimulatorPorts, options: ServicenowOptions = {}) {
    super(ports, options)
    this.#tables = { ...(options.tables ?? TABLES), [AUDIT]: AUDIT_COLUMNS }
    this.#extends = options.extends ?? {}
    this.#types = { ...TYPES, ...options.types }
    this.#refused = new Set(options.refused)
    this.#hidden = options.hidden ?? (() => false)
    this.#returnsNoRowsIfInvalid = options.invalidQueryReturnsNoRows === true
    this.#perHour = options.requestsPerHour
    this.#window = new RateWindow(
      ports.clock,
      this.#perHour === undefined ? undefined : { requests: this.#perHour, perMs: HOUR_MS },
    )
    this.#rule = randomHex(ports.random, 32)
  }

  /** Random, so ids never follow time. */
  protected newId(): string {
    return randomHex(this.random, 32)
  }

  /** Every value is text, and a missing one is empty text. */
  protected render(version: RecordVersion): Fields {
    const row: Record<string, string> = { sys_id: version.id }
    for (const column of this.#tables[version.type] ?? []) {
      const value = version.fields[column] ?? ''
      row[column] = typeof value === 'string' ? value : JSON.stringify(value)
    }
    return {
      ...row,
      sys_created_on: formatTimestamp(version.createdAtMs),
      sys_updated_on: formatTimestamp(version.modifiedAtMs),
      sys_mod_count: String(this.#changes.get(version) ?? 0),
    }
  }

  protected override onWrite(
    kind: 'created' | 'updated' | 'deleted',
    version: RecordVersion,
    before: RecordVersion | undefined,
  ): void {
    if (version.type === AUDIT || kind === 'created') return
    this.#changes.set(version, (before === undefined ? 0 : (this.#changes.get(before) ?? 0)) + 1)
    const audit = (fieldname: string, oldvalue: unknown, newvalue: unknown) =>
      this.records.insert(AUDIT, this.newId(), {
        tablename: version.type,
        documentkey: version.id,
        fieldname,
        oldvalue,
        newvalue,
        user: 'system',
        reason: '',
      })
    if (kind === 'deleted') return void audit('DELETED', '', 'DELETED')
    for (const [field, value] of Object.entries(version.fields))
      if (before?.fields[field] !== value) audit(field, before?.fields[field] ?? '', value)
  }

  /** The audit table is purged as well. */
  override prune(beforeMs: number): void {
    this.records.prune(beforeMs, ({ type, deleted }) => deleted || type === AUDIT)
    this.requests.clear()
  }

  protected respond(call: ApiCall): Response {
    const match = /^\/api\/now(?:\/v\d)?\/table\/(\w+)(?:\/(\w+))?$/.exec(call.url.pathname)
    if (match === null) return this.#error(400, 'Requested URI does not represent any resource', call.url.pathname)
    if (!this.isAuthorized(call.request)) return this.unauthorized()
    if (!this.#window.take()) return this.rateLimited(undefined)
    const table = required(match[1], 'match[1]')
    if (this.#columns(table) === undefined) return this.#error(400, `Invalid table ${table}`, null)
    if (this.#refused.has(table))
      return this.#error(403, 'Insufficient rights to query records', 'Failed API level ACL Validation')
    if (match[2] === undefined) return this.#list(table, call)
    const version = this.records.find(table, match[2])
    if (version === undefined || version.deleted || this.#hidden(table, this.render(version) as TextRow))
      return this.#error(404, 'No Record found', "Record doesn't exist or ACL restricts the record retrieval")
    return jsonResponse({ result: this.render(version) }, 200, this.#limits())
  }

  protected rateLimited(retryAfter: string | undefined): Response {
    const seconds = Math.max(1, Math.ceil((this.#window.resetAtMs - this.clock.now()) / 1_000))
    return this.#error(429, 'Rate limit exceeded', 'The request exceeds the rate limit of this instance', {
      ...this.#limits(),
      'retry-after': retryAfter ?? String(seconds),
    })
  }

  protected unauthorized(): Response {
    return this.#error(401, 'User Not Authenticated', 'Required to provide Auth information', {
      'www-authenticate': 'BASIC realm="Service-now"',
    })
  }

  protected serverError(status: number): Response {
    return this.#error(status, 'Internal Server Error', null)
  }

  #list(table: string, call: ApiCall): Response {
    const params = call.url.searchParams
    const limit = Math.max(0, Number(params.get('sysparm_limit') ?? LIMIT_DEFAULT))
    const offset = Math.max(0, Number(params.get('sysparm_offset') ?? 0))
    if (!Number.isInteger(limit) || !Number.isInteger(offset))
      return this.#error(400, 'Pagination not supported', 'sysparm_limit and sysparm_offset must be whole numbers')
    const query = parseEncodedQuery(
      params.get('sysparm_query') ?? '',
      new Set([...SYSTEM_COLUMNS, ...required(this.#columns(table), 'the result of #columns')]),
    )
    const shownMax = call.shortPage ? Math.max(1, Math.floor(limit / 2)) : limit
    const found =
      query.unreadable.length > 0 && this.#returnsNoRowsIfInvalid
        ? { total: 0, rows: [] }
        : (this.#scanned(table, query, offset, shownMax) ?? this.#sorted(table, query, offset, shownMax))
    const page = found.rows.filter((row) => !this.#hidden(table, row))
    const fields = params
      .get('sysparm_fields')
      ?.split(',')
      .map((name) => name.trim())
    const result = page.map((row) =>
      fields === undefined
        ? row
        : Object.fromEntries(fields.filter((name) => name in row).map((name) => [name, row[name]])),
    )
    const headers = { ...this.#limits(), ...this.#paging(call, found.total, limit, offset) }
    if (!call.partial) return jsonResponse({ result }, 200, headers)
    return jsonResponse(
      {
        result: result.slice(0, Math.floor(result.length / 2)),
        error: {
          message: 'Transaction cancelled: maximum execution time exceeded',
          detail:
            'Transaction cancelled: maximum execution time exceeded Check logs for error trace or enable glide.rest.debug property to verify REST request processing',
        },
        status: 'failure',
      },
      200,
      headers,
    )
  }

  /** A query by a timestamp and then by sys_id, as keyset paging sends it. Null for any other query. */
  #scanned(table: string, query: EncodedQuery, offset: number, limit: number): TablePage | null {
    const [first, second] = query.orderBy
    const isSorted =
      query.orderBy.length === 2 &&
      (required(first, 'first').field === 'sys_created_on' || required(first, 'first').field === 'sys_updated_on') &&
      required(second, 'second').field === 'sys_id' &&
      !required(first, 'first').descending &&
      !required(second, 'second').descending
    if (!isSorted) return null
    const { view, placeOf } = TIMESTAMP_VIEWS[required(first, 'first').field as keyof typeof TIMESTAMP_VIEWS]
    const sorted = this.records.sorted(table, view)
    const { stretches, isExact } = findIndexRanges(query, required(first, 'first').field, sorted, placeOf)
    const shown = (version: RecordVersion): TextRow => this.render(version) as TextRow
    if (!isExact) {
      const rows = stretches
        .flatMap(({ from, until }) => sorted.slice(from, until).map(shown))
        .filter((row) => matchesQuery(row, query))
      return { total: rows.length, rows: rows.slice(offset, offset + limit) }
    }
    const total = stretches.reduce((sum, { from, until }) => sum + until - from, 0)
    const page: RecordVersion[] = []
    let skipped = 0
    for (const { from, until } of stretches) {
      const begin = Math.min(until, from + Math.max(0, offset - skipped))
      page.push(...sorted.slice(begin, Math.min(until, begin + limit - page.length)))
      skipped += until - from
    }
    return { total, rows: page.map(shown) }
  }

  #sorted(table: string, query: EncodedQuery, offset: number, limit: number): TablePage {
    if (table in DICTIONARY) return this.#found(this.#dictionary(table), query, offset, limit)
    const all = this.records
      .indexed(table)
      .filter((version) => !version.deleted)
      .map((version) => this.render(version) as TextRow)
    const rows = all.filter((row) => matchesQuery(row, query))
    // Ties may come in any order.
    const shuffled = rows
      .map((row) => ({ row, at: this.random.next() }))
      .toSorted((a, b) => a.at - b.at)
      .map(({ row }) => row)
    return this.#found(shuffled, query, offset, limit)
  }

  #found(all: readonly TextRow[], query: EncodedQuery, offset: number, limit: number): TablePage {
    const rows = all.filter((row) => matchesQuery(row, query))
    return { total: rows.length, rows: orderRows([...rows], query).slice(offset, offset + limit) }
  }

  #columns(table: string): readonly string[] | undefined {
    return DICTIONARY[table] ?? this.#tables[table]
  }

  /** The instance's metadata: its tables, and their own columns. */
  #dictionary(table: string): TextRow[] {
    const names = Object.keys(this.#tables)
    if (table === 'sys_db_object')
      return names.map((name) => ({ sys_id: name, name, label: name, ...this.#superClasses(name, 'super_class.') }))
    return names.flatMap((name) =>
      [
        '',
        ...(this.#extends[name] === undefined ? SYSTEM_COLUMNS : []),
        ...required(this.#tables[name], 'tables[name]'),
      ].map((element) => ({
        // The entry without an element is the table itself.
        sys_id: `${name}.${element}`,
        name,
        element,
        internal_type: element === '' ? 'collection' : (this.#types[element] ?? 'string'),
        active: 'true',
      })),
    )
  }

  /** Follows dot-walked references as far as they exist; the rest is empty. */
  #superClasses(name: string, path: string): TextRow {
    const parent = this.#extends[name] ?? ''
    return { [`${path}name`]: parent, ...(parent !== '' && this.#superClasses(parent, `${path}super_class.`)) }
  }

  /** Counts and links include rows hidden from the reader. */
  #paging(call: ApiCall, total: number, limit: number, offset: number): Record<string, string> {
    const params = call.url.searchParams
    const headers: Record<string, string> =
      params.get('sysparm_no_count') === 'true' ? {} : { 'x-total-count': String(total) }
    if (params.get('sysparm_suppress_pagination_header') === 'true' || limit === 0) return headers
    const more = call.endFlagOverride === undefined ? offset + limit < total : call.endFlagOverride === 'more'
    if (total <= limit && !more) return headers
    const link = (to: number, rel: string): string => {
      const url = new URL(call.url)
      url.searchParams.set('sysparm_limit', String(limit))
      url.searchParams.set('sysparm_offset', String(to))
      return `<${url.href}>;rel="${rel}"`
    }
    const last = Math.max(0, Math.ceil(total / limit) - 1) * limit
    headers['link'] = [
      link(0, 'first'),
      ...(offset > 0 ? [link(Math.max(0, offset - limit), 'prev')] : []),
      ...(more ? [link(offset + limit, 'next')] : []),
      link(last, 'last'),
    ].join(',')
    return headers
  }

  #limits(): Record<string, string> {
    if (this.#perHour === undefined) return {}
    return {
      'x-ratelimit-limit': String(this.#perHour),
      'x-ratelimit-reset': String(Math.ceil(this.#window.resetAtMs / 1_000)),
      'x-ratelimit-rule': this.#rule,
    }
  }

  #error(status: number, message: string, detail: string | null, headers: Record<string, string> = {}): Response {
    return jsonResponse({ error: { message, detail }, status: 'failure' }, status, headers)
  }
}

interface TablePage {
  readonly total: number
  readonly rows: readonly TextRow[]
}

function createTimestampView(timeOf: (version: RecordVersion) => number): {
  readonly view: RecordView
  readonly placeOf: (version: RecordVersion) => readonly [string, string]
} {
  const seconds = (version: RecordVersion): number => Math.floor(timeOf(version) / 1_000)
  return {
    view: {
      reads: 'index',
      includes: ({ deleted }) => !deleted,
      order: (a, b) => seconds(a) - seconds(b) || compareText(a.id, b.id),
    },
    placeOf: (version) => [formatTimestamp(timeOf(version)), version.id],
  }
}

/** Whole seconds in UTC, without a zone. */
function formatTimestamp(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replace('T', ' ')
}
