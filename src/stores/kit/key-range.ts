/** The keys of a page as a range of the table. Most pages list keys that are adjacent there. */
export interface KeyRange {
  readonly min: string
  readonly max: string
  readonly count: number
}

/**
 * Returns null when the keys cannot be read as a range: too few, or JavaScript and the database would order them
 * differently.
 */
export function keyRangeOf(keys: ReadonlyArray<string | null>): KeyRange | null {
  if (keys.length < 2) return null
  let [min, max] = [keys[0] ?? '', keys[0] ?? '']
  for (const key of keys) {
    // JavaScript orders by UTF-16 units, the databases by bytes; they agree below the surrogates.
    if (key === null || SURROGATE_OR_ABOVE.test(key)) return null
    if (key < min) min = key
    else if (key > max) max = key
  }
  return { min, max, count: keys.length }
}

const SURROGATE_OR_ABOVE = /[\ud800-\uffff]/
