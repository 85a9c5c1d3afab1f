import {
  isSyncError,
  ROW_TESTS,
  type RowFilter,
  type RowOrder,
  type RowPosition,
  type RowTest,
} from '../../contract/index.ts'
import { canonicalizeInstant } from '../../values/instant.ts'
import { HttpError } from '../http-error.ts'
import type { RouteRequest } from '../route.ts'

/** Query parameters of the routes that read a view of a database. */
export const VIEW_QUERY = {
  order: {
    type: 'string',
    maxLength: 1_100,
    default: 'key',
    description: '`key`, `changed` or `field:` and the name of a field; descending with a `-` in front.',
    examples: ['-field:total'],
  },
  filters: {
    type: 'string',
    maxLength: 8_192,
    description: `JSON: a list of \`[field, test, value]\`. The tests are ${ROW_TESTS.map((name) => `\`${name}\``).join(', ')}; the last two have no value.`,
    examples: ['[["total","from","100"]]'],
  },
  search: {
    type: 'string',
    minLength: 1,
    maxLength: 200,
    description: 'Only rows whose key or a value contains this, regardless of case.',
  },
  asOf: { type: 'string', maxLength: 64, description: 'RFC 3339 timestamp: the rows as of this time.' },
} as const

/** The rows that a request is about. */
export interface RowView {
  readonly order: RowOrder
  readonly filters: readonly RowFilter[]
  readonly search: string | undefined
  readonly asOf: number | undefined
}

export function parseView({ query, context }: RouteRequest): RowView {
  return {
    order: parseOrder(String(query['order'] ?? 'key')),
    filters: parseFilters(textOf(query['filters'])),
    search: textOf(query['search']),
    asOf: parseAsOf(textOf(query['asOf']), context.ports.clock.now()),
  }
}

export function parseAsOf(text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined
  if (canonicalizeInstant(text) === null) throw invalid('`asOf` must be a timestamp with a time zone.')
  const at = Date.parse(text)
  if (at > now) throw invalid('`asOf` is in the future.')
  return at
}

function parseOrder(text: string): RowOrder {
  const descending = text.startsWith('-')
  const by = descending ? text.slice(1) : text
  if (by === 'key' || by === 'changed') return { by, descending }
  if (by.startsWith('field:')) return { by: 'field', field: by.slice('field:'.length), descending }
  throw invalid('`order` must be `key`, `changed` or `field:` and a name.')
}

const FILTERS_MAX = 32

function parseFilters(text: string | undefined): RowFilter[] {
  if (text === undefined) return []
  const given = parseJsonText(text)
  if (!Array.isArray(given) || given.length > FILTERS_MAX || !given.every(isFilter))
    throw invalid('`filters` must be a JSON list of `[field, test, value]`.')
  return given.map(([field, test, value]) => ({ field, test, value }))
}

function isFilter(given: unknown): given is [field: string, test: RowTest, value?: string] {
  if (!Array.isArray(given) || given.length > 3) return false
  const [field, test, value] = given as unknown[]
  return (
    typeof field === 'string' &&
    ROW_TESTS.includes(test as RowTest) &&
    (test === 'empty' || test === 'present' ? value === undefined : typeof value === 'string') &&
    !JSON.stringify(given).includes('\\u0000')
  )
}

/** Opaque to clients. */
export function formatPosition({ value, key }: RowPosition): string {
  return Buffer.from(JSON.stringify([value, key])).toString('base64url')
}

export function parsePosition(text: string | undefined): RowPosition | undefined {
  if (text === undefined) return undefined
  const given = parseJsonText(Buffer.from(text, 'base64url').toString())
  const [value, key] = Array.isArray(given) ? (given as unknown[]) : []
  if (
    (value === null || typeof value === 'string') &&
    typeof key === 'string' &&
    !`${value ?? ''}${key}`.includes('\0')
  )
    return { value, key }
  throw invalid('`after` must be the `next` of a response.')
}

function parseJsonText(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

function textOf(value: string | number | undefined): string | undefined {
  return value === undefined ? undefined : String(value)
}

function invalid(message: string): HttpError {
  return new HttpError('INVALID_REQUEST', message, { details: { reason: 'parameter_invalid' } })
}

/** The errors of a view are about the request. */
export function toViewError(error: unknown): unknown {
  if (!isSyncError(error)) return error
  if (error.code === 'ARGUMENT_INVALID') return invalid(error.message)
  return error.code === 'QUERY_TOO_LONG' ? new HttpError('QUERY_TOO_LONG', error.message) : error
}
