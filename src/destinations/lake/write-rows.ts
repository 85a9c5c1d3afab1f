import type { DestinationMode } from '../../contract/index.ts'
import type { PhysicalColumns } from './encode-batch.ts'
import type { PhysicalValue } from './encode-values.ts'
import { groupRowsMax } from './parquet/write-file.ts'
import { partitionKey, toPartitionValue } from './partition.ts'
import { createWriter, FILE_BYTES_TARGET, saveDataFile, type FileLayout, type TableContext } from './table-context.ts'
import type { DataFile, Partition } from './table-state.ts'

/** Writes rows to new files, sorted, one or more per partition. */
export async function writeRows(
  context: TableContext,
  columns: PhysicalColumns,
  layout: FileLayout,
  specId: number,
): Promise<DataFile[]> {
  const files: DataFile[] = []
  const rowsMax = groupRowsMax(layout.fields.length)
  const order = sortRows(columns, layout)
  for (const { partition, rows } of splitByPartition(columns, order, layout, specId)) {
    let writer = createWriter(layout)
    for (let at = 0; at < rows.length; at += rowsMax) {
      writer.addGroup(columns.map((column) => pick(column, rows, at, at + rowsMax)))
      if (writer.bytes < FILE_BYTES_TARGET) continue
      files.push(await saveDataFile(context, writer, layout, partition))
      writer = createWriter(layout)
    }
    if (writer.rows > 0) files.push(await saveDataFile(context, writer, layout, partition))
  }
  return files
}

function pick(column: readonly PhysicalValue[], rows: Uint32Array, from: number, to: number): readonly PhysicalValue[] {
  const part = rows.subarray(from, to)
  // Rows of a load are in order already.
  const [first = 0] = part
  const isRun = (part.at(-1) ?? 0) - first === part.length - 1 && part.every((row, at) => row === first + at)
  if (!isRun) return Array.from(part, (row) => column[row] ?? null)
  return part.length === column.length ? column : column.slice(first, first + part.length)
}

function splitByPartition(
  columns: PhysicalColumns,
  order: Uint32Array,
  { fields, spec }: FileLayout,
  specId: number,
): Array<{ partition: Partition; rows: Uint32Array }> {
  const column = spec === null ? undefined : columns[fields.findIndex(({ id }) => id === spec.column.id)]
  if (spec === null || column === undefined)
    return order.length === 0 ? [] : [{ partition: { specId, value: null }, rows: order }]
  const groups = new Map<string, { partition: Partition; rows: number[] }>()
  for (const row of order) {
    const partition = { specId, value: toPartitionValue(spec, column[row] ?? null) }
    const key = partitionKey(partition)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, { partition, rows: [row] })
    else group.rows.push(row)
  }
  return [...groups.values()].map(({ partition, rows }) => ({ partition, rows: Uint32Array.from(rows) }))
}

/** By bytes of the key, then by sequence: the order that `KeyIndex` and merges rely on. */
function sortRows(columns: PhysicalColumns, { mode, fields }: FileLayout): Uint32Array {
  const columnOf = (name: string): readonly PhysicalValue[] =>
    columns[fields.findIndex((field) => field.name === name)] ?? []
  const [keys, sequences] = [columnOf('_key'), columnOf('_sequence')]
  const order = Uint32Array.from({ length: keys.length }, (_, at) => at)
  if (mode === 'mirror' && isAscending(keys)) return order
  const sortKeys = keys.map((key, at) => toSortKey(mode, key, sequences[at] ?? null))
  return order.sort((a, b) => compareSortKeys(sortKeys[a], sortKeys[b]))
}

/** Without characters beyond the Basic Multilingual Plane, strings compare like their bytes. */
function isAscending(keys: readonly PhysicalValue[]): boolean {
  return keys.every((key, at) => {
    const before = keys[at - 1]
    if (typeof key !== 'string' || SURROGATE.test(key)) return false
    return at === 0 || (typeof before === 'string' && before < key)
  })
}

const SURROGATE = /[\ud800-\udfff]/

export interface SortKey {
  readonly key: Buffer
  readonly sequence: bigint
}

const NO_KEY = Buffer.alloc(0)

export function toSortKey(mode: DestinationMode, key: PhysicalValue, sequence: PhysicalValue): SortKey {
  return {
    key: mode === 'append' ? NO_KEY : key instanceof Uint8Array ? Buffer.from(key) : Buffer.from(String(key)),
    sequence: mode === 'mirror' ? 0n : BigInt(sequence as bigint),
  }
}

export function compareSortKeys(a: SortKey | undefined, b: SortKey | undefined): number {
  if (a === undefined || b === undefined) return 0
  return a.key.compare(b.key) || (a.sequence < b.sequence ? -1 : a.sequence > b.sequence ? 1 : 0)
}
