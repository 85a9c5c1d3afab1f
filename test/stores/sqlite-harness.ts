import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import type { Commit, CommitOutcome, Store } from '../../src/contract/index.ts'
import { Connection } from '../../src/stores/sqlite/connection.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import type { StoreHarness } from '../../src/testing/store-cases/harness.ts'

/** The store's modules; a broken copy of them is tested in the same way. */
export interface SqliteModules {
  readonly openSqliteStore: typeof openSqliteStore
  readonly Connection: typeof Connection
}

export function openHarness(): Promise<StoreHarness> {
  return openHarnessOf({ openSqliteStore, Connection })
}

export async function openHarnessOf(modules: SqliteModules): Promise<StoreHarness> {
  const folder = await mkdtemp(join(tmpdir(), 'tidemark-store-'))
  // The tests do not simulate power loss, and a sync to disk per commit would take most of the time.
  const options = { file: join(folder, 'store.db'), synchronous: 'off' } as const
  const opened: Store[] = []
  const reopen = async (): Promise<Store> => {
    const store = await modules.openSqliteStore(options)
    opened.push(store)
    return store
  }
  return {
    store: await reopen(),
    reopen,
    async close() {
      for (const store of opened) await store.close()
      await rm(folder, { recursive: true })
    },
    supports: {
      async select(view) {
        const db = new DatabaseSync(options.file)
        try {
          const statement = db.prepare(`select * from "${view.replaceAll('"', '""')}"`)
          statement.setReadBigInts(true)
          return statement.all().map((row) => ({ ...(row as Record<string, unknown>) }))
        } finally {
          db.close()
        }
      },
      crashDuringCommit: async (commit, statement) =>
        await crashDuringCommit(modules, await reopen(), commit, statement),
    },
  }
}

/** SQLite answers in the calling thread, so only this one commit runs between arming and disarming. */
async function crashDuringCommit(
  { Connection }: SqliteModules,
  store: Store,
  commit: Commit,
  statement: number,
): Promise<CommitOutcome | 'crashed'> {
  const { prepare, exec, write } = Connection.prototype
  let [left, crashed] = [statement, false]
  const step = (): void => {
    crashed ||= left-- === 0
    if (crashed) throw new Error('the process was killed')
  }
  Connection.prototype.prepare = function (sql) {
    const prepared = prepare.call(this, sql)
    const counted =
      (method: 'run' | 'get' | 'all' | 'iterate') =>
      (...parameters: never[]) => {
        step()
        return prepared[method](...parameters)
      }
    return {
      run: counted('run'),
      get: counted('get'),
      all: counted('all'),
      iterate: counted('iterate'),
    } as unknown as typeof prepared
  }
  Connection.prototype.exec = function (sql) {
    step()
    exec.call(this, sql)
  }
  Connection.prototype.write = function (body) {
    step() // begin
    return write.call(this, () => {
      const result = body()
      step() // commit
      return result
    }) as never
  }
  let answer: Promise<CommitOutcome>
  try {
    answer = store.commit(commit)
  } finally {
    Object.assign(Connection.prototype, { prepare, exec, write })
  }
  try {
    return await answer
  } catch (error) {
    if (crashed) return 'crashed'
    throw error
  }
}
