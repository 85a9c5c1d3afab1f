import pg from 'pg'
import {
  RESULT_BYTES_MAX,
  SyncError,
  type JsonValue,
  type SelectResult,
  type SelectOptions,
} from '../../contract/index.ts'
import { maskUrl } from '../../redaction/mask-url.ts'
import { parseJson, stringifyJson } from '../../values/json.ts'
import { createQueryTooLongError } from '../kit/query-too-long-error.ts'
import { rewriteAsOf } from './as-of.ts'
import { checkFunctions, checkRelations } from './confine.ts'

export async function selectFromPostgres(
  url: string,
  sql: string,
  { limit, tenant, deadlineMs = 0, asOf, only, plan = false }: SelectOptions,
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
    // The simple protocol, which the driver prefers, would run the statements after a semicolon.
    const read = async (text: string, ...values: unknown[]) =>
      (await client.query<Record<string, unknown>>({ text, values, queryMode: 'extended' } as pg.QueryConfig)).rows
    if (only !== undefined) checkFunctions(statement)
    const rewritten = asOf === undefined ? statement : await rewriteAsOf(read, statement, asOf)
    if (only !== undefined) await checkRelations(read, rewritten, only)
    if (plan) {
      const { fields, rows } = await readRows(client, `explain ${rewritten}`, 0)
      return { columns: fields.map(({ name }) => name), rows, truncated: false }
    }
    const { fields, rows, isCut } = await readRows(
      client,
      rewritten,
      limit,
      only === undefined ? Infinity : RESULT_BYTES_MAX,
    )
    const truncated = isCut || (limit > 0 && rows.length > limit)
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

const ROWS_PER_FETCH = 50

/** `extended` is the protocol that accepts a single statement. */
async function readRows(
  client: pg.Client,
  statement: string,
  limit: number,
  bytesMax = Infinity,
): Promise<Pick<pg.QueryArrayResult<unknown[]>, 'fields' | 'rows'> & { readonly isCut?: boolean }> {
  const query = (text: string): Promise<pg.QueryArrayResult<unknown[]>> =>
    client.query({ text, rowMode: 'array', queryMode: 'extended' } as pg.QueryArrayConfig) as Promise<
      pg.QueryArrayResult<unknown[]>
    >
  // A cursor cannot hold EXPLAIN, whose output is short.
  if (limit === 0 || /^explain\b/i.test(statement)) return query(statement)
  await query(`declare answer no scroll cursor for ${statement}`)
  if (bytesMax === Infinity) return query(`fetch ${limit + 1} from answer`)
  const { fields, rows } = await query(`fetch 0 from answer`)
  for (let bytes = 0; rows.length <= limit;) {
    const { rows: more } = await query(`fetch ${Math.min(ROWS_PER_FETCH, limit + 1 - rows.length)} from answer`)
    if (more.length === 0) break
    rows.push(...more)
    bytes += Buffer.byteLength(stringifyJson(more as JsonValue))
    if (bytes >= bytesMax) return { fields, rows, isCut: true }
  }
  return { fields, rows }
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
