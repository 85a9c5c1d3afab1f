import { instantToMs, canonicalizeInstant } from '../../values/instant.ts'
import { formatLiteral } from './literals.ts'
import type { ODataProperty } from './metadata.ts'
import type { EntitySetPlan } from './entity-set-plan.ts'

/** What is asked of an entity set. */
export interface EntityQuery {
  readonly conditions: readonly string[]
  readonly order: readonly ODataProperty[]
  readonly top: number
}

/** Path and query. A space is %20, never +; `$` and what else a query may hold stays as it is, so that logs can be read. */
export function buildQueryPath({ set, select, filter }: EntitySetPlan, { conditions = [], order = [], top }: Partial<EntityQuery> = {}): string {
  const stated = [...(filter === null ? [] : [conditions.length === 0 ? filter : `(${filter})`]), ...conditions]
  const options = [
    stated.length > 0 && `$filter=${encodeQueryValue(stated.join(' and '))}`,
    order.length > 0 && `$orderby=${encodeQueryValue(order.map(({ name }) => `${name} asc`).join(','))}`,
    top !== undefined && `$top=${top}`,
    select !== null && `$select=${encodeQueryValue(select.join(','))}`,
  ]
  const given = options.filter((option) => option !== false)
  return `/${encodeURIComponent(set)}${given.length === 0 ? '' : `?${given.join('&')}`}`
}

/** Of one entity, by its key. */
export function buildEntityPath(plan: EntitySetPlan, parts: readonly string[]): string {
  const { set, key, select, metadata } = plan
  const values = key.map(({ name, type }, index) => `${key.length === 1 ? '' : `${name}=`}${encodeURIComponent(formatLiteral(type, parts[index]!, metadata.version))}`)
  return `/${encodeURIComponent(set)}(${values.join(',')})${select === null ? '' : `?$select=${encodeQueryValue(select.join(','))}`}`
}

/** Behind a place: a > x or (a = x and (b > y or …)). */
export function buildAfterCondition(order: readonly ODataProperty[], texts: readonly string[], { metadata: { version } }: EntitySetPlan): string {
  const from = (index: number): string => {
    const { name, type } = order[index]!
    const value = formatLiteral(type, texts[index]!, version)
    return index === order.length - 1 ? `${name} gt ${value}` : `(${name} gt ${value} or (${name} eq ${value} and ${from(index + 1)}))`
  }
  return from(0)
}

/** The cursor compared with an instant. A day is compared with the day that the instant lies in. */
export function buildCursorCondition({ name, type }: ODataProperty, word: 'gt' | 'ge' | 'eq' | 'le' | 'lt', instant: string, { metadata: { version } }: EntitySetPlan): string {
  return `${name} ${word} ${formatLiteral(type, type === 'Edm.Date' ? canonicalizeInstant(instant)!.slice(0, 10) : instant, version)}`
}

/** The first of the next millisecond. */
export function nextMillisecond(instant: string): string {
  return new Date(instantToMs(canonicalizeInstant(instant)!) + 1).toISOString()
}

function encodeQueryValue(text: string): string {
  return encodeURIComponent(text).replaceAll(/%(?:2C|3A|24)/g, decodeURIComponent)
}
