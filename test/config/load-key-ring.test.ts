import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { locateStore } from '../../src/stores/drivers.ts'
import { loadKeyRing } from '../../src/config/load-key-ring.ts'
import { openStore } from '../../src/stores/open-store.ts'
import { SyncDriver } from '../../src/testing/store-cases/harness.ts'

const KEY = Buffer.alloc(32, 1).toString('base64')
const OTHER = Buffer.alloc(32, 2).toString('base64')
let folder: string

beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'tidemark-keys-'))))
afterEach(() => rmSync(folder, { recursive: true }))

describe('the encryption keys', () => {
  const sqlite = () => ({ product: 'SQLite', storage: { kind: 'file', path: join(folder, 'app.db') } }) as const

  test('R43 Z3 are made on first use beside a SQLite file, for its owner alone, and stay the same', () => {
    const first = loadKeyRing(sqlite(), {}, folder)
    expect(statSync(join(folder, 'app.db.key')).mode & 0o777).toBe(0o600)
    expect(loadKeyRing(sqlite(), {}, folder).current.id).toBe(first.current.id)
  })

  test('come from a file that is named, else from the environment; a PostgreSQL is not opened without', () => {
    writeFileSync(join(folder, 'ring'), `${OTHER}\n${KEY}\n`, { mode: 0o600 })
    const [file, inline] = [
      loadKeyRing(sqlite(), { TIDEMARK_KEY_FILE: 'ring', TIDEMARK_KEY: KEY }, folder),
      loadKeyRing(sqlite(), { TIDEMARK_KEY: KEY }, folder),
    ]
    expect(file.keys).toHaveLength(2)
    expect(inline.current.id).toBe(file.keys[1]!.id)
    expect(existsSync(join(folder, 'app.db.key'))).toBe(false)
    expect(() => loadKeyRing(locateStore('postgres://x/y', folder), {}, folder)).toThrow(
      expect.objectContaining({ code: 'KEYS_MISSING' }),
    )
  })

  test('Z3 a lost key file is not replaced by a new one for a tenant that is new: the keys of another tenant are of the lost one', async () => {
    const url = `sqlite:${join(folder, 'app.db')}`
    const store = await openStore(url, { environment: {} })
    await (await SyncDriver.acquire(store)).set('"x"')
    await store.close()
    const file = join(folder, 'app.db.key')
    const kept = readFileSync(file)
    rmSync(file)
    await expect(openStore(url, { tenant: 'newcomer', environment: {} })).rejects.toMatchObject({
      code: 'KEYS_MISSING',
    })
    expect(existsSync(file)).toBe(false)
    // Another key given by hand is not of this store either.
    const foreign = await openStore(url, { tenant: 'newcomer', environment: { TIDEMARK_KEY: OTHER } })
    await expect((await SyncDriver.acquire(foreign)).set('"x"')).rejects.toMatchObject({ code: 'KEYS_MISSING' })
    await foreign.close()
    writeFileSync(file, kept, { mode: 0o600 })
    const right = await openStore(url, { tenant: 'newcomer', environment: {} })
    await (await SyncDriver.acquire(right, { evict: 'runner-1' })).set('"x"')
    await right.close()
  })

  test('are refused from a file that others can read, that is missing or damaged, without showing its contents', () => {
    writeFileSync(join(folder, 'ring'), KEY, { mode: 0o600 })
    for (const mode of [0o644, 0o640, 0o604, 0o620]) {
      chmodSync(join(folder, 'ring'), mode)
      expect(() => loadKeyRing(sqlite(), { TIDEMARK_KEY_FILE: 'ring' }, folder)).toThrow('chmod 600')
    }
    expect(() => loadKeyRing(sqlite(), { TIDEMARK_KEY_FILE: 'nowhere' }, folder)).toThrow(
      expect.objectContaining({ code: 'KEYS_MISSING' }),
    )
    writeFileSync(join(folder, 'app.db.key'), 'not a key at all', { mode: 0o600 })
    expect(() => loadKeyRing(sqlite(), {}, folder)).toThrow('is not 32 bytes in base64')
    expect(readFileSync(join(folder, 'app.db.key'), 'utf8')).toBe('not a key at all')
  })

  test('Z5 a missing key file is not replaced while sealed data needs it: the error names it, and restoring it restores everything', async () => {
    const url = `sqlite:${join(folder, 'app.db')}`
    const store = await openStore(url, { environment: {} })
    const driver = await SyncDriver.acquire(store)
    await driver.set('"a"')
    await driver.release()
    await store.close()
    const key = readFileSync(join(folder, 'app.db.key'))
    rmSync(join(folder, 'app.db.key'))
    await expect(openStore(url, { environment: {} })).rejects.toMatchObject({
      code: 'KEYS_MISSING',
      message: expect.stringContaining('app.db.key'),
    })
    expect(existsSync(join(folder, 'app.db.key'))).toBe(false)
    writeFileSync(join(folder, 'app.db.key'), key, { mode: 0o600 })
    const again = await openStore(url, { environment: {} })
    expect((await again.readCheckpoint(driver.ref)).committed).toBe('"a"')
    await again.close()
  })

  test('Z5 a store opened with another key says which one it wants, and begins nothing', async () => {
    const url = `sqlite:${join(folder, 'app.db')}`
    const store = await openStore(url, { environment: { TIDEMARK_KEY: KEY } })
    const driver = await SyncDriver.acquire(store)
    await driver.set('"a"')
    await driver.release()
    await store.close()
    const stranger = await openStore(url, { environment: { TIDEMARK_KEY: OTHER } })
    await expect(stranger.acquire(driver.ref, { holder: 'x', ttlMs: 1, at: 0 })).rejects.toMatchObject({
      code: 'STATE_UNREADABLE',
    })
    await stranger.close()
    const again = await openStore(url, { environment: { TIDEMARK_KEY: `${OTHER},${KEY}` } })
    expect((await again.readCheckpoint(driver.ref)).committed).toBe('"a"')
    await again.close()
  })
})
