import type { Change, JsonObject } from '../../contract/index.ts'
import { stringifyJson } from '../../values/json.ts'
import { toUpsert, type StreamDatabases } from './changes.ts'
import { classifyEvent, formatOrderedTime, type StripeEvent } from './events.ts'
import { requireString, getObjectType } from './object-fields.ts'
import { extractNested, hasTruncatedList, hasUnexpandedField, type NestedObject } from './nested-objects.ts'
import type { PendingObjects } from './pending-objects.ts'
import type { ObjectReads } from './object-reads.ts'
import { findObjectPath } from './resources.ts'

export interface EventScanOptions {
  readonly databases: StreamDatabases
  readonly expand: readonly string[]
  readonly pending: PendingObjects
  readonly objectReads: ObjectReads
  /** Keys whose rows another sync wrote: an event does not tell whether it is newer. */
  readonly unordered: ReadonlySet<string>
  /** Events of this second were on the page before. */
  readonly previousPageSecond: number | null
}

/** Takes the events of one page, oldest first: each becomes changes, or its object is noted to be read as it is now. */
export class EventScan {
  readonly changes: Change[] = []
  readonly pending: PendingObjects
  readonly #options: EventScanOptions
  /** The objects of each second, to see those that are in it twice. */
  readonly #objectsBySecond = new Map<string, JsonObject>()

  constructor(facts: EventScanOptions) {
    this.#options = facts
    this.pending = facts.pending
  }

  /** False when no more objects can be noted: the event is left for a later page. */
  tryProcess(event: StripeEvent): boolean {
    if (this.pending.isFull) return false
    const { object, created } = event
    const { databases: { type: own, nested }, objectReads: readings } = this.#options
    const type = getObjectType(object)
    if (type !== own && !Object.hasOwn(nested, type)) return true
    const id = requireString(object, 'id')
    const database = type === own ? undefined : nested[type]
    const stage = classifyEvent(event)
    if (stage === 'deleted') {
      this.pending.delete(type, id)
      const upstreamUpdatedAt = formatOrderedTime(Math.max(created, getCreationSecond(object)), 'deleted')
      this.changes.push({ type: 'delete', key: id, upstreamUpdatedAt, ...(database !== undefined && { database }) })
      return true
    }
    const { record, nested: found } = extractNested(object, nested)
    const isReadable = findObjectPath(type) !== undefined
    if (isReadable && readings.isSuperseded(id, created)) return true
    const isTied = (stage === 'changed' && this.#isTied(type, id, created, object)) || isBeforeCreation(event)
    const open = found.filter((inner) => this.#mustReadNested(inner, created))
    // Objects that are only known from inside this one are read with it.
    if (isReadable && (isTied || this.#mustRead(type, id, created, object) || open.some((inner) => findObjectPath(inner.type) === undefined))) {
      this.pending.add(type, id)
      return true
    }
    const asOf = isReadable ? 'event' : undefined
    this.changes.push(toUpsert(record, database, { upstreamUpdatedAt: formatOrderedTime(created, stage), asOf }))
    for (const inner of found) {
      const innerId = requireString(inner.record, 'id')
      if (open.includes(inner)) this.pending.add(inner.type, innerId)
      else if (!readings.isSuperseded(innerId, created)) this.changes.push(toUpsert(inner.record, inner.database, { upstreamUpdatedAt: formatOrderedTime(created, 'changed'), asOf }))
    }
    return true
  }

  #mustRead(type: string, id: string, created: number, object: JsonObject): boolean {
    const { databases, expand, objectReads: readings, unordered } = this.#options
    return this.pending.has(type, id) || readings.isAmbiguous(id, created) || unordered.has(id)
      || hasTruncatedList(object) || (type === databases.type && hasUnexpandedField(object, expand))
  }

  #mustReadNested({ type, record }: NestedObject, created: number): boolean {
    const { objectReads: readings, unordered } = this.#options
    const id = requireString(record, 'id')
    if (readings.isSuperseded(id, created)) return false
    return this.#isTied(type, id, created, record) || this.pending.has(type, id) || readings.isAmbiguous(id, created) || unordered.has(id)
  }

  /** Changed twice within a second, or perhaps before on another page. Events of one second are in no order. */
  #isTied(type: string, id: string, created: number, object: JsonObject): boolean {
    if (created === this.#options.previousPageSecond) return true
    const key = `${created} ${type} ${id}`
    const other = this.#objectsBySecond.get(key)
    if (other === undefined) this.#objectsBySecond.set(key, object)
    return other !== undefined && stringifyJson(other) !== stringifyJson(object)
  }
}

/** The clock that stamps events was set back since the object was made: its events are not in their order. */
function isBeforeCreation({ created, object }: StripeEvent): boolean {
  return created < getCreationSecond(object)
}

/** The second; 0 for an object that does not tell. */
function getCreationSecond({ created }: JsonObject): number {
  return typeof created === 'number' ? created : 0
}
