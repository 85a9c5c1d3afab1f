import { SyncError, type JsonObject, type JsonValue, type SyncContext } from '../../contract/index.ts'
import type { HttpClient } from '../kit/http-client.ts'
import { isObject } from '../kit/classify-response.ts'
import type { PageBudget } from './page-budget.ts'

/** Whether a list inside the object is truncated. Its remaining items can only be read in their current version. */
export function hasTruncatedList(value: JsonValue | undefined): boolean {
  if (Array.isArray(value)) return value.some(hasTruncatedList)
  return (
    isObject(value) &&
    ((value.object === 'list' && value.has_more === true) || Object.values(value).some(hasTruncatedList))
  )
}

/**
 * Whether a field of `expand` contains an id. Events never expand fields, and omit fields that are only sent on request.
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

/** The remaining items of a nested list are missing or belong to another version of the object. */
export class ListChangedError extends Error {}

/** The object with every list inside it read to its end. The object may change meanwhile: see `StripeApi.completeObject`. */
export async function readNestedLists(
  object: JsonObject,
  client: HttpClient,
  budget: PageBudget,
  context: SyncContext,
): Promise<JsonObject> {
  const read = async (value: JsonValue): Promise<JsonValue> => {
    if (Array.isArray(value)) return mapSequentially(value, read)
    if (!isObject(value)) return value
    const complete =
      value.object === 'list' && value.has_more === true
        ? await readRemainingItems(value, client, budget, context)
        : value
    const fields = Object.entries(complete).filter((entry): entry is [string, JsonValue] => entry[1] !== undefined)
    return Object.fromEntries(await mapSequentially(fields, async ([name, field]) => [name, await read(field)]))
  }
  return (await read(object)) as JsonObject
}

export interface NestedObject {
  readonly type: string
  readonly database: string
  readonly record: JsonObject
}

/**
 * Replaces nested objects that have their own database by their ids, so that the record is the same whether a field was
 * expanded or not.
 */
export function extractNested(
  object: JsonObject,
  databases: Readonly<Record<string, string>>,
): { record: JsonObject; nested: NestedObject[] } {
  const nested: NestedObject[] = []
  const extract = (value: JsonValue): JsonValue => {
    if (Array.isArray(value)) return value.map(extract)
    if (!isObject(value)) return value
    const { object: type, id } = value
    const database = typeof type === 'string' && Object.hasOwn(databases, type) ? databases[type] : undefined
    if (typeof type !== 'string' || database === undefined || typeof id !== 'string') return extractFields(value)
    // An expanded deleted object is a stub without its fields.
    if (value.deleted !== true) nested.push({ type, database, record: extractFields(value) })
    return id
  }
  const extractFields = (value: JsonObject): JsonObject =>
    Object.fromEntries(
      Object.entries(value).map(([name, field]) => [name, field === undefined ? null : extract(field)]),
    )
  return { record: extractFields(object), nested }
}

/**
 * Each page starts with the last item of the previous page, which must be equal in both. Otherwise a page of another version,
 * such as one from a cache, would be joined to the object unnoticed. The same applies to a list that ends before its count.
 */
async function readRemainingItems(
  list: JsonObject,
  client: HttpClient,
  budget: PageBudget,
  context: SyncContext,
): Promise<JsonObject> {
  const data = Array.isArray(list.data) ? [...list.data] : []
  // The URL is relative to the host and contains the API version. Items of a subscription are filtered by its id.
  const match = typeof list.url === 'string' ? /^\/v1((?:\/[\w-]+)+)(?:\?(\w+)=([\w-]+))?$/.exec(list.url) : null
  if (match === null) throw new SyncError('SOURCE_INVALID', 'A nested list of a Stripe object has no valid URL.')
  const [, path = '', name, id] = match
  for (let hasMore = true; hasMore;) {
    const after = getId(data.at(-2))
    budget.spend()
    const { status, body } = await client.get(
      path,
      { ...(name !== undefined && { [name]: id }), starting_after: after, limit: 100 },
      context,
      { answers: [400, 404] },
    )
    // The item before the page was deleted: the object has changed and is read again.
    if (status === 400)
      throw new SyncError('SOURCE_INVALID', 'A nested list of a Stripe object changed while it was read.')
    if (status === 404) throw new ListChangedError()
    if (!isObject(body) || !Array.isArray(body.data) || typeof body.has_more !== 'boolean' || body.data.length === 0) {
      throw new SyncError('SOURCE_INVALID', 'Stripe returned a page of a nested list that is not a list.')
    }
    const last = data.at(-1)
    const rest = last === undefined ? body.data : body.data.slice(1)
    // The previous page has `has_more`, so a page without new items is not the end.
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

/** Only one of them may be expanded, and may have fields that are only sent on request. */
function isSameVersion(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((item, at) => isSameVersion(item, b[at]))
  if (isObject(a) && isObject(b))
    return Object.keys(a).every((name) => !Object.hasOwn(b, name) || isSameVersion(a[name], b[name]))
  if (isObject(a) || isObject(b)) return (getId(a) ?? a) === (getId(b) ?? b)
  return a === b
}

/** Sequential, so that the budget counts each request. */
async function mapSequentially<From, To>(
  values: readonly From[],
  convert: (value: From) => Promise<To>,
): Promise<To[]> {
  const converted: To[] = []
  for (const value of values) converted.push(await convert(value))
  return converted
}
