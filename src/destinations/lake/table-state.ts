import type { DestinationMode, DestinationToken } from '../../contract/index.ts'
import type { LakeColumn } from './columns.ts'

/** The value of the partition column in every row of a file. */
export interface Partition {
  readonly specId: number
  readonly value: boolean | number | string | null
}

/** A data file of a table. Its rows are sorted; readers skip rows that delete files name. */
export interface DataFile {
  /** Relative to the folder of the table. */
  readonly path: string
  readonly rows: number
  readonly bytes: number
  /** The commit that added it: a newer version of a key is in a file of a newer commit. */
  readonly sequence: number
  /** Bounds of the sort column; null if unbounded. */
  readonly lower: Buffer | null
  readonly upper: Buffer | null
  readonly partition: Partition
}

/** A file with positions of deleted rows, sorted by file and position. */
export interface DeleteFile {
  readonly path: string
  readonly rows: number
  readonly bytes: number
  readonly sequence: number
  /** The first and the last file that it names; null if unknown. */
  readonly lower: Buffer | null
  readonly upper: Buffer | null
  readonly partition: Partition
}

export interface TableFiles {
  readonly data: readonly DataFile[]
  readonly deletes: readonly DeleteFile[]
}

/** The rows that are read, or an unfinished load of them. */
export interface Branch {
  readonly token: DestinationToken
  readonly mode: DestinationMode
  readonly columns: readonly LakeColumn[]
  files(): Promise<TableFiles>
}

/** A table at one version of its metadata. */
export interface TableState {
  readonly version: number
  /** The sequence of the last commit. */
  readonly sequence: number
  readonly lastColumnId: number
  readonly live: Branch | null
  readonly loading: Branch | null
}

/** The next version of a table. */
export interface TableChange {
  readonly target: 'live' | 'loading'
  readonly token: DestinationToken
  readonly mode: DestinationMode
  readonly columns: readonly LakeColumn[]
  readonly lastColumnId: number
  readonly data: readonly DataFile[]
  readonly deletes: readonly DeleteFile[]
  /** Paths of files that are no longer part of the table. */
  readonly removed: ReadonlySet<string>
  /** A new load begins: the files of an earlier one are dropped. */
  readonly isFirst: boolean
  /** The load replaces the live rows. */
  readonly isLast: boolean
}

/** The metadata of one table. A commit creates the next version only if it does not exist. */
export interface TableFormat {
  /** Deleted rows are listed in delete files; otherwise their files are written again. */
  readonly hasDeleteFiles: boolean
  /** The newest version; null if there is no table. Throws DESTINATION_FOREIGN if it is not Tidemark's. */
  load(): Promise<TableState | null>
  /** The number that `DataFile.partition` has for this column; 0 without partitions. */
  partitionSpecOf(state: TableState | null, change: Pick<TableChange, 'mode' | 'columns'>): number
  /** `lost`: another process committed this version. Nothing changed. */
  commit(state: TableState | null, change: TableChange): Promise<'committed' | 'lost'>
  /** Deletes the rows and tokens, then the files. */
  remove(): Promise<void>
  /** Deletes files that no kept version needs. */
  sweep(): Promise<void>
}
