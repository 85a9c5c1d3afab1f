/** The closest candidate to a misspelt name; null if none is close enough. */
export function findClosest(word: string, candidates: Iterable<string>): string | null {
  const wanted = word.slice(0, 64).toLowerCase()
  let best: string | null = null
  let bestDistance = Math.max(1, Math.floor(wanted.length / 3)) + 1
  for (const candidate of candidates) {
    const distance = editDistance(wanted, candidate.toLowerCase())
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance]
  }
  return best
}

/** The suggestion for the end of a message; empty without a close candidate. */
export function didYouMean(word: string, candidates: Iterable<string>): string {
  const near = findClosest(word, candidates)
  return near === null ? '' : ` Did you mean "${near}"?`
}

/** The Damerau-Levenshtein distance. */
function editDistance(a: string, b: string): number {
  const at = (row: readonly number[], column: number): number => row[column] ?? Infinity
  let before: number[] = []
  let above = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1]
      let distance = Math.min(
        at(above, column) + 1,
        at(current, column - 1) + 1,
        at(above, column - 1) + (same ? 0 : 1),
      )
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        distance = Math.min(distance, at(before, column - 2) + 1)
      }
      current.push(distance)
    }
    ;[before, above] = [above, current]
  }
  return at(above, b.length)
}
