import { SyncError, type JsonObject, type JsonValue, type SyncContext } from '../../contract/index.ts'
import type { HttpClient } from '../kit/http-client.ts'
import { isObject } from '../kit/classify-response.ts'
import type { PageBudget } from './page-budget.ts'

/** Whether a list inside the object was cut. The rest of it can only be read as it is now. */
export function hasTruncatedList(value: JsonValue | undefined): boolean {
  if (Array.isArray(value)) return value.some(hasTruncatedList)
  return isObject(value) && ((value.object === 'list' && value.has_more === true) || Object.values(value).some(hasTruncatedList))
}

/**
 * Whether a field that lists are asked to expand holds an id here. Events never expand fields, and leave out those that
 * are only sent on request.
 */
export function hasUnexpandedField(object: JsonObject, paths: readonly string[]): boolean {
  const isUnexpanded = (value: JsonValue | undefined, names: readonly string[]): boolean => {
    if (Array.isArray(value)) return value.some((item) => isUnexpanded(item, names))
    const [name, ...rest] = names
    if (name === undefined) return typeof value === 'string'
    return isObject(value) ? value[name] === undefined || isUnexpanded(value[name], rest) : typeof value === 'string'
  }
  return paths.some((path) => isUnexpanded(object, path.split('.')))
}

/** Thrown where a list inside an object does not go on as the object began it: it is gone, or of another version. */
export class ListChangedError extends Error {}

/** The object with every list inside it read to its end. The object may change meanwhile: see `StripeApi.completeObject`. */
export async function readNestedLists(object: JsonObject, client: HttpClient, budget: PageBudget, context: SyncContext): Promise<JsonObject> {
  const read = async (value: JsonValue): Promise<JsonValue> => {
    if (Array.isArray(value)) return mapSequentially(value, read)
    if (!isObject(value)) return value
    const whole = value.object === 'list' && value.has_more === true ? await readRemainingItems(value, client, budget, context) : value
    const members = Object.entries(whole).filter((entry): entry is [string, JsonValue] => entry[1] !== undefined)
    return Object.fromEntries(await mapSequentially(members, async ([name, member]) => [name, await read(member)]))
  }
  return (await read(object)) as JsonObject
}

export interface NestedObject {
  readonly type: string
  readonly database: string
  readonly record: JsonObject
}

/**
 * Takes out the objects that have a database of their own and leaves their ids behind, so that the record is the same
 * whether a field was expanded or not.
 */
export function extractNested(object: JsonObject, databases: Readonly<Record<string, string>>): { record: JsonObject; nested: NestedObject[] } {
  const nested: NestedObject[] = []
  const take = (value: JsonValue): JsonValue => {
    if (Array.isArray(value)) return value.map(take)
    if (!isObject(value)) return value
    const type = typeof value.object === 'string' && Object.hasOwn(databases, value.object) ? value.object : undefined
    if (type === undefined || typeof value.id !== 'string') return members(value)
    // Expanded, a deleted object is a stub without its fields.
    if (value.deleted !== true) nested.push({ type, database: databases[type]!, record: members(value) })
    return value.id
  }
  const members = (value: JsonObject): JsonObject => Object.fromEntries(Object.entries(value).map(([name, member]) => [name, member === undefined ? null : take(member)]))
  return { record: members(object), nested }
}

/**
 * Each page begins with the last item of the page before, which must be the same in both. A page of another version, such
 * as one from a cache, would otherwise be joined to the object without a sign; so would one that ends before the count.
 */
async function readRemainingItems(list: JsonObject, client: HttpClient, budget: PageBudget, context: SyncContext): Promise<JsonObject> {
  const data = Array.isArray(list.data) ? [...list.data] : []
  // Relative to the host, and below the version that the base URL ends with. Items of a subscription are filtered by its id.
  const place = typeof list.url === 'string' ? /^\/v1((?:\/[\w-]+)+)(?:\?(\w+)=([\w-]+))?$/.exec(list.url) : null
  if (place === null) throw new SyncError('SOURCE_INVALID', 'A list inside an object has no path of Stripe to read it from.')
  const [, path, name, id] = place
  for (let hasMore = true; hasMore;) {
    const after = getId(data.at(-2))
    budget.spend()
    const { status, body } = await client.get(path!, { ...(name !== undefined && { [name]: id }), starting_after: after, limit: 100 }, context, { answers: [400, 404] })
    // The item to go on after is gone: the object has changed, and is read again.
    if (status === 400) throw new SyncError('SOURCE_INVALID', 'A list inside an object changed while it was read.')
    if (status === 404) throw new ListChangedError()
    if (!isObject(body) || !Array.isArray(body.data) || typeof body.has_more !== 'boolean' || body.data.length === 0) {
      throw new SyncError('SOURCE_INVALID', 'A list inside an object goes on with something that is not a list.')
    }
    const last = data.at(-1)
    const rest = last === undefined ? body.data : body.data.slice(1)
    // The page before said that more follows, so a page with nothing new is no end.
    if (rest.length === 0 || (last !== undefined && !isSameVersion(last, body.data[0]))) throw new ListChangedError()
    data.push(...rest)
    hasMore = body.has_more
  }
  if (typeof list.total_count === 'number' && list.total_count !== data.length) throw new ListChangedError()
  return { ...list, data, has_more: false }
}

function getId(item: JsonValue | undefined): string | undefined {
  return isObject(item) && typeof item.id === 'string' ? item.id : undefined
}

/** One of them may be expanded where the other has an id, and have members that are only sent on request. */
function isSameVersion(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, at) => isSameVersion(item, b[at]))
  if (isObject(a) && isObject(b)) return Object.keys(a).every((name) => !Object.hasOwn(b, name) || isSameVersion(a[name], b[name]))
  if (isObject(a) || isObject(b)) return (getId(a) ?? a) === (getId(b) ?? b)
  return a === b
}

/** One after the other, so that the budget counts each request. */
async function mapSequentially<From, To>(values: readonly From[], convert: (value: From) => Promise<To>): Promise<To[]> {
  const converted: To[] = []
  for (const value of values) converted.push(await convert(value))
  return converted
}
