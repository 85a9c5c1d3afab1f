import type { JsonObject } from '../../../contract/index.ts'
import { parseJson, stringifyJson } from '../../../values/json.ts'
import type { TableColumn } from './column.ts'
import type { ExtraJson } from './encode-record.ts'

/** Writes a column's value as JSON text; never called for SQL null. */
export type ValueSerializer<Value> = (value: Value, column: TableColumn) => string

/** Rebuilds the JSON text of records from the columns of a row and its `_extra`. */
export class RecordDecoder<Value> {
  readonly #columns: readonly TableColumn[]
  readonly #heads: readonly string[]
  readonly #write: ValueSerializer<Value>
  /** For each column index, the index of the column it replaces; -1 for none. */
  readonly #formers: readonly number[]

  constructor(columns: readonly TableColumn[], write: ValueSerializer<Value>) {
    this.#columns = columns
    this.#heads = columns.map(({ member }) => `${JSON.stringify(member)}:`)
    this.#write = write
    const formers = new Map(columns.flatMap(({ member, former }, at) => (former === true ? [[member, at]] : [])))
    this.#formers = columns.map(({ member, former }) => (former === true ? -1 : formers.get(member) ?? -1))
  }

  /** `valueAt` is called with the index of a column that has a name in SQL. */
  decode(sequence: number, extraText: string | null, valueAt: (at: number) => Value | null): string {
    const extra = extraText === null ? null : (parseJson(extraText) as ExtraJson)
    let text = '{'
    for (let at = 0; at < this.#columns.length; at++) {
      const column = this.#columns[at]!
      const { member } = column
      if (column.former === true) continue
      let written: string | null = null
      if (extra?.values !== undefined && Object.hasOwn(extra.values, member)) written = stringifyJson(extra.values[member]!)
      else {
        const former = this.#formers[at]!
        const value = column.name === null ? null : valueAt(at)
        const earlier = value === null && former !== -1 ? valueAt(former) : null
        if (value !== null) written = this.#write(value, column)
        else if (earlier !== null) written = this.#write(earlier, this.#columns[former]!)
        else if (column.none !== 'absent' && sequence >= column.since && extra?.absent?.includes(member) !== true) written = column.none === 'null' ? 'null' : '""'
      }
      if (written !== null) text += `${text.length > 1 ? ',' : ''}${this.#heads[at]!}${written}`
    }
    if (extra?.values !== undefined) text = appendMembers(text, extra.values, this.#columns)
    return `${text}}`
  }
}

/** Appends the fields that have no column. */
function appendMembers(text: string, values: JsonObject, columns: readonly TableColumn[]): string {
  const known = new Set(columns.map(({ member }) => member))
  for (const name of Object.keys(values)) {
    if (!known.has(name)) text += `${text.length > 1 ? ',' : ''}${JSON.stringify(name)}:${stringifyJson(values[name]!)}`
  }
  return text
}
