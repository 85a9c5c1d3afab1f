import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import pg from 'pg'
import { expect } from 'vitest'
import { openStore } from '../../src/stores/open-store.ts'
import type { Store } from '../../src/contract/index.ts'
import { createDatabase, dropDatabase } from '../setup/postgres-server.ts'

/** A kind of store that processes share: how to create a new one, and how to inspect it from here. */
export interface ProcessStoreFixture {
  readonly name: string
  /** The URL of an empty store. */
  fresh(): Promise<string>
  /** Reads the contents, as far as possible without side effects for its owner: nothing is recovered on the way. */
  look<T>(url: string, body: (store: Store) => Promise<T>): Promise<T>
  /** Waits until no statement of a killed process can still complete. */
  settled(url: string): Promise<void>
  remove(): Promise<void>
}

export function createSqliteFixture(): ProcessStoreFixture {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-process-sqlite-'))
  let stores = 0
  let copies = 0
  return {
    name: 'sqlite',
    async fresh() {
      return `sqlite:${join(folder, `store-${++stores}`, 'store.db')}`
    },
    async look(url, body) {
      // A copy: the next process must find the log of the killed one unchanged.
      const copy = join(folder, `copy-${++copies}`)
      copyStore(url.slice('sqlite:'.length), copy)
      const file = join(copy, 'store.db')
      try {
        expect(integrityOf(file)).toEqual(['ok'])
        return await withStore(`sqlite:${file}`, body)
      } finally {
        rmSync(copy, { recursive: true, force: true })
      }
    },
    async settled() {},
    async remove() {
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export function createPostgresFixture(serverUrl: string): ProcessStoreFixture {
  const made: string[] = []
  return {
    name: 'postgres',
    async fresh() {
      const url = await createDatabase(serverUrl)
      made.push(url)
      return url
    },
    look: withStore,
    // The server continues a statement until it notices that its client is gone.
    settled: (url) =>
      withClient(url, async (client) => {
        const others = 'select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()'
        while ((await client.query(others)).rowCount !== 0) await new Promise((resolve) => setTimeout(resolve, 5))
      }),
    async remove() {
      for (const url of made) await dropDatabase(serverUrl, url)
    },
  }
}

export function integrityOf(file: string): string[] {
  const db = new DatabaseSync(file)
  try {
    return db
      .prepare('pragma integrity_check')
      .all()
      .map((row) => (row as { integrity_check: string }).integrity_check)
  } finally {
    db.close()
  }
}

function copyStore(file: string, folder: string): void {
  mkdirSync(folder)
  for (const suffix of ['', '-wal', '-journal']) {
    if (existsSync(file + suffix)) copyFileSync(file + suffix, join(folder, `store.db${suffix}`))
  }
}

async function withClient<T>(url: string, body: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await body(client)
  } finally {
    await client.end()
  }
}

async function withStore<T>(url: string, body: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore(url)
  try {
    return await body(store)
  } finally {
    await store.close()
  }
}
