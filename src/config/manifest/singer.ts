import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { SingerOptions } from '../../sources/singer/source.ts'
import { COUNT, given, LATE, nameIn, object, SECRET, TEXT, type Connector } from './connector.ts'

/** As taps call what must not stand in a file: only a name may. */
const SECRET_NAMES = '(?:^|_)(?:password|secret|token|api_key|access_key|private_key)$'

const SETTINGS = { type: 'object', patternProperties: { [SECRET_NAMES]: { pattern: SECRET.pattern, description: SECRET.description } }, ...LATE } as const

/** A tap of the Singer protocol; it runs in the folder of the manifest. */
export const singer: Connector = {
  config: object({
    command: { anyOf: [TEXT, { type: 'array', items: TEXT, minItems: 1 }], description: 'the tap: a program in PATH or at a path, and arguments of its own' },
    settings: { ...SETTINGS, description: 'what the tap calls its config; ${NAME} and nothing else stands for a secret' },
    environment: { type: 'object', additionalProperties: { type: 'string' }, ...LATE, description: 'what the tap sees of the environment besides PATH, HOME and the language' },
    catalog: { ...TEXT, description: 'a file with its catalog, or none; the tap is asked for it unless given' },
    catalog_flag: { enum: ['--catalog', '--properties'] },
  }, ['command']),
  stream: {
    properties: {
      options: object({ stream: TEXT, method: { enum: ['INCREMENTAL', 'LOG_BASED'] }, updated_at: TEXT, page_size: COUNT, hash_key: { type: 'boolean' } }),
      select: { not: {}, description: 'of this connector: choose fields in the `catalog`' },
      safety_window: { not: {}, description: 'of this connector: taps have settings of their own for it' },
    },
  },
  async open(config, folder) {
    const { singer: open } = await import('../../sources/singer/source.ts')
    const options = optionsOf(config, folder)
    return {
      stream(stream) {
        const { key: named, cursor, mode, options: own = {} } = stream
        const { method, updated_at: updatedAt, page_size: pageSize, hash_key: isHashed } = own as { method?: 'LOG_BASED'; updated_at?: string; page_size?: number; hash_key?: boolean }
        const source = open({ ...options, ...given({ pageSize }) })
        const key = isHashed === true ? 'hash' as const : named
        if (mode === 'full_refresh') return source.listing(nameIn(stream), given({ key, updatedAt }))
        return source.stream(nameIn(stream), given({ key, updatedAt, cursor, method }))
      },
    }
  },
  async discover(config, folder, context) {
    const { discover } = await import('../../sources/singer/source.ts')
    return discover(optionsOf(config, folder), context)
  },
  isFollowed: true,
}

function optionsOf({ command, settings, environment, catalog, catalog_flag: catalogFlag }: any, folder: string): SingerOptions {
  const chosen = catalog === undefined || catalog === 'none' ? catalog : JSON.parse(readFileSync(resolve(folder, catalog), 'utf8'))
  return { command, folder, ...given({ config: settings, environment, catalogFlag, catalog: chosen }) }
}
