import { FIRST_PARTITION_ID, type IcebergSchema, type IcebergSpec } from './schema.ts'
import type { AvroCodec } from './avro-file.ts'

/** A file in a manifest: `content` is 0 for data and 1 for positions of deleted rows. */
export interface ManifestEntry {
  readonly content: 0 | 1
  /** A URI. */
  readonly path: string
  readonly rows: number
  readonly bytes: number
  readonly specId: number
  readonly partition: boolean | number | string | null
  /** Bounds by field id. */
  readonly lower: ReadonlyMap<number, Buffer>
  readonly upper: ReadonlyMap<number, Buffer>
  readonly sequence: number
  readonly snapshotId: number
}

/** A manifest in the manifest list of a snapshot. */
export interface ManifestFile {
  readonly manifest_path: string
  readonly manifest_length: number
  readonly partition_spec_id: number
  readonly content: 0 | 1
  readonly sequence_number: number
  readonly min_sequence_number: number
  readonly added_snapshot_id: number
  readonly added_files_count: number
  readonly existing_files_count: number
  readonly deleted_files_count: number
  readonly added_rows_count: number
  readonly existing_rows_count: number
  readonly deleted_rows_count: number
}

/** How the partition of a spec is written; null without partitions. */
export interface PartitionFormat {
  readonly spec: IcebergSpec
  readonly avro: object | string | null
}

const [EXISTING, ADDED] = [0, 1]

/** Encodes files. Those of this snapshot inherit its sequence; the others keep theirs. */
export function encodeManifest(
  codec: AvroCodec,
  entries: readonly ManifestEntry[],
  { spec, avro }: PartitionFormat,
  schema: IcebergSchema,
  snapshotId: number,
): Buffer {
  const name = spec.fields[0]?.name
  const rows = entries.map((entry) => {
    const isAdded = entry.snapshotId === snapshotId
    return {
      status: isAdded ? ADDED : EXISTING,
      snapshot_id: entry.snapshotId,
      sequence_number: isAdded ? null : entry.sequence,
      file_sequence_number: isAdded ? null : entry.sequence,
      data_file: {
        content: entry.content,
        file_path: entry.path,
        file_format: 'PARQUET',
        partition: name === undefined ? {} : { [PARTITION_MEMBER]: entry.partition },
        record_count: entry.rows,
        file_size_in_bytes: entry.bytes,
        lower_bounds: toBounds(entry.lower),
        upper_bounds: toBounds(entry.upper),
        equality_ids: null,
        sort_order_id: entry.content === 0 ? 0 : null,
      },
    }
  })
  return codec.encode(manifestSchema(spec, avro), rows, {
    schema: JSON.stringify(schema),
    'schema-id': String(schema['schema-id']),
    'partition-spec': JSON.stringify(spec.fields),
    'partition-spec-id': String(spec['spec-id']),
    'format-version': '2',
    content: entries[0]?.content === 1 ? 'deletes' : 'data',
  })
}

interface EncodedEntry {
  readonly status: number
  readonly snapshot_id: number | null
  readonly sequence_number: number | null
  readonly data_file: {
    readonly content: 0 | 1
    readonly file_path: string
    readonly partition: Record<string, boolean | number | string | null>
    readonly record_count: number
    readonly file_size_in_bytes: number
    readonly lower_bounds: ReadonlyArray<{ key: number; value: Buffer }> | null
    readonly upper_bounds: ReadonlyArray<{ key: number; value: Buffer }> | null
  }
}

export function decodeManifest(codec: AvroCodec, manifest: ManifestFile, bytes: Buffer): ManifestEntry[] {
  return codec.decode<EncodedEntry>(bytes).map(({ snapshot_id, sequence_number, data_file: file }) => ({
    content: file.content,
    path: file.file_path,
    rows: file.record_count,
    bytes: file.file_size_in_bytes,
    specId: manifest.partition_spec_id,
    partition: Object.values(file.partition)[0] ?? null,
    lower: new Map(file.lower_bounds?.map(({ key, value }) => [key, value])),
    upper: new Map(file.upper_bounds?.map(({ key, value }) => [key, value])),
    // Files that were added with the manifest inherit its sequence.
    sequence: sequence_number ?? manifest.sequence_number,
    snapshotId: snapshot_id ?? manifest.added_snapshot_id,
  }))
}

export function encodeManifestList(
  codec: AvroCodec,
  manifests: readonly ManifestFile[],
  snapshot: { readonly id: number; readonly sequence: number },
): Buffer {
  return codec.encode(MANIFEST_LIST_SCHEMA, manifests, {
    'snapshot-id': String(snapshot.id),
    'sequence-number': String(snapshot.sequence),
    'format-version': '2',
  })
}

function toBounds(bounds: ReadonlyMap<number, Buffer>): Array<{ key: number; value: Buffer }> | null {
  return bounds.size === 0 ? null : [...bounds].map(([key, value]) => ({ key, value }))
}

// ── Avro schemas, with the field ids of the Iceberg specification ────────────────────────────────────────────────────

/** Readers find the partition by its field id. The name of a column is not always a valid Avro name. */
const PARTITION_MEMBER = 'partition_value'

function manifestSchema(spec: IcebergSpec, avro: object | string | null): object {
  const partition = {
    type: 'record',
    name: 'r102',
    fields:
      avro === null
        ? []
        : [field(PARTITION_MEMBER, spec.fields[0]?.['field-id'] ?? FIRST_PARTITION_ID, ['null', avro], null)],
  }
  const dataFile = {
    type: 'record',
    name: 'r2',
    fields: [
      field('content', 134, 'int'),
      field('file_path', 100, 'string'),
      field('file_format', 101, 'string'),
      field('partition', 102, partition),
      field('record_count', 103, 'long'),
      field('file_size_in_bytes', 104, 'long'),
      field('lower_bounds', 125, ['null', boundsType(126, 127)], null),
      field('upper_bounds', 128, ['null', boundsType(129, 130)], null),
      field('equality_ids', 135, ['null', { type: 'array', items: 'int', 'element-id': 136 }], null),
      field('sort_order_id', 140, ['null', 'int'], null),
    ],
  }
  return {
    type: 'record',
    name: 'manifest_entry',
    fields: [
      field('status', 0, 'int'),
      field('snapshot_id', 1, ['null', 'long'], null),
      field('sequence_number', 3, ['null', 'long'], null),
      field('file_sequence_number', 4, ['null', 'long'], null),
      field('data_file', 2, dataFile),
    ],
  }
}

const MANIFEST_LIST_SCHEMA = {
  type: 'record',
  name: 'manifest_file',
  fields: [
    field('manifest_path', 500, 'string'),
    field('manifest_length', 501, 'long'),
    field('partition_spec_id', 502, 'int'),
    field('content', 517, 'int'),
    field('sequence_number', 515, 'long'),
    field('min_sequence_number', 516, 'long'),
    field('added_snapshot_id', 503, 'long'),
    field('added_files_count', 504, 'int'),
    field('existing_files_count', 505, 'int'),
    field('deleted_files_count', 506, 'int'),
    field('added_rows_count', 512, 'long'),
    field('existing_rows_count', 513, 'long'),
    field('deleted_rows_count', 514, 'long'),
  ],
}

function field(name: string, id: number, type: unknown, ...defaults: null[]): object {
  return { name, type, 'field-id': id, ...(defaults.length > 0 && { default: null }) }
}

/** A map with integer keys is an array of pairs in Avro. */
function boundsType(keyId: number, valueId: number): object {
  return {
    type: 'array',
    logicalType: 'map',
    items: {
      type: 'record',
      name: `k${keyId}_v${valueId}`,
      fields: [field('key', keyId, 'int'), field('value', valueId, 'bytes')],
    },
  }
}
