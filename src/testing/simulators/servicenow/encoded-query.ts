import { compareText } from '../kit/ids.ts'

/**
 * ServiceNow's encoded query: `^` joins conditions, `^OR` joins alternatives to the condition before it, `^NQ` starts
 * a new query whose rows are added, `ORDERBY` and `ORDERBYDESC` sort all of it.
 */
export interface EncodedQuery {
  /** Queries joined by NQ; each holds conditions joined by AND; each of these holds alternatives joined by OR. */
  readonly queries: ReadonlyArray<ReadonlyArray<readonly Condition[]>>
  readonly orderBy: ReadonlyArray<{ readonly field: string; readonly descending: boolean }>
  /** What the parser could not read; the table API drops such parts unless the instance is told to return nothing. */
  readonly unreadable: readonly string[]
}

export interface Condition {
  readonly field: string
  readonly operator: string
  readonly value: string
}

export type TextRow = Readonly<Record<string, string>>

const CONDITION = /^([\w.]+?)(>=|<=|!=|=|>|<|ISNOTEMPTY$|ISEMPTY$|NOT IN|IN|STARTSWITH|ENDSWITH|NOT LIKE|LIKE)([\s\S]*)$/

export function parseEncodedQuery(text: string, fields: ReadonlySet<string>): EncodedQuery {
  let alternatives: Condition[] = []
  let conditions: Condition[][] = []
  const queries = [conditions]
  const orderBy: Array<{ field: string; descending: boolean }> = []
  const unreadable: string[] = []
  const add = (part: string, or: boolean): void => {
    const match = CONDITION.exec(part)
    if (match === null || !fields.has(match[1]!)) {
      unreadable.push(part)
      return
    }
    const condition = { field: match[1]!, operator: match[2]!, value: literal(match[3]!) }
    if (or && alternatives.length > 0) alternatives.push(condition)
    else conditions.push((alternatives = [condition]))
  }
  // `^^` stands for a caret inside a value.
  for (const raw of text.replaceAll('^^', '\0').split('^')) {
    const part = raw.replaceAll('\0', '^')
    if (part === '' || part === 'EQ') continue
    const order = /^ORDERBY(DESC)?([\w.]+)$/.exec(part)
    if (order !== null) {
      if (fields.has(order[2]!)) orderBy.push({ field: order[2]!, descending: order[1] !== undefined })
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
  return query.queries.some((conditions) => conditions.every((alternatives) => alternatives.some((condition) => matches(row, condition))))
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

/** Dates may be spelled as a call that the server evaluates. */
function literal(value: string): string {
  const call = /^javascript:gs\.dateGenerate\('([\d-]+)'\s*,\s*'([\d:]+)'\)$/.exec(value)
  return call === null ? value : `${call[1]!} ${call[2]!}`
}
