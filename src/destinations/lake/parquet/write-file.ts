import { ByteWriter, ParquetWriter } from 'hyparquet-writer'
import { itemTypeOf } from '../../../stores/kit/tables/column.ts'
import type { LakeField } from '../columns.ts'
import type { PhysicalValue } from '../encode-values.ts'
import { toParquetSchema } from './schema.ts'

/** Values by column, in the order of the fields. */
export type ColumnGroup = ReadonlyArray<readonly PhysicalValue[]>

/** The bytes of a file, with the first and the last value of its sort column. */
export interface WrittenFile {
  readonly bytes: Uint8Array
  readonly rows: number
  readonly lower: Buffer
  readonly upper: Buffer
}

/** The sort column's first and last value of every row group: the statistics of Parquet are cut after 16 bytes. */
export interface GroupKeys {
  readonly rows: number[]
  readonly first: string[]
  readonly last: string[]
}

export const KEYS_ENTRY = 'tidemark.keys'
const GROUP_ROWS_MAX = 25_000
const GROUP_VALUES_MAX = 400_000

/** The rows of one row group, which readers hold in memory. */
export function groupRowsMax(fieldCount: number): number {
  return Math.min(GROUP_ROWS_MAX, Math.max(500, Math.floor(GROUP_VALUES_MAX / fieldCount)))
}

/** Writes a file whose rows are sorted by a column of texts or integers. */
export class ParquetFileWriter {
  readonly #fields: readonly LakeField[]
  readonly #sortAt: number
  readonly #writer = new ByteWriter(1 << 20)
  readonly #parquet: ParquetWriter
  readonly #keys: GroupKeys = { rows: [], first: [], last: [] }
  #rows = 0

  constructor(fields: readonly LakeField[], sortColumn: string) {
    this.#fields = fields
    this.#sortAt = fields.findIndex(({ name }) => name === sortColumn)
    this.#parquet = new ParquetWriter({ writer: this.#writer, schema: toParquetSchema(fields), statistics: true })
  }

  get bytes(): number {
    return this.#writer.offset
  }

  get rows(): number {
    return this.#rows
  }

  addGroup(group: ColumnGroup): void {
    const sorted = group[this.#sortAt] ?? []
    if (sorted.length === 0) return
    void this.#parquet.write({
      rowGroupSize: sorted.length,
      columnData: this.#fields.map((field, at) => ({
        name: field.name,
        data: prepareValues(field, group[at] ?? []) as unknown[],
      })),
    })
    this.#rows += sorted.length
    this.#keys.rows.push(sorted.length)
    this.#keys.first.push(toText(sorted[0]))
    this.#keys.last.push(toText(sorted.at(-1)))
  }

  finish(): WrittenFile {
    this.#parquet.kvMetadata = [{ key: KEYS_ENTRY, value: JSON.stringify(this.#keys) }]
    void this.#parquet.finish()
    return {
      bytes: this.#writer.getBytes(),
      rows: this.#rows,
      lower: Buffer.from(this.#keys.first[0] ?? ''),
      upper: Buffer.from(this.#keys.last.at(-1) ?? ''),
    }
  }
}

/**
 * The library compares strings by UTF-16 units for its statistics; Parquet orders them by bytes. Only texts beyond the
 * Basic Multilingual Plane differ, and a mix of strings and bytes. Bytes are also faster where a dictionary is no use.
 */
function prepareValues({ type }: LakeField, values: readonly PhysicalValue[]): readonly PhysicalValue[] {
  const scalar = itemTypeOf(type) ?? type
  if (scalar !== 'text' && scalar !== 'json') return values
  if (scalar !== type) return values.map((list) => (Array.isArray(list) ? list.map(toBytes) : list))
  const needsBytes =
    areDistinct(values) ||
    values.some((value) => (typeof value === 'string' ? SURROGATE.test(value) : value instanceof Uint8Array))
  return needsBytes ? values.map(toBytes) : values
}

function areDistinct(values: readonly PhysicalValue[]): boolean {
  const step = Math.max(1, Math.floor(values.length / SAMPLE))
  const seen = new Set<PhysicalValue>()
  let count = 0
  for (let at = 0; at < values.length; at += step) {
    const value = values[at] ?? null
    if (value === null) continue
    seen.add(value)
    count++
  }
  return count > 0 && seen.size > count * 0.9
}

const SAMPLE = 200
const SURROGATE = /[\ud800-\udfff]/

function toBytes(value: PhysicalValue): PhysicalValue {
  return typeof value === 'string' ? Buffer.from(value) : value
}

function toText(value: PhysicalValue | undefined): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString() : String(value ?? '')
}
