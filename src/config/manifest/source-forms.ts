import { stringify } from 'yaml'
import { isSyncError } from '../../contract/index.ts'
import type { SourceDescriptor } from '../../sources/kit/define-source.ts'
import { SOURCES, type SourceName } from '../../sources/registry.ts'
import type { JsonSchema } from '../../values/config-schema.ts'
import { CONNECTORS } from './connectors.ts'
import { checkManifest } from './manifest.ts'
import { MANIFEST_SCHEMA } from './schema.ts'

/** A source with the schemas of its `config` and of one of its streams, for a form. */
export interface SourceForm {
  readonly name: SourceName
  readonly title: string
  readonly config: JsonSchema
  readonly stream: JsonSchema
  /** The id of a typical stream. */
  readonly streamId: string
}

/** A manifest made from a form: its text, or the error that `tidemark run` would report for it. */
export type ManifestDraft =
  | { readonly manifest: string; readonly secrets: readonly string[]; readonly error: null }
  | { readonly manifest: null; readonly secrets: readonly []; readonly error: string }

const MANIFEST_FILE = 'tidemark.yaml'

export const SOURCE_NAMES = Object.keys(SOURCES) as readonly SourceName[]

/** Every source, by title. */
export function listSourceForms(): SourceForm[] {
  return SOURCE_NAMES.map((name) => {
    const { title, config, template }: SourceDescriptor = SOURCES[name]
    return { name, title, config, stream: createStreamSchema(name), streamId: template.database }
  }).toSorted((a, b) => a.title.localeCompare(b.title, 'en'))
}

/** Sends no request and reads no secret. An invalid draft is not returned, because it may contain a secret. */
export function draftManifest(source: SourceName, config: object, stream: object): ManifestDraft {
  const manifest = stringify({ connector: source, config, streams: [stream] })
  try {
    checkManifest(manifest, MANIFEST_FILE)
  } catch (error) {
    if (isSyncError(error)) return { manifest: null, secrets: [], error: error.message }
    throw error
  }
  const names = [...manifest.matchAll(/\$\{(\w+)\}/g)].flatMap(([, name]) => name ?? [])
  return { manifest, secrets: [...new Set(names)], error: null }
}

/** The fields that every stream has, with the rules of the source. Fields without a choice are left out. */
function createStreamSchema(name: SourceName): JsonSchema {
  const { required, properties } = MANIFEST_SCHEMA.properties.streams.items
  const own = CONNECTORS[name].stream as {
    readonly required?: readonly string[]
    readonly properties: Readonly<Record<string, JsonSchema>>
  }
  const fields = Object.entries<JsonSchema>({ ...properties, ...own.properties })
  return {
    type: 'object',
    required: [...required, ...(own.required ?? [])],
    properties: Object.fromEntries(fields.filter(([, schema]) => !('not' in schema) && !('const' in schema))),
  }
}
