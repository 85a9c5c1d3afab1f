import { randomUUID } from 'node:crypto'
import type { DestinationMode } from '../../contract/index.ts'
import { PRIMARY_KEYS } from '../kit/table-rows.ts'
import type { LakeField } from './columns.ts'
import { partitionFolder, type PartitionSpec } from './partition.ts'
import { ParquetFileReader } from './parquet/read-file.ts'
import { ParquetFileWriter } from './parquet/write-file.ts'
import type { Storage } from './storage/storage.ts'
import type { DataFile, DeleteFile, Partition } from './table-state.ts'

/** A file that grows beyond this is finished, and the next one begins. Also the most that a merge holds in memory. */
export const FILE_BYTES_TARGET = 32 * 1024 * 1024

/** The folder of one table. */
export interface TableContext {
  readonly storage: Storage
  readonly folder: string
}

/** The columns and the partition of the files that a batch writes. */
export interface FileLayout {
  readonly mode: DestinationMode
  readonly fields: readonly LakeField[]
  readonly spec: PartitionSpec | null
}

export function openDataFile(
  { storage, folder }: TableContext,
  file: DataFile | DeleteFile,
): Promise<ParquetFileReader> {
  return ParquetFileReader.open(storage, { path: `${folder}/${file.path}`, bytes: file.bytes })
}

export function createWriter({ mode, fields }: FileLayout): ParquetFileWriter {
  return new ParquetFileWriter(fields, PRIMARY_KEYS[mode][0] ?? '_key')
}

/** Stores the rows of a writer under a new name. The file becomes part of the table with the next commit. */
export async function saveDataFile(
  { storage, folder }: TableContext,
  writer: ParquetFileWriter,
  { mode, spec }: FileLayout,
  partition: Partition,
): Promise<DataFile> {
  const { bytes, rows, lower, upper } = writer.finish()
  const within = spec === null || partition.specId === 0 ? '' : `${partitionFolder(spec, partition.value)}/`
  const path = `data/${within}${randomUUID()}.parquet`
  await storage.write(`${folder}/${path}`, bytes)
  const isByKey = mode !== 'append'
  return {
    path,
    rows,
    bytes: bytes.length,
    // Set by the commit.
    sequence: 0,
    lower: isByKey ? lower : null,
    upper: isByKey ? upper : null,
    partition,
  }
}
