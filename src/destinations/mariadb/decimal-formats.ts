import { isDecimal } from '../../stores/kit/tables/column.ts'
import type { DecimalFormats } from '../kit/extend-columns.ts'

/** The format of a decimal column is the most common number of decimals of its first values. */
export const DECIMAL_FORMATS: DecimalFormats = {
  isOpen: ({ type, format }) => type === 'decimal' && format === undefined,
  choose(_, values) {
    const counts = new Map<string, number>()
    for (const value of values) {
      if (typeof value !== 'string' || !isDecimal(value)) continue
      const scale = String(value.split('.')[1]?.length ?? 0)
      counts.set(scale, (counts.get(scale) ?? 0) + 1)
    }
    return [...counts].toSorted((a, b) => b[1] - a[1])[0]?.[0] ?? null
  },
}
