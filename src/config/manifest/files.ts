import { resolve } from 'node:path'
import { SyncError } from '../../contract/index.ts'
import type { FilesOptions } from '../../sources/files/source.ts'
import { COUNT, given, object, TEXT, type Connector } from './connector.ts'

const BUCKET = object({ name: TEXT, prefix: TEXT, region: TEXT, endpoint: TEXT, path_style: { type: 'boolean' } }, ['name'])

/** New and changed files of a folder, or of a bucket; who may read that one, the AWS client finds out in its own ways. */
export const files: Connector = {
  isListed: false,
  isFollowed: true,
  config: { ...object({ folder: TEXT, bucket: BUCKET }), oneOf: [{ required: ['folder'] }, { required: ['bucket'] }] },
  stream: {
    properties: {
      options: object({
        match: { ...TEXT, description: 'which paths are read, as a regular expression; every csv, tsv, ndjson, jsonl and parquet unless given' },
        csv: object({ delimiter: TEXT, columns: { type: 'array', items: TEXT, minItems: 1 } }),
        deleted_files: { enum: ['keep', 'delete'] }, settle_ms: { type: 'integer', minimum: 0 }, page_size: COUNT,
      }),
      cursor: { type: 'string', description: 'the column that says when a row was last changed' },
      select: { not: {}, description: 'of this connector: a file is read with all its columns' },
      safety_window: { not: {}, description: 'of this connector: files that changed are read again by themselves' },
    },
  },
  async open(config, folder) {
    const { files: open } = await import('../../sources/files/source.ts')
    const place = await placeOf(config, folder)
    return {
      stream({ key, cursor: updatedAt, options = {} }) {
        const { match, csv, deleted_files: deletedFiles, settle_ms: settleMs, page_size: pageSize } = options as any
        return open({ folder: place, ...given({ key: key?.length === 1 ? key[0] : key, updatedAt, csv, deletedFiles, settleMs, pageSize }), ...(match !== undefined && { match: patternOf(match) }) })
      },
    }
  },
  async discover(config, folder, context) {
    const { discover } = await import('../../sources/files/source.ts')
    return discover({ folder: await placeOf(config, folder) }, context)
  },
}

async function placeOf({ folder: path, bucket }: any, folder: string): Promise<FilesOptions['folder']> {
  if (bucket === undefined) return resolve(folder, path)
  const { s3Folder } = await import('../../sources/files/source.ts')
  const { name, prefix, region, endpoint, path_style: forcePathStyle } = bucket
  return s3Folder({ bucket: name, ...given({ prefix }), client: given({ region, endpoint, forcePathStyle }) })
}

function patternOf(text: string): RegExp {
  try {
    return new RegExp(text)
  } catch (cause) {
    throw new SyncError('SYNC_INVALID', `\`match\` is not a regular expression: ${(cause as Error).message}`, { cause })
  }
}
