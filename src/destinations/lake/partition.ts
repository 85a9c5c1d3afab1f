import { SyncError } from '../../contract/index.ts'
import type { LakeColumn } from './columns.ts'
import type { PhysicalValue } from './encode-values.ts'
import type { Partition } from './table-state.ts'

/** One partition per value, day or month of a field. Rows without a value have a partition of their own. */
export interface PartitionBy {
  /** The field of the records. */
  readonly field: string
  readonly by: 'value' | 'day' | 'month'
}

/** The partition of a table whose field has a column. */
export interface PartitionSpec extends PartitionBy {
  readonly column: LakeColumn & { readonly name: string; readonly id: number }
  /** The name of the partition in metadata and in paths. */
  readonly name: string
}

const TIME_TYPES = ['timestamp', 'datetime', 'date']
const VALUE_TYPES = ['text', 'boolean', 'date']

/** Null while the field has no column. */
export function findPartitionSpec(
  partitionBy: PartitionBy | undefined,
  columns: readonly LakeColumn[],
): PartitionSpec | null {
  if (partitionBy === undefined) return null
  const { field, by } = partitionBy
  const column = columns.find(({ member }) => member === field)
  if (column?.id === undefined || column.name === null) return null
  const allowed = by === 'value' ? VALUE_TYPES : TIME_TYPES
  if (!allowed.includes(column.type))
    throw new SyncError(
      'DESTINATION_INVALID',
      `The field ${field} is ${column.type}, which cannot be partitioned by ${by}. Use one of ${allowed.join(', ')}.`,
    )
  return {
    field,
    by,
    column: { ...column, name: column.name, id: column.id },
    name: by === 'value' ? `${column.name}_value` : `${column.name}_${by}`,
  }
}

/** The partition value of a stored value: days or months since 1970, or the value itself. */
export function toPartitionValue({ by, column }: PartitionSpec, value: PhysicalValue): Partition['value'] {
  if (value === null) return null
  if (by === 'value') return value instanceof Uint8Array ? Buffer.from(value).toString() : (value as Partition['value'])
  const days = column.type === 'date' ? Number(value) : floorDivide(BigInt(value as bigint), MICROS_PER_DAY)
  if (by === 'day') return days
  const date = new Date(days * 86_400_000)
  return (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth()
}

const MICROS_PER_DAY = 86_400_000_000n

function floorDivide(value: bigint, by: bigint): number {
  return Number((value - (((value % by) + by) % by)) / by)
}

/** `created_at_day=2026-01-31`. Readers take the value from the metadata; the folder is for people. */
export function partitionFolder({ by, name }: PartitionSpec, value: Partition['value']): string {
  return `${name.replaceAll(/[^\w.-]/g, '_')}=${value === null ? '__HIVE_DEFAULT_PARTITION__' : textOf(by, value)}`
}

function textOf(by: PartitionBy['by'], value: NonNullable<Partition['value']>): string {
  if (by === 'day') return new Date(Number(value) * 86_400_000).toISOString().slice(0, 10)
  if (by === 'month') return new Date(Date.UTC(1970, Number(value), 1)).toISOString().slice(0, 7)
  return String(value)
    .replaceAll(/[^\w.-]/g, '_')
    .slice(0, 100)
}

/** Identifies the partition of a file within its table. */
export function partitionKey({ specId, value }: Partition): string {
  return `${specId} ${typeof value} ${String(value)}`
}
