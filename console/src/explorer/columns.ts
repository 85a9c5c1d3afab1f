import type { ColumnsDocument } from '../../../src/server/console/documents.ts'
import type { Filter, FilterTest } from './view-state.ts'

export interface ExplorerColumn {
  readonly field: string
  readonly type: string
  /** Rows can be sorted and filtered by it. */
  readonly isUsable: boolean
}

export function toColumns({ canSearch, columns }: ColumnsDocument): ExplorerColumn[] {
  return columns.map(({ field, column, type }) => ({ field, type, isUsable: canSearch && column !== null }))
}

const NUMBERS = new Set(['bigint', 'double', 'numeric', 'decimal'])
const TIMES = new Set(['timestamp', 'datetime', 'date', 'time'])

export function isNumeric(type: string): boolean {
  return NUMBERS.has(type)
}

/** The filters of a type, the usual one first; see testsOf in src/stores/kit/search. */
export function testsOf(type: string): readonly FilterTest[] {
  if (type === 'json' || type.endsWith('[]')) return ['contains', 'empty', 'present']
  if (type === 'bytes') return ['empty', 'present']
  if (type === 'boolean') return ['equals', 'empty', 'present']
  return isNumeric(type) || TIMES.has(type)
    ? ['from', 'to', 'equals', 'empty', 'present']
    : ['contains', 'equals', 'empty', 'present']
}

export const TEST_NAMES: Record<FilterTest, string> = {
  equals: 'equals',
  contains: 'contains',
  from: 'from',
  to: 'to',
  empty: 'is empty',
  present: 'is not empty',
}

const TEST_SIGNS: Record<FilterTest, string> = {
  equals: '=',
  contains: 'contains',
  from: '≥',
  to: '≤',
  empty: 'is empty',
  present: 'is not empty',
}

export function describeFilter([field, test, value]: Filter): string {
  return `${field} ${TEST_SIGNS[test]}${value === undefined ? '' : ` ${value}`}`
}

const WIDTHS: Readonly<Record<string, number>> = {
  bigint: 140,
  boolean: 110,
  date: 130,
  datetime: 200,
  decimal: 150,
  double: 150,
  numeric: 150,
  time: 120,
  timestamp: 230,
  uuid: 290,
}

/** Fixed, so that the table does not move while other rows come into view. */
export function widthOf({ field, type }: ExplorerColumn): number {
  return Math.max(WIDTHS[type] ?? 220, Math.min(320, 64 + (field.length + type.length) * 8))
}
