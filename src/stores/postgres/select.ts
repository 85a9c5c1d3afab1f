import pg from 'pg'
import { SyncError, type SelectResult, type SelectOptions } from '../../contract/index.ts'
import { maskUrl } from '../../redaction/mask-url.ts'
import { parseJson } from '../../values/json.ts'
import { createQueryTooLongError } from '../kit/query-too-long-error.ts'
import { rewriteAsOf } from './as-of.ts'

export async function selectFromPostgres(
  url: string,
  sql: string,
  { limit, tenant, deadlineMs = 0, asOf }: SelectOptions,
): Promise<SelectResult> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'tidemark query',
    connectionTimeoutMillis: 10_000,
    types: { getTypeParser } as pg.CustomTypesConfig,
    // Set for the session, so that a query that ends its transaction cannot write in the next one either.
    options: '-c default_transaction_read_only=on',
  })
  client.on('error', () => {})
  try {
    await client.connect()
  } catch (cause) {
    throw new SyncError(
      'STORE_UNAVAILABLE',
      `Cannot reach ${maskUrl(url)}: ${cause instanceof Error ? cause.message : String(cause)}.`,
      { cause },
    )
  }
  try {
    await client.query('begin isolation level repeatable read read only')
    await client.query("select set_config('tidemark.tenant', $1, true), set_config('statement_timeout', $2, true)", [
      tenant,
      String(deadlineMs),
    ])
    const statement = sql.trim().replace(/;\s*$/, '')
    const read = async (text: string, ...parameters: unknown[]) =>
      (await client.query<Record<string, unknown>>(text, parameters)).rows
    const { fields, rows } = await readRows(
      client,
      asOf === undefined ? statement : await rewriteAsOf(read, statement, asOf),
      limit,
    )
    const truncated = limit > 0 && rows.length > limit
    return { columns: fields.map(({ name }) => name), rows: truncated ? rows.slice(0, limit) : rows, truncated }
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code === QUERY_CANCELED) throw createQueryTooLongError(deadlineMs)
    throw error instanceof pg.DatabaseError
      ? new SyncError('ARGUMENT_INVALID', `PostgreSQL: ${error.message} (${error.code ?? 'no code'}).`, {
          cause: error,
        })
      : error
  } finally {
    await client.end()
  }
}

const QUERY_CANCELED = '57014'

/** `extended` is the protocol that accepts a single statement. */
async function readRows(client: pg.Client, statement: string, limit: number): Promise<pg.QueryArrayResult<unknown[]>> {
  const query = (text: string): Promise<pg.QueryArrayResult<unknown[]>> =>
    client.query({ text, rowMode: 'array', queryMode: 'extended' } as pg.QueryArrayConfig) as Promise<
      pg.QueryArrayResult<unknown[]>
    >
  // A cursor cannot hold EXPLAIN, whose output is short.
  if (limit === 0 || /^explain\b/i.test(statement)) return query(statement)
  await query(`declare answer no scroll cursor for ${statement}`)
  return query(`fetch ${limit + 1} from answer`)
}

/** Numbers and JSON become values; times stay text, because a Date would truncate microseconds. */
function getTypeParser(oid: number): (text: string) => unknown {
  switch (oid) {
    case 16:
      return (text) => text === 't'
    case 20:
      return (text) => (Number.isSafeInteger(Number(text)) ? Number(text) : BigInt(text))
    case 21:
    case 23:
    case 26:
    case 700:
    case 701:
      return Number
    case 114:
    case 3802:
      return (text) => parseJson(text)
    default:
      return (text) => text
  }
}
