/**
 * GitHub counts pages: whoever takes a star away moves everything below it up by one, and what was first on the next page
 * is now last on the page that has been read. So every page but the first begins with something already read: page and
 * size are chosen to overlap. A page that shows nothing known, nor anything newer, has lost its join, and is read again
 * from further up.
 */
export interface PageWindow {
  readonly page: number
  readonly perPage: number
  /** Of its first star, counted from 1. */
  readonly start: number
}

/** The last star read, and how many stood above and including it. */
export interface StarCursor {
  readonly position: number
  readonly id: string
  readonly starredAt: string
}

interface StarKey {
  readonly id: string
  readonly starredAt: string
}

const PER_PAGE_MAX = 100
const PER_PAGE_MIN = 50

/** The window that includes the position and reaches furthest below it. */
export function chooseWindow(position: number): PageWindow {
  let best = { page: 1, perPage: PER_PAGE_MAX }
  for (let perPage = PER_PAGE_MAX; perPage >= PER_PAGE_MIN; perPage--) {
    const page = Math.floor((position - 1) / perPage) + 1
    if (page * perPage > best.page * best.perPage) best = { page, perPage }
  }
  return { ...best, start: (best.page - 1) * best.perPage + 1 }
}

/** Nothing can be missing between what was read before and this. */
export function overlapsCursor(stars: readonly StarKey[], { start }: PageWindow, place: StarCursor | null): boolean {
  if (place === null || start === 1) return true
  return stars.some(({ id, starredAt }) => id === place.id && starredAt === place.starredAt) || (stars.length > 0 && stars[0]!.starredAt > place.starredAt)
}

/** Null when there is nothing to stand on: a list without stars. */
export function advanceCursor(stars: readonly StarKey[], { start }: PageWindow): StarCursor | null {
  const last = stars.at(-1)
  return last === undefined ? null : { position: start + stars.length - 1, id: last.id, starredAt: last.starredAt }
}

export function moveCursorBack({ start }: PageWindow, { id, starredAt }: StarCursor): StarCursor {
  return { position: start - 1, id, starredAt }
}
