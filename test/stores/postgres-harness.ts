import pg from 'pg'
import { inject } from 'vitest'
import type { Commit, CommitOutcome, Store } from '../../src/contract/index.ts'
import { openPostgresStore } from '../../src/stores/postgres/store.ts'
import type { StoreHarness } from '../../src/testing/store-cases/harness.ts'
import { createDatabase } from '../setup/postgres-server.ts'

/** Databases that were used and emptied, for the next case: creating a new one takes a second on a busy machine. */
const emptied: string[] = []
const server = inject('postgresUrl')

export async function openHarness(): Promise<StoreHarness> {
  const url = emptied.pop() ?? (await createDatabase(server))
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
      await empty(url)
      emptied.push(url)
    },
    supports: {
      ownClock: true,
      notifies: true,
      select: async (view) => await query(url, `select * from ${view}`),
      crashDuringCommit: async (commit, statement) => await crashDuringCommit(await reopen(), commit, statement),
    },
  }
}

async function empty(url: string): Promise<void> {
  await withClient(url, async (client) => {
    const { rows: relations } = await client.query<{ table_name: string; history_name: string }>(
      'select table_name, history_name from tidemark.databases',
    )
    const { rows: tables } = await client.query<{ name: string }>(
      "select format('tidemark.%I', tablename) as name from pg_tables where schemaname = 'tidemark'",
    )
    const statements = [
      ...relations.map(
        ({ table_name: table, history_name: history }) => `drop table if exists ${table}, ${history} cascade`,
      ),
      ...tables.map(({ name }) => `delete from ${name}`),
    ]
    // The triggers of the audit log refuse to empty it, so they are disabled.
    await client.query(['begin', 'set local session_replication_role = replica', ...statements, 'commit'].join(';'))
  })
}

/** Runs a query as a role that sees every tenant. */
export async function query<Row extends object = Record<string, unknown>>(url: string, sql: string): Promise<Row[]> {
  return await withClient(url, async (client) => (await client.query<Row>(sql)).rows)
}

/** One connection per database, also for the next case: the first query of a new one takes 50 ms. */
const pools = new Map<string, pg.Pool>()

async function withClient<T>(url: string, body: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const { pathname } = new URL(url)
  let pool = pools.get(pathname)
  if (pool === undefined) {
    const connectionString = Object.assign(new URL(server), { pathname }).href
    pools.set(pathname, (pool = new pg.Pool({ connectionString, max: 1, allowExitOnIdle: true })))
    // A test that stops the server ends the idle connection.
    pool.on('error', () => {})
  }
  const client = await pool.connect()
  try {
    return await body(client)
  } finally {
    client.release()
  }
}

/**
 * Cuts the connection when the commit is about to send its next statement; earlier statements may or may not have
 * arrived.
 */
async function crashDuringCommit(store: Store, commit: Commit, statement: number): Promise<CommitOutcome | 'crashed'> {
  // oxlint-disable-next-line typescript/no-explicit-any -- a method of many signatures, passed through as it is
  const { query } = pg.Client.prototype as any
  let [left, crashed] = [statement, false]
  pg.Client.prototype.query = function (
    this: pg.Client & { connection: { stream: { destroy(): void } } },
    ...parameters: unknown[]
  ) {
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
