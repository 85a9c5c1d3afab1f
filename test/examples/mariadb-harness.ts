import mysql from 'mysql2'
import { createConnection } from 'mysql2/promise'
import type { Commit, CommitOutcome, Store } from 'tidemark/store'
import type { StoreHarness } from 'tidemark/testing'
import { openMariadbStore } from '../../examples/custom-store/store.ts'

/** Opens stores in separate databases of one server. */
export function harnessOn(server: string): () => Promise<StoreHarness & { readonly url: string }> {
  /** Databases that were used and emptied: creating the tables of a new one takes a second. */
  const emptied: string[] = []
  let count = 0
  return async () => {
    const name = emptied.pop() ?? `store_${++count}`
    await query(server, `create database if not exists ${name}`)
    const url = Object.assign(new URL(server), { pathname: `/${name}` }).href
    const opened: Store[] = []
    const reopen = async (): Promise<Store> => {
      const store = await openMariadbStore({ url, poolMax: 6 })
      opened.push(store)
      return store
    }
    return {
      url,
      store: await reopen(),
      reopen,
      async close() {
        for (const store of opened) await store.close()
        await empty(url)
        emptied.push(name)
      },
      supports: {
        ownClock: true,
        select: (table) => query(url, `select * from \`${table}\``),
        crashDuringCommit: async (commit, statement) => crashDuringCommit(await reopen(), commit, statement),
      },
    }
  }
}

/** On one connection: opening one per table would take longer than most cases. */
async function empty(url: string): Promise<void> {
  await using connection = await connect(url)
  const tables = await connection.query(
    "select table_name as name, table_name like 'tidemark\\_%' as isOwn from information_schema.tables where table_schema = database()",
  )
  for (const { name, isOwn } of tables as Array<{ name: string; isOwn: number }>) {
    if (name !== 'tidemark_schema') await connection.query(`${isOwn === 1 ? 'delete from' : 'drop table'} \`${name}\``)
  }
}

/** Queries like a user would; binary values are returned as text. */
export async function query(url: string, sql: string): Promise<Array<Record<string, unknown>>> {
  await using connection = await connect(url)
  return await connection.query(sql)
}

interface UserConnection extends AsyncDisposable {
  query(sql: string): Promise<Array<Record<string, unknown>>>
}

async function connect(url: string): Promise<UserConnection> {
  const connection = await createConnection({
    uri: url.replace('mariadb:', 'mysql:'),
    supportBigNumbers: true,
    dateStrings: true,
  })
  return {
    async query(sql) {
      const [rows] = await connection.query(sql)
      if (!Array.isArray(rows)) return []
      return (rows as Array<Record<string, unknown>>).map((row) =>
        Object.fromEntries(
          Object.entries(row).map(([name, value]) => [name, Buffer.isBuffer(value) ? value.toString() : value]),
        ),
      )
    },
    [Symbol.asyncDispose]: async () => connection.destroy(),
  }
}

/** Cuts the connections when the commit is about to send its next statement. */
async function crashDuringCommit(store: Store, commit: Commit, statement: number): Promise<CommitOutcome | 'crashed'> {
  // oxlint-disable-next-line typescript/no-explicit-any -- a method of many signatures, passed through as it is
  const prototype = (mysql as any).Connection.prototype
  const { query: original } = prototype
  let [left, crashed] = [statement, false]
  prototype.query = function (this: { destroy(): void }, ...parameters: unknown[]) {
    crashed ||= left-- === 0
    if (crashed) this.destroy()
    return original.apply(this, parameters)
  }
  try {
    return await store.commit(commit)
  } catch (error) {
    if (crashed) return 'crashed'
    throw error
  } finally {
    prototype.query = original
  }
}
