/**
 * GitHub numbers pages: a removed star shifts all later stars up by one, so the first star of the next page moves to the page that
 * was already read. So every page but the first overlaps the previous one, by the choice of page and size. A page that contains
 * neither a known star nor a newer one does not overlap, and an earlier page is read instead.
 */
export interface PageWindow {
  readonly page: number
  readonly perPage: number
  /** The position of its first star, counted from 1. */
  readonly start: number
}

/** The last star read, and its position counted from 1. */
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

/** Chooses the window that contains the position and extends furthest after it. */
export function chooseWindow(position: number): PageWindow {
  let best = { page: 1, perPage: PER_PAGE_MAX }
  for (let perPage = PER_PAGE_MAX; perPage >= PER_PAGE_MIN; perPage--) {
    const page = Math.floor((position - 1) / perPage) + 1
    if (page * perPage > best.page * best.perPage) best = { page, perPage }
  }
  return { ...best, start: (best.page - 1) * best.perPage + 1 }
}

/** Whether no star can be missing between the cursor and this page. */
export function overlapsCursor(stars: readonly StarKey[], { start }: PageWindow, cursor: StarCursor | null): boolean {
  if (cursor === null || start === 1) return true
  const [first] = stars
  const hasNewer = first !== undefined && first.starredAt > cursor.starredAt
  return hasNewer || stars.some(({ id, starredAt }) => id === cursor.id && starredAt === cursor.starredAt)
}

/** Null for a page without stars. */
export function advanceCursor(stars: readonly StarKey[], { start }: PageWindow): StarCursor | null {
  const last = stars.at(-1)
  return last === undefined ? null : { position: start + stars.length - 1, id: last.id, starredAt: last.starredAt }
}

export function moveCursorBack({ start }: PageWindow, { id, starredAt }: StarCursor): StarCursor {
  return { position: start - 1, id, starredAt }
}
