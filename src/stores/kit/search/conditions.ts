import { SyncError, type RowFilter, type RowSelection, type RowTest } from '../../../contract/index.ts'
import { canonicalizeInstant } from '../../../values/instant.ts'
import { quoteIdentifier } from '../column-names.ts'
import { isListType, isUuid, type ColumnType, type TableColumn } from '../tables/column.ts'
import type { Bind, SearchDialect, SearchTable } from './search-dialect.ts'

/** A field with a column of its own. */
export interface SearchColumn {
  /** Quoted, and qualified: in ORDER BY, an unqualified name means the selected value of that name, if there is one. */
  readonly name: string
  /** Quoted. */
  readonly unqualified: string
  readonly type: ColumnType
}

/** The conditions of a selection, for a WHERE clause. */
export function whereOf(
  dialect: SearchDialect,
  table: SearchTable,
  { filters }: RowSelection,
  bind: Bind,
  more: readonly string[] = [],
): string {
  const conditions = [
    // First, because a database may skip the rest of the conditions of a row.
    ...(dialect.deadline === null ? [] : [dialect.deadline]),
    ...more,
    ...filters.map((filter) => conditionOf(dialect, requireColumn(table, filter.field), filter, bind)),
  ]
  return conditions.length === 0 ? 'true' : conditions.join(' and ')
}

export function requireColumn({ columns }: SearchTable, field: string): SearchColumn {
  const own = columns.filter(({ member, name }) => member === field && name !== null)
  // During a schema change only the former column has every value.
  const column = own.find(({ former }) => former === true) ?? own[0]
  if (column?.name == null)
    throw new SyncError(
      'ARGUMENT_INVALID',
      `The field ${JSON.stringify(field)} has no column, so rows cannot be selected by it.`,
    )
  const unqualified = quoteIdentifier(column.name)
  return { name: `r.${unqualified}`, unqualified, type: column.type }
}

function conditionOf(dialect: SearchDialect, column: SearchColumn, filter: RowFilter, bind: Bind): string {
  const { name, type } = column
  const { field, test, value = '' } = filter
  if (!testsOf(type).includes(test))
    throw new SyncError('ARGUMENT_INVALID', `The field ${JSON.stringify(field)} (${type}) has no filter \`${test}\`.`)
  if (test === 'empty' || test === 'present') return `${name} is ${test === 'empty' ? '' : 'not '}null`
  if (test === 'contains') return containsValue(dialect, column, value, bind)
  checkValue(field, type, value)
  return `${dialect.ordered(name, type)} ${OPERATORS[test]} ${dialect.given(value, type, bind)}`
}

const OPERATORS = { equals: '=', from: '>=', to: '<=' } as const

/** The filters of a column of this type. */
export function testsOf(type: ColumnType): readonly RowTest[] {
  if (isListType(type) || type === 'json') return ['contains', 'empty', 'present']
  switch (type) {
    case 'bytes':
      return ['empty', 'present']
    case 'boolean':
      return ['equals', 'empty', 'present']
    case 'text':
    case 'uuid':
      return ['contains', 'equals', 'empty', 'present']
    default:
      return ['equals', 'from', 'to', 'contains', 'empty', 'present']
  }
}

function containsValue(
  dialect: SearchDialect,
  { name, type }: Pick<SearchColumn, 'name' | 'type'>,
  wanted: string,
  bind: Bind,
): string {
  const text = dialect.display(name, type)
  const condition = dialect.contains(text, wanted, bind)
  const escaped = JSON.stringify(wanted).slice(1, -1)
  const isJson = type === 'json' || isListType(type)
  return isJson && escaped !== wanted ? `(${condition} or ${dialect.contains(text, escaped, bind)})` : condition
}

/** True where the key or any searched column contains the text. */
export function matchOf(dialect: SearchDialect, table: SearchTable, wanted: string, bind: Bind): string {
  const own = [
    ...table.columns.filter(isSearched).map(({ name, type }) => ({ name: quoteIdentifier(name as string), type })),
    // Values that their columns cannot hold.
    { name: '_extra', type: 'json' as const },
  ]
  const all = [{ name: '_key', type: 'text' as const }, ...own]
  return `(${all.map((column) => `coalesce(${containsValue(dialect, column, wanted, bind)}, false)`).join(' or ')})`
}

/** Whether a search looks at the column. */
export function isSearched({ name, type }: TableColumn): boolean {
  return name !== null && !type.startsWith('boolean') && !type.startsWith('bytes')
}

function checkValue(field: string, type: ColumnType, value: string): void {
  if (VALUE_CHECKS[type as keyof typeof VALUE_CHECKS]?.(value) ?? true) return
  throw new SyncError(
    'ARGUMENT_INVALID',
    `${JSON.stringify(value.slice(0, 80))} is no value of the field ${JSON.stringify(field)} (${type}).`,
  )
}

const isNumber = (text: string): boolean => /^-?\d{1,400}(?:\.\d{1,400})?(?:[eE][+-]?\d{1,3})?$/.test(text)
const isInstant = (text: string): boolean => canonicalizeInstant(text) !== null

const VALUE_CHECKS = {
  bigint: (text: string) => /^-?\d{1,19}$/.test(text) && BigInt.asIntN(64, BigInt(text)) === BigInt(text),
  boolean: (text: string) => text === 'true' || text === 'false',
  date: (text: string) => isInstant(`${text}T00:00:00Z`),
  datetime: (text: string) => isInstant(`${text}Z`),
  decimal: isNumber,
  double: isNumber,
  numeric: isNumber,
  time: (text: string) => isInstant(`2000-01-01T${text}Z`),
  timestamp: isInstant,
  uuid: isUuid,
}
