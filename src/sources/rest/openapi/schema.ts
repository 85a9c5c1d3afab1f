import type { JsonObject, JsonValue } from '../../../contract/index.ts'
import type { OpenApiDocument } from './document.ts'

const DEPTH_MAX = 12

/** The properties of a schema, with those of `allOf`. A schema that contains itself ends at a depth. */
export function listProperties(
  document: OpenApiDocument,
  schema: JsonValue | undefined,
  place: string,
  depth = 0,
): Map<string, JsonObject> {
  if (depth > DEPTH_MAX) return new Map()
  const { properties, allOf } = document.resolve(schema, place)
  const found = new Map<string, JsonObject>()
  for (const part of Array.isArray(allOf) ? allOf : [])
    for (const [name, property] of listProperties(document, part, place, depth + 1)) found.set(name, property)
  if (typeof properties === 'object' && properties !== null && !Array.isArray(properties))
    for (const [name, property] of Object.entries(properties))
      found.set(name, document.resolve(property, `${place}.${name}`))
  return found
}

/** The type of a schema; with several, the one beside null. */
export function typeOf(document: OpenApiDocument, schema: JsonValue | undefined, place: string, depth = 0): string {
  if (depth > DEPTH_MAX) return ''
  const { type, properties, items, allOf } = document.resolve(schema, place)
  const types = (Array.isArray(type) ? type : [type]).filter((name) => typeof name === 'string' && name !== 'null')
  if (types.length > 0) return types.length === 1 ? String(types[0]) : ''
  if (items !== undefined) return 'array'
  if (properties !== undefined) return 'object'
  const parts = Array.isArray(allOf) ? allOf.map((part) => typeOf(document, part, place, depth + 1)) : []
  return parts.find((name) => name !== '') ?? ''
}

export interface RecordList {
  /** The path of the list in the response; empty for the response itself. */
  readonly at: string
  readonly item: JsonValue | undefined
}

/** Names of the member with the records, where a response has several lists. */
const LIST_NAMES = ['data', 'items', 'results', 'records', 'values', 'entries', 'list', 'rows', 'content', 'objects']

/** The list of records in the schema of a response, or the reason why it is unknown. */
export function findList(
  document: OpenApiDocument,
  schema: JsonValue | undefined,
  { place, path }: { readonly place: string; readonly path: string },
): RecordList | string {
  const resolved = document.resolve(schema, place)
  if (typeOf(document, resolved, place) === 'array')
    return requireObjects(document, { at: '', item: resolved.items }, place)
  const members = listProperties(document, resolved, place)
  if (members.size === 0) return 'the schema of its response has no list'
  if (members.has('id') || members.has('uuid')) return 'its response is one record'
  const lists = listArrays(document, members, place)
  const nested = [...members].flatMap(([name, member]) =>
    typeOf(document, member, place) === 'object'
      ? listArrays(document, listProperties(document, member, place), place).map((list) => ({
          ...list,
          at: `${name}.${list.at}`,
        }))
      : [],
  )
  const found = lists.length > 0 ? lists : nested
  const [only] = found
  if (only === undefined) return 'the schema of its response has no list'
  if (found.length === 1) return requireObjects(document, only, place)
  const last = path.split('/').findLast((part) => part !== '' && !part.startsWith('{')) ?? ''
  const named = found.find(({ at }) => at === last || LIST_NAMES.includes(at))
  if (named !== undefined) return requireObjects(document, named, place)
  return `its response has several lists: ${found.map(({ at }) => `\`${at}\``).join(', ')}`
}

function listArrays(document: OpenApiDocument, members: ReadonlyMap<string, JsonObject>, place: string): RecordList[] {
  return [...members].flatMap(([at, member]) =>
    typeOf(document, member, place) === 'array' ? [{ at, item: member.items }] : [],
  )
}

function requireObjects(document: OpenApiDocument, list: RecordList, place: string): RecordList | string {
  const type = typeOf(document, list.item, place)
  return type === 'object' || listProperties(document, list.item, place).size > 0
    ? list
    : 'the records of its list are not described as objects'
}

/** The paths of the members of a response, up to a depth, with their schemas. */
export function listPaths(
  document: OpenApiDocument,
  schema: JsonValue | undefined,
  place: string,
  depth = 3,
): Array<readonly [path: string, schema: JsonObject]> {
  return [...listProperties(document, schema, place)].flatMap(([name, member]) => [
    [name, member] as const,
    ...(depth > 1 && typeOf(document, member, place) === 'object'
      ? listPaths(document, member, place, depth - 1).map(([path, found]) => [`${name}.${path}`, found] as const)
      : []),
  ])
}
