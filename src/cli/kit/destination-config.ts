import { SyncError } from '../../contract/index.ts'
import type { DestinationDescriptor } from '../../destinations/kit/define-destination.ts'
import { SECRET_SCHEMA, type JsonSchema } from '../../values/config-schema.ts'
import { didYouMean } from '../../values/did-you-mean.ts'

/** The config of a new destination as it is written to a manifest, and the secrets that it refers to. */
export interface DestinationConfig {
  readonly config: Readonly<Record<string, unknown>>
  /** Values of secrets that were given, by the name of their variable. */
  readonly secrets: Readonly<Record<string, string>>
}

/** Returns the value of a required field; only called on a terminal. */
export type PromptForField = (field: string, schema: JsonSchema) => Promise<string>

/**
 * Builds the config from `key=value` pairs; nested keys are written with dots. A secret gets a variable, named after the
 * destination and the field, unless it is given as `${NAME}`.
 */
export async function buildDestinationConfig(
  { name: kind, config: schema }: DestinationDescriptor,
  name: string,
  pairs: readonly string[],
  hasVariable: (variable: string) => boolean,
  prompt: PromptForField | null,
): Promise<DestinationConfig> {
  const config: Record<string, unknown> = {}
  const secrets: Record<string, string> = {}
  const set = (path: readonly string[], text: string): void => {
    const field = findField(schema, path, kind)
    const variable = variableFor(name, path)
    const isName = /^\$\{\w+\}$/.test(text)
    if (isSecret(field) && !isName) secrets[variable] = text
    setValue(config, path, isSecret(field) && !isName ? `\${${variable}}` : parseValue(path.join('.'), text, field))
  }
  for (const pair of pairs) {
    const at = pair.indexOf('=')
    if (at < 1) throw fail(`--set takes key=value, and ${JSON.stringify(pair)} has no key or no value`)
    set(pair.slice(0, at).split('.'), pair.slice(at + 1))
  }
  for (const field of schema.required ?? []) {
    if (field in config) continue
    const found = schema.properties[field] ?? {}
    const variable = variableFor(name, [field])
    // A variable that is already set needs no value on the command line, where others could see it.
    if (isSecret(found) && hasVariable(variable)) config[field] = `\${${variable}}`
    else if (prompt !== null) set([field], await prompt(field, found))
  }
  const missing = (schema.required ?? []).filter((field) => !(field in config))
  if (missing.length > 0)
    throw fail(
      `${kind} needs ${missing.map((field) => describeField(name, field, schema.properties[field])).join(', ')}`,
    )
  return { config, secrets }
}

export function isSecret(schema: JsonSchema): boolean {
  return schema['pattern'] === SECRET_SCHEMA.pattern
}

function findField(schema: JsonSchema, path: readonly string[], kind: string): JsonSchema {
  let found = schema
  for (const part of path) {
    const properties = (found['properties'] ?? {}) as Readonly<Record<string, JsonSchema>>
    const others = found['additionalProperties']
    const next = Object.hasOwn(properties, part)
      ? properties[part]
      : typeof others === 'object'
        ? (others as JsonSchema)
        : undefined
    if (next === undefined) {
      const known = Object.keys(properties)
      throw fail(
        `${kind} has no setting ${JSON.stringify(path.join('.'))}`,
        didYouMean(part, known) || listKnown(known),
      )
    }
    found = next
  }
  return found
}

function listKnown(known: readonly string[]): string {
  return known.length === 0 ? '' : ` Its settings are ${known.join(', ')}.`
}

/** Text as the type of its field. The manifest is validated afterwards, with the same schema. */
function parseValue(key: string, text: string, schema: JsonSchema): unknown {
  const type = schema['type']
  if (type === 'boolean') {
    if (text !== 'true' && text !== 'false') throw fail(`--set ${key} must be true or false`)
    return text === 'true'
  }
  if (type === 'integer' || type === 'number') {
    const number = Number(text)
    if (text.trim() === '' || !Number.isFinite(number)) throw fail(`--set ${key} must be a number`)
    return number
  }
  if (type === 'array') return text.split(',').map((item) => item.trim())
  const allowed = schema['enum'] as readonly string[] | undefined
  if (allowed !== undefined && !allowed.includes(text))
    throw fail(`--set ${key} must be one of ${allowed.join(', ')}`, didYouMean(text, allowed))
  return text
}

function setValue(config: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [first = '', ...rest] = path
  if (rest.length === 0) config[first] = value
  else setValue((config[first] ??= {}) as Record<string, unknown>, rest, value)
}

/** `warehouse` and `url` become `WAREHOUSE_URL`. */
function variableFor(name: string, path: readonly string[]): string {
  const variable = [name, ...path].join('_').replaceAll(/\W/g, '_').toUpperCase()
  return /^\d/.test(variable) ? `_${variable}` : variable
}

function describeField(name: string, field: string, schema: JsonSchema = {}): string {
  const hint = isSecret(schema) ? ` (or ${variableFor(name, [field])} in the environment or in .env)` : ''
  return `--set ${field}=…${hint}`
}

function fail(what: string, hint = ''): SyncError {
  return new SyncError('ARGUMENT_INVALID', `${what}.${hint} Nothing was changed.`)
}
