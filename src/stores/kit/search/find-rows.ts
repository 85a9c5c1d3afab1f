import type { RowOrder, RowPosition, RowSearch } from '../../../contract/index.ts'
import { matchOf, requireColumn, whereOf } from './conditions.ts'
import type { Bind, SearchDialect, SearchParameter, SearchTable } from './search-dialect.ts'

/** A statement whose rows the store returns as tuples. */
export interface SearchQuery {
  readonly sql: string
  readonly parameters: readonly SearchParameter[]
}
/** A row of such a statement. */
export type SearchTuple = ReadonlyArray<string | number | null>
/** Yields statements, and is resumed with their rows. */
export type SearchSteps<Result> = Generator<SearchQuery, Result, readonly SearchTuple[]>

/** The rows of a page, without their records. */
export interface FoundRows {
  readonly positions: readonly RowPosition[]
  readonly next: RowPosition | null
  readonly scanned: number
}

/**
 * Finds the rows of a page. It continues after the last row of the page before, by value and key, so that its cost does
 * not grow with the rows before it.
 */
export function* findRows(dialect: SearchDialect, table: SearchTable, search: RowSearch): SearchSteps<FoundRows> {
  const parts = partsOf(dialect, table, search.order)
  const positions: RowPosition[] = []
  let after = search.after
  let scanned = 0
  for (const [at, part] of parts.entries()) {
    const isLast = at === parts.length - 1
    if (!isLast && after?.value === null) continue
    const rowsMax = search.limit - positions.length
    const scanMax = search.scanMax - scanned
    const found = yield selectPart(dialect, table, { ...search, after, limit: rowsMax, scanMax }, part)
    const hits = found.filter(([, , , isHit]) => Number(isHit) === 1)
    const taken = hits.slice(0, rowsMax)
    positions.push(...taken.map(toPosition))
    const end = hits.length > rowsMax ? taken.at(-1) : found.at(-1)
    const looked = end === undefined ? 0 : Number(end[2])
    scanned += looked
    if (end !== undefined && (hits.length > rowsMax || (search.search !== undefined && looked === scanMax)))
      return { positions, next: toPosition(end), scanned }
    if (!isLast && positions.length === search.limit) return { positions, next: START_OF_LAST_PART, scanned }
    after = undefined
  }
  return { positions, next: null, scanned }
}

const START_OF_LAST_PART: RowPosition = { value: null, key: '' }

function toPosition([key, value]: SearchTuple): RowPosition {
  return { key: String(key), value: value == null ? null : String(value) }
}

/** A range of an order that one index can serve. */
interface OrderPart {
  readonly expressions: readonly string[]
  readonly descending: boolean
  readonly condition: string | null
  /** Selects RowPosition.value. */
  readonly value: string
  after(position: RowPosition, bind: Bind): string
}

function partsOf(dialect: SearchDialect, table: SearchTable, order: RowOrder): OrderPart[] {
  const { descending } = order
  const beyond = descending ? '<' : '>'
  const byKey = (condition: string | null, isDescending: boolean): OrderPart => ({
    expressions: ['_key'],
    descending: isDescending,
    condition,
    value: 'null',
    after: ({ key }, bind) => `_key ${isDescending ? '<' : '>'} ${bind(key)}`,
  })
  if (order.by === 'key') return [byKey(null, descending)]
  if (order.by !== 'field')
    return [
      {
        expressions: ['_sequence'],
        descending,
        condition: null,
        value: '_sequence',
        after: ({ value }, bind) => `_sequence ${beyond} ${dialect.restore(value ?? '', 'bigint', bind)}`,
      },
    ]
  const { name, type } = requireColumn(table, order.field)
  const ordered = dialect.ordered(name, type)
  return [
    {
      expressions: [ordered, '_key'],
      descending,
      condition: `${ordered} is not null`,
      value: dialect.position(ordered, type),
      after: ({ value, key }, bind) =>
        `(${ordered}, _key) ${beyond} (${dialect.restore(value ?? '', type, bind)}, ${bind(key)})`,
    },
    // An index has the nulls at one end; here they are last in both directions.
    byKey(`${ordered} is null`, false),
  ]
}

/** Selects the key, the position's value, the number of rows up to this one, and whether it is a result. */
function selectPart(dialect: SearchDialect, table: SearchTable, search: RowSearch, part: OrderPart): SearchQuery {
  const parameters: SearchParameter[] = []
  const bind: Bind = (value) => dialect.parameter(parameters.push(value))
  const direction = part.descending ? ' desc' : ''
  const orderBy = (names: readonly string[]): string => names.map((name) => `${name}${direction}`).join(', ')
  const hit = search.search === undefined ? null : matchOf(dialect, table, search.search, bind)
  const where = whereOf(dialect, table, search, bind, [
    ...(part.condition === null ? [] : [part.condition]),
    ...(search.after === undefined ? [] : [part.after(search.after, bind)]),
  ])
  const from = `from ${table.source} r where ${where} order by ${orderBy(part.expressions)}`
  if (hit === null)
    return {
      sql: `select _key, ${part.value}, 0, 1 ${from} limit ${search.limit + 1}`,
      parameters,
    }
  const aliases = part.expressions.map((_, at) => `o${at}`)
  const keys = part.expressions.map((expression, at) => `${expression} as o${at}`).join(', ')
  const over = `over (order by ${orderBy(aliases)})`
  return {
    sql: `select k, value, n, case when hit then 1 else 0 end from (
      select k, value, hit, row_number() ${over} as n, lead(1) ${over} is null as is_last from (
        select _key as k, ${part.value} as value, ${hit} as hit, ${keys} ${from} limit ${search.scanMax}
      ) looked) numbered where hit or is_last order by n limit ${search.limit + 1}`,
    parameters,
  }
}
