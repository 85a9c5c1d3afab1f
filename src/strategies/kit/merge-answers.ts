import { required } from '../../values/required.ts'

interface SortedAnswer<Item> {
  /** In the requested order. */
  readonly items: readonly Item[]
  readonly end: boolean
}

/**
 * Merges several answers to one request: items of any answer, up to where the first answer without an end stops. An
 * answer that skips rows, or is empty by mistake, then hides nothing that another answer contains.
 */
export function mergeAnswers<Item, Answer extends SortedAnswer<Item>>(
  answers: readonly (Answer & SortedAnswer<Item>)[],
  compare: (a: Item, b: Item) => number,
): Answer {
  const unfinished = answers.filter(({ end }) => !end)
  const newest = required(answers.at(-1), 'an answer')
  // It did not get past the cursor, but has the link to continue.
  const stuck = unfinished.find(({ items }) => items.length === 0)
  if (stuck !== undefined) return stuck
  const stops = unfinished.map(({ items }) => required(items.at(-1), 'the last item'))
  const isWithin = (item: Item): boolean => stops.every((stop) => compare(item, stop) <= 0)
  const items: Item[] = []
  let previous: { readonly item: Item } | undefined
  for (const item of answers
    .flatMap((answer) => [...answer.items])
    .filter(isWithin)
    .toSorted(compare)) {
    if (previous !== undefined && compare(previous.item, item) === 0) continue
    items.push(item)
    previous = { item }
  }
  const shortest = unfinished.find((_, index) =>
    stops.every((stop) => compare(required(stops[index], 'the last item'), stop) <= 0),
  )
  return { ...(shortest ?? newest), items, end: unfinished.length === 0 }
}
