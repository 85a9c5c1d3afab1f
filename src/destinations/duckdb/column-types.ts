import { itemTypeOf, type ScalarType, type TableColumn } from '../../stores/kit/tables/column.ts'
import { parseDecimalFormat } from './decimals.ts'

/** The column for each type of the store. The scale of decimals depends on the column. */
export const SQL_TYPES: Record<ScalarType, string> = {
  bigint: 'bigint',
  boolean: 'boolean',
  bytes: 'blob',
  date: 'date',
  datetime: 'timestamp',
  decimal: 'decimal',
  double: 'double',
  json: 'json',
  numeric: 'decimal',
  text: 'varchar',
  time: 'time',
  timestamp: 'timestamptz',
  uuid: 'uuid',
}

export function sqlTypeOf(column: Pick<TableColumn, 'type' | 'format'>): string {
  const item = itemTypeOf(column.type)
  const type = SQL_TYPES[item ?? (column.type as ScalarType)]
  const sized = type === 'decimal' ? `decimal(38, ${parseDecimalFormat(column).scale})` : type
  return item === null ? sized : `${sized}[]`
}
