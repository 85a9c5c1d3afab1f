import { isSyncError, type JsonObject, type JsonValue } from '../../contract/index.ts'
import { isRecord, texts } from './manifest/component.ts'
import { readManifest } from './manifest/manifest.ts'
import { describeProblems, findRootProblems } from './manifest/support.ts'
import { checkSettings, listSecretPaths } from './settings.ts'
import { openManifest } from './source.ts'
import type { AirbyteSettings } from './stream-options.ts'

/** A field that a manifest asks for. */
export interface ConnectorField {
  readonly name: string
  readonly title: string
  readonly isRequired: boolean
  readonly isSecret: boolean
  readonly default?: JsonValue
  readonly type: string
}

/** The facts of a manifest that a project is made from. */
export interface ConnectorDescription {
  /** The fields at the top of the specification. A nested field is written by hand. */
  readonly fields: readonly ConnectorField[]
  readonly streams: readonly string[]
  /** Streams that cannot be run, each with the reason. */
  readonly unsupported: readonly { readonly name: string; readonly reason: string }[]
}

export function describeConnector(file: string): ConnectorDescription {
  const manifest = readManifest(file)
  const source = openManifest(manifest, {}, undefined)
  const { specification } = manifest
  const required = texts(specification.required)
  const secrets = new Set(listSecretPaths(specification).map((path) => path.join('.')))
  const properties = isRecord(specification.properties) ? Object.entries(specification.properties) : []
  const refused = source.names.flatMap((name) => {
    try {
      source.stream(name)
      return []
    } catch (error) {
      if (!isSyncError(error)) throw error
      return [{ name, reason: error.message }]
    }
  })
  const dynamic = findRootProblems(manifest)
  return {
    fields: properties.flatMap(([name, property]) =>
      isRecord(property) ? [describeField(name, property, required.includes(name), secrets.has(name))] : [],
    ),
    streams: source.names.filter((name) => !refused.some((stream) => stream.name === name)),
    unsupported: [
      ...refused,
      ...(dynamic.length === 0 ? [] : [{ name: 'streams made at run time', reason: describeProblems(dynamic) }]),
    ],
  }
}

function describeField(name: string, property: JsonObject, isRequired: boolean, isSecret: boolean): ConnectorField {
  return {
    name,
    title: typeof property.title === 'string' ? property.title : name,
    isRequired,
    isSecret,
    type: String(Array.isArray(property.type) ? (property.type[0] ?? 'string') : (property.type ?? 'string')),
    ...(property.default !== undefined && { default: property.default }),
  }
}

/** Throws if the settings do not match the specification. */
export function validateSettings(file: string, settings: AirbyteSettings): void {
  checkSettings(readManifest(file), settings)
}
