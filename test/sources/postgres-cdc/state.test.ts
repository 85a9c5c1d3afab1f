import { describe, expect, test } from 'vitest'
import { formatLsn, parseLsn } from '../../../src/sources/postgres-cdc/lsn.ts'
import { checkState, DurableLsnTracker } from '../../../src/sources/postgres-cdc/state.ts'

describe('a place in the log', () => {
  test('R42 has one value however it is spelled, and one spelling', () => {
    expect(parseLsn('0000001A/000000F3')).toBe(parseLsn('1A/F3'))
    expect(formatLsn(parseLsn('0000001a/000000f3'))).toBe('1A/F3')
    expect(formatLsn(parseLsn('FFFFFFFF/FFFFFFFF'))).toBe('FFFFFFFF/FFFFFFFF')
    expect(parseLsn('1/0') > parseLsn('0/FFFFFFFF')).toBe(true)
    for (const text of ['', '1A', '1A/', '/F3', '123456789/0', 'x/y', 7])
      expect(() => parseLsn(text), String(text)).toThrow(/log sequence number/)
  })
})

describe('what may be acknowledged', () => {
  test("R42 the state of a cycle's first page is landed; the state of a page read ahead is not yet", () => {
    const landed = new DurableLsnTracker()
    expect(landed.track(1, 10n)).toBe(10n)
    // Asked ahead, while the page that leads to 20 is being landed.
    expect(landed.track(1, 20n)).toBe(10n)
    expect(landed.track(1, 30n)).toBe(20n)
    expect(landed.track(2, 30n)).toBe(30n)
  })

  test('R42 asking again for the same page proves nothing', () => {
    const landed = new DurableLsnTracker()
    landed.track(1, 10n)
    landed.track(1, 20n)
    expect(landed.track(1, 20n)).toBe(10n)
    expect(landed.track(1, 20n)).toBe(10n)
  })

  test('R42 a page that was thrown away and read again takes the word back', () => {
    const landed = new DurableLsnTracker()
    landed.track(1, 10n)
    landed.track(1, 20n)
    expect(landed.track(1, 10n)).toBe(10n)
    expect(landed.track(1, 20n)).toBe(10n)
    expect(landed.track(1, 30n)).toBe(20n)
    expect(landed.track(1, 5n)).toBe(5n)
  })

  test('the pages of one transaction share its beginning, and it is acknowledged when its end is landed', () => {
    const landed = new DurableLsnTracker()
    landed.track(1, 10n)
    for (let page = 0; page < 3; page++) expect(landed.track(1, 10n)).toBe(10n)
    expect(landed.track(1, 90n)).toBe(10n)
    expect(landed.track(1, 95n)).toBe(90n)
  })
})

test('a state that is none of this source is refused without being shown', () => {
  const good = { lsn: '0/1', columns: {} }
  expect(() => checkState(undefined)).toThrow(expect.objectContaining({ code: 'HISTORY_LOST' }))
  expect(() => checkState(good)).not.toThrow()
  for (const bad of [
    { ...good, lsn: 'canary' },
    { ...good, until: 7 },
    { ...good, transaction: { commitLsn: '0/1', done: 'canary' } },
    { lsn: '0/1' },
    { ...good, reread: [] },
    { ...good, after: 'canary' },
  ]) {
    expect(() => checkState(bad as never), JSON.stringify(bad)).toThrow(
      expect.objectContaining({ code: 'CURSOR_REJECTED', message: expect.not.stringContaining('canary') }),
    )
  }
})
