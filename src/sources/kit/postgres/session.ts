import pg from 'pg'
import { SyncError, type JsonObject } from '../../../contract/index.ts'
import { CopyOut } from './copy-out.ts'
import { toSyncError } from './failures.ts'
import { required } from '../../../values/required.ts'
import { RowSerializer } from './row-serializer.ts'
import {
  getDecoder,
  isBuiltinType,
  decodeRecord,
  type ValueDecoder,
  type PostgresType,
  type TextRow,
} from './decode-values.ts'

export interface TextRows {
  readonly rows: TextRow[]
  readonly columns: readonly { readonly name: string; readonly oid: number }[]
}

/** A connection to a source database. It returns values as text, so that the driver does not round them. */
export class PostgresSession {
  readonly #client: pg.Client
  readonly #label: string
  readonly #signal: AbortSignal
  readonly #types = new Map<number, PostgresType>()
  /** The server's default time zone. */
  readonly timeZone: string

  private constructor(client: pg.Client, label: string, signal: AbortSignal, timeZone: string) {
    this.#client = client
    this.#label = label
    this.#signal = signal
    this.timeZone = timeZone
  }

  /** Aborting the signal closes the connection, even in the middle of a statement. */
  static async open(url: string, signal: AbortSignal): Promise<PostgresSession> {
    const label = describeServer(url)
    const client = await connect(url, label, signal)
    try {
      const { rows } = await client.query<{ zone: string }>("select current_setting('TimeZone') as zone")
      await client.query(SESSION_SETTINGS_SQL)
      return new PostgresSession(client, label, signal, required(rows[0], 'The time zone setting').zone)
    } catch (error) {
      await client.end()
      throw wrapFailure(error, label, signal)
    }
  }

  async query(text: string, values: readonly unknown[] = []): Promise<TextRows> {
    try {
      const { rows, fields } = await this.#client.query<TextRow>({
        text,
        values: [...values],
        rowMode: 'array',
        types: { getTypeParser: () => (value: unknown) => value } as pg.CustomTypesConfig,
      })
      return { rows, columns: fields.map(({ name, dataTypeID }) => ({ name, oid: dataTypeID })) }
    } catch (error) {
      throw wrapFailure(error, this.#label, this.#signal)
    }
  }

  /** Returns the rows as objects, aggregated to JSON by the server. */
  async queryObjects<Row>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    const { rows } = await this.query(`select coalesce(json_agg(q), '[]') from (${text}) q`, values)
    return JSON.parse(required(rows[0]?.[0], 'The aggregated row')) as Row[]
  }

  /** Legal inside a transaction only. The batch size adapts to the size of the rows. Leaving the loop closes the cursor. */
  async *streamRecords(
    text: string,
    values: readonly unknown[],
  ): AsyncIterable<{ record: JsonObject; bytes: number }[]> {
    await this.query(`DECLARE page NO SCROLL CURSOR FOR ${text}`, values)
    try {
      for (let count = FETCH_ROWS_MIN; ;) {
        const { rows, columns } = await this.query(`FETCH ${count} FROM page`)
        const names = columns.map(({ name }) => name)
        const decoders = await this.loadDecoders(columns.map(({ oid }) => oid))
        let total = 0
        yield rows.map((row) => {
          let bytes = 0
          for (const value of row) bytes += value?.length ?? 4
          total += bytes
          return { record: decodeRecord(names, decoders, row), bytes }
        })
        if (rows.length < count) break
        count = Math.min(FETCH_ROWS_MAX, count * 2, Math.max(1, Math.floor(FETCH_BYTES_MAX / (total / rows.length))))
      }
    } finally {
      // A failure ends the transaction, which closes the cursor.
      await this.query('CLOSE page').catch(() => {})
    }
  }

  /** Creates a serializer for the rows of a query. Legal inside a transaction only, where the columns cannot change. */
  async createRowSerializer(
    text: string,
    values: readonly unknown[],
    wanted: readonly string[],
  ): Promise<RowSerializer | null> {
    const { columns } = await this.query(text, values)
    await this.loadDecoders(columns.map(({ oid }) => oid))
    const decodable = columns.map((column) => ({ ...column, decode: getDecoder(column.oid, this.#types) }))
    return RowSerializer.create(decodable, this.#types, wanted)
  }

  /** Streams the rows of a COPY with backpressure. Leaving the loop ends it. */
  async *streamCopy<Row>(text: string, parseLine: (line: Buffer) => Row): AsyncIterable<Row[]> {
    const copy = new CopyOut(
      `COPY (${text}) TO STDOUT`,
      parseLine,
      required(getSocket(this.#client), 'The socket of the connection'),
    )
    this.#client.query(copy)
    try {
      yield* copy.rows()
    } catch (error) {
      throw wrapFailure(error, this.#label, this.#signal)
    }
  }

  /** Returns a decoder for each type. Reads unknown types from the catalog. */
  async loadDecoders(oids: readonly number[]): Promise<ValueDecoder[]> {
    const unknown = oids.filter((oid) => !isBuiltinType(oid) && !this.#types.has(oid))
    if (unknown.length > 0)
      for (const type of await this.queryObjects<PostgresType>(TYPES_SQL, [unknown])) this.#types.set(type.oid, type)
    return oids.map((oid) => getDecoder(oid, this.#types))
  }

  async close(): Promise<void> {
    await this.#client.end().catch(() => {})
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

/** Opens a connection that is closed when the signal aborts. */
export async function connect(
  url: string,
  label: string,
  signal: AbortSignal,
  options: { replication?: 'database' } = {},
): Promise<pg.Client> {
  signal.throwIfAborted()
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
    application_name: 'tidemark',
    ...options,
  } as pg.ClientConfig)
  // A connection error also fails the pending statement. Without a listener it would end the process.
  client.on('error', () => {})
  const end = (): void => getSocket(client)?.destroy()
  signal.addEventListener('abort', end, { once: true })
  client.once('end', () => signal.removeEventListener('abort', end))
  try {
    await client.connect()
  } catch (error) {
    signal.removeEventListener('abort', end)
    throw wrapFailure(error, label, signal)
  }
  return client
}

/** The driver does not declare its connection. */
type ConnectedClient = pg.Client & { readonly connection?: { readonly stream?: Socket } }

interface Socket {
  destroy(): void
  pause(): void
  resume(): void
  unref(): void
}

export function getSocket(client: pg.Client): Socket | undefined {
  return (client as ConnectedClient).connection?.stream
}

export function wrapFailure(error: unknown, label: string, signal: AbortSignal): unknown {
  return signal.aborted ? signal.reason : toSyncError(error, label)
}

/** Describes the server for error messages, without user and password. */
export function describeServer(url: string): string {
  try {
    const { protocol, host, pathname } = new URL(url)
    if (protocol === 'postgres:' || protocol === 'postgresql:') return `PostgreSQL at ${host}${pathname}`
  } catch {
    // Reported below.
  }
  throw new SyncError('SYNC_INVALID', 'The database URL is not a PostgreSQL URL. Write postgres://host/database.')
}

/** Fixes the text format of values, independent of the server configuration. */
export const SESSION_SETTINGS_SQL =
  "set datestyle to 'ISO, YMD'; set timezone to 'UTC'; set intervalstyle to 'iso_8601'; set extra_float_digits to 1; set bytea_output to 'hex'"

const FETCH_ROWS_MIN = 100
const FETCH_ROWS_MAX = 5_000
const FETCH_BYTES_MAX = 4_000_000

const TYPES_SQL = `with recursive found as (
  select oid::int8 as oid, typbasetype::int8 as base, case when typcategory = 'A' and oid not in (22, 30) then typelem::int8 else 0 end as element, typdelim as delimiter
  from pg_type where oid = any($1::oid[])
  union
  select t.oid::int8, t.typbasetype::int8, case when t.typcategory = 'A' and t.oid not in (22, 30) then t.typelem::int8 else 0 end, t.typdelim
  from pg_type t join found f on t.oid in (f.base, f.element)
) select * from found`

export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
