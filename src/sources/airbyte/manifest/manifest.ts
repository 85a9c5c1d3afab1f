import { readFileSync } from 'node:fs'
import { LineCounter, parseDocument, visit } from 'yaml'
import { isSyncError, SyncError, type JsonObject, type JsonValue } from '../../../contract/index.ts'
import { components, isRecord, textOf, type Component } from './component.ts'
import { propagateParameters } from './propagate-parameters.ts'
import { resolveReferences } from './resolve-references.ts'

const BYTES_MAX = 16 * 1024 * 1024

/** A manifest with its references resolved and its parameters propagated. */
export interface Manifest {
  readonly file: string
  readonly streams: readonly ManifestStream[]
  /** The JSON schema of the config. */
  readonly specification: JsonObject
  readonly budget: Component | null
  /** The first line of each component type in the file. */
  readonly lines: ReadonlyMap<string, number>
  /** Components beside the streams that change them: dynamic streams, migrations. */
  readonly root: JsonObject
}

export interface ManifestStream {
  readonly name: string
  readonly component: Component
}

export function readManifest(file: string): Manifest {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new SyncError('MANIFEST_INVALID', `The Airbyte manifest ${file} cannot be read. Check its path.`, {
      cause: error,
    })
  }
  return parseManifest(text, file)
}

/** Parses a manifest as PyYAML does. An error names the file and, where it is known, the line. */
export function parseManifest(text: string, file: string): Manifest {
  if (text.length > BYTES_MAX) throw invalid(file, `it is larger than ${BYTES_MAX} bytes`)
  const lines = new LineCounter()
  // PyYAML reads YAML 1.1, merges keys and lets the last of two equal keys win.
  const document = parseDocument(text, { lineCounter: lines, version: '1.1', merge: true, uniqueKeys: false })
  const [broken] = document.errors
  if (broken !== undefined) {
    const { line, col } = lines.linePos(broken.pos[0])
    throw invalid(`${file}:${line}:${col}`, broken.message.split('\n')[0] ?? 'it is not YAML')
  }
  try {
    const plain = toJson(document.toJS({ maxAliasCount: 10_000 }))
    if (!isRecord(plain)) throw new Error('it is not an object')
    const root = propagateParameters('', resolveReferences({ ...plain, type: 'DeclarativeSource' }))
    return { file, root, lines: locateTypes(document, lines), ...readParts(root) }
  } catch (error) {
    if (isSyncError(error)) throw error
    throw invalid(file, (error as Error).message.slice(0, 300))
  }
}

function invalid(where: string, what: string): SyncError {
  return new SyncError('MANIFEST_INVALID', `${where}: ${what}. The file is not a valid Airbyte manifest.`)
}

function readParts(root: JsonObject): Pick<Manifest, 'streams' | 'specification' | 'budget'> {
  const listed = components(root.streams).filter(({ type }) => type !== 'ConditionalStreams')
  if (listed.length === 0 && root.dynamic_streams === undefined && root.streams === undefined)
    throw new Error('it has no streams')
  const streams = listed.map((component, index) => ({
    name: textOf(component.name) ?? textOf(readParameter(component, 'name')) ?? `stream_${index + 1}`,
    component,
  }))
  const spec = root.spec
  const specification =
    isRecord(spec) && isRecord(spec.connection_specification) ? spec.connection_specification : { type: 'object' }
  const budget = isRecord(root.api_budget) && typeof root.api_budget.type === 'string' ? root.api_budget : null
  return { streams, specification, budget: budget as Component | null }
}

function readParameter({ $parameters: parameters }: Component, name: string): JsonValue | undefined {
  return isRecord(parameters) ? parameters[name] : undefined
}

/** YAML has values that JSON has not: a date is a text again, as the framework prints it. */
function toJson(value: unknown): JsonValue {
  if (value instanceof Date) return value.toISOString().replace(/T00:00:00\.000Z$/, '')
  if (Array.isArray(value)) return value.map(toJson)
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, toJson(member)]))
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value)
  return (value ?? null) as JsonValue
}

function locateTypes(document: ReturnType<typeof parseDocument>, lines: LineCounter): ReadonlyMap<string, number> {
  const found = new Map<string, number>()
  visit(document, {
    Pair(_, { key, value }) {
      const name = (key as { value?: unknown } | null)?.value
      const scalar = value as { value?: unknown; range?: readonly [number, number, number] } | null
      if ((name !== 'type' && name !== 'class_name') || typeof scalar?.value !== 'string' || !scalar.range) return
      if (!found.has(scalar.value)) found.set(scalar.value, lines.linePos(scalar.range[0]).line)
    },
  })
  return found
}
