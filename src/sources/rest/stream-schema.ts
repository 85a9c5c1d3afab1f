import type {
  DeletedStream, EventPaging, KeysetPaging, LinkPaging, OffsetPaging, PageNumberPaging, PageSize, RestStream, TimestampPaging, TokenPaging, WholePaging,
  WindowPaging,
} from './stream.ts'

/** A part of JSON Schema: enough to check a stream that was written without a compiler. */
export interface Shape {
  readonly [keyword: string]: unknown
}

/** One entry for every member of the type, so that a new member does not compile until it is described here. */
type Members<T> = { readonly [Name in keyof Required<T>]: Shape }

function object<T>(properties: Members<T>, required: readonly (keyof T & string)[] = []): Shape {
  return { type: 'object', properties, additionalProperties: false, ...(required.length > 0 && { required }) }
}

const TEXT = { type: 'string', minLength: 1 }
const POINTER = { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }] }
const QUERY = { type: 'object' }
const TIME = { enum: ['iso', 'ms', 's'] }
const MILLISECONDS = { type: 'number', minimum: 0 }
const KEY = { anyOf: [TEXT, { type: 'array', items: POINTER, minItems: 1 }] }
const SIZE = object<PageSize>({ parameter: TEXT, value: { type: 'integer', minimum: 1 } }, ['parameter', 'value'])
const VALUES = object<{ at: string; are: string[] }>({ at: POINTER, are: { type: 'array', items: { type: 'string' } } }, ['at', 'are'])

const KINDS = {
  none: object<WholePaging>({ kind: {} }),
  token: object<TokenPaging>({
    kind: {}, parameter: TEXT, next: { anyOf: [POINTER, object<{ last: string }>({ last: POINTER }, ['last'])] }, more: POINTER, size: SIZE,
  }, ['parameter', 'next']),
  link: object<LinkPaging>({ kind: {}, next: POINTER, size: SIZE }),
  pageNumber: object<PageNumberPaging>({
    kind: {}, parameter: TEXT, first: { type: 'integer' }, size: SIZE, total: POINTER, pages: POINTER, more: POINTER,
  }, ['parameter']),
  offset: object<OffsetPaging>({ kind: {}, parameter: TEXT, size: SIZE, total: POINTER, more: POINTER }, ['parameter', 'size']),
  keyset: object<KeysetPaging>({
    kind: {}, after: TEXT, afterId: TEXT, until: TEXT, size: SIZE, id: TEXT, ids: { enum: ['binary', 'numeric'] }, more: POINTER,
  }, ['after', 'afterId', 'size']),
  timestamp: object<TimestampPaging>({
    kind: {}, since: TEXT, bound: { enum: ['from', 'above'] }, until: TEXT, size: SIZE,
  }, ['since', 'size']),
}

function oneOf<Kind extends string>(kinds: Readonly<Record<Kind, Shape>>): Shape {
  return {
    type: 'object',
    required: ['kind'],
    properties: { kind: { enum: Object.keys(kinds) } },
    // oxlint-disable-next-line unicorn/no-thenable
    allOf: Object.entries<Shape>(kinds).map(([kind, then]) => ({ if: { properties: { kind: { const: kind } }, required: ['kind'] }, then })),
  }
}

const { none, token, link, keyset, timestamp } = KINDS
const window = object<WindowPaging>({
  kind: {}, since: TEXT, until: TEXT, page: oneOf({ none, token, link }), overlapMs: MILLISECONDS,
}, ['since', 'page'])
const events = object<EventPaging>({
  kind: {}, path: TEXT, query: QUERY, records: POINTER, id: TEXT, at: POINTER, time: TIME, after: TEXT, order: { enum: ['newest-first', 'oldest-first'] },
  more: POINTER, newest: QUERY, record: POINTER, deletions: VALUES, only: VALUES, retentionMs: MILLISECONDS,
}, ['path', 'id', 'at', 'after', 'order', 'more', 'newest', 'record'])

const deleted = object<DeletedStream>({
  path: TEXT, query: QUERY, records: POINTER, key: KEY, updatedAt: POINTER, time: TIME, follow: oneOf({ keyset, timestamp, window }), retentionMs: MILLISECONDS,
}, ['path', 'key', 'updatedAt', 'follow'])

/** A stream of the `rest` source, as a manifest may describe it. */
export const REST_STREAM = object<RestStream>({
  name: TEXT, key: KEY, updatedAt: POINTER,
  path: TEXT, query: QUERY, records: POINTER, time: TIME, deleted: POINTER, lagMs: MILLISECONDS, retentionMs: MILLISECONDS,
  page: oneOf(KINDS),
  follow: oneOf({ keyset, timestamp, window, events }),
  // oxlint-disable-next-line unicorn/no-thenable
  deletes: { if: { type: 'string' }, then: { enum: ['ignore', 'sweep'] }, else: deleted },
  lookup: object<NonNullable<RestStream['lookup']>>({ path: TEXT, record: POINTER }, ['path']),
}, ['name', 'path', 'key', 'page'])

/** The first member of a stream that no reader knows, with those that are known there; null when there is none. */
export function unknownMember(value: unknown, shape: Shape = REST_STREAM, path = ''): { readonly member: string; readonly known: readonly string[] } | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  const { properties = {}, additionalProperties, allOf = [], else: otherwise } = shape as {
    properties?: Readonly<Record<string, Shape>>; additionalProperties?: boolean; allOf?: readonly KindShape[]; else?: Shape
  }
  if (otherwise !== undefined) return unknownMember(value, otherwise, path)
  for (const [name, member] of Object.entries(value)) {
    if (additionalProperties === false && !Object.hasOwn(properties, name)) return { member: `${path}${name}`, known: Object.keys(properties) }
    const found = unknownMember(member, properties[name] ?? {}, `${path}${name}.`)
    if (found !== null) return found
  }
  const kind = allOf.find((part) => part.if.properties.kind.const === (value as { kind?: unknown }).kind)
  return kind === undefined ? null : unknownMember(value, kind.then, path)
}

interface KindShape {
  readonly if: { readonly properties: { readonly kind: { readonly const: string } } }
  readonly then: Shape
}
