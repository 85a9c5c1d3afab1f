import { SyncError, type JsonObject, type JsonValue, type SyncContext } from '../../contract/index.ts'
import type { HttpClient } from '../kit/http-client.ts'
import { isObject } from '../kit/judge.ts'

/** Whether a list inside the object was cut: what follows can only be asked for as it is now. */
export function hasCutList(value: JsonValue | undefined): boolean {
  if (Array.isArray(value)) return value.some(hasCutList)
  return isObject(value) && ((value.object === 'list' && value.has_more === true) || Object.values(value).some(hasCutList))
}

/** Requests that one page may still make for lists inside its objects. */
export interface FollowUps {
  left: number
}

/** The object with every list inside it read to its end. */
export async function readNestedLists(object: JsonObject, client: HttpClient, followUps: FollowUps, context: SyncContext): Promise<JsonObject> {
  const read = async (value: JsonValue): Promise<JsonValue> => {
    if (Array.isArray(value)) return mapped(value, read)
    if (!isObject(value)) return value
    const whole = value.object === 'list' && value.has_more === true ? await readOn(value, client, followUps, context) : value
    const members = Object.entries(whole).filter((entry): entry is [string, JsonValue] => entry[1] !== undefined)
    return Object.fromEntries(await mapped(members, async ([name, member]) => [name, await read(member)]))
  }
  return (await read(object)) as JsonObject
}

export interface Found {
  readonly database: string
  readonly record: JsonObject
}

/**
 * Takes out the objects that have a database of their own and leaves their ids behind. Events hold ids where lists were
 * asked to expand, so the record is the same from both.
 */
export function extract(object: JsonObject, databases: Readonly<Record<string, string>>): { record: JsonObject; found: Found[] } {
  const found: Found[] = []
  const take = (value: JsonValue): JsonValue => {
    if (Array.isArray(value)) return value.map(take)
    if (!isObject(value)) return value
    const record = members(value)
    const database = typeof value.object === 'string' && Object.hasOwn(databases, value.object) ? databases[value.object] : undefined
    if (database === undefined || typeof value.id !== 'string') return record
    found.push({ database, record })
    return value.id
  }
  const members = (value: JsonObject): JsonObject => Object.fromEntries(Object.entries(value).map(([name, member]) => [name, member === undefined ? null : take(member)]))
  return { record: members(object), found }
}

async function readOn(list: JsonObject, client: HttpClient, followUps: FollowUps, context: SyncContext): Promise<JsonObject> {
  const data = Array.isArray(list.data) ? [...list.data] : []
  // Relative to the host, and below the version that the base URL ends with. Items of a subscription are filtered by its id.
  const place = typeof list.url === 'string' ? /^\/v1((?:\/[\w-]+)+)(?:\?(\w+)=([\w-]+))?$/.exec(list.url) : null
  if (place === null) throw new SyncError('SOURCE_INVALID', 'A list inside an object has no path of Stripe to read it from.')
  const [, path, name, id] = place
  for (let hasMore = true; hasMore;) {
    if (followUps.left-- <= 0) throw new SyncError('CONNECTOR_FAILED', 'The lists inside the objects of one page need too many requests. Ask for fewer objects with `limit`, or raise `followUpsMax`.')
    const last = data.at(-1)
    const after = isObject(last) && typeof last.id === 'string' ? last.id : undefined
    const { status, body } = await client.get(path!, { ...(name !== undefined && { [name]: id }), starting_after: after, limit: 100 }, context, { answers: [400, 404] })
    // The item to go on after is gone: the object is another by now, and is read again as what it is.
    if (status === 400) throw new SyncError('SOURCE_INVALID', 'A list inside an object changed while it was read.')
    // Gone since, and its list with it. The log of events will say so.
    if (status === 404) break
    if (!isObject(body) || !Array.isArray(body.data) || typeof body.has_more !== 'boolean' || (body.has_more && body.data.length === 0)) {
      throw new SyncError('SOURCE_INVALID', 'A list inside an object goes on with something that is not a list.')
    }
    data.push(...body.data)
    hasMore = body.has_more
  }
  return { ...list, data, has_more: false }
}

/** One after the other: each may need requests, and they are counted. */
async function mapped<From, To>(values: readonly From[], convert: (value: From) => Promise<To>): Promise<To[]> {
  const converted: To[] = []
  for (const value of values) converted.push(await convert(value))
  return converted
}
