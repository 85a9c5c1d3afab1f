interface SortedAnswer<Item> {
  /** In the order of the question. */
  readonly items: readonly Item[]
  /** Nothing follows them. */
  readonly end: boolean
}

/**
 * Several answers to one question as one: what any of them holds, up to where the first of them stops without claiming the
 * end. An answer that passes rows over, or is empty by mistake, then hides nothing that another one shows.
 */
export function mergeAnswers<Item, Answer extends SortedAnswer<Item>>(answers: readonly (Answer & SortedAnswer<Item>)[], compare: (a: Item, b: Item) => number): Answer {
  const open = answers.filter(({ end }) => !end)
  const newest = answers.at(-1)!
  // It has come no further than the position, and names the way on.
  const stuck = open.find(({ items }) => items.length === 0)
  if (stuck !== undefined) return stuck
  const stops = open.map(({ items }) => items.at(-1)!)
  const isWithin = (item: Item): boolean => stops.every((stop) => compare(item, stop) <= 0)
  const items: Item[] = []
  for (const item of answers.flatMap((answer) => [...answer.items]).filter(isWithin).toSorted(compare)) {
    if (items.length === 0 || compare(items.at(-1)!, item) !== 0) items.push(item)
  }
  return { ...(open.find((answer) => stops.every((stop) => compare(answer.items.at(-1)!, stop) <= 0)) ?? newest), items, end: open.length === 0 }
}
