import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { SingerOptions } from '../../sources/singer/source.ts'
import {
  COUNT_SCHEMA,
  omitUndefined,
  LATE_SECRETS,
  resolveStreamName,
  objectSchema,
  SECRET_SCHEMA,
  TEXT_SCHEMA,
  type Connector,
} from './connector.ts'

/** Setting names that hold secrets; a manifest may contain only the name of a secret for them. */
const SECRET_NAME_PATTERN = '(?:^|_)(?:password|secret|token|api_key|access_key|private_key)$'

const SETTINGS_SCHEMA = {
  type: 'object',
  patternProperties: {
    [SECRET_NAME_PATTERN]: { pattern: SECRET_SCHEMA.pattern, description: SECRET_SCHEMA.description },
  },
  ...LATE_SECRETS,
} as const

/** A Singer tap, which runs in the folder of the manifest. */
export const singer: Connector = {
  config: objectSchema(
    {
      command: {
        anyOf: [TEXT_SCHEMA, { type: 'array', items: TEXT_SCHEMA, minItems: 1 }],
        description: 'the tap: a program in PATH or at a path, with its arguments',
      },
      settings: { ...SETTINGS_SCHEMA, description: 'the config of the tap; a value of only ${NAME} is a secret' },
      environment: {
        type: 'object',
        additionalProperties: { type: 'string' },
        ...LATE_SECRETS,
        description: 'environment variables for the tap, in addition to PATH, HOME and the locale',
      },
      catalog: {
        ...TEXT_SCHEMA,
        description: 'a file with the catalog, or none (default: run the tap in discovery mode)',
      },
      catalog_flag: { enum: ['--catalog', '--properties'] },
    },
    ['command'],
  ),
  stream: {
    properties: {
      options: objectSchema({
        stream: TEXT_SCHEMA,
        method: { enum: ['INCREMENTAL', 'LOG_BASED'] },
        updated_at: TEXT_SCHEMA,
        page_size: COUNT_SCHEMA,
        hash_key: { type: 'boolean' },
      }),
      select: { not: {}, description: 'not supported by this connector: select fields in the `catalog`' },
      safety_window: { not: {}, description: 'not supported by this connector: use the settings of the tap' },
    },
  },
  async open(config, folder) {
    const { singer: open } = await import('../../sources/singer/source.ts')
    const options = toSingerOptions(config, folder)
    return {
      stream(stream) {
        const { key: named, cursor, mode, options: own = {} } = stream
        const {
          method,
          updated_at: updatedAt,
          page_size: pageSize,
          hash_key: isHashed,
        } = own as { method?: 'LOG_BASED'; updated_at?: string; page_size?: number; hash_key?: boolean }
        const source = open({ ...options, ...omitUndefined({ pageSize }) })
        const key = isHashed === true ? ('hash' as const) : named
        if (mode === 'full_refresh') return source.listing(resolveStreamName(stream), omitUndefined({ key, updatedAt }))
        return source.stream(resolveStreamName(stream), omitUndefined({ key, updatedAt, cursor, method }))
      },
    }
  },
  async discover(config, folder, context) {
    const { discover } = await import('../../sources/singer/source.ts')
    return discover(toSingerOptions(config, folder), context)
  },
  followsChanges: true,
}

function toSingerOptions(
  { command, settings, environment, catalog, catalog_flag: catalogFlag }: any,
  folder: string,
): SingerOptions {
  const chosen =
    catalog === undefined || catalog === 'none' ? catalog : JSON.parse(readFileSync(resolve(folder, catalog), 'utf8'))
  return { command, folder, ...omitUndefined({ config: settings, environment, catalogFlag, catalog: chosen }) }
}
