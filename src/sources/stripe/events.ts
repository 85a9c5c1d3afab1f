import { SyncError, type JsonObject } from '../../contract/index.ts'
import { isObject } from '../kit/judge.ts'
import { textOf, typeOf } from './members.ts'

export interface StripeEvent {
  readonly id: string
  readonly type: string
  /** In seconds. The events of one second are in no order. */
  readonly created: number
  /** As it was at the event. */
  readonly object: JsonObject
}

export type Stage = 'created' | 'changed' | 'deleted'

export function eventOf(value: JsonObject): StripeEvent {
  const { created, data } = value
  if (typeof created !== 'number' || !isObject(data) || !isObject(data.object)) throw new SyncError('SOURCE_INVALID', 'An event of Stripe has no time or no object.')
  return { id: textOf(value, 'id'), type: textOf(value, 'type'), created, object: data.object }
}

export function stageOf({ type, object }: StripeEvent): Stage {
  if (type.endsWith('.deleted') && !KEPT_TYPES.has(typeOf(object))) return 'deleted'
  return type.endsWith('.created') ? 'created' : 'changed'
}

/**
 * Within its second an object is first created, then changed, then deleted, in whatever order the log has it, and a
 * deleted one never returns. An object that is listed exists, so it is not older than its creation.
 */
export function timeAt(second: number, stage: Stage | 'listed'): string {
  return `${isoOf(second).slice(0, 20)}${MICROS[stage]}Z`
}

export function isoOf(second: number): string {
  return new Date(second * 1_000).toISOString()
}

/** Their last event says `deleted`, but they stay, as canceled. */
const KEPT_TYPES = new Set(['subscription'])

const MICROS = { created: '000000', listed: '000001', changed: '000002', deleted: '999999' } as const satisfies Record<Stage | 'listed', string>
