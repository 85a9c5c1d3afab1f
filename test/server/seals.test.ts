import { expect, test } from 'vitest'
import type { CursorSecret, Store } from '../../src/contract/index.ts'
import { CursorCipher } from '../../src/feed/cursor-cipher.ts'
import { CursorCiphers } from '../../src/server/cursor-ciphers.ts'

const HOUR = 3_600_000

test('Z28 a new secret decrypts at once and encrypts an hour later, so that every process can decrypt by then', async () => {
  let now = Date.UTC(2026, 0, 1)
  const secrets: CursorSecret[] = [
    { secret: 'new', createdAt: now },
    { secret: 'old', createdAt: now - 31 * 24 * HOUR },
  ]
  const store = { tenant: 'default', cursorSecrets: async () => secrets } as unknown as Store
  const seals = new CursorCiphers({ now: () => now, sleep: async () => {} })
  const sealed = (): Promise<string> =>
    seals.withCipher(store, async (seal) => {
      expect(seal.decrypt(new CursorCipher(['new']).encrypt('place'))).toBe('place')
      return seal.encrypt('place')
    })
  expect(new CursorCipher(['old']).decrypt(await sealed())).toBe('place')
  now += HOUR
  expect(new CursorCipher(['new']).decrypt(await sealed())).toBe('place')
  // The very first secret has no predecessor.
  secrets.splice(0, 2, { secret: 'first', createdAt: now })
  now += HOUR / 2
  expect(
    new CursorCipher(['first']).decrypt(
      await new CursorCiphers({ now: () => now, sleep: async () => {} }).withCipher(store, async (seal) =>
        seal.encrypt('place'),
      ),
    ),
  ).toBe('place')
})
