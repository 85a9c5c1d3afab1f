import { useMemo } from 'react'
import { useLocation, useSearch } from 'wouter'

export type FilterTest = 'equals' | 'contains' | 'from' | 'to' | 'empty' | 'present'
export type Filter = readonly [field: string, test: FilterTest, value?: string]

/** The rows and the tab that the page shows, stored in the URL: a link shows the same. */
export interface View {
  readonly search: string
  /** As in the API; '' for the default. */
  readonly order: string
  readonly filters: readonly Filter[]
  /** An instant; '' for now. */
  readonly asOf: string
  readonly tab: 'rows' | 'sql'
  readonly sql: string
}

export function useView(): [View, (change: Partial<View>) => void] {
  const text = useSearch()
  const [location, go] = useLocation()
  const view = useMemo(() => parseView(text), [text])
  return [view, (change) => go(`${location}${formatView({ ...view, ...change })}`, { replace: true })]
}

function parseView(text: string): View {
  const params = new URLSearchParams(text)
  return {
    search: params.get('search') ?? '',
    order: params.get('order') ?? '',
    filters: params.getAll('filter').flatMap(parseFilter),
    asOf: params.get('asOf') ?? '',
    tab: params.get('tab') === 'sql' ? 'sql' : 'rows',
    sql: params.get('sql') ?? '',
  }
}

function parseFilter(text: string): Filter[] {
  try {
    const given: unknown = JSON.parse(text)
    return Array.isArray(given) && given.length <= 3 && given.every((part) => typeof part === 'string')
      ? [given as unknown as Filter]
      : []
  } catch {
    return []
  }
}

function formatView({ search, order, filters, asOf, tab, sql }: View): string {
  const params = new URLSearchParams([
    ...Object.entries({ search, order, asOf, tab: tab === 'rows' ? '' : tab, sql }).filter(([, value]) => value !== ''),
    ...filters.map((filter) => ['filter', JSON.stringify(filter)]),
  ])
  return params.size === 0 ? '' : `?${params.toString()}`
}

/** The parameters of the API. A search without an order begins with the newest rows. */
export function toApiQuery({ search, order, filters, asOf }: View): URLSearchParams {
  return new URLSearchParams({
    order: effectiveOrder({ search, order }),
    ...(search !== '' && { search }),
    ...(filters.length > 0 && { filters: JSON.stringify(filters) }),
    ...(asOf !== '' && { asOf }),
  })
}

export function effectiveOrder({ search, order }: Pick<View, 'search' | 'order'>): string {
  return order !== '' ? order : search === '' ? 'key' : '-changed'
}

/** The next order when the header of a column is used: ascending, descending, none. */
export function nextOrder(order: string, column: string): string {
  return order === column ? `-${column}` : order === `-${column}` ? '' : column
}
