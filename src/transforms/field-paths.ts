import type { JsonObject, JsonValue } from '../contract/index.ts'

/**
 * A path names a field of the record, such as `email`, or of a nested object, such as `address.city`. Through a list it
 * names the field of every item. A field whose own name contains the dots has the path too.
 */

/** Returned by an update to remove the field. */
export const REMOVED = Symbol('removed')

/** A value on the path is not an object, so the rule cannot be applied to what it contains. */
export class PathBlockedError extends Error {}

interface UpdateOptions {
  /** Throw if the path ends in a value that may contain the field in another form. */
  readonly isStrict: boolean
}

/** A copy of the record with the field updated wherever the path leads; the same record if it has no such field. */
export function updateField(
  record: JsonObject,
  path: string,
  update: (value: JsonValue) => JsonValue | typeof REMOVED,
  options: UpdateOptions,
): JsonObject {
  let result = record
  const replace = (name: string, value: JsonValue | typeof REMOVED): void => {
    if (value === REMOVED) {
      const { [name]: _, ...rest } = result
      result = rest
    } else if (value !== result[name]) result = { ...result, [name]: value }
  }
  const isLiteral = Object.hasOwn(record, path) && record[path] !== undefined
  if (isLiteral) replace(path, update(record[path] as JsonValue))
  for (let dot = path.indexOf('.'); dot !== -1; dot = path.indexOf('.', dot + 1)) {
    const head = path.slice(0, dot)
    if (!Object.hasOwn(record, head)) continue
    const nested = updateNested(record[head], path.slice(dot + 1), update, options)
    // A list may have the field in other items, also beside a field whose own name is the path.
    if (nested === BLOCKED && options.isStrict && !(isLiteral && !Array.isArray(record[head])))
      throw new PathBlockedError(head)
    if (nested !== BLOCKED) replace(head, nested)
  }
  return result
}

const BLOCKED = Symbol('blocked')

function updateNested(
  value: JsonValue | undefined,
  path: string,
  update: (value: JsonValue) => JsonValue | typeof REMOVED,
  options: UpdateOptions,
): JsonValue | typeof BLOCKED {
  if (value === undefined || value === null) return value ?? null
  if (Array.isArray(value)) {
    const items = value.map((item) => updateNested(item, path, update, options))
    return items.includes(BLOCKED) ? BLOCKED : (items as JsonValue[])
  }
  return isPlainObject(value) ? updateField(value, path, update, options) : BLOCKED
}

/** Takes a field out of the record, at a path that leads through objects only; null if there is none. */
export function takeField(record: JsonObject, path: string): { value: JsonValue; rest: JsonObject } | null {
  const literal = Object.hasOwn(record, path) ? record[path] : undefined
  if (literal !== undefined) {
    const { [path]: _, ...rest } = record
    return { value: literal, rest }
  }
  for (let dot = path.indexOf('.'); dot !== -1; dot = path.indexOf('.', dot + 1)) {
    const head = path.slice(0, dot)
    const nested = Object.hasOwn(record, head) ? record[head] : undefined
    const taken = isPlainObject(nested) ? takeField(nested, path.slice(dot + 1)) : null
    if (taken !== null) return { value: taken.value, rest: { ...record, [head]: taken.rest } }
  }
  return null
}

/** The record with a field of its own under another name. */
export function moveField(record: JsonObject, from: string, to: string): JsonObject {
  if (!Object.hasOwn(record, from)) return record
  const { [from]: value, ...rest } = record
  return value === undefined ? record : { ...rest, [to]: value }
}

/** A copy of the record with only the named fields. */
export function selectFields(record: JsonObject, paths: readonly string[]): JsonObject {
  const entries: Array<[string, JsonValue]> = []
  for (const [name, value] of Object.entries(record)) {
    if (value === undefined) continue
    if (paths.includes(name)) {
      entries.push([name, value])
      continue
    }
    const rest = paths.filter((path) => path.startsWith(`${name}.`)).map((path) => path.slice(name.length + 1))
    const picked = rest.length === 0 ? undefined : selectNested(value, rest)
    if (picked !== undefined) entries.push([name, picked])
  }
  return Object.fromEntries(entries)
}

function selectNested(value: JsonValue, paths: readonly string[]): JsonValue | undefined {
  if (value === null) return null
  if (Array.isArray(value)) return value.map((item) => selectNested(item, paths) ?? null)
  return isPlainObject(value) ? selectFields(value, paths) : undefined
}

/** Whether the field at `path` is, or is inside, the field at `outer`. */
export function isWithin(path: string, outer: string): boolean {
  return path === outer || path.startsWith(`${outer}.`)
}

export function overlaps(a: string, b: string): boolean {
  return isWithin(a, b) || isWithin(b, a)
}

/** The field of the record that holds the path. */
export function headOf(path: string): string {
  const dot = path.indexOf('.')
  return dot === -1 ? path : path.slice(0, dot)
}

/** An object whose own fields are what JSON shows of it. */
export function isPlainObject(value: unknown): value is JsonObject {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    typeof (value as { toJSON?: unknown }).toJSON !== 'function'
  )
}
