import { compareText, randomText } from '../kit/ids.ts'
import { jsonResponse } from '../kit/json-response.ts'
import { RateWindow } from '../kit/rate-window.ts'
import type { Fields, SimulatorPorts } from '../kit/simulator.ts'
import type { RecordView } from '../kit/sorted-view.ts'
import type { RecordVersion } from '../kit/versioned-records.ts'
import { VendorSimulator, type ApiCall, type VendorOptions } from '../kit/vendor-simulator.ts'
import { evaluate, scanByTimestamp, type FieldType, type Row } from './evaluate.ts'
import { toId18 } from './record-id.ts'
import {
  decodeLocator,
  encodeLocator,
  formatCsvLine,
  QueryJobs,
  renderNewJob,
  type NewQueryJob,
  type QueryJob,
} from './query-jobs.ts'
import { SalesforceError } from './salesforce-error.ts'
import { MalformedQueryError, parseSoql } from './soql.ts'
import { required } from '../kit/required.ts'

/** Options of `SalesforceSimulator`. */
export interface SalesforceOptions extends VendorOptions {
  /** Fields beyond the system ones, per object. The value of a datetime is a time in milliseconds. */
  readonly objects?: Readonly<Record<string, Readonly<Record<string, FieldType>>>>
  /** Requests allowed in 24 hours. */
  readonly dailyRequests?: number
  /** Granularity of timestamps. */
  readonly granularityMs?: number
  readonly locatorTtlMs?: number
  /** The documented minimum is 200; tests that need many pages of few rows lower it. */
  readonly batchSizeMin?: number
  /** The user may query the objects, and not read their descriptions. */
  readonly hidesDescriptions?: boolean
  /** Query jobs of Bulk API 2.0 allowed in 24 hours. */
  readonly dailyQueryJobs?: number
  /** Objects that Bulk API 2.0 does not support. */
  readonly notInBulk?: readonly string[]
}

interface Locator {
  readonly objectName: string
  readonly rows: readonly Fields[]
  readonly batchSize: number
  usedAtMs: number
}

const DAY_MS = 86_400_000
const LOCATORS_MAX = 10
const BATCH_SIZE_MAX = 2_000
const PREFIXES: Readonly<Record<string, string>> = {
  Account: '001',
  Contact: '003',
  User: '005',
  Opportunity: '006',
  Lead: '00Q',
  Case: '500',
}
const SYSTEM_FIELDS: Readonly<Record<string, FieldType>> = {
  Id: 'id',
  IsDeleted: 'boolean',
  CreatedDate: 'datetime',
  LastModifiedDate: 'datetime',
  SystemModstamp: 'datetime',
}
const STANDARD_OBJECTS = {
  Account: { Name: 'string', Industry: 'string', Phone: 'string', AnnualRevenue: 'double' },
  Contact: { Name: 'string', Email: 'string', AccountId: 'id' },
} satisfies Record<string, Record<string, FieldType>>

/** The REST API of one org: SOQL queries from an index that lags, locators that expire, a daily budget. */
export class SalesforceSimulator extends VendorSimulator {
  readonly #objects: Readonly<Record<string, Readonly<Record<string, FieldType>>>>
  readonly #granularityMs: number
  readonly #locatorTtlMs: number
  readonly #batchSizeMin: number
  readonly #dailyRequests: number
  readonly #hidesDescriptions: boolean
  readonly #budget: RateWindow
  readonly #locators = new Map<string, Locator>()
  readonly #notInBulk: ReadonlySet<string>
  /** The query jobs of Bulk API 2.0. */
  readonly jobs: QueryJobs
  readonly #stamps: Readonly<
    Record<
      'created' | 'modified',
      { readonly of: (version: RecordVersion) => number; readonly all: RecordView; readonly live: RecordView }
    >
  >
  #ids = 0

  constructor(ports: SimulatorPorts, options: SalesforceOptions = {}) {
    super(ports, options)
    this.#objects = options.objects ?? STANDARD_OBJECTS
    this.#granularityMs = options.granularityMs ?? 1
    this.#locatorTtlMs = options.locatorTtlMs ?? 15 * 60_000
    this.#batchSizeMin = options.batchSizeMin ?? 200
    this.#dailyRequests = options.dailyRequests ?? 100_000
    this.#hidesDescriptions = options.hidesDescriptions === true
    this.#budget = new RateWindow(ports.clock, { requests: this.#dailyRequests, perMs: DAY_MS })
    this.#notInBulk = new Set(options.notInBulk)
    this.jobs = new QueryJobs(ports.clock, ports.random, options.dailyQueryJobs)
    const sorted = (of: (version: RecordVersion) => number) => {
      const all: RecordView = {
        reads: 'index',
        includes: () => true,
        order: (a, b) => of(a) - of(b) || compareText(a.id, b.id),
      }
      return { of, all, live: { ...all, includes: ({ deleted }: RecordVersion) => !deleted } }
    }
    this.#stamps = {
      created: sorted(({ createdAtMs }) => this.#floor(createdAtMs)),
      modified: sorted(({ modifiedAtMs }) => this.#floor(modifiedAtMs)),
    }
  }

  /** Two pods assign ids concurrently, so ids do not follow time. */
  protected newId(type: string): string {
    const prefix = PREFIXES[type] ?? 'a00'
    const pod = this.random.next() < 0.5 ? '5g' : 'Gx'
    return toId18(`${prefix}${pod}0000${(++this.#ids).toString(36).padStart(6, '0')}`)
  }

  protected render(version: RecordVersion): Fields {
    const shown: Record<string, unknown> = { Id: version.id }
    const types = this.#objects[version.type]
    for (const name of Object.keys(types ?? version.fields))
      shown[name] = renderValue(types?.[name], version.fields[name] ?? null)
    return {
      ...shown,
      IsDeleted: version.deleted,
      CreatedDate: formatTimestamp(this.#floor(version.createdAtMs)),
      LastModifiedDate: formatTimestamp(this.#floor(version.modifiedAtMs)),
      SystemModstamp: formatTimestamp(this.#floor(version.modifiedAtMs)),
    }
  }

  protected respond(call: ApiCall): Response {
    try {
      return this.#route(call)
    } catch (error) {
      if (error instanceof MalformedQueryError)
        return this.#error(new SalesforceError('MALFORMED_QUERY', error.message))
      if (error instanceof SalesforceError) return this.#error(error)
      throw error
    }
  }

  protected rateLimited(): Response {
    return this.#error(new SalesforceError('REQUEST_LIMIT_EXCEEDED', 'TotalRequests Limit exceeded.'))
  }

  protected unauthorized(): Response {
    return this.#error(new SalesforceError('INVALID_SESSION_ID', 'Session expired or invalid'))
  }

  protected serverError(status: number): Response {
    return jsonResponse([{ message: 'Server Unavailable', errorCode: 'SERVER_UNAVAILABLE' }], status)
  }

  #route(call: ApiCall): Response {
    const { pathname, searchParams, origin } = call.url
    if (pathname === '/services/oauth2/token') return this.#signIn(call, origin)
    const match = /^\/services\/data(?:\/(v\d{2,3}\.\d))?(?:\/(\w+))?(?:\/(.+?))?\/?$/.exec(pathname)
    if (match === null) throw new SalesforceError('NOT_FOUND', 'The requested resource does not exist')
    const [, version, resource, rest] = match
    if (version === undefined)
      return jsonResponse([{ label: "Winter '26", url: '/services/data/v65.0', version: '65.0' }])
    if (!this.isAuthorized(call.request)) throw new SalesforceError('INVALID_SESSION_ID', 'Session expired or invalid')
    if (!this.#budget.take()) throw new SalesforceError('REQUEST_LIMIT_EXCEEDED', 'TotalRequests Limit exceeded.')
    if (resource === 'query' || resource === 'queryAll') {
      if (rest !== undefined) return this.#queryMore(rest, version, call)
      return this.#query(searchParams.get('q') ?? '', version, resource === 'queryAll', call)
    }
    if (resource === 'jobs') return this.#queryJobs(rest ?? '', version, call)
    if (resource === 'limits')
      return this.#ok({
        DailyApiRequests: { Max: this.#dailyRequests, Remaining: this.#budget.remaining },
        DailyBulkV2QueryJobs: { Max: this.jobs.perDay, Remaining: this.jobs.remaining },
      })
    if (resource === 'sobjects') return this.#sobjects(rest)
    throw new SalesforceError('NOT_FOUND', 'The requested resource does not exist')
  }

  #signIn(call: ApiCall, origin: string): Response {
    const form = new URLSearchParams(call.body)
    if (form.get('grant_type') === null)
      return jsonResponse({ error: 'unsupported_grant_type', error_description: 'grant type not supported' }, 400)
    return jsonResponse({
      access_token: this.token ?? `00D5g0000000000!${randomText(this.random, 24)}`,
      instance_url: origin,
      id: `${origin}/id/00D5g0000000000EAA/0055g0000000000AAA`,
      token_type: 'Bearer',
      issued_at: String(this.clock.now()),
      signature: randomText(this.random, 44),
    })
  }

  /** The resource `jobs/query` of Bulk API 2.0. */
  #queryJobs(path: string, apiVersion: string, call: ApiCall): Response {
    const match = /^query(?:\/(\w+)(?:\/(results))?)?$/.exec(path)
    if (match === null) throw new SalesforceError('NOT_FOUND', 'The requested resource does not exist')
    const [, id, results] = match
    const { method } = call.request
    if (id === undefined) {
      if (method !== 'POST') throw new SalesforceError('METHOD_NOT_ALLOWED', `HTTP Method '${method}' not allowed.`)
      return this.#ok(renderNewJob(this.jobs.create(this.#parseQueryJob(call.body, apiVersion))))
    }
    if (call.expiredToken) this.jobs.expire(id)
    if (results !== undefined) return this.#jobResults(this.jobs.find(id), apiVersion, call)
    switch (method) {
      case 'GET':
        return this.#ok(this.jobs.render(this.jobs.find(id)))
      case 'PATCH':
        return this.#ok(this.jobs.render(this.jobs.abort(id)))
      case 'DELETE':
        this.jobs.delete(id)
        return new Response(null, { status: 204, headers: this.#usage() })
      default:
        throw new SalesforceError('METHOD_NOT_ALLOWED', `HTTP Method '${method}' not allowed.`)
    }
  }

  #parseQueryJob(body: string, apiVersion: string): NewQueryJob {
    const { operation, query: soql, columnDelimiter = 'COMMA', lineEnding = 'LF' } = parseJobRequest(body)
    if (operation !== 'query' && operation !== 'queryAll')
      throw new SalesforceError('API_ERROR', `Unsupported operation: ${String(operation)}`)
    if (columnDelimiter !== 'COMMA' || lineEnding !== 'LF')
      throw new SalesforceError('API_ERROR', 'This simulator writes commas and line feeds only.')
    const query = parseSoql(String(soql))
    const { objectName, names, types } = this.#resolveObject(query.from)
    if (this.#notInBulk.has(objectName))
      throw new SalesforceError('INVALIDENTITY', `Entity '${objectName}' is not supported by the Bulk API.`)
    if (query.count || query.offset > 0)
      throw new SalesforceError('API_ERROR', 'Aggregate functions and OFFSET are not supported in Bulk Query')
    const columns = this.#selected(query.fields, names, objectName, query.limit)
    const isCompound = columns.some((name) => COMPOUND_TYPES.has(types.get(name.toLowerCase()) ?? 'string'))
    const read = (): Map<string, string> =>
      new Map(
        evaluate(query, this.#indexedRows(objectName, operation === 'queryAll'), types).map((row) => [
          String(row['id']),
          formatCsvLine(
            columns.map((name) => renderCsvValue(types.get(name.toLowerCase()), row[name.toLowerCase()] ?? null)),
          ),
        ]),
      )
    return {
      operation,
      objectName,
      columns,
      apiVersion,
      read,
      failure: isCompound ? 'FUNCTIONALITY_NOT_ENABLED : Selecting compound data not supported in Bulk Query' : null,
    }
  }

  #jobResults(job: QueryJob, apiVersion: string, call: ApiCall): Response {
    if (job.apiVersion !== apiVersion)
      throw new SalesforceError('API_VERSION_MISMATCH', 'Use the API version that created the job.')
    const lines = this.jobs.requireComplete(job)
    const { searchParams } = call.url
    const locator = searchParams.get('locator')
    const from = locator === null ? 0 : decodeLocator(locator)
    const asked = Number(searchParams.get('maxRecords') ?? RESULT_RECORDS_DEFAULT)
    if (from === null || from > lines.length) throw new SalesforceError('INVALID_LOCATOR', 'Invalid query locator')
    if (!Number.isInteger(asked) || asked < 1) throw new SalesforceError('API_ERROR', 'Invalid maxRecords')
    const page = lines.slice(from, from + (call.shortPage ? Math.max(1, Math.floor(asked / 2)) : asked))
    const end = from + page.length
    const hasMore = call.endFlagOverride === undefined ? end < lines.length : call.endFlagOverride === 'more'
    return new Response([formatCsvLine(job.columns), ...page, ''].join('\n'), {
      headers: {
        ...this.#usage(),
        'content-type': 'text/csv',
        'sforce-numberofrecords': String(page.length),
        'sforce-locator': hasMore ? encodeLocator(end) : 'null',
      },
    })
  }

  #resolveObject(from: string): {
    objectName: string
    names: ReadonlyMap<string, string>
    types: ReadonlyMap<string, FieldType>
  } {
    const objectName = Object.keys(this.#objects).find((name) => name.toLowerCase() === from.toLowerCase())
    if (objectName === undefined) throw new SalesforceError('INVALID_TYPE', `sObject type '${from}' is not supported.`)
    const fields = Object.entries({ ...SYSTEM_FIELDS, ...this.#objects[objectName] })
    return {
      objectName,
      names: new Map(fields.map(([name]) => [name.toLowerCase(), name])),
      types: new Map(fields.map(([name, type]) => [name.toLowerCase(), type])),
    }
  }

  #indexedRows(objectName: string, all: boolean): Row[] {
    return this.records
      .indexed(objectName)
      .filter((version) => all || !version.deleted)
      .map((version) => this.#row(version))
  }

  #query(soql: string, apiVersion: string, all: boolean, call: ApiCall): Response {
    const query = parseSoql(soql)
    const { objectName, names, types } = this.#resolveObject(query.from)
    if (query.offset > 2_000)
      throw new SalesforceError('NUMBER_OUTSIDE_VALID_RANGE', 'Maximum SOQL offset allowed is 2000')
    const selected = this.#selected(query.fields, names, objectName, query.limit)
    const found =
      scanByTimestamp(
        query,
        types,
        (stamp) => {
          const { of: stampOf, ...views } = this.#stamps[stamp === 'createddate' ? 'created' : 'modified']
          return { sorted: this.records.sorted(objectName, all ? views.all : views.live), stampOf }
        },
        (version) => this.#row(version),
      ) ?? evaluate(query, this.#indexedRows(objectName, all), types)
    if (query.count) return this.#ok({ totalSize: found.length, done: true, records: [] })
    const rows = found.map((row) => {
      const shown: Record<string, unknown> = {
        attributes: {
          type: objectName,
          url: `/services/data/${apiVersion}/sobjects/${objectName}/${String(row['id'])}`,
        },
      }
      for (const name of selected) {
        shown[name] = renderValue(types.get(name.toLowerCase()), row[name.toLowerCase()] ?? null)
      }
      return shown
    })
    return this.#batch(
      { objectName, rows, batchSize: this.#batchSize(call.request), usedAtMs: this.clock.now() },
      undefined,
      0,
      apiVersion,
      call,
    )
  }

  #queryMore(rest: string, apiVersion: string, call: ApiCall): Response {
    const match = /^(01g\w{15})-(\d+)$/.exec(rest)
    const locator = match === null ? undefined : this.#locators.get(required(match[1], 'match[1]'))
    const expired =
      locator === undefined || this.clock.now() - locator.usedAtMs > this.#locatorTtlMs || call.expiredToken
    if (match === null || expired) {
      if (match !== null) this.#locators.delete(required(match[1], 'match[1]'))
      throw new SalesforceError('INVALID_QUERY_LOCATOR', 'invalid query locator')
    }
    locator.usedAtMs = this.clock.now()
    return this.#batch(locator, required(match[1], 'match[1]'), Number(match[2]), apiVersion, call)
  }

  #batch(locator: Locator, known: string | undefined, from: number, apiVersion: string, call: ApiCall): Response {
    const size = call.shortPage
      ? Math.max(1, Math.floor(Math.min(locator.batchSize, locator.rows.length - from) / 2))
      : locator.batchSize
    const records = locator.rows.slice(from, from + size)
    const end = from + records.length
    const done = call.endFlagOverride === undefined ? end >= locator.rows.length : call.endFlagOverride === 'end'
    if (done) return this.#ok({ totalSize: locator.rows.length, done, records })
    const id = known ?? this.#open(locator)
    return this.#ok({
      totalSize: locator.rows.length,
      done,
      nextRecordsUrl: `/services/data/${apiVersion}/query/${id}-${end}`,
      records,
    })
  }

  /** A user holds at most ten cursors; the least recently used one is dropped. */
  #open(locator: Locator): string {
    if (this.#locators.size >= LOCATORS_MAX) {
      const [oldest] = [...this.#locators].toSorted(([, a], [, b]) => a.usedAtMs - b.usedAtMs)
      this.#locators.delete(required(oldest, 'oldest')[0])
    }
    const id = toId18(`01g${randomText(this.random, 12)}`)
    this.#locators.set(id, locator)
    return id
  }

  #selected(
    fields: readonly string[],
    names: ReadonlyMap<string, string>,
    objectName: string,
    limit: number | undefined,
  ): string[] {
    return fields.flatMap((field) => {
      if (field.startsWith('FIELDS(')) {
        if (limit === undefined || limit > 200)
          throw new MalformedQueryError('The SOQL FIELDS function must have a LIMIT of at most 200')
        return [...names.values()]
      }
      const name = names.get(field.toLowerCase())
      if (name === undefined)
        throw new SalesforceError('INVALID_FIELD', `No such column '${field}' on entity '${objectName}'.`)
      return [name]
    })
  }

  #sobjects(rest: string | undefined): Response {
    if (rest === undefined)
      return this.#ok({
        encoding: 'UTF-8',
        maxBatchSize: 200,
        sobjects: [
          ...Object.keys(this.#objects).map((name) => describeBriefly(name, true)),
          describeBriefly('AggregateResult', false),
        ],
      })
    const [name = '', id] = rest.split('/')
    const fields = this.#objects[name]
    if (fields === undefined) throw new SalesforceError('NOT_FOUND', 'The requested resource does not exist')
    if (id === 'describe') {
      if (this.#hidesDescriptions) throw new SalesforceError('INSUFFICIENT_ACCESS', 'The request has been refused')
      return this.#ok({
        name,
        queryable: true,
        fields: Object.entries({ ...SYSTEM_FIELDS, ...fields }).map(([field, type]) => ({
          name: field,
          type,
          label: field,
        })),
      })
    }
    const version = this.records.find(name, id ?? '')
    if (version === undefined || version.deleted)
      throw new SalesforceError('NOT_FOUND', 'The requested resource does not exist')
    return this.#ok({
      attributes: { type: name, url: `/services/data/v65.0/sobjects/${name}/${version.id}` },
      ...this.render(version),
    })
  }

  #row(version: RecordVersion): Row {
    const row: Record<string, unknown> = {}
    for (const [name, value] of Object.entries(version.fields)) row[name.toLowerCase()] = value
    return {
      ...row,
      id: version.id,
      isdeleted: version.deleted,
      createddate: this.#floor(version.createdAtMs),
      lastmodifieddate: this.#floor(version.modifiedAtMs),
      systemmodstamp: this.#floor(version.modifiedAtMs),
    }
  }

  #batchSize(request: Request): number {
    const asked = Number(
      /batchSize=(\d+)/.exec(request.headers.get('sforce-query-options') ?? '')?.[1] ?? BATCH_SIZE_MAX,
    )
    return Math.min(BATCH_SIZE_MAX, Math.max(this.#batchSizeMin, asked))
  }

  #floor(ms: number): number {
    return Math.floor(ms / this.#granularityMs) * this.#granularityMs
  }

  #ok(body: unknown): Response {
    return jsonResponse(body, 200, this.#usage())
  }

  #error(error: SalesforceError): Response {
    return jsonResponse(error.body, error.status, this.#usage())
  }

  #usage(): Record<string, string> {
    return { 'sforce-limit-info': `api-usage=${this.#budget.used}/${this.#dailyRequests}` }
  }
}

/** An entry of the list of all objects. Every org has some that cannot be queried. */
function describeBriefly(name: string, isTable: boolean): Fields {
  const base = `/services/data/v65.0/sobjects/${name}`
  return {
    name,
    label: name,
    labelPlural: `${name}s`,
    keyPrefix: PREFIXES[name] ?? null,
    custom: name.endsWith('__c'),
    customSetting: false,
    deprecatedAndHidden: false,
    createable: isTable,
    updateable: isTable,
    deletable: isTable,
    queryable: isTable,
    replicateable: isTable,
    retrieveable: isTable,
    searchable: isTable,
    undeletable: isTable,
    urls: { sobject: base, describe: `${base}/describe`, rowTemplate: `${base}/{ID}` },
  }
}

const RESULT_RECORDS_DEFAULT = 50_000
const COMPOUND_TYPES: ReadonlySet<FieldType> = new Set<FieldType>(['address', 'location', 'base64'])
const DECIMAL_TYPES: ReadonlySet<FieldType> = new Set<FieldType>(['currency', 'double', 'percent'])

function parseJobRequest(body: string): Fields {
  try {
    return JSON.parse(body) as Fields
  } catch {
    throw new SalesforceError('JSON_PARSER_ERROR', 'The request body is not valid JSON.')
  }
}

/** As Bulk API 2.0 writes it: numbers with a fraction, times with Z, and an empty text for null. */
function renderCsvValue(type: FieldType | undefined, value: unknown): string {
  if (value === null) return ''
  if (type === 'datetime') return new Date(Number(value)).toISOString()
  if (type !== undefined && DECIMAL_TYPES.has(type))
    return Number.isInteger(value) ? `${String(value)}.0` : String(value)
  return String(value)
}

function renderValue(type: FieldType | undefined, value: unknown): unknown {
  return type === 'datetime' && value !== null ? formatTimestamp(Number(value)) : value
}

/** As the REST API writes it: milliseconds and an offset without a colon. */
function formatTimestamp(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '+0000')
}
