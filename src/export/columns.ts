import type { Column, ColumnKind, JsonObject, JsonValue } from '../contract/index.ts'
import { stringifyJson } from '../values/json.ts'

/** `text` is an unchanged string; `json` is any value as JSON. */
export type CellType = 'boolean' | 'double' | 'instant' | 'integer' | 'json' | 'text'

export interface ExportColumn {
  readonly name: string
  readonly type: CellType
  /** Undefined and null are both exported as null. */
  readonly value: (item: ExportItem) => JsonValue | undefined
}

/** One row or one log entry. */
export interface ExportItem {
  readonly database: string
  readonly key: string
  readonly action: string
  readonly sequence: number
  readonly committedAt: number
  readonly upstreamAt: string | null
  /** JSON text; null for a delete. */
  readonly text: string | null
  readonly record: JsonObject | null
}

/** A record has a value that its column cannot hold exactly, because it was committed after the columns were read. */
export class ShapeChangedError extends Error {
  override readonly name = 'ShapeChanged'
}

const ENVELOPE_COLUMNS: readonly ExportColumn[] = [
  { name: '_key', type: 'text', value: ({ key }) => key },
  { name: '_action', type: 'text', value: ({ action }) => action },
  { name: '_sequence', type: 'integer', value: ({ sequence }) => sequence },
  { name: '_committed_at', type: 'instant', value: ({ committedAt }) => committedAt },
  { name: '_upstream_at', type: 'text', value: ({ upstreamAt }) => upstreamAt },
]

export const LOG_COLUMNS: readonly ExportColumn[] = [
  ...ENVELOPE_COLUMNS,
  { name: '_database', type: 'text', value: ({ database }) => database },
  { name: 'record', type: 'text', value: ({ text }) => text },
]

/** The envelope columns, then one column per stored field. `wide` lists fields with integers that a double cannot hold. */
export function toExportColumns(columns: readonly Column[], wide: ReadonlySet<string>): ExportColumn[] {
  const taken = new Set(ENVELOPE_COLUMNS.map(({ name }) => name))
  return [
    ...ENVELOPE_COLUMNS,
    ...columns.map(({ name, kinds }): ExportColumn => {
      let own = name
      while (taken.has(own)) own = `${own}_`
      taken.add(own)
      return {
        name: own,
        type: chooseCellType(kinds, wide.has(name)),
        value: ({ record }) => (record !== null && Object.hasOwn(record, name) ? record[name] : null),
      }
    }),
  ]
}

export function isMixedNumeric({ kinds }: Column): boolean {
  return kinds.includes('integer') && kinds.includes('number')
}

function chooseCellType(kinds: readonly ColumnKind[], isWide: boolean): CellType {
  const [only] = kinds
  if (only === undefined) return 'text'
  if (kinds.length === 1) return CELL_TYPE_BY_KIND[only]
  // 1 and 1.5 share a double column, unless an integer would be rounded.
  return kinds.every((kind) => kind === 'integer' || kind === 'number') && !isWide ? 'double' : 'json'
}

/** Integers beyond 64 bits are exported with all digits. */
const CELL_TYPE_BY_KIND: Record<ColumnKind, CellType> = {
  bigint: 'json',
  boolean: 'boolean',
  integer: 'integer',
  json: 'json',
  number: 'double',
  string: 'text',
}

/** Converts the value to the type without loss, or throws ShapeChangedError. */
export function toCell(column: ExportColumn, item: ExportItem): string | number | bigint | boolean | null {
  const value = column.value(item)
  if (value === null || value === undefined) return null
  switch (column.type) {
    case 'json':
      return stringifyJson(value)
    case 'text':
      if (typeof value === 'string') return value
      break
    case 'boolean':
      if (typeof value === 'boolean') return value
      break
    case 'double':
      if (typeof value === 'number') return value
      break
    case 'instant':
      if (typeof value === 'number') return value
      break
    case 'integer':
      if (typeof value === 'bigint' ? BigInt.asIntN(64, value) === value : Number.isSafeInteger(value))
        return BigInt(value as number | bigint)
      break
    default:
      column.type satisfies never
  }
  throw new ShapeChangedError(column.name)
}
