import type { Change, JsonObject } from '../../contract/index.ts'
import { stringifyJson } from '../../values/json.ts'
import { toUpsert, type StreamDatabases } from './changes.ts'
import { isCreatedIn, type CreatedRange } from './created-range.ts'
import { classifyEvent, formatOrderedTime, type StripeEvent } from './events.ts'
import { requireString, getObjectType } from './object-fields.ts'
import { extractNested, hasTruncatedList, hasUnexpandedField, type NestedObject } from './nested-objects.ts'
import type { PendingObjects } from './pending-objects.ts'
import type { ObjectReads } from './object-reads.ts'
import { findObjectPath } from './resources.ts'

export interface EventScanOptions {
  readonly databases: StreamDatabases
  /** Objects of the stream that were created at other times are skipped. */
  readonly created: CreatedRange
  readonly expand: readonly string[]
  readonly pending: PendingObjects
  readonly objectReads: ObjectReads
  /** Keys whose rows another sync wrote: an event may be older than such a row. */
  readonly unordered: ReadonlySet<string>
  /** The previous page had events of this second. */
  readonly previousPageSecond: number | null
}

/** Processes the events of one page, oldest first: each becomes changes, or its object becomes pending and is read later. */
export class EventScan {
  readonly changes: Change[] = []
  readonly pending: PendingObjects
  readonly #options: EventScanOptions
  /** The objects of each second, to detect two changes in one second. */
  readonly #objectsBySecond = new Map<string, JsonObject>()

  constructor(options: EventScanOptions) {
    this.#options = options
    this.pending = options.pending
  }

  /** Returns false if the list of pending objects is full: the event is left for a later page. */
  tryProcess(event: StripeEvent): boolean {
    if (this.pending.isFull) return false
    const { object, created } = event
    const {
      databases: { type: own, nested },
      created: range,
      objectReads,
    } = this.#options
    const type = getObjectType(object)
    if (type !== own && !Object.hasOwn(nested, type)) return true
    if (isPreview(event) || (type === own && !isCreatedIn(object, range))) return true
    const id = requireString(object, 'id')
    const database = type === own ? undefined : nested[type]
    const kind = classifyEvent(event)
    if (kind === 'deleted') {
      this.pending.delete(type, id)
      const upstreamUpdatedAt = formatOrderedTime(Math.max(created, getCreationSecond(object)), 'deleted')
      this.changes.push({ type: 'delete', key: id, upstreamUpdatedAt, ...(database !== undefined && { database }) })
      return true
    }
    const { record, nested: found } = extractNested(object, nested)
    const isReadable = findObjectPath(type) !== undefined
    if (isReadable && objectReads.isSuperseded(id, created)) return true
    const isTied = (kind === 'changed' && this.#isTied(type, id, created, object)) || isBeforeCreation(event)
    const mustRead = found.filter((inner) => this.#mustReadNested(inner, created))
    // Objects without a path of their own are read with their parent.
    if (
      isReadable &&
      (isTied ||
        this.#mustRead(type, id, created, object) ||
        mustRead.some((inner) => findObjectPath(inner.type) === undefined))
    ) {
      this.pending.add(type, id)
      return true
    }
    const asOf = isReadable ? 'event' : undefined
    this.changes.push(toUpsert(record, database, { upstreamUpdatedAt: formatOrderedTime(created, kind), asOf }))
    for (const inner of found) {
      const innerId = requireString(inner.record, 'id')
      if (mustRead.includes(inner)) this.pending.add(inner.type, innerId)
      else if (!objectReads.isSuperseded(innerId, created))
        this.changes.push(
          toUpsert(inner.record, inner.database, { upstreamUpdatedAt: formatOrderedTime(created, 'changed'), asOf }),
        )
    }
    return true
  }

  #mustRead(type: string, id: string, created: number, object: JsonObject): boolean {
    const { databases, expand, objectReads, unordered } = this.#options
    return (
      this.pending.has(type, id) ||
      objectReads.isAmbiguous(id, created) ||
      unordered.has(id) ||
      hasTruncatedList(object) ||
      (type === databases.type && hasUnexpandedField(object, expand))
    )
  }

  #mustReadNested({ type, record }: NestedObject, created: number): boolean {
    const { objectReads, unordered } = this.#options
    const id = requireString(record, 'id')
    if (objectReads.isSuperseded(id, created)) return false
    return (
      this.#isTied(type, id, created, record) ||
      this.pending.has(type, id) ||
      objectReads.isAmbiguous(id, created) ||
      unordered.has(id)
    )
  }

  /** The object changed twice within a second, possibly on the previous page. Events of one second have no order. */
  #isTied(type: string, id: string, created: number, object: JsonObject): boolean {
    if (created === this.#options.previousPageSecond) return true
    const key = `${created} ${type} ${id}`
    const other = this.#objectsBySecond.get(key)
    if (other === undefined) this.#objectsBySecond.set(key, object)
    return other !== undefined && stringifyJson(other) !== stringifyJson(object)
  }
}

/** The invoice of this event does not exist yet: it has no id, or one that cannot be read. */
function isPreview({ type }: StripeEvent): boolean {
  return type === 'invoice.upcoming'
}

/** The clock that stamps events was set back after the object was created, so its events are out of order. */
function isBeforeCreation({ created, object }: StripeEvent): boolean {
  return created < getCreationSecond(object)
}

/** In seconds; 0 if the object has no creation time. */
function getCreationSecond({ created }: JsonObject): number {
  return typeof created === 'number' ? created : 0
}
