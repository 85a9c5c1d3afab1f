import pg from 'pg'
import { inject } from 'vitest'
import type { Commit, CommitOutcome, Store } from '../../src/contract/index.ts'
import { openPostgresStore } from '../../src/stores/postgres/store.ts'
import type { StoreHarness } from '../../src/testing/store-cases/harness.ts'
import { createDatabase, dropDatabase } from '../setup/postgres-server.ts'

export async function openHarness(): Promise<StoreHarness> {
  const server = inject('postgresUrl')
  const url = await createDatabase(server)
  const opened: Store[] = []
  const reopen = async (): Promise<Store> => {
    const store = await openPostgresStore({ url, poolMax: 4 })
    opened.push(store)
    return store
  }
  return {
    store: await reopen(),
    reopen,
    async close() {
      for (const store of opened) await store.close()
      await dropDatabase(server, url)
    },
    supports: {
      ownClock: true,
      select: async (view) => await select(server, url, view),
      crashDuringCommit: async (commit, statement) => await crashDuringCommit(await reopen(), commit, statement),
    },
  }
}

/** As a person who may see every tenant. */
async function select(server: string, url: string, view: string): Promise<Array<Record<string, unknown>>> {
  const client = new pg.Client({ connectionString: Object.assign(new URL(server), { pathname: new URL(url).pathname }).href })
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(`select * from ${view}`)).rows
  } finally {
    await client.end()
  }
}

/** The connection is cut when the commit would give its next statement; what was sent before may or may not have arrived. */
async function crashDuringCommit(store: Store, commit: Commit, statement: number): Promise<CommitOutcome | 'crashed'> {
  // oxlint-disable-next-line typescript/no-explicit-any -- a method of many signatures, passed through as it is
  const { query } = pg.Client.prototype as any
  let [left, crashed] = [statement, false]
  pg.Client.prototype.query = function (this: pg.Client & { connection: { stream: { destroy(): void } } }, ...parameters: unknown[]) {
    crashed ||= left-- === 0
    if (crashed) this.connection.stream.destroy()
    return query.apply(this, parameters)
  } as typeof query
  try {
    return await store.commit(commit)
  } catch (error) {
    if (crashed) return 'crashed'
    throw error
  } finally {
    pg.Client.prototype.query = query
  }
}
