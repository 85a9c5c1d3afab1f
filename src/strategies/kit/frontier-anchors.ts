import { hashText } from './hash.ts'

/**
 * Fingerprints of a list's newest items, newest first: four characters each, in one string. The state is stored and
 * audited with every cycle, and full ids would make up most of it. Two items collide once in sixteen million, so
 * nothing is decided by one fingerprint alone.
 */
export type Anchors = string

/** The match between the items read so far, newest first, and the anchors. */
export interface AnchorSearch {
  /** Anchor index of the last item; -1 when it is not an anchor. */
  readonly rank: number
  /** Consecutive items, starting at one of the newest anchors, in their old order. */
  readonly run: number
  /** Consecutive pages that contain only known items. */
  readonly stale: number
  /** An unknown item was read. */
  readonly isNews: boolean
}

export interface ItemFingerprint {
  readonly fingerprint: string
  /** By its order, the item is older than the head. */
  readonly isOlder: boolean
}

export const INITIAL_SEARCH: AnchorSearch = { rank: -1, run: 0, stale: 0, isNews: false }

/** Includes the order if there is one: an item that moved to the top has a new order and no longer matches. */
export function fingerprintItem(id: string, order: string | number | undefined): string {
  let hash = hashText(order === undefined ? id : `${id} ${order}`)
  let fingerprint = ''
  for (let at = 0; at < FINGERPRINT_CHARS; at++) {
    fingerprint += ALPHABET.charAt(hash % 64)
    hash = Math.floor(hash / 64)
  }
  return fingerprint
}

/**
 * Extends the match by one page. One anchor alone proves nothing: bookmarked again, it is at the top with all new items
 * below it. Moved items come before unmoved ones and rarely keep their order, so the anchors are reached when several
 * follow each other as before with nothing new between them.
 */
export function matchAnchors(anchors: Anchors, page: readonly ItemFingerprint[], previous: AnchorSearch): AnchorSearch {
  const ranks = new Map(splitFingerprints(anchors).map((fingerprint, rank) => [fingerprint, rank]))
  let { rank: last, run, isNews } = previous
  let isKnown = true
  for (const { fingerprint, isOlder } of page) {
    const rank = ranks.get(fingerprint) ?? -1
    const follows = last !== -1 && rank > last
    if (run > 0 && follows && rank <= last + RANK_GAP_MAX) run++
    else run = rank !== -1 && rank < ANCHOR_COUNT ? 1 : 0
    isKnown &&= isOlder || follows || (last === -1 && rank !== -1)
    isNews ||= rank === -1
    last = rank
    if (run >= ANCHOR_RUN_MIN) break
  }
  return { rank: last, run, isNews, stale: page.length === 0 ? previous.stale : isKnown ? previous.stale + 1 : 0 }
}

export function hasReachedAnchors({ run }: AnchorSearch): boolean {
  return run >= ANCHOR_RUN_MIN
}

/** Enough consecutive known pages to assume that the rest is known, although no new anchor was reached. */
export function isCaughtUp({ stale }: AnchorSearch): boolean {
  return stale >= KNOWN_PAGES_MIN
}

/** Merges both, first argument first, without duplicates, up to the limit. */
export function mergeAnchors(newer: Anchors, older: Anchors, anchorsMax: number): Anchors {
  return [...new Set([...splitFingerprints(newer), ...splitFingerprints(older)])].slice(0, anchorsMax).join('')
}

export function isAnchors(value: unknown): value is Anchors {
  return typeof value === 'string' && value.length % FINGERPRINT_CHARS === 0 && /^[\w-]*$/.test(value)
}

/** Number of newest items that serve as anchors; older fingerprints only identify known pages. */
export const ANCHOR_COUNT = 10
/** Number of anchors that must follow each other. Half of the anchors may disappear at no cost. */
const ANCHOR_RUN_MIN = 5
/** Maximum rank difference between neighbours: two anchors in between may have disappeared. */
const RANK_GAP_MAX = 3
const KNOWN_PAGES_MIN = 3

const FINGERPRINT_CHARS = 4
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

function splitFingerprints(anchors: Anchors): string[] {
  return Array.from({ length: anchors.length / FINGERPRINT_CHARS }, (_, at) =>
    anchors.slice(at * FINGERPRINT_CHARS, (at + 1) * FINGERPRINT_CHARS),
  )
}
