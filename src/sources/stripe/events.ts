import { SyncError, type JsonObject } from '../../contract/index.ts'
import { isObject } from '../kit/classify-response.ts'
import { requireString, getObjectType } from './object-fields.ts'

export interface StripeEvent {
  readonly id: string
  readonly type: string
  /** In seconds. The events of one second have no order. */
  readonly created: number
  /** The version of the object at the time of the event. */
  readonly object: JsonObject
}

export type EventKind = 'created' | 'changed' | 'deleted'

export function parseEvent(value: JsonObject): StripeEvent {
  const { created, data } = value
  if (typeof created !== 'number' || !isObject(data) || !isObject(data.object))
    throw new SyncError('SOURCE_INVALID', 'A Stripe event has no `created` or no `data.object`.')
  return { id: requireString(value, 'id'), type: requireString(value, 'type'), created, object: data.object }
}

export function classifyEvent({ type, object }: StripeEvent): EventKind {
  if (type.endsWith('.deleted') && !RETAINED_TYPES.has(getObjectType(object))) return 'deleted'
  return type.endsWith('.created') ? 'created' : 'changed'
}

/**
 * Orders the events of one second: an object is created, then changed, then deleted, and a deleted object never returns.
 * A listed object exists, so it is not older than its creation.
 */
export function formatOrderedTime(second: number, kind: EventKind | 'listed'): string {
  return `${secondToIso(second).slice(0, 20)}${MICROS_BY_KIND[kind]}Z`
}

export function secondToIso(second: number): string {
  return new Date(second * 1_000).toISOString()
}

/** Types whose last event is `deleted` although the object stays, as canceled. */
const RETAINED_TYPES = new Set(['subscription'])

const MICROS_BY_KIND = {
  created: '000000',
  listed: '000001',
  changed: '000002',
  deleted: '999999',
} as const satisfies Record<EventKind | 'listed', string>
