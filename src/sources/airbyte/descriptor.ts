import { LATE_SECRETS, objectSchema, TEXT_SCHEMA } from '../../values/config-schema.ts'
import { defineSource } from '../kit/define-source.ts'
import { omitUndefined } from '../kit/omit-undefined.ts'
import { SINCE_SCHEMA } from '../kit/since.ts'
import { resolveStreamName } from '../kit/select-stream.ts'
import type { AirbyteSettings } from './stream-options.ts'

/** A declarative manifest of Airbyte. */
export default defineSource({
  name: 'airbyte',
  title: 'Airbyte manifests',
  times: {
    since: 'the settings of the manifest have the start date',
    range: 'the manifest declares how its streams are read',
  },
  packages: ['node:crypto', 'node:fs', 'node:path', 'node:zlib', '@huggingface/jinja', 'ajv', 'csv-parse/sync', 'yaml'],
  config: objectSchema(
    {
      manifest: { ...TEXT_SCHEMA, description: 'the path of the manifest, from the folder of this file' },
      settings: {
        type: 'object',
        ...LATE_SECRETS,
        description: 'what the specification of the manifest asks for; a value of only ${NAME} is a secret',
      },
    },
    ['manifest'],
  ),
  streams: {
    followsChanges: true,
    options: objectSchema({
      stream: { ...TEXT_SCHEMA, description: 'the name in the manifest, if it is not the id' },
      lag_ms: { type: 'integer', minimum: 0, description: 'time until a change is visible in the source' },
      since: SINCE_SCHEMA,
      concurrency: { type: 'integer', minimum: 1, maximum: 32, description: 'partitions that are read at once' },
    }),
    fields: {
      cursor: { not: {}, description: 'set by the manifest and cannot be changed' },
      select: { not: {}, description: 'not supported by this connector' },
      safety_window: { not: {}, description: 'not supported by this connector: set `options.lag_ms`' },
    },
  },
  async open({ manifest: path, settings }, { folder, tokens }) {
    const { openProject } = await import('./open-project.ts')
    // The settings of a YAML file are JSON.
    return openProject(path, (settings ?? {}) as AirbyteSettings, folder, tokens)
  },
  stream(source, declaration) {
    const { key, mode, options = {} } = declaration
    const { lag_ms: lagMs, concurrency, since } = options
    return source.stream(
      resolveStreamName(declaration, 'stream'),
      omitUndefined({ key, mode, lagMs, concurrency, since }),
    )
  },
  discover: async (source) => source.discover(),
  template: {
    rank: 175,
    label: 'An Airbyte manifest',
    settings: { STRIPE_KEY: 'the secret of the manifest in this folder, a key of Stripe' },
    database: 'customers',
  },
})
