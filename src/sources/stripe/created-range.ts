import type { JsonObject, TimeRange } from '../../contract/index.ts'
import { instantToMs } from '../../values/instant.ts'
import { requireInstant } from '../../strategies/kit/instants.ts'
import type { Query } from '../kit/http-client.ts'
import { limitRange } from '../kit/since.ts'
import type { StripeResource } from './resources.ts'

/** A range of the seconds in which objects were created: `from` is included, `to` is not. */
export interface CreatedRange {
  readonly from: number
  readonly to: number
}

export const ALL_TIMES: CreatedRange = { from: -Infinity, to: Infinity }

/** The part of a range after the start date. Stripe has whole seconds: the first that does not begin before a time. */
export function toCreatedRange(range: TimeRange, since: string | undefined): CreatedRange {
  const { from, to } = limitRange(range, since)
  const toSecond = (time: string, name: string): number =>
    Math.ceil(instantToMs(requireInstant(time, `\`${name}\``)) / 1_000)
  return {
    from: from === undefined ? -Infinity : toSecond(from, 'from'),
    to: to === undefined ? Infinity : toSecond(to, 'to'),
  }
}

/** True for an object without a creation time. */
export function isCreatedIn({ created }: JsonObject, { from, to }: CreatedRange): boolean {
  return typeof created !== 'number' || (created >= from && created < to)
}

export function toCreatedQuery({ isWithoutCreatedFilter }: StripeResource, { from, to }: CreatedRange): Query {
  if (isWithoutCreatedFilter === true) return {}
  return { ...(from > -Infinity && { 'created[gte]': from }), ...(to < Infinity && { 'created[lt]': to }) }
}
