import { compareText } from '../kit/ids.ts'
import { countLeading } from '../kit/sorted-view.ts'
import { SalesforceError } from './salesforce-error.ts'
import { toId18 } from './record-id.ts'
import type { Condition, Literal, Soql } from './soql.ts'
import { required } from '../kit/required.ts'

/** Field types as the description of an object names them. */
export type FieldType =
  | 'address'
  | 'anyType'
  | 'base64'
  | 'boolean'
  | 'combobox'
  | 'currency'
  | 'date'
  | 'datetime'
  | 'double'
  | 'email'
  | 'encryptedstring'
  | 'id'
  | 'int'
  | 'location'
  | 'multipicklist'
  | 'percent'
  | 'phone'
  | 'picklist'
  | 'reference'
  | 'string'
  | 'textarea'
  | 'time'
  | 'url'
export type Row = Readonly<Record<string, unknown>>

/**
 * Evaluates a query sorted by a date-time and then by id over items in that order: reads from the first possible match
 * until there are enough. Null for any other query.
 */
export function scanByTimestamp<Item>(
  query: Soql,
  types: ReadonlyMap<string, FieldType>,
  itemsBy: (stamp: string) => { sorted: readonly Item[]; stampOf: (item: Item) => number },
  rowOf: (item: Item) => Row,
): Row[] | null {
  const [first, second] = query.orderBy
  const stamp = first?.field.toLowerCase() ?? ''
  const isSorted =
    query.orderBy.length === 2 &&
    types.get(stamp) === 'datetime' &&
    SYSTEM_STAMPS.has(stamp) &&
    required(second, 'second').field.toLowerCase() === 'id' &&
    !required(first, 'first').descending &&
    !required(second, 'second').descending
  if (!isSorted || query.limit === undefined || query.offset > 0 || query.count) return null
  const matches = query.where === undefined ? () => true : compilePredicate(query.where, types)
  const [low, high] = query.where === undefined ? UNBOUNDED : boundsOf(query.where, stamp)
  const { sorted, stampOf } = itemsBy(stamp)
  const found: Row[] = []
  for (
    let at = countLeading(sorted, (item) => stampOf(item) < low);
    at < sorted.length && found.length < query.limit && stampOf(required(sorted[at], 'sorted[at]')) <= high;
    at++
  ) {
    const row = rowOf(required(sorted[at], 'sorted[at]'))
    if (matches(row)) found.push(row)
  }
  return found
}

export const SYSTEM_STAMPS: ReadonlySet<string> = new Set(['createddate', 'lastmodifieddate', 'systemmodstamp'])
const UNBOUNDED = [-Infinity, Infinity] as const

/** No row outside this timestamp range matches. */
function boundsOf(condition: Condition, stamp: string): readonly [number, number] {
  switch (condition.kind) {
    case 'and': {
      const all = condition.all.map((one) => boundsOf(one, stamp))
      return [Math.max(...all.map(([low]) => low)), Math.min(...all.map(([, high]) => high))]
    }
    case 'or': {
      const all = condition.all.map((one) => boundsOf(one, stamp))
      return [Math.min(...all.map(([low]) => low)), Math.max(...all.map(([, high]) => high))]
    }
    case 'compare': {
      const { operator, value } = condition
      if (condition.field.toLowerCase() !== stamp || value.kind !== 'datetime') return UNBOUNDED
      return [
        operator === '=' || operator === '>' || operator === '>=' ? value.value : -Infinity,
        operator === '=' || operator === '<' || operator === '<=' ? value.value : Infinity,
      ]
    }
    default:
      return UNBOUNDED
  }
}

/** Filters and sorts rows; date-times are milliseconds here. `types` names fields in lower case. */
export function evaluate(query: Soql, rows: readonly Row[], types: ReadonlyMap<string, FieldType>): Row[] {
  const matches = query.where === undefined ? () => true : compilePredicate(query.where, types)
  const order = query.orderBy.map((by) => ({ ...by, field: by.field.toLowerCase() }))
  for (const by of order) typeOf(by.field, types)
  const sorted = rows.filter(matches).toSorted((a, b) => {
    for (const by of order) {
      const [x, y] = [a[by.field] ?? null, b[by.field] ?? null]
      if (x === null || y === null) {
        if (x === y) continue
        return (x === null) === by.nullsLast ? 1 : -1
      }
      const compared = compare(x, y)
      if (compared !== 0) return by.descending ? -compared : compared
    }
    return 0
  })
  return sorted.slice(query.offset, query.limit === undefined ? undefined : query.offset + query.limit)
}

function compilePredicate(condition: Condition, types: ReadonlyMap<string, FieldType>): (row: Row) => boolean {
  switch (condition.kind) {
    case 'and': {
      const all = condition.all.map((one) => compilePredicate(one, types))
      return (row) => all.every((one) => one(row))
    }
    case 'or': {
      const all = condition.all.map((one) => compilePredicate(one, types))
      return (row) => all.some((one) => one(row))
    }
    case 'not': {
      const inner = compilePredicate(condition.of, types)
      return (row) => !inner(row)
    }
    case 'in': {
      const field = condition.field.toLowerCase()
      const values = condition.values.map((value) => toOperand(condition.field, value, types))
      return (row) => values.includes(row[field] ?? null) !== condition.negated
    }
    case 'compare': {
      const field = condition.field.toLowerCase()
      const value = toOperand(condition.field, condition.value, types)
      if (condition.operator === 'like') {
        const pattern = new RegExp(
          `^${String(value)
            .replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
            .replaceAll('%', '.*')
            .replaceAll('_', '.')}$`,
          'is',
        )
        return (row) => typeof row[field] === 'string' && pattern.test(row[field])
      }
      const { operator } = condition
      const same = equalTo(typeOf(field, types), value)
      return (row) => {
        const own = row[field] ?? null
        if (operator === '=') return same(own)
        if (operator === '!=') return !same(own)
        if (own === null || value === null) return false
        const compared = compare(own, value)
        return operator === '<'
          ? compared < 0
          : operator === '<='
            ? compared <= 0
            : operator === '>'
              ? compared > 0
              : compared >= 0
      }
    }
  }
}

function toOperand(field: string, literal: Literal, types: ReadonlyMap<string, FieldType>): unknown {
  const type = typeOf(field, types)
  if (literal.kind === 'null') return null
  const quoted = literal.kind === 'string'
  if (type === 'datetime') {
    if (literal.kind === 'datetime') return literal.value
    throw new SalesforceError(
      'INVALID_FIELD',
      `value of filter criterion for field '${field}' must be of type dateTime${quoted ? ' and should not be enclosed in quotes' : ''}`,
    )
  }
  if (type === 'id' || type === 'reference') {
    if (!quoted)
      throw new SalesforceError(
        'INVALID_FIELD',
        `value of filter criterion for field '${field}' must be of type ID and should be enclosed in quotes`,
      )
    if (literal.value !== '' && !/^[A-Za-z0-9]{15}(?:[A-Z0-5]{3})?$/.test(literal.value))
      throw new SalesforceError('INVALID_QUERY_FILTER_OPERATOR', `invalid ID field: ${literal.value}`)
    return literal.value.length === 15 ? toId18(literal.value) : literal.value
  }
  const expected = NUMBERS.has(type) ? 'number' : type === 'boolean' ? 'boolean' : 'string'
  if (literal.kind !== expected)
    throw new SalesforceError(
      'INVALID_FIELD',
      `value of filter criterion for field '${field}' must be of type ${type}${expected === 'string' ? ' and should be enclosed in quotes' : ''}`,
    )
  return literal.value
}

function typeOf(field: string, types: ReadonlyMap<string, FieldType>): FieldType {
  const type = types.get(field.toLowerCase())
  if (type === undefined)
    throw new SalesforceError(
      'INVALID_FIELD',
      `No such column '${field}' on entity. If you are attempting to use a custom field, be sure to append the '__c' after the custom field name.`,
    )
  return type
}

const NUMBERS: ReadonlySet<FieldType> = new Set<FieldType>(['currency', 'double', 'int', 'percent'])

/** Text is equal whatever its case; ids are compared by byte. */
function equalTo(type: FieldType, value: unknown): (own: unknown) => boolean {
  if (type === 'id' || type === 'reference' || typeof value !== 'string') return (own) => own === value
  const lower = value.toLowerCase()
  return (own) => typeof own === 'string' && own.toLowerCase() === lower
}

function compare(a: unknown, b: unknown): number {
  if (typeof a === 'string' && typeof b === 'string') return compareText(a, b)
  return Number(a) - Number(b)
}
