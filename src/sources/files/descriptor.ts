import { resolve } from 'node:path'
import { SyncError } from '../../contract/index.ts'
import { required } from '../../values/required.ts'
import {
  COUNT_SCHEMA,
  objectSchema,
  requireOneOf,
  SELECTED_AFTER_READING,
  TEXT_SCHEMA,
  type SchemaValue,
} from '../../values/config-schema.ts'
import { defineSource } from '../kit/define-source.ts'
import { omitUndefined } from '../kit/omit-undefined.ts'
import { SINCE_SCHEMA } from '../kit/since.ts'
import type { FilesOptions } from './source.ts'

const BUCKET_SCHEMA = objectSchema(
  {
    name: TEXT_SCHEMA,
    prefix: TEXT_SCHEMA,
    region: TEXT_SCHEMA,
    endpoint: TEXT_SCHEMA,
    path_style: { type: 'boolean' },
  },
  ['name'],
)
const CONFIG_SCHEMA = requireOneOf(
  objectSchema({ folder: TEXT_SCHEMA, bucket: BUCKET_SCHEMA, since: SINCE_SCHEMA }),
  ['folder'],
  ['bucket'],
)

/** New and changed files of a folder or a bucket. The AWS client finds the credentials of a bucket itself. */
export default defineSource({
  name: 'files',
  title: 'Files',
  times: { since: true, range: true },
  packages: [
    'node:crypto',
    'node:fs',
    'node:fs/promises',
    'node:path',
    'node:stream',
    'node:zlib',
    'csv-parse',
    'hyparquet',
    'hyparquet-compressors',
    '@aws-sdk/client-s3',
  ],
  config: CONFIG_SCHEMA,
  streams: {
    areListed: false,
    followsChanges: true,
    options: objectSchema({
      match: {
        ...TEXT_SCHEMA,
        description:
          'a regular expression for the paths to read (default: all csv, tsv, ndjson, jsonl and parquet files)',
      },
      csv: objectSchema({ delimiter: TEXT_SCHEMA, columns: { type: 'array', items: TEXT_SCHEMA, minItems: 1 } }),
      deleted_files: { enum: ['keep', 'delete'] },
      settle_ms: { type: 'integer', minimum: 0 },
      page_size: COUNT_SCHEMA,
    }),
    fields: {
      cursor: { type: 'string', description: 'the column with the time of the last change of a row' },
      select: SELECTED_AFTER_READING,
      safety_window: {
        not: {},
        description: 'not supported by this connector: changed files are read again automatically',
      },
    },
  },
  async open(config, project) {
    const { files, discover } = await import('./source.ts')
    return { files, discover, folder: await openFolder(config, project.folder), since: config.since }
  },
  stream({ files, folder, since }, { key, cursor: updatedAt, options = {} }) {
    const { match, csv, deleted_files: deletedFiles, settle_ms: settleMs, page_size: pageSize } = options
    return files({
      folder,
      ...omitUndefined({
        key: key?.length === 1 ? key[0] : key,
        updatedAt,
        csv,
        deletedFiles,
        settleMs,
        pageSize,
        since,
      }),
      ...(match !== undefined && { match: parsePattern(match) }),
    })
  },
  discover: ({ discover, folder }, context) => discover({ folder }, context),
  template: {
    rank: 150,
    label: 'A folder of files',
    settings: {},
    database: 'orders',
    simulated: 'the files in drop/',
  },
})

async function openFolder(config: SchemaValue<typeof CONFIG_SCHEMA>, base: string): Promise<FilesOptions['folder']> {
  if (config.bucket === undefined) return resolve(base, required(config.folder, '`folder`'))
  const { s3Folder } = await import('./source.ts')
  const { name, prefix, region, endpoint, path_style: forcePathStyle } = config.bucket
  return s3Folder({
    bucket: name,
    ...omitUndefined({ prefix }),
    client: omitUndefined({ region, endpoint, forcePathStyle }),
  })
}

function parsePattern(text: string): RegExp {
  try {
    return new RegExp(text)
  } catch (cause) {
    throw new SyncError('SYNC_INVALID', `\`match\` is not a valid regular expression: ${(cause as Error).message}`, {
      cause,
    })
  }
}
