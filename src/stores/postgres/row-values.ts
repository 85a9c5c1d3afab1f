import type { JsonValue, RowsQuery, RowValues } from '../../contract/index.ts'
import { parseJson, parseNumber } from '../../values/json.ts'
import { required } from '../../values/required.ts'
import type { TableColumn } from '../kit/tables/column.ts'
import { VALUES_TEXT_MAX, valueOfNull } from '../kit/tables/row-values.ts'
import type { TenantSession } from './connection.ts'
import { readLiveRows, type LiveRow } from './queries.ts'
import { formatTimestamp, toJsonText, toMs, type Table } from './table.ts'

/** Null during a schema change, when a value may be in either of two columns. */
export async function rowValues(session: TenantSession, query: RowsQuery): Promise<RowValues | null> {
  const { table, rows } = await readLiveRows(session, query)
  if (table === null || table.columns.some(({ former }) => former === true)) return null
  return new StoredRows(table, rows, query.bytesMax ?? Infinity)
}

/** Rows as the server wrote their columns. */
class StoredRows implements RowValues {
  readonly length: number
  readonly bytes: number
  readonly members: readonly string[]
  readonly #rows: readonly LiveRow[]
  readonly #texts = new Map<number, string>()
  /** `at` is the index of the column among the stored values. */
  readonly #fields: ReadonlyArray<{ readonly column: TableColumn; readonly at: number }>

  constructor({ columns, decode }: Table, rows: readonly LiveRow[], bytesMax: number) {
    this.members = columns.map(({ member }) => member)
    this.#rows = rows
    let next = 0
    this.#fields = columns.map((column) => ({ column, at: column.name === null ? -1 : next++ }))
    const nameBytes = columns.reduce((sum, { member }) => sum + member.length + 4, 0)
    let bytes = 0
    let length = 0
    for (const [index, { sequence, extra, values }] of rows.entries()) {
      if (bytes >= bytesMax) break
      length++
      const size = values.reduce((sum, value) => sum + (value?.length ?? 0), nameBytes)
      if (extra !== null || size > VALUES_TEXT_MAX) {
        const text = decode(sequence, extra, values)
        this.#texts.set(index, text)
        bytes += Buffer.byteLength(text)
      } else bytes += size
    }
    this.length = length
    this.bytes = bytes
  }

  key(index: number): string {
    return this.#row(index).key
  }

  sequence(index: number): number {
    return this.#row(index).sequence
  }

  committedAt(index: number): number {
    return toMs(this.#row(index).syncedAt)
  }

  text(index: number): string | null {
    return this.#texts.get(index) ?? null
  }

  values(index: number): Array<JsonValue | undefined> {
    const { sequence, values } = this.#row(index)
    return this.#fields.map(({ column, at }) => {
      const stored = values[at] ?? null
      return stored === null ? valueOfNull(column, sequence) : toJsonValue(stored, column)
    })
  }

  #row(index: number): LiveRow {
    return required(this.#rows[index], 'A row of the page')
  }
}

/** The value that parsing `toJsonText` returns. */
function toJsonValue(value: string, column: TableColumn): JsonValue {
  switch (column.type) {
    case 'text':
    case 'date':
    case 'decimal':
    case 'time':
    case 'uuid':
      return value
    case 'bigint':
    case 'double':
    case 'numeric':
      return parseNumber(value)
    case 'boolean':
      return value === 't'
    case 'timestamp':
      return formatTimestamp(value, required(column.format, 'The format of a timestamp'))
    default:
      return parseJson(toJsonText(value, column))
  }
}
