import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { SyncError, type JsonObject } from '../../contract/index.ts'
import { formatIso } from '../../strategies/kit/instants.ts'
import { instantToMs } from '../../values/instant.ts'
import {
  COUNT_SCHEMA,
  LATE_SECRETS,
  objectSchema,
  SECRET_SCHEMA,
  SELECTED_AFTER_READING,
  TEXT_SCHEMA,
} from '../../values/config-schema.ts'
import { defineSource } from '../kit/define-source.ts'
import { omitUndefined } from '../kit/omit-undefined.ts'
import { resolveStreamName } from '../kit/select-stream.ts'
import { parseSince, SINCE_SCHEMA } from '../kit/since.ts'
import type { SingerOptions, TapConfig } from './source.ts'

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
export default defineSource({
  name: 'singer',
  title: 'Singer taps',
  times: { since: true, range: 'a tap has no setting for the end of its records' },
  packages: [
    'node:child_process',
    'node:crypto',
    'node:fs',
    'node:fs/promises',
    'node:stream',
    'node:os',
    'node:path',
    'ajv',
  ],
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
      since: { ...SINCE_SCHEMA, description: `the tap's setting start_date; ${SINCE_SCHEMA.description}` },
    },
    ['command'],
  ),
  streams: {
    followsChanges: true,
    options: objectSchema({
      stream: TEXT_SCHEMA,
      method: { enum: ['INCREMENTAL', 'LOG_BASED'] },
      updated_at: TEXT_SCHEMA,
      page_size: COUNT_SCHEMA,
      hash_key: { type: 'boolean' },
    }),
    fields: {
      select: SELECTED_AFTER_READING,
      safety_window: { not: {}, description: 'not supported by this connector: use the settings of the tap' },
    },
  },
  async open({ command, settings, environment, catalog, catalog_flag: catalogFlag, since }, { folder }) {
    const { singer, discover } = await import('./source.ts')
    const options: SingerOptions = {
      command,
      folder,
      ...omitUndefined({
        config: withStartDate(settings as TapConfig | undefined, since),
        environment,
        catalogFlag,
        catalog: catalog === undefined ? undefined : readCatalog(catalog, folder),
      }),
    }
    return { options, singer, discover }
  },
  stream({ options: tap, singer }, declaration) {
    const { key: named, cursor, mode, options = {} } = declaration
    const { method, updated_at: updatedAt, page_size: pageSize, hash_key: isHashed } = options
    const source = singer({ ...tap, ...omitUndefined({ pageSize }) })
    const key = isHashed === true ? ('hash' as const) : named
    const name = resolveStreamName(declaration, 'stream')
    if (mode === 'full_refresh') return source.listing(name, omitUndefined({ key, updatedAt }))
    return source.stream(name, omitUndefined({ key, updatedAt, cursor, method }))
  },
  discover: ({ options, discover }, context) => discover(options, context),
  template: {
    rank: 180,
    label: 'Any Singer tap',
    settings: { GITHUB_TOKEN: 'the token of a tap such as tap-github' },
    database: 'issues',
    simulated: 'tap.mjs, a small built-in tap,',
    until: 'worker.ts names another',
  },
})

/** The convention of taps. A manifest is YAML, so the settings are JSON. */
function withStartDate(settings: TapConfig | undefined, since: string | undefined): TapConfig | undefined {
  const startDate = parseSince(since)
  if (startDate === undefined) return settings
  if (settings?.['start_date'] !== undefined)
    throw new SyncError('SYNC_INVALID', 'singer: `since` and the setting `start_date` exclude each other. Remove one.')
  return { ...settings, start_date: formatIso(instantToMs(startDate)) }
}

function readCatalog(catalog: string, folder: string): JsonObject | 'none' {
  return catalog === 'none' ? 'none' : (JSON.parse(readFileSync(resolve(folder, catalog), 'utf8')) as JsonObject)
}
