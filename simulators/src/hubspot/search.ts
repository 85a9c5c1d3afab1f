import type { Random } from '../kit/ports.ts'
import type { Fields } from '../kit/simulator.ts'
import { countLeading } from '../kit/sorted-view.ts'
import { HubspotError } from './hubspot-error.ts'
import { required } from '../kit/required.ts'

interface Filter {
  readonly propertyName: string
  readonly operator: string
  readonly value?: string
  readonly highValue?: string
  readonly values?: readonly string[]
}

export interface SearchRequest {
  readonly groups: ReadonlyArray<readonly Filter[]>
  readonly sort: { readonly propertyName: string; readonly descending: boolean } | undefined
  readonly limit: number
  readonly after: number
  readonly properties: readonly string[]
}

/** A record in the search index: every property is text. */
export type Properties = Readonly<Record<string, string | null>>

const GROUPS_MAX = 5
const FILTERS_PER_GROUP_MAX = 6
const FILTERS_MAX = 18
const LIMIT_DEFAULT = 100
const LIMIT_MAX = 200
export const RESULTS_MAX = 10_000
const OPERATORS = ['EQ', 'NEQ', 'LT', 'LTE', 'GT', 'GTE', 'BETWEEN', 'IN', 'NOT_IN', 'HAS_PROPERTY', 'NOT_HAS_PROPERTY']

export function parseSearchRequest(text: string): SearchRequest {
  const body = parseJson(text)
  const groups = toArray(body['filterGroups']).map((group) => toArray((group as Fields)['filters']) as Filter[])
  if (groups.length > GROUPS_MAX) throw createInvalidError(`You can only use up to ${GROUPS_MAX} filterGroups`)
  if (groups.some((filters) => filters.length > FILTERS_PER_GROUP_MAX) || groups.flat().length > FILTERS_MAX)
    throw createInvalidError(
      `You can only use up to ${FILTERS_PER_GROUP_MAX} filters in each filterGroup, with a maximum of ${FILTERS_MAX} filters in total`,
    )
  for (const filter of groups.flat()) {
    if (typeof filter.propertyName !== 'string' || typeof filter.operator !== 'string')
      throw createInvalidError(
        'Invalid input JSON: Cannot build Filter, some of required attributes are not set [propertyName, operator]',
      )
    if (!OPERATORS.includes(filter.operator))
      throw createInvalidError(
        `Invalid input JSON: Cannot deserialize value of type Operator from "${filter.operator}"`,
      )
  }
  const sorts = toArray(body['sorts'])
  if (sorts.length > 1) throw createInvalidError('Only one sorting rule can be applied to any search')
  const limit = body['limit'] === undefined || body['limit'] === null ? LIMIT_DEFAULT : Number(body['limit'])
  if (!Number.isInteger(limit) || limit < 0 || limit > LIMIT_MAX)
    throw createInvalidError(`The limit ${String(body['limit'])} is outside of the range 0 to ${LIMIT_MAX}`)
  const afterText = toText(body['after'])
  if (!/^\d*$/.test(afterText)) throw createInvalidError(`Invalid value for after: ${afterText}`)
  const after = Number(afterText || 0)
  if (after + limit > RESULTS_MAX)
    throw createInvalidError(
      `Paging through more than ${RESULTS_MAX} results is not supported: after=${after}, limit=${limit}`,
    )
  return {
    groups,
    sort: sorts[0] === undefined ? undefined : parseSort(sorts[0]),
    limit,
    after,
    properties: toArray(body['properties']).map(String),
  }
}

/** All searchable records, sorted by modification time and then by id. */
export interface SearchIndex<Item> {
  readonly sorted: readonly Item[]
  /** Name of the modification time property. */
  readonly modifiedProperty: string
  readonly modifiedMs: (item: Item) => number
  readonly id: (item: Item) => string
  readonly properties: (item: Item) => Properties
}

export interface SearchPage<Item> {
  readonly total: number
  readonly page: readonly Item[]
}

/**
 * A page of matches, sorted by the one allowed rule. Ties come in any order, and in another order with every request.
 */
export function search<Item>(
  request: SearchRequest,
  limit: number,
  index: SearchIndex<Item>,
  known: ReadonlySet<string>,
  random: Random,
): SearchPage<Item> {
  for (const name of [
    ...request.groups.flat().map((filter) => filter.propertyName),
    ...(request.sort === undefined ? [] : [request.sort.propertyName]),
  ]) {
    if (!known.has(name)) throw createInvalidError(`Property ${name} does not exist`)
  }
  const { after } = request
  const sort = request.sort ?? { propertyName: 'createdate', descending: false }
  const { from, until, isExact, isSingleTimestamp: isOneMoment } = findIndexRange(request, index)
  if (isExact && !sort.descending && isOneMoment && sort.propertyName === 'hs_object_id') {
    return { total: until - from, page: index.sorted.slice(from + after, Math.min(until, from + after + limit)) }
  }
  if (isExact && !sort.descending && sort.propertyName === index.modifiedProperty)
    return pageByTime(index, from, until, after, limit, random)

  const found = index.sorted
    .slice(from, until)
    .map((item) => ({ item, record: index.properties(item), at: random.next() }))
    .filter(
      ({ record }) =>
        request.groups.length === 0 ||
        request.groups.some((filters) => filters.every((filter) => matches(record, filter))),
    )
    .toSorted((a, b) => {
      const compared = compare(a.record[sort.propertyName] ?? null, b.record[sort.propertyName] ?? null)
      return (sort.descending ? -compared : compared) || a.at - b.at
    })
  return { total: found.length, page: found.slice(after, after + limit).map(({ item }) => item) }
}

/** Only records that share their time with one on the page need to be shuffled. */
function pageByTime<Item>(
  { sorted, modifiedMs }: SearchIndex<Item>,
  from: number,
  until: number,
  after: number,
  limit: number,
  random: Random,
): SearchPage<Item> {
  const [first, last] = [sorted[from + after], sorted[Math.min(until, from + after + limit) - 1]]
  if (first === undefined || last === undefined || from + after >= until) return { total: until - from, page: [] }
  const begin = Math.max(
    from,
    countLeading(sorted, (item) => modifiedMs(item) < modifiedMs(first)),
  )
  const end = Math.min(
    until,
    countLeading(sorted, (item) => modifiedMs(item) <= modifiedMs(last)),
  )
  const shuffled = sorted
    .slice(begin, end)
    .map((item) => ({ item, at: random.next() }))
    .toSorted((a, b) => modifiedMs(a.item) - modifiedMs(b.item) || a.at - b.at)
  const skipped = from + after - begin
  return { total: until - from, page: shuffled.slice(skipped, skipped + limit).map(({ item }) => item) }
}

interface IndexRange {
  readonly from: number
  readonly until: number
  /** Every record in the range matches. */
  readonly isExact: boolean
  /** The filter names a single timestamp. */
  readonly isSingleTimestamp: boolean
}

function findIndexRange<Item>(
  { groups }: SearchRequest,
  { sorted, modifiedProperty: modified, modifiedMs, id }: SearchIndex<Item>,
): IndexRange {
  const [filters] = groups
  if (filters === undefined || groups.length > 1)
    return { from: 0, until: sorted.length, isExact: filters === undefined, isSingleTimestamp: false }
  let [low, high] = [-Infinity, Infinity]
  let rest = filters.filter(({ propertyName, operator, value }) => {
    const ms = propertyName === modified && value !== undefined ? toComparable(toText(value)) : undefined
    if (typeof ms !== 'bigint' || !(operator in BOUNDS)) return true
    const bounds = required(BOUNDS[operator], 'BOUNDS[operator]')(Number(ms))
    ;[low, high] = [Math.max(low, bounds[0]), Math.min(high, bounds[1])]
    return false
  })
  let from = countLeading(sorted, (item) => modifiedMs(item) < low)
  let until = Math.max(
    from,
    countLeading(sorted, (item) => modifiedMs(item) <= high),
  )
  const isOneMoment = low === high
  if (isOneMoment) {
    const moment = sorted.slice(from, until)
    const begin = from
    rest = rest.filter(({ propertyName, operator, value }) => {
      if (
        propertyName !== 'hs_object_id' ||
        value === undefined ||
        !['GT', 'GTE', 'LT', 'LTE'].includes(operator) ||
        !/^\d+$/.test(toText(value))
      )
        return true
      const place =
        begin +
        countLeading(moment, (item) =>
          operator === 'GT' || operator === 'LTE'
            ? compareIds(id(item), toText(value)) <= 0
            : compareIds(id(item), toText(value)) < 0,
        )
      if (operator.startsWith('G')) from = Math.max(from, place)
      else until = Math.min(until, place)
      return false
    })
  }
  return { from, until: Math.max(from, until), isExact: rest.length === 0, isSingleTimestamp: isOneMoment }
}

/** The lowest and the highest value that an operator accepts. */
const BOUNDS: Readonly<Record<string, (value: number) => readonly [number, number]>> = {
  EQ: (value) => [value, value],
  GT: (value) => [value + 1, Infinity],
  GTE: (value) => [value, Infinity],
  LT: (value) => [-Infinity, value - 1],
  LTE: (value) => [-Infinity, value],
}

/** Compared as numbers, whatever their length. */
export function compareIds(a: string, b: string): number {
  return a.length - b.length || (a < b ? -1 : a > b ? 1 : 0)
}

function matches(record: Properties, filter: Filter): boolean {
  const own = record[filter.propertyName] ?? null
  switch (filter.operator) {
    case 'HAS_PROPERTY':
      return own !== null
    case 'NOT_HAS_PROPERTY':
      return own === null
    case 'IN':
      return own !== null && (filter.values ?? []).some((value) => compare(own, toText(value)) === 0)
    case 'NOT_IN':
      return own !== null && (filter.values ?? []).every((value) => compare(own, toText(value)) !== 0)
    default:
      break
  }
  if (filter.value === undefined) throw createInvalidError(`operator ${filter.operator} requires a value`)
  if (own === null) return false
  const compared = compare(own, toText(filter.value))
  switch (filter.operator) {
    case 'EQ':
      return compared === 0
    case 'NEQ':
      return compared !== 0
    case 'LT':
      return compared < 0
    case 'LTE':
      return compared <= 0
    case 'GT':
      return compared > 0
    case 'GTE':
      return compared >= 0
    default:
      return compared >= 0 && compare(own, toText(filter.highValue)) <= 0
  }
}

/** Dates compare as instants, in ISO form or in milliseconds; numbers as numbers; text ignores case. */
function compare(a: string | null, b: string | null): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? -1 : 1
  const [x, y] = [toComparable(a), toComparable(b)]
  if (typeof x === 'bigint' && typeof y === 'bigint') return x < y ? -1 : x > y ? 1 : 0
  const [p, q] = [a.toLowerCase(), b.toLowerCase()]
  return p < q ? -1 : p > q ? 1 : 0
}

function toComparable(text: string): bigint | string {
  if (/^-?\d+$/.test(text)) return BigInt(text)
  if (/^\d{4}-\d{2}-\d{2}T/.test(text)) {
    const ms = Date.parse(text)
    if (!Number.isNaN(ms)) return BigInt(ms)
  }
  return text
}

/** An object, the same as JSON text, or the bare name of a property: the API accepts all three. */
function parseSort(sort: unknown): { propertyName: string; descending: boolean } {
  const rule = typeof sort === 'string' && sort.startsWith('{') ? (JSON.parse(sort) as unknown) : sort
  if (typeof rule === 'string') return { propertyName: rule.replace(/^-/, ''), descending: rule.startsWith('-') }
  const { propertyName, direction } = rule as Fields
  if (typeof propertyName !== 'string')
    throw createInvalidError(
      'Invalid input JSON: Cannot build Sort, some of required attributes are not set [propertyName]',
    )
  return { propertyName, descending: direction === 'DESCENDING' }
}

function parseJson(text: string): Fields {
  try {
    const body = JSON.parse(text) as unknown
    if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body as Fields
  } catch {
    // Refused below, like any other body that is no object.
  }
  throw createInvalidError('Invalid input JSON')
}

function toArray(value: unknown): unknown[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) throw createInvalidError('Invalid input JSON: expected an array')
  return value
}

function toText(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : ''
}

function createInvalidError(message: string): HubspotError {
  return new HubspotError(400, 'VALIDATION_ERROR', message)
}
