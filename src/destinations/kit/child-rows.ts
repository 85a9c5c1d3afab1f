import type { DestinationChange, JsonObject, JsonValue } from '../../contract/index.ts'
import type { TableColumn } from '../../stores/kit/tables/column.ts'
import type { ColumnValue, EncodedRecord } from '../../stores/kit/tables/encode-record.ts'
import type { RecordVersion, TableSpec } from './sql-tables.ts'

/** The table for the children in one field of a mirror. */
export function createChildTable(name: string): TableSpec {
  return { name, system: CHILD_COLUMNS, key: ['_parent_key', '_index'] }
}

const CHILD_COLUMNS: TableSpec['system'] = [
  { name: '_parent_key', type: 'text' },
  { name: '_index', type: 'bigint' },
  { name: '_sequence', type: 'bigint' },
  { name: '_extra', type: 'json' },
]

/** The items of a field that become rows: those of a non-empty array that has only objects. Other values stay in the row. */
export function childrenOf(record: JsonObject | null, member: string): readonly JsonObject[] {
  const value = record !== null && Object.hasOwn(record, member) ? record[member] : null
  return Array.isArray(value) && value.every(isObject) ? value : []
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A change without the fields whose values are in child tables. */
export function withoutChildren(change: DestinationChange, members: readonly string[]): DestinationChange {
  const { record } = change
  const moved = members.filter((member) => childrenOf(record, member).length > 0)
  if (record === null || moved.length === 0) return change
  const rest = { ...record }
  for (const member of moved) delete rest[member]
  return { ...change, record: rest }
}

/** The rows of one field's children, with the sequence of the row that they belong to. */
export function toChildRows(
  changes: readonly DestinationChange[],
  member: string,
  columns: readonly TableColumn[],
  encode: (version: RecordVersion) => EncodedRecord,
): ColumnValue[][] {
  return changes.flatMap(({ key, record, text, sequence }) =>
    childrenOf(record, member).map((child, index): ColumnValue[] => {
      const { extra, values } = encode({ record: child, text, sequence })
      return [key, index, sequence, extra, ...values.filter((_, at) => columns[at]?.name !== null)]
    }),
  )
}
