import type { JsonValue } from '../../contract/index.ts'

/** A path in a response or record: `data.items`, or a list of names if one contains a dot. The empty string selects everything. */
export type FieldPath = string | readonly string[]

export function getAtPath(value: JsonValue | undefined, path: FieldPath): JsonValue | undefined {
  const names = typeof path === 'string' ? (path === '' ? [] : path.split('.')) : path
  let found = value
  for (const name of names) {
    // Own properties only: `constructor` is a valid field name.
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined
    found = (found as Record<string, JsonValue | undefined>)[name]
  }
  return found
}
