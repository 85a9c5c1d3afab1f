import { SyncError, type JsonObject } from '../../contract/index.ts'
import { isObject } from '../kit/classify-response.ts'
import { requireString, getObjectType } from './object-fields.ts'

export interface StripeEvent {
  readonly id: string
  readonly type: string
  /** In seconds. The events of one second are in no order. */
  readonly created: number
  /** As it was at the event. */
  readonly object: JsonObject
}

export type EventKind = 'created' | 'changed' | 'deleted'

export function parseEvent(value: JsonObject): StripeEvent {
  const { created, data } = value
  if (typeof created !== 'number' || !isObject(data) || !isObject(data.object)) throw new SyncError('SOURCE_INVALID', 'An event of Stripe has no time or no object.')
  return { id: requireString(value, 'id'), type: requireString(value, 'type'), created, object: data.object }
}

export function classifyEvent({ type, object }: StripeEvent): EventKind {
  if (type.endsWith('.deleted') && !RETAINED_TYPES.has(getObjectType(object))) return 'deleted'
  return type.endsWith('.created') ? 'created' : 'changed'
}

/**
 * Within its second an object is first created, then changed, then deleted, in whatever order the log has it, and a
 * deleted one never returns. An object that is listed exists, so it is not older than its creation.
 */
export function formatOrderedTime(second: number, stage: EventKind | 'listed'): string {
  return `${secondToIso(second).slice(0, 20)}${MICROS_BY_KIND[stage]}Z`
}

export function secondToIso(second: number): string {
  return new Date(second * 1_000).toISOString()
}

/** Their last event says `deleted`, but they stay, as canceled. */
const RETAINED_TYPES = new Set(['subscription'])

const MICROS_BY_KIND = { created: '000000', listed: '000001', changed: '000002', deleted: '999999' } as const satisfies Record<EventKind | 'listed', string>
