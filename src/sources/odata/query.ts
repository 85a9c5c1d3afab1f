import type { TimeRange } from '../../contract/index.ts'
import { requireInstant } from '../../strategies/kit/instants.ts'
import { instantToMs } from '../../values/instant.ts'
import { required } from '../../values/required.ts'
import { formatLiteral } from './literals.ts'
import type { ODataProperty } from './metadata.ts'
import type { EntitySetPlan } from './entity-set-plan.ts'

export interface EntityQuery {
  readonly conditions: readonly string[]
  readonly order: readonly ODataProperty[]
  readonly top: number
}

/** Builds path and query. Spaces become %20, never +; `$` and other allowed characters stay readable in logs. */
export function buildQueryPath(
  { set, select, filter }: EntitySetPlan,
  { conditions = [], order = [], top }: Partial<EntityQuery> = {},
): string {
  const allConditions = [...(filter === null ? [] : [conditions.length === 0 ? filter : `(${filter})`]), ...conditions]
  const options = [
    allConditions.length > 0 && `$filter=${encodeQueryValue(allConditions.join(' and '))}`,
    order.length > 0 && `$orderby=${encodeQueryValue(order.map(({ name }) => `${name} asc`).join(','))}`,
    top !== undefined && `$top=${top}`,
    select !== null && `$select=${encodeQueryValue(select.join(','))}`,
  ]
  const present = options.filter((option) => option !== false)
  return `/${encodeURIComponent(set)}${present.length === 0 ? '' : `?${present.join('&')}`}`
}

/** Builds the path of one entity. */
export function buildEntityPath(plan: EntitySetPlan, parts: readonly string[]): string {
  const { set, key, select, metadata } = plan
  const values = key.map(
    ({ name, type }, index) =>
      `${key.length === 1 ? '' : `${name}=`}${encodeURIComponent(formatLiteral(type, required(parts[index], `key part ${name}`), metadata.version))}`,
  )
  return `/${encodeURIComponent(set)}(${values.join(',')})${select === null ? '' : `?$select=${encodeQueryValue(select.join(','))}`}`
}

/** Selects entities after a cursor: a > x or (a = x and (b > y or …)). */
export function buildAfterCondition(
  order: readonly ODataProperty[],
  texts: readonly string[],
  { metadata: { version } }: EntitySetPlan,
): string {
  const from = ([property, ...rest]: readonly ODataProperty[], [text, ...restTexts]: readonly string[]): string => {
    const { name, type } = required(property, 'the order property')
    const value = formatLiteral(type, required(text, `the value of ${name}`), version)
    return rest.length === 0
      ? `${name} gt ${value}`
      : `(${name} gt ${value} or (${name} eq ${value} and ${from(rest, restTexts)}))`
  }
  return from(order, texts)
}

/** Compares the cursor with an instant. A date is compared with the instant's UTC date. */
export function buildCursorCondition(
  { name, type }: ODataProperty,
  operator: 'gt' | 'ge' | 'eq' | 'le' | 'lt',
  instant: string,
  { metadata: { version } }: EntitySetPlan,
): string {
  return `${name} ${operator} ${formatLiteral(type, type === 'Edm.Date' ? requireInstant(instant, 'A cursor').slice(0, 10) : instant, version)}`
}

/** Entities without a cursor are in no range. */
export function buildRangeConditions(plan: EntitySetPlan, { from, to }: TimeRange): string[] {
  if (from === undefined && to === undefined) return []
  const cursor = required(plan.cursor, `the cursor of ${plan.set}`)
  // A date is in the range if one of its instants is.
  const isWithinDay = cursor.type === 'Edm.Date' && to !== undefined && !to.endsWith('T00:00:00.000000Z')
  return [
    ...(from === undefined ? [] : [buildCursorCondition(cursor, 'ge', trimFraction(from), plan)]),
    ...(to === undefined ? [] : [buildCursorCondition(cursor, isWithinDay ? 'le' : 'lt', trimFraction(to), plan)]),
  ]
}

/** A service may refuse more digits than its property has. */
export function trimFraction(canonical: string): string {
  return canonical.replace(/\.?0*Z$/, 'Z')
}

/** The first instant of the next millisecond. */
export function nextMillisecond(instant: string): string {
  return new Date(instantToMs(requireInstant(instant, 'A cursor')) + 1).toISOString()
}

function encodeQueryValue(text: string): string {
  return encodeURIComponent(text).replaceAll(/%(?:2C|3A|24)/g, decodeURIComponent)
}
