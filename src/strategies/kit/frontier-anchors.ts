import { hashText } from './hash.ts'

/**
 * What is remembered of the newest items of a list, newest first: a mark of four characters each, in one text. A state is
 * kept and audited with every cycle, and whole ids of a few pages would be most of it. Two items share a mark once in
 * sixteen million; nothing is ever decided by one mark alone.
 */
export type Anchors = string

/** How the items of a walk, from the newest down, compare with the anchors so far. */
export interface AnchorSearch {
  /** Of the last item; -1 when it was not remembered. */
  readonly rank: number
  /** Items in a row, from one of the newest anchors on, that stand as they stood. */
  readonly run: number
  /** Pages in a row of nothing but known items. */
  readonly stale: number
  /** Something was met that is not remembered. */
  readonly isNews: boolean
}

/** An item as it is compared. */
export interface ItemFingerprint {
  readonly fingerprint: string
  /** By its order, it stood below the head when that was made. */
  readonly isOlder: boolean
}

export const INITIAL_SEARCH: AnchorSearch = { rank: -1, run: 0, stale: 0, isNews: false }

/** The order goes into the mark where there is one: an item that moved to the top has a new order, and is not met again. */
export function fingerprintItem(id: string, order: string | number | undefined): string {
  let hash = hashText(order === undefined ? id : `${id} ${order}`)
  let mark = ''
  for (let at = 0; at < FINGERPRINT_CHARS; at++) {
    mark += ALPHABET[hash % 64]!
    hash = Math.floor(hash / 64)
  }
  return mark
}

/**
 * Goes on with the walk by one page. One anchor alone proves nothing: bookmarked again, it stands at the top with all that
 * is new below it. What moved comes before what stayed, and hardly ever in the order in which it once stood; so the walk
 * has arrived when several anchors follow each other as they did, and nothing new is between them.
 */
export function matchAnchors(anchors: Anchors, page: readonly ItemFingerprint[], before: AnchorSearch): AnchorSearch {
  const ranks = new Map(splitFingerprints(anchors).map((mark, rank) => [mark, rank]))
  let { rank: last, run, isNews } = before
  let isKnown = true
  for (const { fingerprint: mark, isOlder } of page) {
    const rank = ranks.get(mark) ?? -1
    const follows = last !== -1 && rank > last
    if (run > 0 && follows && rank <= last + RANK_GAP_MAX) run++
    else run = rank !== -1 && rank < ANCHOR_COUNT ? 1 : 0
    isKnown &&= isOlder || follows || (last === -1 && rank !== -1)
    isNews ||= rank === -1
    last = rank
    if (run >= ANCHOR_RUN_MIN) break
  }
  return { rank: last, run, isNews, stale: page.length === 0 ? before.stale : isKnown ? before.stale + 1 : 0 }
}

/** Enough anchors stand as they stood. */
export function hasReachedAnchors({ run }: AnchorSearch): boolean {
  return run >= ANCHOR_RUN_MIN
}

/** Known items for so long that what follows is known too, though none of the newest anchors was met. */
export function isCaughtUp({ stale }: AnchorSearch): boolean {
  return stale >= KNOWN_PAGES_MIN
}

/** The first ones first, each once, as many as are worth remembering. */
export function mergeAnchors(newer: Anchors, older: Anchors, anchorsMax: number): Anchors {
  return [...new Set([...splitFingerprints(newer), ...splitFingerprints(older)])].slice(0, anchorsMax).join('')
}

export function isAnchors(value: unknown): value is Anchors {
  return typeof value === 'string' && value.length % FINGERPRINT_CHARS === 0 && /^[\w-]*$/.test(value)
}

/** How many of the newest items are anchors; what is remembered beyond them only tells known pages from new ones. */
export const ANCHOR_COUNT = 10
/** How many must follow each other. Half of the anchors may vanish, and it still costs nothing. */
const ANCHOR_RUN_MIN = 5
/** How many ranks further the next one may be: two in between may have vanished. */
const RANK_GAP_MAX = 3
const KNOWN_PAGES_MIN = 3

const FINGERPRINT_CHARS = 4
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

function splitFingerprints(anchors: Anchors): string[] {
  return Array.from({ length: anchors.length / FINGERPRINT_CHARS }, (_, at) => anchors.slice(at * FINGERPRINT_CHARS, (at + 1) * FINGERPRINT_CHARS))
}
