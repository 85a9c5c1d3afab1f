import { compareText } from '../kit/ids.ts'
import { countLeading } from '../kit/sorted-view.ts'
import { required } from '../kit/required.ts'

/**
 * ServiceNow's encoded query: `^` joins conditions, `^OR` joins alternatives to the condition before it, `^NQ` starts a
 * new query whose rows are added, `ORDERBY` and `ORDERBYDESC` sort all of it.
 */
export interface EncodedQuery {
  /** Queries joined by NQ; each holds conditions joined by AND; each of these holds alternatives joined by OR. */
  readonly queries: ReadonlyArray<ReadonlyArray<readonly Condition[]>>
  readonly orderBy: ReadonlyArray<{ readonly field: string; readonly descending: boolean }>
  /** The unparsable parts; the table API drops them unless the instance is configured to return nothing. */
  readonly unreadable: readonly string[]
}

export interface Condition {
  readonly field: string
  readonly operator: string
  readonly value: string
}

export type TextRow = Readonly<Record<string, string>>

const CONDITION =
  /^([\w.]+?)(>=|<=|!=|=|>|<|ISNOTEMPTY$|ISEMPTY$|NOT IN|IN|STARTSWITH|ENDSWITH|NOT LIKE|LIKE)([\s\S]*)$/

export function parseEncodedQuery(text: string, fields: ReadonlySet<string>): EncodedQuery {
  let alternatives: Condition[] = []
  let conditions: Condition[][] = []
  const queries = [conditions]
  const orderBy: Array<{ field: string; descending: boolean }> = []
  const unreadable: string[] = []
  const add = (part: string, or: boolean): void => {
    const match = CONDITION.exec(part)
    if (match === null || !fields.has(required(match[1], 'match[1]'))) {
      unreadable.push(part)
      return
    }
    const condition = {
      field: required(match[1], 'match[1]'),
      operator: required(match[2], 'match[2]'),
      value: parseLiteral(required(match[3], 'match[3]')),
    }
    if (or && alternatives.length > 0) alternatives.push(condition)
    else conditions.push((alternatives = [condition]))
  }
  // `^^` is an escaped caret inside a value.
  for (const raw of text.replaceAll('^^', '\0').split('^')) {
    const part = raw.replaceAll('\0', '^')
    if (part === '' || part === 'EQ') continue
    const order = /^ORDERBY(DESC)?([\w.]+)$/.exec(part)
    if (order !== null) {
      if (fields.has(required(order[2], 'order[2]')))
        orderBy.push({ field: required(order[2], 'order[2]'), descending: order[1] !== undefined })
    } else if (part.startsWith('NQ')) {
      alternatives = []
      queries.push((conditions = []))
      add(part.slice(2), false)
    } else if (part.startsWith('OR')) add(part.slice(2), true)
    else add(part, false)
  }
  return { queries, orderBy, unreadable }
}

export function matchesQuery(row: TextRow, query: EncodedQuery): boolean {
  return query.queries.some((conditions) =>
    conditions.every((alternatives) => alternatives.some((condition) => matches(row, condition))),
  )
}

/** A range of a list that is sorted by a timestamp and then by sys_id. */
export interface IndexRange {
  readonly from: number
  readonly until: number
}

/**
 * The ranges of a list sorted by `stamp` and then by sys_id that can match. `isExact`: all of their rows do.
 * `placeOf` returns an item's timestamp and id.
 */
export function findIndexRanges<Item>(
  query: EncodedQuery,
  stamp: string,
  sorted: readonly Item[],
  placeOf: (item: Item) => readonly [string, string],
): { stretches: IndexRange[]; isExact: boolean } {
  const before = (bound: Bound) =>
    countLeading(sorted, (item) => {
      const [time, id] = placeOf(item)
      return (
        compareText(time, bound.time) < 0 ||
        (time === bound.time && (bound.id === undefined ? bound.isAfterAll : compareText(id, bound.id) <= 0))
      )
    })
  let isExact = true
  const stretches = query.queries.map((conditions) => {
    let from = 0
    let until = sorted.length
    const moment = conditions.find(
      ([one, ...others]) => others.length === 0 && one?.field === stamp && one.operator === '=',
    )?.[0]?.value
    for (const [one, ...others] of conditions) {
      const { field, operator, value } = required(one, 'one')
      const isStamp = others.length === 0 && field === stamp && /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/.test(value)
      if (isStamp && ['=', '>', '>=', '<', '<='].includes(operator)) {
        if (operator === '=' || operator.startsWith('>'))
          from = Math.max(from, before({ time: value, isAfterAll: operator === '>' }))
        if (operator === '=' || operator.startsWith('<'))
          until = Math.min(until, before({ time: value, isAfterAll: operator !== '<' }))
      } else if (others.length === 0 && moment !== undefined && field === 'sys_id' && operator === '>')
        from = Math.max(from, before({ time: moment, id: value, isAfterAll: false }))
      else isExact = false
    }
    return { from, until: Math.max(from, until) }
  })
  return { stretches: mergeRanges(stretches), isExact }
}

interface Bound {
  readonly time: string
  /** After the row of this id. */
  readonly id?: string
  /** After every row of the time, rather than before them. */
  readonly isAfterAll: boolean
}

/** Sorted and disjoint. */
function mergeRanges(stretches: readonly IndexRange[]): IndexRange[] {
  const result: IndexRange[] = []
  for (const stretch of stretches.filter(({ from, until }) => until > from).toSorted((a, b) => a.from - b.from)) {
    const last = result.at(-1)
    if (last !== undefined && stretch.from <= last.until)
      result[result.length - 1] = { from: last.from, until: Math.max(last.until, stretch.until) }
    else result.push(stretch)
  }
  return result
}

export function orderRows<T extends TextRow>(rows: readonly T[], query: EncodedQuery): T[] {
  return rows.toSorted((a, b) => {
    for (const { field, descending } of query.orderBy) {
      const compared = compareText(a[field] ?? '', b[field] ?? '')
      if (compared !== 0) return descending ? -compared : compared
    }
    return 0
  })
}

function matches(row: TextRow, { field, operator, value }: Condition): boolean {
  const own = row[field] ?? ''
  switch (operator) {
    case '=':
      return own === value
    case '!=':
      return own !== value
    case '>':
      return own !== '' && compareText(own, value) > 0
    case '>=':
      return own !== '' && compareText(own, value) >= 0
    case '<':
      return own !== '' && compareText(own, value) < 0
    case '<=':
      return own !== '' && compareText(own, value) <= 0
    case 'IN':
      return value.split(',').includes(own)
    case 'NOT IN':
      return !value.split(',').includes(own)
    case 'LIKE':
      return own.toLowerCase().includes(value.toLowerCase())
    case 'NOT LIKE':
      return !own.toLowerCase().includes(value.toLowerCase())
    case 'STARTSWITH':
      return own.toLowerCase().startsWith(value.toLowerCase())
    case 'ENDSWITH':
      return own.toLowerCase().endsWith(value.toLowerCase())
    case 'ISEMPTY':
      return own === ''
    default:
      return own !== ''
  }
}

/** Dates may be written as a call that the server evaluates. */
function parseLiteral(value: string): string {
  const call = /^javascript:gs\.dateGenerate\('([\d-]+)'\s*,\s*'([\d:]+)'\)$/.exec(value)
  return call === null ? value : `${required(call[1], 'call[1]')} ${required(call[2], 'call[2]')}`
}
