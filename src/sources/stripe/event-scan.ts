import type { Change, JsonObject } from '../../contract/index.ts'
import { stringifyJson } from '../../values/json.ts'
import { upsertOf, type Databases } from './changes.ts'
import { stageOf, timeAt, type StripeEvent } from './events.ts'
import { textOf, typeOf } from './members.ts'
import { extract, hasCutList, hasUnexpanded, type NestedObject } from './nested.ts'
import type { PendingObjects } from './pending-objects.ts'
import type { Readings } from './read-objects.ts'
import { pathOf } from './resources.ts'

export interface ScanFacts {
  readonly databases: Databases
  readonly expand: readonly string[]
  readonly pending: PendingObjects
  readonly readings: Readings
  /** Keys whose rows another sync wrote: an event does not tell whether it is newer. */
  readonly unordered: ReadonlySet<string>
  /** Events of this second were on the page before. */
  readonly borderSecond: number | null
}

/** Takes the events of one page, oldest first: each becomes changes, or its object is noted to be read as it is now. */
export class EventScan {
  readonly changes: Change[] = []
  readonly pending: PendingObjects
  readonly #facts: ScanFacts
  /** The objects of each second, to see those that are in it twice. */
  readonly #met = new Map<string, JsonObject>()

  constructor(facts: ScanFacts) {
    this.#facts = facts
    this.pending = facts.pending
  }

  /** False when no more objects can be noted: the event is left for a later page. */
  take(event: StripeEvent): boolean {
    if (this.pending.isFull) return false
    const { object, created } = event
    const { databases: { type: own, nested }, readings } = this.#facts
    const type = typeOf(object)
    if (type !== own && !Object.hasOwn(nested, type)) return true
    const id = textOf(object, 'id')
    const database = type === own ? undefined : nested[type]
    const stage = stageOf(event)
    if (stage === 'deleted') {
      this.pending.delete(type, id)
      const upstreamUpdatedAt = timeAt(Math.max(created, creationOf(object)), 'deleted')
      this.changes.push({ type: 'delete', key: id, upstreamUpdatedAt, ...(database !== undefined && { database }) })
      return true
    }
    const { record, nested: found } = extract(object, nested)
    const isReadable = pathOf(type) !== undefined
    if (isReadable && readings.isOlder(id, created)) return true
    const isTied = (stage === 'changed' && this.#isTied(type, id, created, object)) || isBeforeCreation(event)
    const open = found.filter((inner) => this.#isOpenInside(inner, created))
    // Objects that are only known from inside this one are read with it.
    if (isReadable && (isTied || this.#mustRead(type, id, created, object) || open.some((inner) => pathOf(inner.type) === undefined))) {
      this.pending.add(type, id)
      return true
    }
    const asOf = isReadable ? 'event' : undefined
    this.changes.push(upsertOf(record, database, { upstreamUpdatedAt: timeAt(created, stage), asOf }))
    for (const inner of found) {
      const innerId = textOf(inner.record, 'id')
      if (open.includes(inner)) this.pending.add(inner.type, innerId)
      else if (!readings.isOlder(innerId, created)) this.changes.push(upsertOf(inner.record, inner.database, { upstreamUpdatedAt: timeAt(created, 'changed'), asOf }))
    }
    return true
  }

  #mustRead(type: string, id: string, created: number, object: JsonObject): boolean {
    const { databases, expand, readings, unordered } = this.#facts
    return this.pending.has(type, id) || readings.isOpen(id, created) || unordered.has(id)
      || hasCutList(object) || (type === databases.type && hasUnexpanded(object, expand))
  }

  #isOpenInside({ type, record }: NestedObject, created: number): boolean {
    const { readings, unordered } = this.#facts
    const id = textOf(record, 'id')
    if (readings.isOlder(id, created)) return false
    return this.#isTied(type, id, created, record) || this.pending.has(type, id) || readings.isOpen(id, created) || unordered.has(id)
  }

  /** Changed twice within a second, or perhaps before on another page. Events of one second are in no order. */
  #isTied(type: string, id: string, created: number, object: JsonObject): boolean {
    if (created === this.#facts.borderSecond) return true
    const key = `${created} ${type} ${id}`
    const other = this.#met.get(key)
    if (other === undefined) this.#met.set(key, object)
    return other !== undefined && stringifyJson(other) !== stringifyJson(object)
  }
}

/** The clock that stamps events was set back since the object was made: its events are not in their order. */
function isBeforeCreation({ created, object }: StripeEvent): boolean {
  return created < creationOf(object)
}

/** The second; 0 for an object that does not tell. */
function creationOf({ created }: JsonObject): number {
  return typeof created === 'number' ? created : 0
}
