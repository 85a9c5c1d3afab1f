import { randomUUID } from 'node:crypto'
import type { LakeField } from './columns.ts'
import type { PhysicalValue } from './encode-values.ts'
import { ParquetFileWriter } from './parquet/write-file.ts'
import { openDataFile, type TableContext } from './table-context.ts'
import type { DataFile, DeleteFile, Partition } from './table-state.ts'

/** Positions of deleted rows, by path of the data file. */
export type Positions = ReadonlyMap<string, ReadonlySet<number>>

/** The columns and their ids are fixed by the specification of Iceberg. */
const FIELDS: readonly LakeField[] = [
  { name: 'file_path', id: 2_147_483_546, type: 'text', scale: 0, isRequired: true },
  { name: 'pos', id: 2_147_483_545, type: 'bigint', scale: 0, isRequired: true },
]
const GROUP_ROWS = 20_000

/** Writes one delete file for a partition, in order of file and position. */
export async function writePositions(
  { storage, folder }: TableContext,
  positions: Positions,
  partition: Partition,
): Promise<DeleteFile> {
  const writer = new ParquetFileWriter(FIELDS, 'file_path')
  let [paths, rows]: [PhysicalValue[], PhysicalValue[]] = [[], []]
  const flush = (): void => {
    writer.addGroup([paths, rows])
    ;[paths, rows] = [[], []]
  }
  for (const path of [...positions.keys()].toSorted()) {
    const uri = `${storage.uri}/${folder}/${path}`
    for (const position of [...(positions.get(path) ?? [])].toSorted((a, b) => a - b)) {
      paths.push(uri)
      rows.push(BigInt(position))
      if (rows.length >= GROUP_ROWS) flush()
    }
  }
  flush()
  const { bytes, rows: count, lower, upper } = writer.finish()
  const path = `data/${randomUUID()}-deletes.parquet`
  await storage.write(`${folder}/${path}`, bytes)
  return { path, rows: count, bytes: bytes.length, sequence: 0, lower, upper, partition }
}

/** The deleted positions of these data files. Row groups of other files are not read. */
export async function readPositions(
  context: TableContext,
  deletes: readonly DeleteFile[],
  data: readonly DataFile[],
): Promise<Map<string, Set<number>>> {
  const prefix = `${context.storage.uri}/${context.folder}/`
  const uris = data.map(({ path }) => Buffer.from(prefix + path))
  const wanted = new Set(data.map(({ path }) => path))
  const isWithin = (lower: Buffer | null, upper: Buffer | null): boolean =>
    uris.some((uri) => (lower === null || uri.compare(lower) >= 0) && (upper === null || uri.compare(upper) <= 0))
  const found = new Map<string, Set<number>>()
  for (const file of deletes) {
    if (!isWithin(file.lower, file.upper)) continue
    const reader = await openDataFile(context, file)
    for (const [at, group] of reader.groups.entries()) {
      if (!isWithin(group.first, group.last)) continue
      const values = await reader.readGroup(at)
      const rows = values.get('pos') ?? []
      for (const [index, uri] of (values.get('file_path') ?? []).entries()) {
        const path = Buffer.from(uri as Uint8Array)
          .toString()
          .slice(prefix.length)
        if (!wanted.has(path)) continue
        let set = found.get(path)
        if (set === undefined) found.set(path, (set = new Set()))
        set.add(Number(rows[index]))
      }
    }
  }
  return found
}
