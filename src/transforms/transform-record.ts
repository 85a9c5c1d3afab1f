import type { JsonObject, JsonValue } from '../contract/index.ts'
import type { ColumnCipher } from '../registry/column-cipher.ts'
import { parseJson, stringifyJson } from '../values/json.ts'
import { findThrowSite } from '../values/stack-frames.ts'
import { castValue } from './cast-value.ts'
import type { ColumnPlan, Protection } from './column-rules.ts'
import { isPlainObject, PathBlockedError, REMOVED, selectFields, takeField, updateField } from './field-paths.ts'

/** The record that is stored, and what the rules hide of the given one. */
export interface TransformedRecord {
  readonly record: JsonObject
  /** Values of dropped and protected fields. They must not appear in the key of the row. */
  readonly hidden: ReadonlyMap<string, readonly JsonValue[]>
}

/** The rules cannot be applied. The message names fields and never quotes a value. */
export class TransformError extends Error {
  /** The record without the fields that the rules hide; null if that is not known. */
  readonly rest: JsonObject | null

  constructor(message: string, rest: JsonObject | null) {
    super(message)
    this.rest = rest
  }
}

export interface TransformContext {
  readonly database: string
  readonly key: string
  /** Null if no rule needs it. */
  readonly cipher: ColumnCipher | null
}

/** Applies the rules in their fixed order. */
export function transformRecord(plan: ColumnPlan, given: unknown, context: TransformContext): TransformedRecord {
  const mapped = mapRecord(plan, toPlainRecord(given), context.key)
  try {
    const hidden = new Map<string, JsonValue[]>()
    const hide = (path: string, value: JsonValue): void => {
      const values = hidden.get(path)
      if (values === undefined) hidden.set(path, [value])
      else values.push(value)
    }
    let record = plan.select === null ? mapped : selectFields(mapped, plan.select)
    for (const path of plan.drop)
      record = updateField(
        record,
        path,
        (value) => {
          hide(path, value)
          return REMOVED
        },
        STRICT,
      )
    for (const [path, type] of plan.cast)
      record = updateField(record, path, (value) => castValue(value, type), { isStrict: false })
    for (const protection of plan.protect)
      record = updateField(
        record,
        protection.path,
        (value) => {
          hide(protection.path, value)
          return protectValue(value, protection, plan, context)
        },
        STRICT,
      )
    return { record: renameFields(record, plan.rename), hidden }
  } catch (error) {
    if (error instanceof PathBlockedError)
      throw new TransformError(
        `the field ${error.message} is not an object, so a rule for what it contains cannot be applied`,
        removeHidden(plan, mapped),
      )
    if (error instanceof RuleError) throw new TransformError(error.message, removeHidden(plan, mapped))
    throw error
  }
}

/** A rule that cannot be applied to this record. */
class RuleError extends Error {}

const STRICT = { isStrict: true }

function toPlainRecord(given: unknown): JsonObject {
  if (isPlainObject(given)) return given
  const json = toJson(given)
  if (isPlainObject(json)) return json
  throw new TransformError('the record is not an object', null)
}

/** Null if the value has no JSON text. */
function toJson(value: unknown): JsonValue {
  try {
    return parseJson(stringifyJson(value as JsonValue))
  } catch {
    return null
  }
}

/** The error of the function may quote values, so only its location is reported. */
function mapRecord({ map }: ColumnPlan, record: JsonObject, key: string): JsonObject {
  if (map === null) return record
  const name = `the function of \`map\` (version ${map.version})`
  let mapped: unknown
  try {
    mapped = map.apply(record, key)
  } catch (error) {
    const site = findThrowSite(error)
    throw new TransformError(`${name} failed${site === null ? '' : ` at ${site}`}`, null)
  }
  if (isPlainObject(mapped) && typeof mapped['then'] !== 'function') return mapped
  throw new TransformError(`${name} did not return an object`, null)
}

function protectValue(
  value: JsonValue,
  protection: Protection,
  plan: ColumnPlan,
  { database, key, cipher }: TransformContext,
): JsonValue {
  if (value === null) return null
  if (protection.kind === 'mask') return maskValue(value, protection.mask)
  const text = stringifyJson(value) as string | undefined
  // JSON writes a number that is not finite as null.
  if (text === undefined || text === 'null' || cipher === null)
    throw new RuleError(`the field ${protection.path} is not JSON`)
  if (protection.kind === 'hash') return cipher.hash(typeof value === 'string' ? value : text)
  const field = plan.rename.find(([from]) => from === protection.path)?.[1] ?? protection.path
  return cipher.encrypt({ database, field }, key, text)
}

const MASKED = '****'

/** A value that is not longer than the characters to keep is masked completely. */
function maskValue(value: Exclude<JsonValue, null>, mask: number | string): string {
  if (typeof mask === 'string') return mask
  if (typeof value === 'object') return MASKED
  const characters = Array.from(String(value))
  return characters.length > mask ? MASKED + characters.slice(characters.length - mask).join('') : MASKED
}

function renameFields(record: JsonObject, renames: ColumnPlan['rename']): JsonObject {
  const moved: Array<readonly [string, JsonValue]> = []
  let result = record
  for (const [from, to] of renames) {
    const taken = takeField(result, from)
    if (taken === null) continue
    result = taken.rest
    moved.push([to, taken.value])
  }
  for (const [to, value] of moved) result = placeField(result, to.split('.'), value, to)
  return result
}

function placeField(record: JsonObject, path: readonly string[], value: JsonValue, to: string): JsonObject {
  const [name = '', ...rest] = path
  const present = Object.hasOwn(record, name) ? record[name] : undefined
  if (rest.length === 0) {
    if (present !== undefined) throw new RuleError(`\`rename\` to ${to}: the record has a field of that name`)
    return { ...record, [name]: value }
  }
  if (present !== undefined && present !== null && !isPlainObject(present))
    throw new RuleError(`\`rename\` to ${to}: the field ${name} is not an object`)
  return { ...record, [name]: placeField(present ?? {}, rest, value, to) }
}

/** For quarantine. After `map` it is not known where the values came from. */
function removeHidden(plan: ColumnPlan, record: JsonObject): JsonObject | null {
  if (plan.map !== null) return null
  let rest = plan.select === null ? record : selectFields(record, plan.select)
  for (const path of [...plan.drop, ...plan.protect.map((protection) => protection.path)]) {
    try {
      rest = updateField(rest, path, () => REMOVED, STRICT)
    } catch {
      return null
    }
  }
  return rest
}
