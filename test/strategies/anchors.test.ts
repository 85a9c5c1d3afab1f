import { describe, expect, test } from 'vitest'
import {
  matchAnchors,
  isAnchors,
  isCaughtUp,
  hasReachedAnchors,
  fingerprintItem,
  INITIAL_SEARCH,
  mergeAnchors,
  type AnchorSearch,
} from '../../src/strategies/kit/frontier-anchors.ts'

const mark = (id: string): string => fingerprintItem(id, undefined)
const marks = (ids: string): string => ids.split(' ').filter(Boolean).map(mark).join('')
/** Twenty items as they once stood, newest first: a, b, c … t. */
const ANCHORS = marks('a b c d e f g h i j k l m n o p q r s t')

function walk(...pages: string[]): AnchorSearch {
  return pages.reduce<AnchorSearch>(
    (search, page) =>
      matchAnchors(
        ANCHORS,
        page
          .split(' ')
          .filter(Boolean)
          .map((id) => ({ fingerprint: mark(id), isOlder: id === id.toUpperCase() })),
        search,
      ),
    INITIAL_SEARCH,
  )
}

describe('T9 F8 where a walk has arrived', () => {
  test.each([
    ['a b c d e', true],
    ['x y a b c d e f', true],
    // Vanished, one here and two there.
    ['x b c e f i', true],
    ['x f g h i j', true],
    // Four are too few, and any other item between them restarts the count.
    ['x a b c d', false],
    ['a b c x d e', false],
    ['a b c x d e f g h', true],
    // Moved to the top, not in the order in which they stood.
    ['e d c b a x y', false],
    ['a e b d c x y', false],
    // From far apart, though in order.
    ['a e i m q x y', false],
    // Not from the newest ten on.
    ['k l m n o p', false],
    ['', false],
  ])('%s: %s', (page, reached) => expect(hasReachedAnchors(walk(page))).toBe(reached))

  test('also over several pages, and not by the same items twice', () => {
    expect(hasReachedAnchors(walk('x a b', 'c d', 'e'))).toBe(true)
    expect(hasReachedAnchors(walk('a b', '', 'c d e'))).toBe(true)
    expect(hasReachedAnchors(walk('a b', 'a b', 'a b'))).toBe(false)
    expect(hasReachedAnchors(walk('a b c', 'x', 'd e'))).toBe(false)
  })
})

describe('S23 when what follows is known', () => {
  test.each<[string[], boolean]>([
    [['k l', 'm n', 'o p'], true],
    [['k l', 'm n'], false],
    [['k l', 'm x', 'n o', 'p q'], false],
    [['x k', 'l m', 'n o', 'p q'], true],
    [['k', '', 'p', 'q'], true],
    [['k', '', 'p'], false],
    // Moved ones are known too, but do not stand as they stood.
    [['q p', 'o n', 'm l'], false],
    [['s', 'r', 'q'], false],
    // Older than the head by their own order.
    [['K L', 'X Y', 'Z'], true],
    [['K L', 'x Y', 'Z'], false],
  ])('%s: %s', (pages, caughtUp) => expect(isCaughtUp(walk(...pages))).toBe(caughtUp))
})

describe('marks', () => {
  test('SD5: an item that moved has another mark where its order shows', () => {
    expect(fingerprintItem('a', 1)).not.toBe(fingerprintItem('a', 2))
    expect(fingerprintItem('a', 1)).toBe(fingerprintItem('a', 1))
    expect(fingerprintItem('a', undefined)).toHaveLength(4)
  })

  test('are rarely shared: of a hundred thousand ids no more than chance would have it', () => {
    const seen = new Set(Array.from({ length: 100_000 }, (_, n) => mark(`18${String(n * 7_919).padStart(17, '0')}`)))
    expect(100_000 - seen.size).toBeLessThan(600)
  })

  test('are remembered newest first, each once, as many as asked for', () => {
    expect(mergeAnchors(marks('x b y'), marks('a b c'), 4)).toBe(marks('x b y a'))
    expect(mergeAnchors('', marks('a b'), 10)).toBe(marks('a b'))
  })

  test('are known from anything else', () => {
    expect(isAnchors(ANCHORS)).toBe(true)
    expect(isAnchors('')).toBe(true)
    for (const other of ['abc', 'a b c', null, 7, undefined]) expect(isAnchors(other)).toBe(false)
  })

  test('whether anything was new is remembered over pages', () => {
    expect(walk('a b', 'c').isNews).toBe(false)
    expect(walk('a x', 'c').isNews).toBe(true)
  })
})
