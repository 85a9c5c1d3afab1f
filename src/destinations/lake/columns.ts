import type { DestinationMode, DestinationSchema, JsonValue } from '../../contract/index.ts'
import { itemTypeOf, type ColumnType, type TableColumn } from '../../stores/kit/tables/column.ts'
import type { BatchFields } from '../kit/batch-fields.ts'
import { extendColumns } from '../kit/extend-columns.ts'
import { PRIMARY_KEYS, SYSTEM_COLUMNS } from '../kit/table-rows.ts'
import { DECIMAL_DIGITS, decimalsOf } from './decimals.ts'

/** A field of the records, with the ids that Iceberg and Parquet give its column. */
export interface LakeColumn extends TableColumn {
  /** Absent while the field has no column. */
  readonly id?: number
  /** The id of the items of a list. */
  readonly elementId?: number
  /** The decimals of a decimal or numeric column. */
  readonly scale?: number
}

/** A column of the files. */
export interface LakeField {
  readonly name: string
  readonly id: number
  readonly elementId?: number
  readonly type: ColumnType
  readonly scale: number
  readonly isRequired: boolean
}

const COLUMN_LIMITS = { nameBytesMax: 255, columnsMax: 2_000 }

/** The system columns, then those of the record, in the order of the rows that `toTableRows` returns. */
export function fieldsOf(mode: DestinationMode, columns: readonly LakeColumn[]): LakeField[] {
  const system = SYSTEM_COLUMNS[mode].map(({ name, type }, at) => ({
    name,
    id: at + 1,
    type,
    scale: 0,
    isRequired: PRIMARY_KEYS[mode].includes(name),
  }))
  const named = columns.flatMap(({ name, id, elementId, type, scale = 0 }) =>
    name === null || id === undefined
      ? []
      : [{ name, id, ...(elementId !== undefined && { elementId }), type, scale, isRequired: false }],
  )
  return [...system, ...named]
}

/** The ids of the system columns: those of the record follow. */
export function firstColumnId(mode: DestinationMode): number {
  return SYSTEM_COLUMNS[mode].length
}

export interface ExtendedColumns {
  readonly columns: readonly LakeColumn[]
  readonly lastColumnId: number
}

/**
 * Adds the columns of the schema that the table lacks. `reusable` are the columns of the table that a load replaces: an
 * equal column keeps its id. A decimal column is added with its first value, which decides its scale.
 */
export function extendLakeColumns(
  known: readonly LakeColumn[],
  schema: DestinationSchema,
  batch: BatchFields,
  since: number,
  reusable: readonly LakeColumn[],
  lastColumnId: number,
): ExtendedColumns {
  const existing = new Set(known.map(({ member }) => member))
  const scales = new Map<string, number>()
  const wanted = schema.columns.filter(({ member, type }) => {
    if (existing.has(member) || !isDecimalType(type)) return true
    const scale = findScale(batch.valuesOf(member))
    if (scale !== null) scales.set(member, scale)
    return scale !== null
  })
  const columns: readonly LakeColumn[] = extendColumns(known, { ...schema, columns: wanted }, batch, since, {
    ...COLUMN_LIMITS,
    reserved: SYSTEM_COLUMNS[schema.mode].map(({ name }) => name),
  })
  let last = lastColumnId
  const identified = columns.map((column): LakeColumn => {
    if (column.name === null || column.id !== undefined) return column
    const scale = scales.get(column.member)
    const same = reusable.find(
      ({ member, name, type, scale: other }) =>
        member === column.member && name === column.name && type === column.type && other === scale,
    )
    const id = same?.id ?? ++last
    const elementId = itemTypeOf(column.type) === null ? undefined : (same?.elementId ?? ++last)
    return {
      ...column,
      id,
      ...(elementId !== undefined && { elementId }),
      ...(scale !== undefined && { scale }),
    }
  })
  return { columns: columns === known ? known : identified, lastColumnId: last }
}

export function isDecimalType(type: ColumnType): boolean {
  return /^(?:decimal|numeric)/.test(type)
}

/** The most decimals of the first values; null if there are none. */
function findScale(values: ReadonlyArray<JsonValue | undefined>): number | null {
  let scale: number | null = null
  const visit = (value: JsonValue | undefined): void => {
    if (Array.isArray(value)) return value.forEach(visit)
    if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'bigint') return
    const decimals = decimalsOf(value)
    // Digits before the point must have room as well.
    if (decimals !== null && decimals <= DECIMAL_DIGITS / 2) scale = Math.max(scale ?? 0, decimals)
  }
  values.forEach(visit)
  return scale
}
