import type { DestinationBatch } from '../../contract/index.ts'
import { RecordEncoder, type ColumnValue, type EncodedRecord } from '../../stores/kit/tables/encode-record.ts'
import { isDelete, SYSTEM_COLUMNS, toTableRows } from '../kit/table-rows.ts'
import { isDecimalType, type LakeColumn } from './columns.ts'
import { converterOf, fitDecimals, type PhysicalValue } from './encode-values.ts'
import type { FileLayout } from './table-context.ts'

/** Rows by column, in the order of the fields. */
export type PhysicalColumns = PhysicalValue[][]

export interface EncodedBatch {
  readonly columns: PhysicalColumns
  /** Keys of a history whose current version ends, with the time in ms. */
  readonly endedKeys: ReadonlyArray<readonly [key: string, at: number]>
}

const DIALECT = { preservesText: false, preservesJsonText: false, doubleMin: Number.MIN_VALUE }

/** Encodes the changes of a batch. Values go to their columns at once: arrays of rows in between would cost a third more. */
export function encodeBatch(
  { schema, changes, members = [] }: DestinationBatch,
  columns: readonly LakeColumn[],
  { fields }: FileLayout,
): EncodedBatch {
  const { mode } = schema
  const encoder = new RecordEncoder(columns, DIALECT, members)
  const hasDecimals = columns.some(({ type }) => isDecimalType(type))
  const encode = (change: Change): EncodedRecord => {
    const encoded = encoder.encodeVersion(change)
    return hasDecimals ? fitDecimals(columns, encoded, change) : encoded
  }
  // In a history, a version ends when the next one of its key begins.
  const history = mode === 'history' ? toTableRows(mode, changes, columns, encode) : null
  const output =
    mode === 'history' ? transpose(history?.rows ?? [], fields.length) : encodeChanges(mode, changes, columns, encode)
  for (const [at, field] of fields.entries()) {
    const column = output[at]
    const convert = converterOf(field)
    if (column !== undefined && convert !== null)
      for (let row = 0; row < column.length; row++) column[row] = convert(column[row] as ColumnValue)
  }
  return { columns: output, endedKeys: history?.endedKeys ?? [] }
}

type Change = DestinationBatch['changes'][number]

function encodeChanges(
  mode: 'mirror' | 'append',
  changes: readonly Change[],
  columns: readonly LakeColumn[],
  encode: (change: Change) => EncodedRecord,
): PhysicalColumns {
  const kept = mode === 'mirror' ? changes.filter((change) => !isDelete(change)) : changes
  const system = SYSTEM_COLUMNS[mode].map(({ name }) => name)
  const named = columns.flatMap(({ name, id }, at) => (name === null || id === undefined ? [] : [at]))
  const output: PhysicalColumns = [...system, ...named].map(() => Array<PhysicalValue>(kept.length).fill(null))
  const columnOf = (name: string): PhysicalValue[] => output[system.indexOf(name)] ?? []
  const [extras, keys, sequences] = [columnOf('_extra'), columnOf('_key'), columnOf('_sequence')]
  const [actions, times] = [columnOf('_action'), columnOf('_committed_at')]
  // One pass: a change of a load is computed as it is read.
  for (const [row, change] of kept.entries()) {
    keys[row] = change.key
    sequences[row] = change.sequence
    actions[row] = change.action
    times[row] = change.committedAt
    if (isDelete(change)) continue
    const { values, extra } = encode(change)
    extras[row] = extra
    for (let at = 0; at < named.length; at++) {
      const column = output[system.length + at]
      if (column !== undefined) column[row] = (values[named[at] ?? -1] ?? null) as PhysicalValue
    }
  }
  return output
}

function transpose(rows: Iterable<readonly ColumnValue[]>, count: number): PhysicalColumns {
  return Array.from({ length: count }, (_, at) => Array.from(rows, (row) => (row[at] ?? null) as PhysicalValue))
}
