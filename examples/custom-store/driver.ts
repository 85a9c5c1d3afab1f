import { createConnection } from 'mysql2/promise'
import {
  maskUrl,
  createQueryTooLongError,
  quoteIdentifier,
  createStoreUrlInvalidError,
  SyncError,
  type SelectResult,
  type SelectOptions,
  type StoreDriver,
  type StoreLocation,
} from 'tidemark/store'
import { openMariadbStore } from './store.ts'

/** `mariadb://user@host/database`. */
const driver: StoreDriver = {
  schemes: ['mariadb', 'mysql'],
  locate(url) {
    if (!/^[a-z]+:\/\//i.test(url) || !URL.canParse(url) || new URL(url).pathname.length < 2)
      throw createStoreUrlInvalidError(url, 'is not a complete MariaDB URL')
    return locationOf(url)
  },
}

export default driver

function locationOf(url: string): StoreLocation {
  return {
    product: 'MariaDB',
    storage: { kind: 'server' },
    describe: () => maskUrl(url),
    open: (options) => openMariadbStore({ url, ...options }),
    async findTenant(tenant, { orAny = false } = {}) {
      const first = async (sql: string): Promise<unknown> =>
        (await selectFrom(url, sql, { limit: 1, tenant })).rows[0]?.[0]
      if (
        (await first(
          "select 1 from information_schema.tables where table_schema = database() and table_name = 'tidemark_tenants'",
        )) === undefined
      )
        return null
      return (
        ((await first(
          `select cast(tenant_id as char) from tidemark_tenants ${orAny ? 'order by 1' : `where tenant_id = ${quoteLiteral(tenant)}`}`,
        )) as string | undefined) ?? null
      )
    },
    select: (sql, options) => selectFrom(url, sql, options),
    syntax: {
      tableReference: quoteIdentifier,
      textLiteral: quoteLiteral,
      contains: (column, text) => `locate(${text}, cast(${column} as char)) > 0`,
      deadlineCondition: null,
    },
  }
}

/** Runs one statement of the user, in a read-only transaction. */
async function selectFrom(url: string, sql: string, { limit, deadlineMs, asOf }: SelectOptions): Promise<SelectResult> {
  if (asOf !== undefined) throw new SyncError('ARGUMENT_INVALID', 'This store does not support --as-of.')
  const connection = await createConnection({
    uri: url.replace(/^[a-z]+:/i, 'mysql:'),
    supportBigNumbers: true,
    dateStrings: true,
    rowsAsArray: true,
  })
  try {
    await connection.query(
      `set session sql_mode = 'ANSI_QUOTES', time_zone = '+00:00', max_statement_time = ${(deadlineMs ?? 0) / 1_000}`,
    )
    await connection.query('start transaction read only')
    const [found, fields] = await connection.query(sql)
    const rows = (found as unknown[][]).map((row) =>
      row.map((cell) => (Buffer.isBuffer(cell) ? cell.toString() : cell)),
    )
    return {
      columns: fields.map(({ name }) => name),
      rows: limit > 0 ? rows.slice(0, limit) : rows,
      truncated: limit > 0 && rows.length > limit,
    }
  } catch (cause) {
    const { errno } = Object(cause) as { errno?: number }
    if (errno === STATEMENT_TIMEOUT) throw createQueryTooLongError(deadlineMs ?? 0)
    throw new SyncError(
      errno === undefined || errno < 0 ? 'STORE_UNAVAILABLE' : 'ARGUMENT_INVALID',
      `MariaDB: ${(cause as Error).message}.`,
      { cause },
    )
  } finally {
    connection.destroy()
  }
}

const STATEMENT_TIMEOUT = 1969

/** MariaDB treats a backslash in a text as an escape character. */
function quoteLiteral(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`
}
