import type { DuckDBAppender } from '@duckdb/node-api'
import type { ColumnValue } from '../../stores/kit/tables/encode-record.ts'
import type { ValueConverter } from './duckdb-values.ts'
import type { Duckdb } from './load-duckdb.ts'

/** The rows of a data chunk. */
const CHUNK_ROWS = 2_048

/** Appends rows column by column: a call of the Appender for every value costs more than the value. */
export function appendRows(
  duckdb: Duckdb,
  appender: DuckDBAppender,
  converters: readonly ValueConverter[],
  rows: Iterable<readonly ColumnValue[]>,
): void {
  const types = converters.map((_, at) => appender.columnType(at))
  const append = (part: ReadonlyArray<readonly ColumnValue[]>): void => {
    const chunk = duckdb.DuckDBDataChunk.create(types, part.length)
    for (const [at, convert] of converters.entries()) {
      const vector = chunk.getColumnVector(at)
      for (let index = 0; index < part.length; index++) {
        const value = part[index]?.[at] ?? null
        vector.setItem(index, value === null ? null : convert(value))
      }
      vector.flush()
    }
    appender.appendDataChunk(chunk)
  }
  let part: Array<readonly ColumnValue[]> = []
  for (const row of rows) {
    if (part.push(row) < CHUNK_ROWS) continue
    append(part)
    part = []
  }
  if (part.length > 0) append(part)
  appender.flushSync()
}
