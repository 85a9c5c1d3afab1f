import { SCALAR_TYPES, SyncError, type Destination } from '../../contract/index.ts'
import { tableNameOf } from '../kit/table-names.ts'
import type { LakeTable } from './build-change.ts'
import { AvroCodec } from './iceberg/avro-file.ts'
import { IcebergFormat } from './iceberg/iceberg-format.ts'
import { KeyIndex } from './key-index.ts'
import type { PartitionBy } from './partition.ts'
import { PlainFormat } from './plain/plain-format.ts'
import { LakeSession } from './session.ts'
import { LocalStorage } from './storage/local-storage.ts'
import { S3Storage, type LakeS3Options } from './storage/s3-storage.ts'
import type { Storage } from './storage/storage.ts'

export type { PartitionBy } from './partition.ts'
export type { LakeS3Options } from './storage/s3-storage.ts'

/** Options of `lake`. Exactly one of `folder` and `s3` is required. */
export interface LakeOptions {
  /** A local folder. It is created if it does not exist. */
  readonly folder?: string
  /** A bucket, instead of a folder. It must support conditional writes. */
  readonly s3?: LakeS3Options
  /** `iceberg` (default): Iceberg tables of version 2. `parquet`: Parquet files and a list of the live ones. */
  readonly format?: 'iceberg' | 'parquet'
  /** The partition of each database, by name. Databases that are not named have none. */
  readonly partitionBy?: Readonly<Record<string, PartitionBy>>
  /** Snapshots that are kept whatever their age. Default: 20. */
  readonly snapshotsMin?: number
  /** How long replaced files and snapshots stay readable. Default: 24. */
  readonly keepHours?: number
}

/**
 * A lake on a folder or S3: one Iceberg table per database, or Parquet files with a list of the live ones. Rows and token
 * are in one atomic commit.
 *
 * @example
 * ```ts
 * import { Worker } from 'tidemark'
 * import { lake } from 'tidemark/destinations/lake'
 *
 * const worker = new Worker({ name: 'billing' })
 * worker.database('customers')
 * worker.destination('lake', lake({ folder: './lake' }), { databases: ['customers'] })
 * ```
 */
export function lake(options: LakeOptions): Destination {
  return createLake(options, Date.now)
}

/** `lake` with a clock. */
export function createLake(options: LakeOptions, now: () => number): Destination {
  const { format = 'iceberg', partitionBy = {}, snapshotsMin = 20, keepHours = 24 } = options
  checkOptions(options)
  const storage = openStorage(options)
  const retention = { snapshotsMin, keepMs: keepHours * 3_600_000 }
  return {
    kind: 'lake',
    location: `${format === 'iceberg' ? 'Iceberg' : 'Parquet'} at ${storage.uri}`,
    supports: {
      modes: ['mirror', 'append', 'history'],
      commit: 'snapshot',
      mergeByKey: true,
      addColumn: true,
      swap: true,
      values: true,
      types: SCALAR_TYPES,
    },
    async open({ tenant }) {
      await storage.check()
      const codec = format === 'iceberg' ? await AvroCodec.load() : null
      return new LakeSession((database): LakeTable => {
        const folder = tableNameOf(tenant, database)
        const table = { storage, folder, partitionBy: partitionBy[database], now }
        return {
          context: { storage, folder },
          format:
            codec === null
              ? new PlainFormat({ ...table, keepMs: retention.keepMs })
              : new IcebergFormat({ ...table, retention }, codec),
          index: new KeyIndex(storage, (path) => `${folder}/${path}`),
          partitionBy: partitionBy[database],
        }
      })
    },
  }
}

function openStorage({ folder, s3 }: LakeOptions): Storage {
  if (s3 !== undefined && folder === undefined) return new S3Storage(s3)
  if (folder !== undefined && s3 === undefined) return new LocalStorage(folder)
  throw new SyncError('DESTINATION_INVALID', 'A lake needs either `folder` or `s3`.')
}

function checkOptions({ format, snapshotsMin = 1, keepHours = 0 }: LakeOptions): void {
  if (format !== undefined && format !== 'iceberg' && format !== 'parquet')
    throw new SyncError('DESTINATION_INVALID', 'The format of a lake is `iceberg` or `parquet`.')
  if (!Number.isSafeInteger(snapshotsMin) || snapshotsMin < 1 || !(keepHours >= 0))
    throw new SyncError('DESTINATION_INVALID', '`snapshotsMin` must be at least 1, and `keepHours` at least 0.')
}
