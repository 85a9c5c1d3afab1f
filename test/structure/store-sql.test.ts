import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../../src')

/** Folders that use a database directly: the stores themselves, sources, destinations, and code that only tests run. */
const ELSEWHERE = [
  /^stores\/(?:sqlite|postgres)\//,
  /^sources\//,
  /^destinations\/(?:postgres|mariadb)\/|^destinations\/kit\/sql-/,
  /^testing\//,
]

/** Tables of a store, catalogs and functions of one database, and closed lists of URL schemes. */
const PARTICULAR = [
  /\b(?:from|into|update|join|table)\s+(?:tidemark[._]\w+)/i,
  /\bsqlite_schema\b/,
  /\bpg_(?:class|proc|tables|namespace|catalog)\b/,
  /\bto_regprocedure\b/,
  /\btidemark_in_time\b/,
  /case '(?:sqlite|postgres)'/,
  /=== '(?:sqlite|postgres)'/,
  /from '(?:pg|@photostructure\/sqlite)'/,
]

function findingsIn(code: string): string[] {
  const bare = code.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/^\s*\/\/.*$/gm, '')
  return PARTICULAR.filter((pattern) => pattern.test(bare)).map(({ source }) => source)
}

describe('the databases', () => {
  test('no SQL of a particular database, and no list of store kinds, is outside the folder of its store', () => {
    const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
      (file) => file.endsWith('.ts') && !ELSEWHERE.some((pattern) => pattern.test(file)),
    )
    expect(files.length).toBeGreaterThan(200)
    expect(
      files.flatMap((file) =>
        findingsIn(readFileSync(join(root, file), 'utf8')).map((pattern) => `${file}: ${pattern}`),
      ),
    ).toEqual([])
  })

  test('the check can fail', () => {
    for (const code of [
      "ask('select 1 from tidemark_tenants')",
      "switch (kind) { case 'sqlite': }",
      "import pg from 'pg'",
      "location.kind === 'postgres'",
    ])
      expect(findingsIn(code), code).not.toEqual([])
    expect(findingsIn("sql.run('select 1 from {tenants}')")).toEqual([])
  })
})
