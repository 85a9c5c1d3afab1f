import { hash } from 'node:crypto'
import { SyncError, type JsonObject, type JsonValue } from '../../../contract/index.ts'
import { readLiteral } from '../jinja/literals.ts'
import { components, isComponent, isRecord, texts, type Component } from '../manifest/component.ts'
import { listRouters } from '../read-page.ts'
import { readSlice, wholeRange, type Position } from '../read-slice.ts'
import { getAt } from '../records/extract.ts'
import { toJson, type Run, type Slice } from '../requests/run.ts'
import type { Session } from '../requests/send.ts'

export interface ListedPartition {
  readonly key: string
  readonly value: PartitionValue
}

/** The values of a partition that its requests use. */
export interface PartitionValue extends JsonObject {
  partition: JsonObject
  extra: JsonObject
}

/** The progress of a list of partitions. Parents that have partitions themselves are read one after the other. */
interface ListCursor extends JsonObject {
  /** The parent that is read. */
  index: number
  /** The parent's own partitions: those that were listed and not read, and where the list continues. */
  queue: PartitionValue[]
  more?: JsonValue
  /** The position within the first of the queue. */
  position?: Position
}

export interface PartitionPage {
  readonly partitions: ListedPartition[]
  readonly next?: JsonValue
  readonly serverTime?: number | null
}

/** Lists the partitions of a stream, one page of its parents at a time. */
export async function listPartitions(
  stream: Component,
  cursor: JsonValue | undefined,
  run: Run,
  session: Session,
): Promise<PartitionPage> {
  const routers = listRouters(stream)
  const [grouping] = routers.filter(({ type }) => type === 'GroupingPartitionRouter')
  if (grouping !== undefined) return listGroups(grouping, cursor, run, session)
  return listOf(routers, cursor, run, session)
}

/** Groups the partitions of one page of the list, so that a request reads several. */
async function listGroups(
  grouping: Component,
  cursor: JsonValue | undefined,
  run: Run,
  session: Session,
): Promise<PartitionPage> {
  const { underlying_partition_router: underlying, deduplicate } = grouping
  const page = await listOf(isComponent(underlying) ? [underlying] : [], cursor, run, session)
  const size = Math.max(1, run.number(grouping.group_size, grouping) ?? 1)
  const seen = new Set<string>()
  const members = page.partitions.filter(({ value: { partition } }) => {
    const { parent_slice: _, ...own } = partition
    const key = canonical(own)
    return deduplicate === false || (!seen.has(key) && seen.add(key))
  })
  const groups: ListedPartition[] = []
  for (let at = 0; at < members.length; at += size)
    groups.push(toPartition(groupValues(members.slice(at, at + size).map(({ value }) => value))))
  return { ...page, partitions: groups }
}

function groupValues(values: readonly PartitionValue[]): PartitionValue {
  const collect = (objects: readonly JsonObject[]): JsonObject => {
    const names = new Set(objects.flatMap((object) => Object.keys(object)))
    return Object.fromEntries([...names].map((name) => [name, objects.map((object) => object[name] ?? null)]))
  }
  return {
    partition: collect(values.map(({ partition }) => partition)),
    extra: collect(values.map(({ extra }) => extra)),
  }
}

async function listOf(
  routers: readonly Component[],
  cursor: JsonValue | undefined,
  run: Run,
  session: Session,
): Promise<PartitionPage> {
  const fixed = routers.filter(({ type }) => type === 'ListPartitionRouter').map((router) => listValues(router, run))
  const [substream, ...others] = routers.filter(({ type }) => type === 'SubstreamPartitionRouter')
  if (others.length > 0)
    throw new SyncError('SYNC_INVALID', `Stream "${run.stream}": it combines several parent streams.`)
  if (substream === undefined) return { partitions: combine([EMPTY], fixed).map(toPartition) }
  const page = await listChildren(substream, cursor as ListCursor | undefined, run, session)
  return { ...page, partitions: combine(page.values, fixed).map(toPartition) }
}

const EMPTY: PartitionValue = { partition: {}, extra: {} }

/** Every combination of the values with those of the lists. */
function combine(values: readonly PartitionValue[], lists: readonly (readonly JsonObject[])[]): PartitionValue[] {
  return lists.reduce<PartitionValue[]>(
    (found, list) =>
      found.flatMap(({ partition, extra }) => list.map((part) => ({ partition: { ...partition, ...part }, extra }))),
    [...values],
  )
}

function listValues(router: Component, run: Run): JsonObject[] {
  const field = run.text(router.cursor_field, router)
  const { values } = router
  // A list is taken as it is; a text is a template whose value is a list.
  const evaluated = typeof values === 'string' ? toJson(run.value(values, router)) : values
  const items = Array.isArray(evaluated) ? evaluated : typeof evaluated === 'string' ? readList(evaluated) : null
  if (items === null)
    throw new SyncError('SYNC_INVALID', `Stream "${run.stream}": the values of its ListPartitionRouter are not a list.`)
  return items.map((item) => ({ [field]: item }))
}

function readList(text: string): JsonValue[] | null {
  const literal = readLiteral(text)
  const value = literal === null ? null : toJson(literal.value)
  return Array.isArray(value) ? value : null
}

interface ChildrenPage {
  readonly partitions: ListedPartition[]
  readonly values: PartitionValue[]
  readonly next?: JsonValue
  readonly serverTime?: number | null
}

/** Reads one page of parent records. A page without records may be a step in the list of the parent's partitions. */
async function listChildren(
  router: Component,
  stored: ListCursor | undefined,
  run: Run,
  session: Session,
): Promise<ChildrenPage> {
  const configs = components(router.parent_stream_configs)
  const cursor = stored ?? { index: 0, queue: [] }
  const config = configs[cursor.index]
  if (config === undefined || !isComponent(config.stream)) return { partitions: [], values: [] }
  const parent = config.stream
  const opened = await openQueue(parent, cursor, run, session)
  const [current, ...waiting] = opened.queue
  if (current === undefined) return { partitions: [], values: [], ...continueWith(opened, configs.length) }
  const slice: Slice = { partition: current.partition, extra: current.extra, window: {} }
  const step = await readSlice(parent, slice, opened.position, wholeRange(parent, run), run, session)
  const values = step.records.flatMap((record) => toValue(config, record, current.partition, run))
  const { position: _, ...rest } = opened
  const following: ListCursor = step.next === undefined ? { ...rest, queue: waiting } : { ...rest, position: step.next }
  return { partitions: [], values, serverTime: step.serverTime, ...continueWith(following, configs.length) }
}

/** Fills the queue with the parent's own partitions. A parent without a router has one. */
async function openQueue(parent: Component, cursor: ListCursor, run: Run, session: Session): Promise<ListCursor> {
  if (cursor.queue.length > 0) return cursor
  const isStart = cursor.more === undefined
  if (listRouters(parent).length === 0) return isStart ? { ...cursor, queue: [EMPTY], more: false } : cursor
  if (cursor.more === false) return cursor
  const page = await listPartitions(parent, isStart ? undefined : cursor.more, run, session)
  return { ...cursor, queue: page.partitions.map(({ value }) => value), more: page.next ?? false }
}

function continueWith(cursor: ListCursor, parents: number): { next?: JsonValue } {
  if (cursor.queue.length > 0 || (cursor.more !== false && cursor.more !== undefined)) return { next: cursor }
  return cursor.index + 1 < parents ? { next: { index: cursor.index + 1, queue: [] } } : {}
}

/** A parent record without the key has no children. */
function toValue(config: Component, record: JsonObject, parent: JsonObject, run: Run): PartitionValue[] {
  const value = getAt(record, run.text(config.parent_key, config).split('/'))
  if (value === undefined || value === null) return []
  const fields = Array.isArray(config.extra_fields) ? config.extra_fields : []
  const extra = fields.map((path) => {
    const names = texts(path).map((name) => run.text(name, config))
    return [names.join('.'), getAt(record, names) ?? null] as const
  })
  const field = run.text(config.partition_field, config)
  return [{ partition: { [field]: value, parent_slice: parent }, extra: Object.fromEntries(extra) }]
}

const KEY_BYTES_MAX = 512

export function toPartition(value: PartitionValue): ListedPartition {
  const text = canonical(value.partition)
  return { value, key: Buffer.byteLength(text) <= KEY_BYTES_MAX ? text : hash('sha256', text) }
}

export function canonical(value: JsonValue | undefined): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (!isRecord(value)) return typeof value === 'bigint' ? String(value) : (JSON.stringify(value) ?? 'null')
  const names = Object.keys(value).toSorted()
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(',')}}`
}

export function isPartitioned(stream: Component): boolean {
  return listRouters(stream).length > 0
}
