import { readFileSync, statSync } from 'node:fs'
import { LineCounter, parseDocument } from 'yaml'
import { SyncError, type JsonObject, type JsonValue } from '../../../contract/index.ts'

const BYTES_MAX = 64 * 1024 * 1024
const REFERENCES_MAX = 100

/** An OpenAPI document of version 3.0 or 3.1. References are resolved when they are followed. */
export class OpenApiDocument {
  readonly file: string
  readonly root: JsonObject

  constructor(file: string, root: JsonObject) {
    this.file = file
    this.root = root
  }

  get paths(): ReadonlyArray<readonly [path: string, item: JsonObject]> {
    return Object.entries(this.#requirePaths()).map(([path, item]) => [path, this.resolve(item, `paths.${path}`)])
  }

  #requirePaths(): JsonObject {
    const paths = toObject(this.root.paths)
    if (Object.keys(paths).length === 0) throw invalidDocument(this.file, 'it has no `paths`')
    return paths
  }

  /** The object at a place, or the one that it refers to; empty if there is none. `place` is for errors. */
  resolve(value: JsonValue | undefined, place: string): JsonObject {
    let found = value
    const seen = new Set<string>()
    for (;;) {
      const object = toObject(found)
      const { $ref: reference } = object
      if (typeof reference !== 'string') return object
      if (seen.has(reference) || seen.size > REFERENCES_MAX)
        throw invalidDocument(this.file, `${place}: the reference ${reference} leads back to itself`)
      seen.add(reference)
      found = this.#find(reference, place)
    }
  }

  #find(reference: string, place: string): JsonValue {
    if (!reference.startsWith('#'))
      throw invalidDocument(
        this.file,
        `${place}: the reference ${reference} leads to another document. Bundle the documents into one file first`,
      )
    const names = reference
      .slice(1)
      .split('/')
      .slice(1)
      .map((name) => decodeName(name).replaceAll('~1', '/').replaceAll('~0', '~'))
    let found: JsonValue | undefined = this.root
    for (const name of names) {
      const owner = toObject(found)
      found = Array.isArray(found) ? found[Number(name)] : Object.hasOwn(owner, name) ? owner[name] : undefined
    }
    if (found === undefined) throw invalidDocument(this.file, `${place}: the reference ${reference} points to nothing`)
    return found
  }
}

/** Empty for any other value. */
export function toObject(value: JsonValue | undefined): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}
}

function decodeName(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}

export function readOpenApi(file: string): OpenApiDocument {
  let text: string
  try {
    if (statSync(file).size > BYTES_MAX) throw invalidDocument(file, `it is larger than ${BYTES_MAX} bytes`)
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if (error instanceof SyncError) throw error
    throw new SyncError('ARGUMENT_INVALID', `${file} cannot be read. Check the path of the OpenAPI document.`, {
      cause: error,
    })
  }
  return parseOpenApi(text, file)
}

/** Parses JSON or YAML. */
export function parseOpenApi(text: string, file: string): OpenApiDocument {
  const root = /^\s*\{/.test(text) ? parseJsonText(text, file) : parseYamlText(text, file)
  if (typeof root !== 'object' || root === null || Array.isArray(root))
    throw invalidDocument(file, 'it is not an object')
  // A document of JSON or YAML.
  const document = root as JsonObject
  const { openapi, swagger } = document
  if (swagger !== undefined)
    throw invalidDocument(file, `it is Swagger ${String(swagger)}. Convert it to OpenAPI 3.0 or 3.1 first`)
  if (openapi === undefined) throw invalidDocument(file, 'it has no `openapi` version')
  if (!/^3\.[01](?:\.|$)/.test(String(openapi)))
    throw invalidDocument(file, `its version is ${String(openapi)}, and only OpenAPI 3.0 and 3.1 are supported`)
  return new OpenApiDocument(file, document)
}

function parseJsonText(text: string, file: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    throw invalidDocument(file, `it is not JSON: ${(error as Error).message.split('\n')[0]?.slice(0, 200) ?? ''}`)
  }
}

function parseYamlText(text: string, file: string): unknown {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, merge: true, uniqueKeys: false })
  const [broken] = document.errors
  if (broken !== undefined) {
    const { line, col } = lines.linePos(broken.pos[0])
    throw invalidDocument(`${file}:${line}:${col}`, broken.message.split('\n')[0] ?? 'it is not YAML')
  }
  try {
    return document.toJS({ maxAliasCount: 1_000 }) as unknown
  } catch (error) {
    throw invalidDocument(file, (error as Error).message.slice(0, 200))
  }
}

export function invalidDocument(where: string, what: string): SyncError {
  return new SyncError('ARGUMENT_INVALID', `${where}: ${what}. No manifest was written.`)
}
