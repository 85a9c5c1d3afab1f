import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Change, ChangesOptions } from '../../src/client/index.ts'
import { createClient } from '../../src/client/index.ts'
import type { Store } from '../../src/contract/index.ts'
import { createServer } from '../../src/server/server.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { DATABASE, SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { addKey } from '../server/server-fixture.ts'
import { Copy, expected, MemoryCheckpoint, portsOf } from './consumer.ts'

/** Restored from a backup that is older than the consumer's position. */
test.each([
  { cursor: 'before the backup', stop: 'after a page' },
  { cursor: 'after the backup', stop: 'after a page' },
  { cursor: 'before the backup', stop: 'within a page' },
  { cursor: 'after the backup', stop: 'within a page' },
])(
  'A25 a store that was set back, the first cursor made $cursor, the consumer stopped $stop: everything once more',
  async ({ cursor, stop }) => {
    const folder = await mkdtemp(join(tmpdir(), 'tidemark-set-back-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const [file, backup] = [join(folder, 'store.db'), join(folder, 'backup.db')]
    const [copy, checkpoint, told] = [new Copy(), new MemoryCheckpoint(), [] as string[]]
    const seenSince = new Set<string>()
    const options: ChangesOptions = {
      follow: false,
      checkpoint,
      pageSize: 4,
      saveEach: 'change',
      onRestart({ from }) {
        told.push(from)
        copy.forget()
        seenSince.clear()
      },
      onRestored() {
        for (const at of copy.rows.keys()) if (!seenSince.has(at)) copy.rows.delete(at)
      },
    }
    const take = (change: Change): void => {
      copy.take(change)
      seenSince.add(`${change.database}/${change.resourceId}`)
    }

    let key = ''
    await withStore(file, async (store, read) => {
      key = await addKey(store, ['changes:read'])
      const driver = await SyncDriver.acquire(store, { sync: 'delta' })
      await driver.begin()
      await driver.page([upsert('a', { n: 1 }), upsert('b', { n: 1 })])
      // Creates the cursor secret.
      if (cursor === 'before the backup') for await (const change of read(key, options)) take(change)
      await driver.complete([])
      await store.release(driver.lease)
    })
    await copyFile(file, backup)
    await withStore(file, async (store, read) => {
      const driver = await SyncDriver.acquire(store, { sync: 'delta' })
      await driver.begin()
      await driver.page([upsert('a', { n: 2 }), upsert('lost', { n: 1 })])
      await driver.page([upsert('b', { n: 3 }), upsert('lost-too', { n: 1 })])
      const changes = read(key, options)
      const left = stop === 'after a page' ? Infinity : cursor === 'before the backup' ? 3 : 5
      for (let n = 0; n < left; n++) {
        const { value, done } = await changes.next()
        if (done === true) break
        take(value)
      }
      await changes.return()
      expect(copy.rows.has('things/lost')).toBe(true)
    })
    await rm(`${file}-wal`, { force: true })
    await rm(`${file}-shm`, { force: true })
    await copyFile(backup, file)
    await withStore(file, async (store, read) => {
      const driver = await SyncDriver.acquire(store, { sync: 'delta' })
      // Time has passed since.
      for (let n = 0; n < 1_000; n++) driver.tick()
      await driver.begin()
      await driver.page([upsert('c', { n: 1 }), upsert('d', { n: 1 }), upsert('e', { n: 1 })])
      await driver.page([upsert('f', { n: 1 }), upsert('g', { n: 1 }), upsert('h', { n: 1 })])
      for await (const change of read(key, options)) take(change)
      expect(copy.rows).toEqual((await expected(store, DATABASE)).rows)
      expect(told.at(-1)).toBe('backfill')
    })
  },
)

type Read = (key: string, options: ChangesOptions) => AsyncGenerator<Change, void, undefined>

async function withStore(file: string, body: (store: Store, read: Read) => Promise<void>): Promise<void> {
  const store = await openSqliteStore({ file, synchronous: 'off' })
  const server = createServer({ store, ports: portsOf({ shift: { ms: 0 } }), version: '0.0.0' })
  const url = await server.listen(0)
  try {
    await body(store, (key, options) => createClient({ url, key }).changes(options))
  } finally {
    await server.close()
    await store.close()
  }
}
