import { resolve } from 'node:path'
import { SyncError } from '../../contract/index.ts'
import type { FilesOptions } from '../../sources/files/source.ts'
import { COUNT_SCHEMA, omitUndefined, objectSchema, TEXT_SCHEMA, type Connector } from './connector.ts'

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

/** New and changed files of a folder or a bucket. The AWS client finds the credentials of a bucket itself. */
export const files: Connector = {
  listsStreams: false,
  followsChanges: true,
  config: {
    ...objectSchema({ folder: TEXT_SCHEMA, bucket: BUCKET_SCHEMA }),
    oneOf: [{ required: ['folder'] }, { required: ['bucket'] }],
  },
  stream: {
    properties: {
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
      cursor: { type: 'string', description: 'the column with the time of the last change of a row' },
      select: { not: {}, description: 'not supported by this connector: a file is read with all its columns' },
      safety_window: {
        not: {},
        description: 'not supported by this connector: changed files are read again automatically',
      },
    },
  },
  async open(config, folder) {
    const { files: open } = await import('../../sources/files/source.ts')
    const place = await openFolder(config, folder)
    return {
      stream({ key, cursor: updatedAt, options = {} }) {
        const { match, csv, deleted_files: deletedFiles, settle_ms: settleMs, page_size: pageSize } = options as any
        return open({
          folder: place,
          ...omitUndefined({ key: key?.length === 1 ? key[0] : key, updatedAt, csv, deletedFiles, settleMs, pageSize }),
          ...(match !== undefined && { match: parsePattern(match) }),
        })
      },
    }
  },
  async discover(config, folder, context) {
    const { discover } = await import('../../sources/files/source.ts')
    return discover({ folder: await openFolder(config, folder) }, context)
  },
}

async function openFolder({ folder: path, bucket }: any, folder: string): Promise<FilesOptions['folder']> {
  if (bucket === undefined) return resolve(folder, path)
  const { s3Folder } = await import('../../sources/files/source.ts')
  const { name, prefix, region, endpoint, path_style: forcePathStyle } = bucket
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
