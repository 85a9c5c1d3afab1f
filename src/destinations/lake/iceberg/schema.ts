import type { DestinationMode } from '../../../contract/index.ts'
import { itemTypeOf, type ScalarType } from '../../../stores/kit/tables/column.ts'
import { fieldsOf, type LakeColumn, type LakeField } from '../columns.ts'
import { DECIMAL_DIGITS } from '../decimals.ts'
import type { PartitionSpec } from '../partition.ts'

/** A schema in table metadata. */
export interface IcebergSchema {
  readonly type: 'struct'
  readonly 'schema-id': number
  readonly 'identifier-field-ids'?: readonly number[]
  readonly fields: ReadonlyArray<{ id: number; name: string; required: boolean; type: unknown }>
}

export function toIcebergSchema(
  mode: DestinationMode,
  columns: readonly LakeColumn[],
  schemaId: number,
): IcebergSchema {
  const fields = fieldsOf(mode, columns)
  return {
    type: 'struct',
    'schema-id': schemaId,
    // A history has two identifying columns: a key and a sequence.
    'identifier-field-ids': fields.filter(({ isRequired }) => isRequired).map(({ id }) => id),
    fields: fields.map((field) => ({
      id: field.id,
      name: field.name,
      required: field.isRequired,
      type: toIcebergType(field),
    })),
  }
}

function toIcebergType({ type, elementId, scale }: LakeField): unknown {
  const item = itemTypeOf(type)
  if (item === null) return scalarType(type as ScalarType, scale)
  return { type: 'list', 'element-id': elementId, element: scalarType(item, scale), 'element-required': false }
}

function scalarType(type: ScalarType, scale: number): string {
  return type === 'decimal' || type === 'numeric' ? `decimal(${DECIMAL_DIGITS}, ${scale})` : ICEBERG_TYPES[type]
}

export const ICEBERG_TYPES = {
  bigint: 'long',
  boolean: 'boolean',
  bytes: 'binary',
  date: 'date',
  datetime: 'timestamp',
  double: 'double',
  json: 'string',
  text: 'string',
  time: 'time',
  timestamp: 'timestamptz',
  uuid: 'uuid',
} as const

/** A partition spec in table metadata. */
export interface IcebergSpec {
  readonly 'spec-id': number
  readonly fields: ReadonlyArray<{ name: string; transform: string; 'source-id': number; 'field-id': number }>
}

export const UNPARTITIONED: IcebergSpec = { 'spec-id': 0, fields: [] }
export const FIRST_PARTITION_ID = 1_000

export function toIcebergSpec({ by, name, column }: PartitionSpec, specId: number, fieldId: number): IcebergSpec {
  const transform = by === 'value' ? 'identity' : by
  return { 'spec-id': specId, fields: [{ name, transform, 'source-id': column.id, 'field-id': fieldId }] }
}

/** The Avro type of a partition value in a manifest. */
export function avroPartitionType({ by, column }: PartitionSpec): object | string {
  if (by === 'month') return 'int'
  if (by === 'day' || column.type === 'date') return { type: 'int', logicalType: 'date' }
  return column.type === 'boolean' ? 'boolean' : 'string'
}
