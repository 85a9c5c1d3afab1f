import type { DestinationMode, DestinationToken } from '../../../contract/index.ts'
import type { LakeColumn } from '../columns.ts'
import type { PartitionSpec } from '../partition.ts'
import type { TableChange } from '../table-state.ts'
import {
  avroPartitionType,
  FIRST_PARTITION_ID,
  toIcebergSchema,
  toIcebergSpec,
  UNPARTITIONED,
  type IcebergSchema,
  type IcebergSpec,
} from './schema.ts'
import { retainSnapshots, type Retention, type Snapshot } from './snapshots.ts'

/** Table metadata of format version 2. */
export interface Metadata {
  readonly 'format-version': 2
  readonly 'table-uuid': string
  readonly location: string
  readonly 'last-sequence-number': number
  readonly 'last-updated-ms': number
  readonly 'last-column-id': number
  readonly 'current-schema-id': number
  readonly schemas: readonly IcebergSchema[]
  readonly 'default-spec-id': number
  readonly 'partition-specs': readonly IcebergSpec[]
  readonly 'last-partition-id': number
  readonly 'default-sort-order-id': 0
  readonly 'sort-orders': readonly object[]
  readonly properties: Readonly<Record<string, string>>
  readonly 'current-snapshot-id'?: number
  readonly refs: Readonly<Record<string, { readonly 'snapshot-id': number; readonly type: 'branch' }>>
  readonly snapshots: readonly Snapshot[]
  readonly 'snapshot-log': ReadonlyArray<{ readonly 'timestamp-ms': number; readonly 'snapshot-id': number }>
  readonly 'metadata-log': ReadonlyArray<{ readonly 'timestamp-ms': number; readonly 'metadata-file': string }>
}

/** Readers use `main`. An unfinished load is a branch beside it, so that one commit replaces the rows. */
const REFS = { live: 'main', loading: 'tidemark-loading' } as const
const TOKEN = 'tidemark.token'
const COLUMNS = { live: 'tidemark.live', loading: 'tidemark.loading' } as const
const SPECS = 'tidemark.specs'
export const METADATA_VERSIONS_KEPT = 20

/** The mode and columns of a branch. */
export interface BranchColumns {
  readonly mode: DestinationMode
  readonly columns: readonly LakeColumn[]
}

export function isTidemarkTable({ properties }: Metadata): boolean {
  return properties[SPECS] !== undefined
}

export function headOf(metadata: Metadata, target: 'live' | 'loading'): Snapshot | null {
  const id = metadata.refs[REFS[target]]?.['snapshot-id']
  return metadata.snapshots.find((snapshot) => snapshot['snapshot-id'] === id) ?? null
}

/** Null if another program added the snapshot. */
export function tokenOf({ summary }: Snapshot): DestinationToken | null {
  const text = summary[TOKEN]
  return text === undefined ? null : (JSON.parse(text) as DestinationToken)
}

export function columnsOf({ properties }: Metadata, target: 'live' | 'loading'): BranchColumns | null {
  const text = properties[COLUMNS[target]]
  return text === undefined ? null : (JSON.parse(text) as BranchColumns)
}

/** The Avro types of partitions, by spec. */
export function partitionTypesOf({ properties }: Metadata): Record<number, object | string> {
  return JSON.parse(properties[SPECS] ?? '{}') as Record<number, object | string>
}

export function createMetadata(uuid: string, location: string): Metadata {
  return {
    'format-version': 2,
    'table-uuid': uuid,
    location,
    'last-sequence-number': 0,
    'last-updated-ms': 0,
    'last-column-id': 0,
    'current-schema-id': 0,
    schemas: [],
    'default-spec-id': 0,
    'partition-specs': [UNPARTITIONED],
    'last-partition-id': FIRST_PARTITION_ID - 1,
    'default-sort-order-id': 0,
    'sort-orders': [{ 'order-id': 0, fields: [] }],
    properties: { [SPECS]: '{}' },
    refs: {},
    snapshots: [],
    'snapshot-log': [],
    'metadata-log': [],
  }
}

/** Adds the spec of a partition, if the table does not have it. */
export function withPartitionSpec(metadata: Metadata, partition: PartitionSpec | null): [Metadata, IcebergSpec] {
  if (partition === null) return [metadata, UNPARTITIONED]
  const specs = metadata['partition-specs']
  const known = specs.find(
    ({ fields: [field] }) => field?.['source-id'] === partition.column.id && field.name === partition.name,
  )
  if (known !== undefined) return [metadata, known]
  const fieldId = metadata['last-partition-id'] + 1
  const spec = toIcebergSpec(partition, specs.length, fieldId)
  const types = { ...partitionTypesOf(metadata), [spec['spec-id']]: avroPartitionType(partition) }
  const added: Metadata = {
    ...metadata,
    'last-partition-id': fieldId,
    'partition-specs': [...specs, spec],
    'default-spec-id': spec['spec-id'],
    properties: { ...metadata.properties, [SPECS]: JSON.stringify(types) },
  }
  return [added, spec]
}

/** The metadata with the schema of these columns, and that schema. */
export function withSchema(metadata: Metadata, { mode, columns }: BranchColumns): [Metadata, IcebergSchema] {
  const bodyOf = ({ fields }: IcebergSchema): string => JSON.stringify(fields)
  const wanted = toIcebergSchema(mode, columns, 1 + Math.max(-1, ...metadata.schemas.map((one) => one['schema-id'])))
  const known = metadata.schemas.find((schema) => bodyOf(schema) === bodyOf(wanted))
  if (known !== undefined) return [metadata, known]
  return [{ ...metadata, schemas: [...metadata.schemas, wanted] }, wanted]
}

export interface NewSnapshot {
  readonly id: number
  readonly sequence: number
  readonly manifestList: string
  readonly summary: Readonly<Record<string, string>>
}

/** The next metadata: a snapshot with the token, on the branch of the batch. */
export function addSnapshot(
  metadata: Metadata,
  change: TableChange,
  { id, sequence, manifestList, summary }: NewSnapshot,
  schema: IcebergSchema,
  { now, retention, previousFile }: { now: number; retention: Retention; previousFile: string | null },
): Metadata {
  const at = Math.max(now, metadata['last-updated-ms'])
  const target = change.isLast ? 'live' : change.target
  const parent = headOf(metadata, target)
  const snapshot: Snapshot = {
    'snapshot-id': id,
    ...(parent !== null && { 'parent-snapshot-id': parent['snapshot-id'] }),
    'sequence-number': sequence,
    'timestamp-ms': at,
    'manifest-list': manifestList,
    'schema-id': schema['schema-id'],
    summary: { ...summary, [TOKEN]: JSON.stringify(change.token) },
  }
  const loadingHead = target === 'loading' ? snapshot : change.isLast ? null : headOf(metadata, 'loading')
  const loadingId = metadata.refs[REFS.loading]?.['snapshot-id']
  const main = metadata.snapshots.filter((one) => one['snapshot-id'] !== loadingId)
  const kept = retainSnapshots(target === 'live' ? [...main, snapshot] : main, at, retention)
  const snapshots = [...kept, ...(loadingHead === null ? [] : [loadingHead])]
  const ids = new Set(snapshots.map((one) => one['snapshot-id']))
  const liveId = target === 'live' ? id : metadata.refs[REFS.live]?.['snapshot-id']
  const { [COLUMNS.loading]: _loading, ...properties } = metadata.properties
  const loadingColumns = loadingHead === null ? undefined : metadata.properties[COLUMNS.loading]
  const own = JSON.stringify({ mode: change.mode, columns: change.columns } satisfies BranchColumns)
  const isCurrent = target === 'live' || liveId === undefined
  const currentSchema = isCurrent ? schema['schema-id'] : metadata['current-schema-id']
  const usedSchemas = new Set([currentSchema, ...snapshots.map((one) => one['schema-id'])])
  return {
    ...metadata,
    'last-sequence-number': sequence,
    'last-updated-ms': at,
    'last-column-id': change.lastColumnId,
    'current-schema-id': currentSchema,
    schemas: metadata.schemas.filter((one) => usedSchemas.has(one['schema-id'])),
    properties: {
      ...properties,
      ...(loadingColumns !== undefined && { [COLUMNS.loading]: loadingColumns }),
      [COLUMNS[target]]: own,
    },
    ...(liveId !== undefined && { 'current-snapshot-id': liveId }),
    refs: {
      ...(liveId !== undefined && { [REFS.live]: { 'snapshot-id': liveId, type: 'branch' } }),
      ...(loadingHead !== null && { [REFS.loading]: { 'snapshot-id': loadingHead['snapshot-id'], type: 'branch' } }),
    },
    snapshots,
    'snapshot-log': [
      ...metadata['snapshot-log'].filter((entry) => ids.has(entry['snapshot-id'])),
      ...(target === 'live' ? [{ 'timestamp-ms': at, 'snapshot-id': id }] : []),
    ],
    'metadata-log': [
      ...metadata['metadata-log'],
      ...(previousFile === null
        ? []
        : [{ 'timestamp-ms': metadata['last-updated-ms'], 'metadata-file': previousFile }]),
    ].slice(-METADATA_VERSIONS_KEPT),
  }
}

/** No rows and no tokens. */
export function emptyMetadata(metadata: Metadata): Metadata {
  const { 'current-snapshot-id': _id, ...rest } = metadata
  const { [COLUMNS.live]: _live, [COLUMNS.loading]: _loading, ...properties } = metadata.properties
  return { ...rest, properties, refs: {}, snapshots: [], 'snapshot-log': [], 'metadata-log': [] }
}
