import { required } from '../../values/required.ts'
import type { ErrorObject, ValidateFunction } from 'ajv'
import { Ajv } from 'ajv'
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { isMap, isScalar, LineCounter, parseDocument, visit, type Document, type Node } from 'yaml'
import { SyncError } from '../../contract/index.ts'
import { DESTINATIONS } from '../../destinations/registry.ts'
import { registerNamedSecret } from '../../redaction/known-secrets.ts'
import { didYouMean, findClosest } from '../../values/did-you-mean.ts'
import { describeValue } from '../names.ts'
import type { JsonSchema } from '../../worker/schema.ts'
import { withEnvFile, type Environment } from '../settings.ts'
import { CONNECTORS } from './connectors.ts'
import type { ManifestDestination, ManifestFile } from './manifest-file.ts'
import { MANIFEST_SCHEMA } from './schema.ts'

type ManifestPath = readonly (string | number)[]

/** Compiled when the first manifest is read: it takes most of a second, and a server imports this file. */
function manifestValidator(): ValidateFunction<ManifestFile> {
  return (validateManifest ??= new Ajv({
    strict: false,
    verbose: true,
    allowUnionTypes: true,
    allErrors: true,
  }).compile<ManifestFile>(MANIFEST_SCHEMA))
}

let validateManifest: ValidateFunction<ManifestFile> | undefined

/** Prefers an unknown field over a missing one: it is usually the missing one, misspelt. */
function pickClearestError(errors: readonly ErrorObject[]): ErrorObject {
  return (
    errors.find(({ keyword }) => keyword === 'additionalProperties') ??
    errors.find(({ keyword }) => keyword !== 'if' && keyword !== 'anyOf') ??
    required(errors[0], 'the validation error')
  )
}

/** The text of a manifest, with the line and column of each value. */
export class ManifestDocument {
  readonly #file: string
  readonly #folder: string
  readonly #lines = new LineCounter()
  readonly #document: Document

  constructor(path: string, shownFile: string, content = readFileSync(path, 'utf8')) {
    this.#file = shownFile
    this.#folder = dirname(path)
    this.#document = parseDocument(content, {
      lineCounter: this.#lines,
      prettyErrors: false,
      logLevel: 'error',
    })
  }

  /** Validates the manifest and looks up the values that it refers to. */
  resolve(environment: Environment): ManifestFile {
    const manifest = this.check()
    const { config } = CONNECTORS[manifest.connector]
    const full = withEnvFile(environment, this.#folder)
    return {
      ...manifest,
      config: this.#resolveSecrets(manifest.config, ['config'], config, full, 'named') as ManifestFile['config'],
    }
  }

  /** Validates the manifest. Reads no secret. */
  check(): ManifestFile {
    // A warning is about a part that would be read as something else, such as a value with an unknown tag.
    const [broken] = [...this.#document.errors, ...this.#document.warnings]
    if (broken !== undefined) throw this.#errorAt(broken.pos[0], broken.message, 'MANIFEST_INVALID')
    const value = this.#toValue()
    const validate = manifestValidator()
    if (!validate(value)) throw this.#toManifestError(pickClearestError(validate.errors ?? []))
    const { streams = [], destinations = [] } = value as Partial<ManifestFile>
    this.#checkNames(
      ['streams', 'id', 'stream id'],
      streams.map(({ id }) => id),
    )
    this.#checkNames(
      ['destinations', 'name', 'destination name'],
      destinations.map(({ name }) => name),
    )
    return { ...value, streams, destinations }
  }

  /** The config of a destination with the values of its secrets: a destination is created with them. */
  resolveDestination(index: number, { connector, config }: ManifestDestination, environment: Environment): unknown {
    return this.#resolveSecrets(
      config,
      ['destinations', index, 'config'],
      DESTINATIONS[connector].config,
      withEnvFile(environment, this.#folder),
      'filled',
    )
  }

  /** An error with the line and column of the value, or of the nearest enclosing one. */
  error(path: ManifestPath, what: string, code: SyncError['code'] = 'MANIFEST_INVALID'): SyncError {
    for (let length = path.length; length > 0; length--) {
      const node = this.#document.getIn(path.slice(0, length), true) as Node | undefined
      if (node?.range) return this.#errorAt(node.range[0], what, code)
    }
    return this.#errorAt(0, what, code)
  }

  #toValue(): unknown {
    try {
      return this.#document.toJS()
    } catch (error) {
      // Aliases are resolved only now: one without an anchor, or too many.
      const aliases: number[] = []
      visit(this.#document, { Alias: (_, { range }) => void (range && aliases.push(range[0])) })
      throw this.#errorAt(aliases.at(-1) ?? 0, (error as Error).message, 'MANIFEST_INVALID')
    }
  }

  #checkNames([list, field, title]: readonly [string, string, string], names: readonly string[]): void {
    const twice = names.findIndex((name, index) => names.indexOf(name) !== index)
    if (twice === -1) return
    const what = `the ${title} ${describeValue(names[twice])} is used twice`
    throw this.error([list, twice, field], what, 'NAME_TAKEN')
  }

  #toManifestError({ instancePath, keyword, message, params, parentSchema, data }: ErrorObject): SyncError {
    const path = instancePath
      .split('/')
      .slice(1)
      .map((part) => (/^\d+$/.test(part) ? Number(part) : part.replaceAll('~1', '/').replaceAll('~0', '~')))
    const where = path.length === 0 ? '' : `${path.join('.')}: `
    if (keyword === 'additionalProperties') {
      const name = String(params['additionalProperty'])
      const known = Object.keys((parentSchema as { properties: object }).properties)
      const hint = didYouMean(name, known) || ` The fields are ${known.join(', ')}.`
      return this.#keyError(path, name, `${where}unknown field ${describeValue(name)}.${hint}`)
    }
    const misspelt = keyword === 'required' ? findMisspelt(params['missingProperty'], data, parentSchema) : null
    if (misspelt !== null)
      return this.#keyError(
        path,
        misspelt,
        `${where}unknown field ${describeValue(misspelt)}. Did you mean "${String(params['missingProperty'])}"?`,
      )
    // The value is not shown, because it may be a secret. The suggestion is one of the allowed values.
    if (keyword === 'enum') {
      const allowed = (params['allowedValues'] as unknown[]).map(String)
      const suggestion = typeof data === 'string' ? didYouMean(data, allowed) : ''
      return this.error(
        path,
        `${where}it must be one of ${allowed.join(', ')}${suggestion === '' ? '' : `.${suggestion}`}`,
      )
    }
    const problem =
      keyword === 'required'
        ? `\`${String(params['missingProperty'])}\` is missing`
        : keyword === 'const'
          ? `it must be ${JSON.stringify(params['allowedValue'])}`
          : keyword === 'not' || keyword === 'pattern'
            ? `it is ${(parentSchema as { description?: string } | undefined)?.description ?? 'not allowed'}`
            : keyword === 'type'
              ? `it must be ${[params['type'] as string | string[]].flat().map(describeSchemaType).join(' or ')}`
              : (message ?? 'it is not valid')
    return this.error(path, `${where}${problem}`)
  }

  /** An error with the line and column of a key. */
  #keyError(path: ManifestPath, name: string, what: string): SyncError {
    const map = path.length === 0 ? this.#document.contents : this.#document.getIn(path, true)
    const key = isMap(map) ? map.items.find((pair) => isScalar(pair.key) && pair.key.value === name)?.key : undefined
    return isScalar(key) && key.range ? this.#errorAt(key.range[0], what, 'MANIFEST_INVALID') : this.error(path, what)
  }

  /**
   * Substitutes variables within text. A value that is only a secret stays a name, which a source looks up when it needs
   * it, or is `filled` too.
   */
  #resolveSecrets(
    value: unknown,
    path: ManifestPath,
    schema: JsonSchema,
    environment: Environment,
    secrets: 'named' | 'filled',
  ): unknown {
    if (typeof value === 'string') {
      const isSecret = typeof schema['pattern'] === 'string'
      const name = /^\$\{(\w+)\}$/.exec(value)?.[1]
      if (secrets === 'named' && isSecret && name !== undefined) return name
      return value.replaceAll(/\$\{(\w+)\}/g, (_, variable: string) => {
        const found = environment[variable]
        if (found === undefined || found === '') throw this.error(path, `${variable} is not set`, 'SECRET_MISSING')
        registerNamedSecret(variable, found)
        return found
      })
    }
    if (typeof value !== 'object' || value === null || schema['x-secrets'] === 'late') return value
    if (Array.isArray(value))
      return value.map((item, index) =>
        this.#resolveSecrets(item, [...path, index], (schema['items'] ?? {}) as JsonSchema, environment, secrets),
      )
    const properties = (schema['properties'] ?? {}) as Record<string, JsonSchema>
    return Object.fromEntries(
      Object.entries(value).map(([name, field]) => [
        name,
        this.#resolveSecrets(field, [...path, name], properties[name] ?? {}, environment, secrets),
      ]),
    )
  }

  #errorAt(offset: number, what: string, code: SyncError['code']): SyncError {
    const { line, col } = this.#lines.linePos(offset)
    return new SyncError(code, `${this.#file}:${line}:${col}: ${what}${/[.?]$/.test(what) ? '' : '.'}`)
  }
}

/** The field that is probably the missing one, where the schema cannot say which fields are unknown. */
function findMisspelt(missing: unknown, data: unknown, schema: object | undefined): string | null {
  if (typeof missing !== 'string' || typeof data !== 'object' || data === null) return null
  const known = Object.keys((schema as { properties?: object } | undefined)?.properties ?? {})
  return findClosest(
    missing,
    Object.keys(data).filter((name) => !known.includes(name)),
  )
}

function describeSchemaType(type: string): string {
  return TYPE_NAMES[type] ?? type
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  array: 'a list',
  boolean: 'true or false',
  integer: 'a whole number',
  null: 'empty',
  number: 'a number',
  object: 'an object',
  string: 'a text',
}
