import { Ajv, type ErrorObject } from 'ajv'
import { SyncError, type JsonObject, type JsonValue, type SyncContext } from '../../contract/index.ts'
import { registerSecret } from '../../redaction/known-secrets.ts'
import { isRecord } from './manifest/component.ts'
import type { Manifest } from './manifest/manifest.ts'
import type { AirbyteSettings } from './stream-options.ts'

const SECRET_NAME = /^\$\{(\w+)\}$/

/** Checks the settings against the specification of the manifest, and adds its defaults. Reads no secret. */
export function checkSettings(manifest: Manifest, settings: AirbyteSettings): JsonObject {
  const filled = structuredClone(settings) as JsonObject
  addDefaults(filled, manifest.specification, 0)
  const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false })
  // `$schema` may name a draft that is not installed; the keywords in use are the same.
  const { $schema: _, ...schema } = manifest.specification
  let validate: ReturnType<Ajv['compile']>
  try {
    validate = ajv.compile(schema)
  } catch {
    throw new SyncError('MANIFEST_INVALID', `${manifest.file}: its \`connection_specification\` is not a JSON schema.`)
  }
  if (validate(filled)) return filled
  // The value of a secret is unknown here, so its pattern is not checked.
  const error = (validate.errors ?? []).find(({ instancePath }) => !isSecretAt(filled, instancePath))
  if (error !== undefined && !COMBINING.has(error.keyword)) throw settingsError(manifest, error)
  return filled
}

/** Reported for every alternative that does not match. */
const COMBINING = new Set(['oneOf', 'anyOf', 'if'])

function settingsError({ file }: Manifest, { instancePath, keyword, params, message }: ErrorObject): SyncError {
  const where = instancePath.split('/').slice(1).join('.')
  // The value is not shown, because it may be a secret.
  const what =
    keyword === 'required'
      ? `\`${[where, String(params['missingProperty'])].filter((part) => part !== '').join('.')}\` is missing`
      : `\`${where}\` ${message ?? 'is not valid'}`
  return new SyncError('SYNC_INVALID', `The settings of ${file} are not valid: ${what}. Change \`settings\`.`)
}

function isSecretAt(settings: JsonObject, path: string): boolean {
  const value = path
    .split('/')
    .slice(1)
    .reduce<JsonValue | undefined>((owner, name) => {
      if (Array.isArray(owner)) return owner[Number(name)]
      return isRecord(owner) ? owner[name.replaceAll('~1', '/').replaceAll('~0', '~')] : undefined
    }, settings)
  return typeof value === 'string' && SECRET_NAME.test(value)
}

function addDefaults(settings: JsonObject, schema: JsonObject, depth: number): void {
  if (!isRecord(schema.properties) || depth > 20) return
  for (const [name, property] of Object.entries(schema.properties)) {
    if (!isRecord(property)) continue
    if (settings[name] === undefined && property.default !== undefined)
      settings[name] = structuredClone(property.default)
    const value = settings[name]
    if (!isRecord(value)) continue
    addDefaults(value, property, depth + 1)
    const choices = Array.isArray(property.oneOf) ? property.oneOf.filter(isRecord) : []
    const chosen = choices.find((choice) => matchesConstants(value, choice))
    if (chosen !== undefined) addDefaults(value, chosen, depth + 1)
  }
}

function matchesConstants(value: JsonObject, { properties }: JsonObject): boolean {
  const constants = isRecord(properties)
    ? Object.entries(properties).filter(([, p]) => isRecord(p) && 'const' in p)
    : []
  return constants.length > 0 && constants.every(([name, p]) => isRecord(p) && value[name] === p.const)
}

/** Paths of the fields that the specification marks as secret. */
export function listSecretPaths(schema: JsonObject, path: readonly string[] = []): string[][] {
  if (path.length > 20) return []
  const own = isRecord(schema.properties)
    ? Object.entries(schema.properties).flatMap(([name, property]) => {
        if (!isRecord(property)) return []
        const at = [...path, name]
        return property.airbyte_secret === true ? [at] : listSecretPaths(property, at)
      })
    : []
  const choices = [schema.oneOf, schema.anyOf, schema.allOf].flatMap((list) => (Array.isArray(list) ? list : []))
  return [...own, ...choices.filter(isRecord).flatMap((choice) => listSecretPaths(choice, path))]
}

/** Throws if a secret is written into the settings instead of its name. */
export function requireSecretNames(manifest: Manifest, settings: AirbyteSettings): void {
  for (const path of listSecretPaths(manifest.specification)) {
    const value = path.reduce<JsonValue | undefined>(
      (owner, name) => (isRecord(owner) ? owner[name] : undefined),
      settings as JsonObject,
    )
    if (typeof value === 'string' && value !== '' && !SECRET_NAME.test(value))
      throw new SyncError(
        'MANIFEST_INVALID',
        `\`settings.${path.join('.')}\` is a secret: write \${NAME} here, and set NAME in the environment or in .env.`,
      )
  }
}

/** Replaces the names of secrets by their values. Called when a request is about to be sent. */
export function fillSecrets(settings: JsonObject, { secrets }: SyncContext): JsonObject {
  const fill = (value: JsonValue | undefined): JsonValue | undefined => {
    if (typeof value === 'string') {
      const name = SECRET_NAME.exec(value)?.[1]
      if (name === undefined) return value
      const found = secrets.get(name)
      registerSecret(found)
      return found
    }
    if (Array.isArray(value)) return value.map((item) => fill(item) ?? null)
    if (!isRecord(value)) return value
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, fill(member)]))
  }
  return fill(settings) as JsonObject
}
