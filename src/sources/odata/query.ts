import { instantMs, canonicalInstant } from '../../values/instant.ts'
import { literal } from './literals.ts'
import type { Property } from './metadata.ts'
import type { SetPlan } from './plan.ts'

/** What is asked of an entity set. */
export interface Question {
  readonly conditions: readonly string[]
  readonly order: readonly Property[]
  readonly top: number
}

/** Path and query. A space is %20, never +; `$` and what else a query may hold stays as it is, so that logs can be read. */
export function targetOf({ set, select, filter }: SetPlan, { conditions = [], order = [], top }: Partial<Question> = {}): string {
  const stated = [...(filter === null ? [] : [conditions.length === 0 ? filter : `(${filter})`]), ...conditions]
  const options = [
    stated.length > 0 && `$filter=${encoded(stated.join(' and '))}`,
    order.length > 0 && `$orderby=${encoded(order.map(({ name }) => `${name} asc`).join(','))}`,
    top !== undefined && `$top=${top}`,
    select !== null && `$select=${encoded(select.join(','))}`,
  ]
  const given = options.filter((option) => option !== false)
  return `/${encodeURIComponent(set)}${given.length === 0 ? '' : `?${given.join('&')}`}`
}

/** Of one entity, by its key. */
export function entityTarget(plan: SetPlan, parts: readonly string[]): string {
  const { set, key, select, metadata } = plan
  const values = key.map(({ name, type }, index) => `${key.length === 1 ? '' : `${name}=`}${encodeURIComponent(literal(type, parts[index]!, metadata.version))}`)
  return `/${encodeURIComponent(set)}(${values.join(',')})${select === null ? '' : `?$select=${encoded(select.join(','))}`}`
}

/** Behind a place: a > x or (a = x and (b > y or …)). */
export function above(order: readonly Property[], texts: readonly string[], { metadata: { version } }: SetPlan): string {
  const from = (index: number): string => {
    const { name, type } = order[index]!
    const value = literal(type, texts[index]!, version)
    return index === order.length - 1 ? `${name} gt ${value}` : `(${name} gt ${value} or (${name} eq ${value} and ${from(index + 1)}))`
  }
  return from(0)
}

/** The cursor compared with an instant. A day is compared with the day that the instant lies in. */
export function compared({ name, type }: Property, word: 'gt' | 'ge' | 'eq' | 'le' | 'lt', instant: string, { metadata: { version } }: SetPlan): string {
  return `${name} ${word} ${literal(type, type === 'Edm.Date' ? canonicalInstant(instant)!.slice(0, 10) : instant, version)}`
}

/** The first of the next millisecond. */
export function nextMillisecond(instant: string): string {
  return new Date(instantMs(canonicalInstant(instant)!) + 1).toISOString()
}

function encoded(text: string): string {
  return encodeURIComponent(text).replaceAll(/%(?:2C|3A|24)/g, decodeURIComponent)
}
