import type { SchemaElement } from 'hyparquet'
import { itemTypeOf, type ScalarType } from '../../../stores/kit/tables/column.ts'
import type { LakeField } from '../columns.ts'
import { DECIMAL_DIGITS } from '../decimals.ts'

/** The schema of a file: one element per field, and three for a list. */
export function toParquetSchema(fields: readonly LakeField[]): SchemaElement[] {
  return [{ name: 'table', num_children: fields.length }, ...fields.flatMap(toElements)]
}

function toElements(field: LakeField): SchemaElement[] {
  const { name, id, elementId, type, scale, isRequired } = field
  const item = itemTypeOf(type)
  if (item === null)
    return [
      {
        name,
        field_id: id,
        repetition_type: isRequired ? 'REQUIRED' : 'OPTIONAL',
        ...leafOf(type as ScalarType, scale),
      },
    ]
  return [
    {
      name,
      field_id: id,
      repetition_type: 'OPTIONAL',
      num_children: 1,
      converted_type: 'LIST',
      logical_type: { type: 'LIST' },
    },
    { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
    {
      name: 'element',
      ...(elementId !== undefined && { field_id: elementId }),
      repetition_type: 'OPTIONAL',
      ...leafOf(item, scale),
    },
  ]
}

function leafOf(type: ScalarType, scale: number): Omit<SchemaElement, 'name'> {
  switch (type) {
    case 'bigint':
      return { type: 'INT64' }
    case 'boolean':
      return { type: 'BOOLEAN' }
    case 'bytes':
      return { type: 'BYTE_ARRAY' }
    case 'date':
      return { type: 'INT32', converted_type: 'DATE', logical_type: { type: 'DATE' } }
    case 'datetime':
      return { type: 'INT64', logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: false, unit: 'MICROS' } }
    case 'decimal':
    case 'numeric':
      return {
        type: 'FIXED_LEN_BYTE_ARRAY',
        type_length: 16,
        converted_type: 'DECIMAL',
        scale,
        precision: DECIMAL_DIGITS,
        logical_type: { type: 'DECIMAL', scale, precision: DECIMAL_DIGITS },
      }
    case 'double':
      return { type: 'DOUBLE' }
    case 'json':
    case 'text':
      return { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } }
    case 'time':
      return {
        type: 'INT64',
        converted_type: 'TIME_MICROS',
        logical_type: { type: 'TIME', isAdjustedToUTC: false, unit: 'MICROS' },
      }
    case 'timestamp':
      return {
        type: 'INT64',
        converted_type: 'TIMESTAMP_MICROS',
        logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
      }
    case 'uuid':
      return { type: 'FIXED_LEN_BYTE_ARRAY', type_length: 16, logical_type: { type: 'UUID' } }
    default:
      return type satisfies never
  }
}
