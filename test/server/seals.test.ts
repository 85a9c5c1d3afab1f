import { expect, test } from 'vitest'
import type { CursorSecret, Store } from '../../src/contract/index.ts'
import { Seal } from '../../src/feed/seal.ts'
import { Seals } from '../../src/server/seals.ts'

const HOUR = 3_600_000

test('Z28 a new secret opens at once and seals an hour later, so that what it sealed can be opened by whoever hears of it late', async () => {
  let now = Date.UTC(2026, 0, 1)
  const secrets: CursorSecret[] = [{ secret: 'new', createdAt: now }, { secret: 'old', createdAt: now - 31 * 24 * HOUR }]
  const store = { tenant: 'default', cursorSecrets: async () => secrets } as unknown as Store
  const seals = new Seals({ now: () => now, sleep: async () => {} })
  const sealed = (): Promise<string> => seals.with(store, async (seal) => {
    expect(seal.open(new Seal(['new']).seal('place'))).toBe('place')
    return seal.seal('place')
  })
  expect(new Seal(['old']).open(await sealed())).toBe('place')
  now += HOUR
  expect(new Seal(['new']).open(await sealed())).toBe('place')
  // The first there ever was has none before it.
  secrets.splice(0, 2, { secret: 'first', createdAt: now })
  now += HOUR / 2
  expect(new Seal(['first']).open(await new Seals({ now: () => now, sleep: async () => {} }).with(store, async (seal) => seal.seal('place')))).toBe('place')
})
