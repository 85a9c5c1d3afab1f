import { resolve } from 'node:path'
import { COUNT_SCHEMA, objectSchema, requireOneOf, SECRET_SCHEMA, TEXT_SCHEMA } from '../../values/config-schema.ts'
import { required } from '../../values/required.ts'
import { defineDestination } from '../kit/define-destination.ts'
import type { LakeS3Options } from './destination.ts'

const BUCKET_SCHEMA = objectSchema(
  {
    name: TEXT_SCHEMA,
    prefix: TEXT_SCHEMA,
    region: TEXT_SCHEMA,
    endpoint: TEXT_SCHEMA,
    path_style: { type: 'boolean' },
    access_key_id: SECRET_SCHEMA,
    secret_access_key: SECRET_SCHEMA,
  },
  ['name'],
)

const PARTITION_SCHEMA = objectSchema({ field: TEXT_SCHEMA, by: { enum: ['value', 'day', 'month'] } }, ['field', 'by'])

/** Iceberg tables or Parquet files, in a folder or a bucket. The AWS client finds credentials that are not given. */
export default defineDestination({
  name: 'lake',
  title: 'Lake (Iceberg or Parquet)',
  packages: [
    'node:crypto',
    'node:fs/promises',
    'node:path',
    'hyparquet',
    'hyparquet-writer',
    'avsc',
    '@aws-sdk/client-s3',
  ],
  install: { avsc: '^5', '@aws-sdk/client-s3': '^3' },
  config: requireOneOf(
    objectSchema({
      folder: TEXT_SCHEMA,
      bucket: BUCKET_SCHEMA,
      format: { enum: ['iceberg', 'parquet'] },
      partition_by: { type: 'object', additionalProperties: PARTITION_SCHEMA },
      snapshots_min: COUNT_SCHEMA,
      keep_hours: { type: 'number', minimum: 0 },
    }),
    ['folder'],
    ['bucket'],
  ),
  types: {
    bigint: 'long (INT64)',
    boolean: 'boolean',
    bytes: 'binary',
    date: 'date',
    datetime: 'timestamp (microseconds)',
    decimal: 'decimal(38, s): s from the first values',
    double: 'double',
    json: 'string',
    numeric: 'decimal(38, s): s from the first values',
    text: 'string',
    time: 'time (microseconds)',
    timestamp: 'timestamptz (microseconds)',
    uuid: 'uuid',
    list: 'list of the type',
  },
  limits: [
    ['A value that its column cannot hold exactly', 'in `_extra`, as JSON text'],
    ['A decimal with another number of decimals', 'its value in the column, its text in `_extra`'],
    ['A decimal of more than 38 digits', 'in `_extra`'],
    ['A timestamp with another zone or precision than most', 'its instant in the column, its text in `_extra`'],
    ['Names that differ only in case', 'the later one gets a number'],
    ['More than 2,000 columns', 'the rest in `_extra`'],
  ],
  async create(config, project) {
    const { lake } = await import('./destination.ts')
    const {
      folder,
      bucket,
      format,
      partition_by: partitionBy,
      snapshots_min: snapshotsMin,
      keep_hours: keepHours,
    } = config
    return lake({
      ...(bucket === undefined
        ? { folder: resolve(project.folder, required(folder, '`folder`')) }
        : { s3: toS3Options(bucket) }),
      ...(format !== undefined && { format }),
      ...(partitionBy !== undefined && { partitionBy: partitionBy as Partitions }),
      ...(snapshotsMin !== undefined && { snapshotsMin }),
      ...(keepHours !== undefined && { keepHours }),
    })
  },
})

type Partitions = NonNullable<Parameters<typeof import('./destination.ts').lake>[0]['partitionBy']>

interface BucketConfig {
  readonly name: string
  readonly prefix?: string
  readonly region?: string
  readonly endpoint?: string
  readonly path_style?: boolean
  readonly access_key_id?: string
  readonly secret_access_key?: string
}

function toS3Options(bucket: BucketConfig): LakeS3Options {
  const { name, prefix, region, endpoint, path_style: forcePathStyle } = bucket
  const { access_key_id: accessKeyId, secret_access_key: secretAccessKey } = bucket
  return {
    bucket: name,
    ...(prefix !== undefined && { prefix }),
    ...(region !== undefined && { region }),
    ...(endpoint !== undefined && { endpoint }),
    ...(forcePathStyle !== undefined && { forcePathStyle }),
    ...(accessKeyId !== undefined &&
      secretAccessKey !== undefined && { credentials: { accessKeyId, secretAccessKey } }),
  }
}
