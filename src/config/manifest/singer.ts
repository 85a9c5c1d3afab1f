import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { SingerOptions } from '../../sources/singer/source.ts'
import { COUNT_SCHEMA, omitUndefined, LATE_SECRETS, resolveStreamName, objectSchema, SECRET_SCHEMA, TEXT_SCHEMA, type Connector } from './connector.ts'

/** As taps call what must not stand in a file: only a name may. */
const SECRET_NAME_PATTERN = '(?:^|_)(?:password|secret|token|api_key|access_key|private_key)$'

const SETTINGS_SCHEMA = { type: 'object', patternProperties: { [SECRET_NAME_PATTERN]: { pattern: SECRET_SCHEMA.pattern, description: SECRET_SCHEMA.description } }, ...LATE_SECRETS } as const

/** A tap of the Singer protocol; it runs in the folder of the manifest. */
export const singer: Connector = {
  config: objectSchema({
    command: { anyOf: [TEXT_SCHEMA, { type: 'array', items: TEXT_SCHEMA, minItems: 1 }], description: 'the tap: a program in PATH or at a path, and arguments of its own' },
    settings: { ...SETTINGS_SCHEMA, description: 'what the tap calls its config; ${NAME} and nothing else stands for a secret' },
    environment: { type: 'object', additionalProperties: { type: 'string' }, ...LATE_SECRETS, description: 'what the tap sees of the environment besides PATH, HOME and the language' },
    catalog: { ...TEXT_SCHEMA, description: 'a file with its catalog, or none; the tap is asked for it unless given' },
    catalog_flag: { enum: ['--catalog', '--properties'] },
  }, ['command']),
  stream: {
    properties: {
      options: objectSchema({ stream: TEXT_SCHEMA, method: { enum: ['INCREMENTAL', 'LOG_BASED'] }, updated_at: TEXT_SCHEMA, page_size: COUNT_SCHEMA, hash_key: { type: 'boolean' } }),
      select: { not: {}, description: 'of this connector: choose fields in the `catalog`' },
      safety_window: { not: {}, description: 'of this connector: taps have settings of their own for it' },
    },
  },
  async open(config, folder) {
    const { singer: open } = await import('../../sources/singer/source.ts')
    const options = toSingerOptions(config, folder)
    return {
      stream(stream) {
        const { key: named, cursor, mode, options: own = {} } = stream
        const { method, updated_at: updatedAt, page_size: pageSize, hash_key: isHashed } = own as { method?: 'LOG_BASED'; updated_at?: string; page_size?: number; hash_key?: boolean }
        const source = open({ ...options, ...omitUndefined({ pageSize }) })
        const key = isHashed === true ? 'hash' as const : named
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

function toSingerOptions({ command, settings, environment, catalog, catalog_flag: catalogFlag }: any, folder: string): SingerOptions {
  const chosen = catalog === undefined || catalog === 'none' ? catalog : JSON.parse(readFileSync(resolve(folder, catalog), 'utf8'))
  return { command, folder, ...omitUndefined({ config: settings, environment, catalogFlag, catalog: chosen }) }
}
