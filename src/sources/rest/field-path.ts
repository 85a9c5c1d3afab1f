import type { JsonValue } from '../../contract/index.ts'

/** Where in an answer or a record: `data.items`, or a list of names where one of them holds a dot. The empty text is all of it. */
export type FieldPath = string | readonly string[]

export function getAtPath(value: JsonValue | undefined, pointer: FieldPath): JsonValue | undefined {
  const names = typeof pointer === 'string' ? (pointer === '' ? [] : pointer.split('.')) : pointer
  let found = value
  for (const name of names) {
    // Own members only: `constructor` is a name like any other.
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined
    found = (found as Record<string, JsonValue | undefined>)[name]
  }
  return found
}
