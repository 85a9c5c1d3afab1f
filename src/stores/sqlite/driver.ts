import { existsSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { StoreDriver, StoreLocation } from '../../contract/index.ts'
import { quoteIdentifier, quoteLiteral } from '../kit/column-names.ts'
import { createStoreUrlInvalidError } from '../kit/store-url-invalid-error.ts'

/** `sqlite:data/app.db`, `sqlite:/var/app.db`, `sqlite::memory:`, `file:///var/app.db`. */
export const sqliteDriver: StoreDriver = {
  schemes: ['sqlite', 'file'],
  locate: (url, folder) => locationOf(fileOf(url, url.slice(url.indexOf(':') + 1), folder)),
}

function locationOf(file: string): StoreLocation {
  // The driver is loaded only when it is needed.
  const select: StoreLocation['select'] = async (sql, options) =>
    options.only === undefined
      ? (await import('./select.ts')).selectFromSqlite(file, sql, options)
      : (await import('./select-confined.ts')).selectConfined(file, sql, options)
  return {
    product: 'SQLite',
    storage: file === IN_MEMORY ? { kind: 'memory' } : { kind: 'file', path: file },
    describe: (folder) => `sqlite:${file === IN_MEMORY ? file : shortenPath(folder, file)}`,
    open: async (options) => (await import('./store.ts')).openSqliteStore({ file, ...options }),
    async findTenant(tenant, { orAny = false } = {}) {
      if (!existsSync(file)) return null
      const first = async (sql: string): Promise<unknown> => (await select(sql, { limit: 1, tenant })).rows[0]?.[0]
      if ((await first("select name from sqlite_schema where name = 'tidemark_tenants'")) === undefined) return null
      const which = orAny ? 'order by tenant_id' : `where name = ${quoteLiteral(tenant)}`
      return ((await first(`select name from tidemark_tenants ${which}`)) as string | undefined) ?? null
    },
    select,
    // Another connection to a database in memory would see an empty one.
    ...(file !== IN_MEMORY && { confinesSelect: true as const }),
    syntax: {
      tableReference: quoteIdentifier,
      textLiteral: quoteLiteral,
      contains: (column, text) => `instr(cast(${column} as text), ${text}) > 0`,
      // SQLite blocks the thread while it runs, so the statement itself has to check the clock.
      deadlineCondition: 'tidemark_in_time()',
    },
  }
}

const IN_MEMORY = ':memory:'

function shortenPath(folder: string, file: string): string {
  const path = relative(folder, file)
  return path.startsWith('..') ? file : path
}

function fileOf(url: string, rest: string, folder: string): string {
  if (rest === IN_MEMORY) return rest
  if (rest.includes('\0')) throw createStoreUrlInvalidError(url, 'contains a NUL character')
  if (/^file:\/\//i.test(url)) {
    try {
      return fileURLToPath(url)
    } catch {
      throw createStoreUrlInvalidError(url, 'is not a file URL of this machine')
    }
  }
  const path = rest.replace(/^\/\/(?=[^/]|\/)/, '')
  if (path === '' || path.endsWith('/')) throw createStoreUrlInvalidError(url, 'names no file')
  return resolve(folder, path)
}
