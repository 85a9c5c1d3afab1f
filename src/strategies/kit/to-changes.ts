import type { Change } from '../../contract/index.ts'

/** What an item becomes: a change, several of them (also in other databases), or nothing. */
export type ItemChanges = Change | readonly Change[] | null

/** The changes of all items in their order. Upserts that do not say where they stand get the item's place. */
export function toChanges<Item>(items: readonly Item[], convert: (item: Item) => ItemChanges, placeOf: (item: Item) => string): Change[] {
  return items.flatMap((item) => {
    const changes = convert(item)
    return (changes === null ? [] : [changes].flat()).map((change: Change) => (
      change.type === 'upsert' && change.cursor === undefined ? { ...change, cursor: placeOf(item) } : change
    ))
  })
}
