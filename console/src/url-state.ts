import { useCallback } from 'react'
import { useSearch, useLocation } from 'wouter'

/** Values in the query of the page's URL. A change replaces the entry of the history. */
export function useUrlState<const Name extends string>(
  names: readonly Name[],
): [Readonly<Record<Name, string>>, (change: Partial<Record<Name, string>>) => void] {
  const query = new URLSearchParams(useSearch())
  const [location, go] = useLocation()
  const values = Object.fromEntries(names.map((name) => [name, query.get(name) ?? ''])) as Record<Name, string>
  const set = useCallback(
    (change: Partial<Record<Name, string>>) => {
      // Read again: two changes may come before the next render.
      const next = new URLSearchParams(window.location.search)
      for (const [name, value] of Object.entries<string | undefined>(change)) {
        if (value === undefined || value === '') next.delete(name)
        else next.set(name, value)
      }
      const text = next.toString()
      go(text === '' ? location : `${location}?${text}`, { replace: true })
    },
    [location, go],
  )
  return [values, set]
}
