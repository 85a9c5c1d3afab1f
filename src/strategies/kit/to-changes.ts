import type { Change } from '../../contract/index.ts'

/** One change, several (also for other databases), or none. */
export type ItemChanges = Change | readonly Change[] | null

/** Converts all items in order. Upserts without a cursor get the item's cursor. */
export function toChanges<Item>(
  items: readonly Item[],
  convert: (item: Item) => ItemChanges,
  cursorOf: (item: Item) => string,
): Change[] {
  return items.flatMap((item) => {
    const changes = convert(item)
    return (changes === null ? [] : [changes].flat()).map((change: Change) =>
      change.type === 'upsert' && change.cursor === undefined ? { ...change, cursor: cursorOf(item) } : change,
    )
  })
}
