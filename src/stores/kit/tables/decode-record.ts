import type { JsonObject } from '../../../contract/index.ts'
import { parseJson, stringifyJson } from '../../../values/json.ts'
import type { TableColumn } from './column.ts'
import type { ExtraJson } from './encode-record.ts'

/** Writes a column's value as JSON text; never called for SQL null. */
export type ValueSerializer<Value> = (value: Value, column: TableColumn) => string

interface DecodedField {
  readonly column: TableColumn
  readonly at: number
  /** The field's name as JSON, with the colon. */
  readonly head: string
  /** The column that this one replaces during a schema change. */
  readonly former: { readonly column: TableColumn; readonly at: number } | null
}

/** Rebuilds the JSON text of records from the columns of a row and its `_extra`. */
export class RecordDecoder<Value> {
  readonly #fields: readonly DecodedField[]
  readonly #known: ReadonlySet<string>
  readonly #write: ValueSerializer<Value>

  constructor(columns: readonly TableColumn[], write: ValueSerializer<Value>) {
    this.#known = new Set(columns.map(({ member }) => member))
    this.#write = write
    const formers = new Map(
      columns.flatMap((column, at) => (column.former === true ? [[column.member, { column, at }]] : [])),
    )
    this.#fields = columns.flatMap((column, at) =>
      column.former === true
        ? []
        : [{ column, at, head: `${JSON.stringify(column.member)}:`, former: formers.get(column.member) ?? null }],
    )
  }

  /** `valueAt` is called with the index of a column that has a name in SQL. */
  decode(sequence: number, extraText: string | null, valueAt: (at: number) => Value | null): string {
    const extra = extraText === null ? null : (parseJson(extraText) as ExtraJson)
    let text = '{'
    for (const { column, at, head, former } of this.#fields) {
      const { member } = column
      let written: string | null = null
      if (extra?.values !== undefined && Object.hasOwn(extra.values, member))
        written = stringifyJson(extra.values[member] ?? null)
      else {
        const value = column.name === null ? null : valueAt(at)
        const earlier = value === null && former !== null ? valueAt(former.at) : null
        if (value !== null) written = this.#write(value, column)
        else if (earlier !== null && former !== null) written = this.#write(earlier, former.column)
        else if (column.none !== 'absent' && sequence >= column.since && extra?.absent?.includes(member) !== true)
          written = column.none === 'null' ? 'null' : '""'
      }
      if (written !== null) text += `${text.length > 1 ? ',' : ''}${head}${written}`
    }
    if (extra?.values !== undefined) text = appendMembers(text, extra.values, this.#known)
    return `${text}}`
  }
}

/** Appends the fields that have no column. */
function appendMembers(text: string, values: JsonObject, known: ReadonlySet<string>): string {
  for (const name of Object.keys(values)) {
    if (!known.has(name))
      text += `${text.length > 1 ? ',' : ''}${JSON.stringify(name)}:${stringifyJson(values[name] ?? null)}`
  }
  return text
}
