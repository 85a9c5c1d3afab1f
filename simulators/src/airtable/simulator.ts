import { compareText, randomText } from '../kit/ids.ts'
import { jsonResponse } from '../kit/json-response.ts'
import { RateWindow } from '../kit/rate-window.ts'
import type { Fields, SimulatorPorts } from '../kit/simulator.ts'
import type { RecordVersion } from '../kit/versioned-records.ts'
import { VendorSimulator, type ApiCall, type VendorOptions } from '../kit/vendor-simulator.ts'
import { required } from '../kit/required.ts'
import { WEBHOOK_ID, WebhookPayloads } from './webhook.ts'

/** Options of `AirtableSimulator`. */
export interface AirtableOptions extends VendorOptions {
  readonly baseId?: string
  readonly tables?: readonly string[]
  /** Five requests a second, and thirty seconds of refusal after one too many. Enforced only when true. */
  readonly limited?: boolean
  /** An idle iteration expires after this long. The vendor does not document how long; this is a guess. */
  readonly iteratorTtlMs?: number
}

interface ListIterator {
  readonly table: string
  /** The order is fixed by the first request; later records are not included. */
  readonly ids: readonly string[]
  readonly indexById: ReadonlyMap<string, number>
  usedAtMs: number
}

const PAGE_SIZE_MAX = 100
const PENALTY_MS = 30_000

/**
 * The records of one base, listed by iterators that time out. There is no modification time and no sign of deletion
 * but in the payloads of its webhook.
 */
export class AirtableSimulator extends VendorSimulator {
  readonly #baseId: string
  readonly #tables: readonly string[]
  readonly #limited: boolean
  readonly #iteratorTtlMs: number
  readonly #window: RateWindow
  readonly #iterators = new Map<string, ListIterator>()
  #refusedUntilMs = -Infinity
  readonly #payloads: WebhookPayloads

  constructor(ports: SimulatorPorts, options: AirtableOptions = {}) {
    super(ports, options)
    this.#baseId = options.baseId ?? 'appSimulated00001'
    this.#tables = options.tables ?? ['Tasks']
    this.#limited = options.limited === true
    this.#iteratorTtlMs = options.iteratorTtlMs ?? 10 * 60_000
    this.#window = new RateWindow(ports.clock, { requests: 5, perMs: 1_000 })
    this.#payloads = new WebhookPayloads(ports.clock)
  }

  protected newId(): string {
    return `rec${randomText(this.random, 14)}`
  }

  /** Reports a change of the fields of a table, such as a new name. */
  changeField(table: string): void {
    const fieldId = `fld${String(this.#tables.indexOf(table)).padStart(14, '0')}`
    this.#payloads.add(this.#tableId(table), {
      changedFieldsById: { [fieldId]: { current: { name: 'Title' }, previous: { name: 'Name' } } },
    })
  }

  #tableId(name: string): string {
    return formatTableId(this.#tables.indexOf(name))
  }

  /** A payload names the records; their values are those of single fields by id, so readers read the record. */
  protected override onWrite(kind: 'created' | 'updated' | 'deleted', { type, id, createdAtMs }: RecordVersion): void {
    const createdTime = new Date(createdAtMs).toISOString()
    const change = {
      created: { createdRecordsById: { [id]: { cellValuesByFieldId: {}, createdTime } } },
      updated: { changedRecordsById: { [id]: { current: { cellValuesByFieldId: {} } } } },
      deleted: { destroyedRecordIds: [id] },
    }[kind]
    this.#payloads.add(this.#tableId(type), change)
  }

  /** Empty fields are omitted: null, false, empty text and empty lists. */
  protected render(version: RecordVersion): Fields {
    const fields = Object.entries(version.fields).filter(
      ([, value]) =>
        value !== null &&
        value !== undefined &&
        value !== false &&
        value !== '' &&
        !(Array.isArray(value) && value.length === 0),
    )
    return {
      id: version.id,
      createdTime: new Date(version.createdAtMs).toISOString(),
      fields: Object.fromEntries(fields),
    }
  }

  protected respond(call: ApiCall): Response {
    if (call.url.pathname.startsWith('/v0/meta/')) return this.#schema(call)
    if (call.url.pathname.startsWith('/v0/bases/')) return this.#webhooks(call)
    const match = /^\/v0\/(\w+)\/([^/]+)(?:\/(\w+))?$/.exec(call.url.pathname)
    if (match === null) return errorResponse(404, 'NOT_FOUND', 'Not found')
    if (!this.isAuthorized(call.request)) return this.unauthorized()
    if (!this.#takeRateSlot()) return this.rateLimited(undefined)
    const named = decodeURIComponent(required(match[2], 'match[2]'))
    const table = this.#tables.find((_, at) => formatTableId(at) === named) ?? named
    if (match[1] !== this.#baseId || !this.#tables.includes(table))
      return errorResponse(
        403,
        'INVALID_PERMISSIONS_OR_MODEL_NOT_FOUND',
        'Invalid permissions, or the requested model was not found. Check that both your user and your token have the required permissions, and that the model names and/or ids are correct.',
      )
    const post = match[3] === 'listRecords' && call.request.method === 'POST'
    if (match[3] !== undefined && !post) return this.#one(table, match[3])
    return this.#list(table, post ? parseBody(call.body) : parseQuery(call.url.searchParams), call)
  }

  protected rateLimited(retryAfter: string | undefined): Response {
    return jsonResponse(
      { errors: [{ error: 'RATE_LIMIT_REACHED', message: 'Rate limit exceeded. Please try again later' }] },
      429,
      retryAfter === undefined ? {} : { 'retry-after': retryAfter },
    )
  }

  protected unauthorized(): Response {
    return errorResponse(401, 'AUTHENTICATION_REQUIRED', 'Authentication required')
  }

  protected serverError(status: number): Response {
    return errorResponse(status, 'SERVER_ERROR', 'Server error')
  }

  #webhooks(call: ApiCall): Response {
    if (!this.isAuthorized(call.request)) return this.unauthorized()
    if (!this.#takeRateSlot()) return this.rateLimited(undefined)
    const home = `/v0/bases/${this.#baseId}/webhooks`
    if (call.url.pathname === home)
      return jsonResponse({
        webhooks: [
          {
            id: WEBHOOK_ID,
            areNotificationsEnabled: true,
            cursorForNextPayload: this.#payloads.cursorForNextPayload,
            isHookEnabled: true,
            specification: { options: { filters: { dataTypes: ['tableData', 'tableFields'] } } },
          },
        ],
      })
    if (call.url.pathname !== `${home}/${WEBHOOK_ID}/payloads`) return errorResponse(404, 'NOT_FOUND', 'Not found')
    const query = call.url.searchParams
    const cursor = Number(query.get('cursor') ?? 1)
    if (!Number.isInteger(cursor) || cursor < 1)
      return errorResponse(422, 'INVALID_REQUEST_UNKNOWN', 'Invalid request: parameter validation failed.')
    const listed = this.#payloads.list(cursor, Math.min(Number(query.get('limit') ?? 50), this.pageSizeMax))
    return jsonResponse({ ...listed, payloadFormat: 'v0' })
  }

  #schema(call: ApiCall): Response {
    if (!this.isAuthorized(call.request)) return this.unauthorized()
    if (call.url.pathname === '/v0/meta/bases')
      return jsonResponse({ bases: [{ id: this.#baseId, name: 'Simulated', permissionLevel: 'read' }] })
    if (call.url.pathname !== `/v0/meta/bases/${this.#baseId}/tables`)
      return errorResponse(404, 'NOT_FOUND', 'Not found')
    return jsonResponse({
      tables: this.#tables.map((name, at) => {
        const primary = `fld${String(at).padStart(14, '0')}`
        return {
          id: formatTableId(at),
          name,
          primaryFieldId: primary,
          fields: [{ id: primary, name: 'Name', type: 'singleLineText' }],
          views: [{ id: `viw${String(at).padStart(14, '0')}`, name: 'Grid view', type: 'grid' }],
        }
      }),
    })
  }

  #one(table: string, id: string): Response {
    const version = this.records.find(table, id)
    return version === undefined || version.deleted
      ? errorResponse(404, 'NOT_FOUND', 'Record not found')
      : jsonResponse(this.render(version))
  }

  #list(table: string, asked: ListQuery, call: ApiCall): Response {
    const { pageSize, offset } = asked
    if (!Number.isInteger(pageSize) || pageSize < 1 || pageSize > PAGE_SIZE_MAX)
      return errorResponse(
        422,
        'INVALID_REQUEST_UNKNOWN',
        'Invalid request: parameter validation failed. Check your request data.',
      )
    let id: string
    let from: number
    if (offset === undefined) {
      id = `itr${randomText(this.random, 14)}`
      from = 0
      const { accepts } = asked
      const ids = this.#order(table, asked.sort).filter((record) =>
        accepts(required(this.records.find(table, record), 'a listed record')),
      )
      this.#iterators.set(id, {
        table,
        ids,
        indexById: new Map(ids.map((record, place) => [record, place])),
        usedAtMs: this.clock.now(),
      })
    } else {
      const match = /^(itr\w{14})\/(rec\w{14})$/.exec(offset)
      if (match === null) return errorResponse(422, 'INVALID_OFFSET_VALUE', `The value of offset ${offset} is invalid`)
      id = required(match[1], 'match[1]')
      const known = this.#iterators.get(id)
      if (
        known === undefined ||
        known.table !== table ||
        call.expiredToken ||
        this.clock.now() - known.usedAtMs > this.#iteratorTtlMs
      ) {
        this.#iterators.delete(id)
        return errorResponse(
          422,
          'LIST_RECORDS_ITERATOR_NOT_AVAILABLE',
          'The iterator is no longer available. Please restart the iteration.',
        )
      }
      known.usedAtMs = this.clock.now()
      from = (known.indexById.get(required(match[2], 'match[2]')) ?? -1) + 1
    }
    const { ids } = required(this.#iterators.get(id), 'an entry of iterators')
    const served = Math.min(pageSize, this.pageSizeMax)
    const size = call.shortPage ? Math.max(1, Math.floor(served / 2)) : served
    const end = Math.min(ids.length, from + size, asked.maxRecords)
    // A record deleted meanwhile leaves a gap: the page is short though more follow.
    const records = ids
      .slice(from, end)
      .map((recordId) => required(this.records.find(table, recordId), 'the match in records'))
      .filter((version) => !version.deleted)
      .map((version) => this.#selected(version, asked.fields))
    const more =
      call.endFlagOverride === undefined
        ? end < Math.min(ids.length, asked.maxRecords)
        : call.endFlagOverride === 'more' && end > 0
    if (!more) this.#iterators.delete(id)
    return jsonResponse(more ? { records, offset: `${id}/${required(ids[end - 1], 'ids[end - 1]')}` } : { records })
  }

  #order(table: string, sort: ListQuery['sort']): string[] {
    const text = (version: RecordVersion, field: string): string => {
      const value = version.fields[field]
      return typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value)
    }
    return this.records
      .current(table)
      .toSorted((a, b) => {
        for (const { field, descending } of sort) {
          const compared = compareText(text(a, field), text(b, field))
          if (compared !== 0) return descending ? -compared : compared
        }
        return 0
      })
      .map((version) => version.id)
  }

  #selected(version: RecordVersion, fields: readonly string[]): Fields {
    const shown = this.render(version) as { fields: Fields }
    return fields.length === 0
      ? shown
      : { ...shown, fields: Object.fromEntries(Object.entries(shown.fields).filter(([name]) => fields.includes(name))) }
  }

  #takeRateSlot(): boolean {
    if (!this.#limited) return true
    if (this.clock.now() < this.#refusedUntilMs) return false
    if (this.#window.take()) return true
    this.#refusedUntilMs = this.clock.now() + PENALTY_MS
    return false
  }
}

interface ListQuery {
  readonly pageSize: number
  readonly maxRecords: number
  readonly offset: string | undefined
  readonly fields: readonly string[]
  /** The condition of `filterByFormula`. */
  readonly accepts: (version: RecordVersion) => boolean
  readonly sort: ReadonlyArray<{ readonly field: string; readonly descending: boolean }>
}

function parseQuery(query: URLSearchParams): ListQuery {
  const sort: Array<{ field: string; descending: boolean }> = []
  for (let at = 0; query.has(`sort[${at}][field]`); at++)
    sort.push({
      field: required(query.get(`sort[${at}][field]`), 'an entry of query'),
      descending: query.get(`sort[${at}][direction]`) === 'desc',
    })
  return {
    pageSize: Number(query.get('pageSize') ?? PAGE_SIZE_MAX),
    maxRecords: Number(query.get('maxRecords') ?? Infinity),
    offset: query.get('offset') ?? undefined,
    fields: [...query].filter(([name]) => /^fields\[\d*\]$/.test(name)).map(([, value]) => value),
    accepts: parseFormula(query.get('filterByFormula') ?? undefined),
    sort,
  }
}

/** Two kinds of formulas are simulated: `OR(RECORD_ID()='rec…', …)`, and bounds of the time of the last change. */
function parseFormula(formula: string | undefined): ListQuery['accepts'] {
  if (formula === undefined) return () => true
  const bounds = [...formula.matchAll(TIME_BOUND)].map(([, not, time]) => ({
    isLower: not !== undefined,
    ms: Date.parse(required(time, 'a time')),
  }))
  const ids = new Set([...formula.matchAll(/RECORD_ID\(\)\s*=\s*'(rec\w+)'/g)].map(([, id]) => required(id, 'an id')))
  return ({ id, modifiedAtMs }) =>
    bounds.every(({ isLower, ms }) => modifiedAtMs < ms !== isLower) && (bounds.length > 0 || ids.has(id))
}

const TIME_BOUND =
  /(NOT\()?IS_BEFORE\(IF\(LAST_MODIFIED_TIME\(\), LAST_MODIFIED_TIME\(\), CREATED_TIME\(\)\), DATETIME_PARSE\('([^']+)'\)\)/g

function formatTableId(at: number): string {
  return `tbl${String(at).padStart(14, '0')}`
}

function parseBody(body: string): ListQuery {
  const given = JSON.parse(body === '' ? '{}' : body) as {
    pageSize?: number
    maxRecords?: number
    offset?: string
    fields?: string[]
    sort?: Array<{ field: string; direction?: string }>
    filterByFormula?: string
  }
  return {
    pageSize: given.pageSize ?? PAGE_SIZE_MAX,
    maxRecords: given.maxRecords ?? Infinity,
    offset: given.offset,
    fields: given.fields ?? [],
    accepts: parseFormula(given.filterByFormula),
    sort: (given.sort ?? []).map(({ field, direction }) => ({ field, descending: direction === 'desc' })),
  }
}

function errorResponse(status: number, type: string, message: string): Response {
  return jsonResponse({ error: { type, message } }, status)
}
