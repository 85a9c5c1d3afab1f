import type { ColumnStatistics, ColumnStatisticsRequest } from '../../../contract/index.ts'
import { matchOf, requireColumn, whereOf } from './conditions.ts'
import type { SearchSteps } from './find-rows.ts'
import type { Bind, SearchDialect, SearchParameter, SearchTable } from './search-dialect.ts'

/** The statistics of a database without a table. */
export const NO_STATISTICS: ColumnStatistics = {
  scanned: 0,
  hasMore: false,
  empty: 0,
  distinct: 0,
  min: null,
  max: null,
  top: [],
}

const TOP_VALUES = 10
/** Longer values are cut: they identify nothing to a reader. */
const VALUE_LENGTH_MAX = 200

/** Computes the statistics of a field. A selection with exactly as many rows as are looked at counts as one with more. */
export function* computeStatistics(
  dialect: SearchDialect,
  table: SearchTable,
  request: ColumnStatisticsRequest,
): SearchSteps<ColumnStatistics> {
  const { name, type } = requireColumn(table, request.field)
  const parameters: SearchParameter[] = []
  const bind: Bind = (value) => dialect.parameter(parameters.push(value))
  const search = request.search === undefined ? [] : [matchOf(dialect, table, request.search, bind)]
  const where = whereOf(dialect, table, request, bind)
  const match = search.length === 0 ? '' : ` and ${search.join()}`
  const looked = `with looked as materialized (
    select ${dialect.display(name, type)} as shown, ${dialect.ordered(name, type)} as ordered from ${table.source} r
    where ${where}${match} order by _sequence desc limit ${request.scanMax})`
  const edge = (direction: string): string =>
    `(select substr(shown, 1, ${VALUE_LENGTH_MAX}) from looked where ordered is not null order by ordered ${direction} limit 1)`
  const [counts] = yield {
    sql: `${looked} select count(*), count(shown), count(distinct shown), ${edge('')}, ${edge('desc')} from looked`,
    parameters,
  }
  const top = yield {
    sql: `${looked} select substr(shown, 1, ${VALUE_LENGTH_MAX}), count(*) as rows from looked where shown is not null
      group by shown order by rows desc, shown limit ${TOP_VALUES}`,
    parameters,
  }
  const [rows = 0, present = 0, distinct = 0, min = null, max = null] = counts ?? []
  return {
    scanned: Number(rows),
    hasMore: Number(rows) === request.scanMax,
    empty: Number(rows) - Number(present),
    distinct: Number(distinct),
    min: min === null ? null : String(min),
    max: max === null ? null : String(max),
    top: top.map(([value, count]) => ({ value: String(value), rows: Number(count) })),
  }
}
