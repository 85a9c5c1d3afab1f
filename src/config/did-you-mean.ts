/** The candidate a typo most likely meant; null when none is near enough to be worth suggesting. */
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

/** The tail of a message: empty, or a question. */
export function didYouMean(word: string, candidates: Iterable<string>): string {
  const near = findClosest(word, candidates)
  return near === null ? '' : ` Did you mean "${near}"?`
}

/** Insertions, deletions, substitutions and swaps of neighbours, each counting one. */
function editDistance(a: string, b: string): number {
  let before: number[] = []
  let above = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1]
      let distance = Math.min(above[column]! + 1, current[column - 1]! + 1, above[column - 1]! + (same ? 0 : 1))
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        distance = Math.min(distance, before[column - 2]! + 1)
      }
      current.push(distance)
    }
    ;[before, above] = [above, current]
  }
  return above[b.length]!
}
