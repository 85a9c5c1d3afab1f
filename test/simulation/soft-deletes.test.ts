import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { expect, test } from 'vitest'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { runWorld } from '../../src/testing/simulation/world.ts'
import type { WorldConfig } from '../../src/testing/simulation/world-config.ts'

const SEEDS = Number(process.env['TIDEMARK_SOFT_SEEDS'] ?? 60)

/** The rows a user finds in the tables of a finished world. */
interface Tables {
  readonly live: readonly string[]
  readonly deleted: readonly string[]
  readonly tombstones: readonly string[]
  readonly mode: string | null
  readonly rows: readonly string[]
}

/** The same worlds as elsewhere; only the setting differs. */
async function endOf(
  seed: number,
  deletes: WorldConfig['deletes'],
): Promise<{ violations: readonly unknown[]; tables: Tables | null }> {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-soft-'))
  const file = join(folder, 'store.db')
  try {
    const rows: string[] = []
    const { violations } = await runWorld({
      seed,
      overrides: deletes === undefined ? {} : { deletes },
      store: {
        async open() {
          const store = await openSqliteStore({ file, synchronous: 'off' })
          const close = async (): Promise<void> => {
            for (const { name } of await store.databases())
              rows.push(...(await store.rows({ database: name, limit: 1_000_000 })).map(({ key }) => key))
            await store.close()
          }
          return { ...store, close }
        },
      },
    })
    return { violations, tables: readTables(file, rows) }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function readTables(file: string, rows: readonly string[]): Tables | null {
  const db = new DatabaseSync(file, { readOnly: true })
  try {
    const database = db
      .prepare('select table_name as name, database_id as id, deletes from tidemark_databases')
      .get() as { name: string; id: number; deletes: string | null } | undefined
    if (database === undefined) return null
    const keys = (sql: string): string[] =>
      db
        .prepare(sql)
        .all()
        .map((row) => (row as { key: string }).key)
    const isMarked = database.deletes !== null
    return {
      live: keys(
        `select _key as key from "${database.name}"${isMarked ? ' where _deleted_at is null' : ''} order by 1`,
      ),
      deleted: isMarked
        ? keys(`select _key as key from "${database.name}" where _deleted_at is not null order by 1`)
        : [],
      tombstones: keys(`select key from tidemark_tombstones where database_id = ${database.id}`),
      mode: database.deletes,
      rows: rows.toSorted(),
    }
  } finally {
    db.close()
  }
}

test.each(['soft', 'changing'] as const)(
  'no invariant is broken in worlds whose deletes are %s, and every kept row has a tombstone',
  async (deletes) => {
    let [kept, marked] = [0, 0]
    for (let seed = 1; seed <= SEEDS; seed++) {
      const { violations, tables } = await endOf(seed, deletes)
      expect({ seed, violations }).toEqual({ seed, violations: [] })
      if (tables === null) continue
      const tombstones = new Set(tables.tombstones)
      expect({ seed, without: tables.deleted.filter((key) => !tombstones.has(key)) }).toEqual({ seed, without: [] })
      expect({ seed, live: tables.live.filter((key) => tombstones.has(key)) }).toEqual({ seed, live: [] })
      expect({ seed, rows: tables.live }).toEqual({ seed, rows: tables.rows })
      kept += tables.deleted.length
      if (tables.mode !== null) marked++
    }
    expect(marked).toBeGreaterThan(SEEDS / 2)
    expect(kept).toBeGreaterThan(0)
    console.info(`${SEEDS} worlds, ${kept} deleted rows kept at their ends.`)
  },
  600_000,
)
