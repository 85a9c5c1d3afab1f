import pg from 'pg'
import { describeTable, listTables, type PostgresTable, type TableName } from '../kit/postgres/catalog.ts'
import { columnTypeOf } from '../kit/postgres/column-types.ts'
import { PostgresSession, quoteName } from '../kit/postgres/session.ts'
import type { Column, ColumnKind, Database, Dialect, Horizon, Row, Table } from './database.ts'
import { select, type Selection } from './statements.ts'

export async function openPostgres(url: string, signal: AbortSignal): Promise<Database> {
  return new PostgresDatabase(await PostgresSession.open(url, signal))
}

export const postgresDialect: Dialect = {
  quote: quoteName,
  placeholder: (number) => `$${number}`,
  bind: (text, { kind, type }) => {
    if (kind === 'binary') return `\\x${Buffer.from(text, 'base64').toString('hex')}`
    if (kind !== 'instant') return text
    const plain = text.replace('T', ' ').replace(/Z$/, '')
    return type === 'timestamptz' && /\d$/.test(plain) ? `${plain}+00` : plain
  },
  comparesRows: true,
}

/** COPY binds nothing: its values stand in the text, as literals of no type like those that are bound. */
function spelledOut(selection: Selection): string {
  const literals: string[] = []
  return select(selection, {
    ...postgresDialect,
    bind: (value, column) => literals.push(pg.escapeLiteral(postgresDialect.bind(value, column) as string)),
    placeholder: (number) => literals[number - 1]!,
  }).text
}

class PostgresDatabase implements Database {
  readonly dialect = postgresDialect
  readonly #session: PostgresSession

  constructor(session: PostgresSession) {
    this.#session = session
  }

  async describe(name: TableName): Promise<Table> {
    return this.#tableOf(await describeTable(this.#session, name))
  }

  async tables(): Promise<Table[]> {
    return (await listTables(this.#session)).map((table) => this.#tableOf(table))
  }

  async cursorKind(_: Table, column: Column): Promise<ColumnKind> {
    return column.kind
  }

  /** Also behind every transaction that is still open: what it writes bears the time it began. */
  async horizon(_: Table, { type }: Column, lagMs: number): Promise<Horizon> {
    const { rows } = await this.#session.query(`select to_char(now_, ${UTC}), to_char(settled, ${UTC}),
        case $2 when 'timestamptz' then to_char(settled, ${UTC}) when 'date' then to_char(settled at time zone $3, 'YYYY-MM-DD')
          else to_char(settled at time zone $3, 'YYYY-MM-DD"T"HH24:MI:SS.US') end
      from (select clock_timestamp() as now_, least(clock_timestamp() - $1 * interval '1 millisecond',
          (select min(xact_start) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend') - interval '1 microsecond',
          (select min(prepared) from pg_prepared_xacts where database = current_database()) - $1 * interval '1 millisecond') as settled) h`, [lagMs, type, this.#session.timeZone])
    const [now, settled, until] = rows[0]!
    return { now: now!, settled: settled!, until: until! }
  }

  async greatest(table: Table, column: Column): Promise<string | null> {
    const { rows } = await this.#session.query(`SELECT max(${quoteName(column.name)}) FROM ${table.quoted}`)
    return rows[0]![0]!
  }

  /** Without making records where it can be done without: whoever wants one gets it of the text. */
  async *rows(selection: Selection, wanted: readonly string[]): AsyncIterable<readonly Row[]> {
    const { text, values } = select(selection, postgresDialect)
    await this.#session.query('BEGIN READ ONLY')
    // Bound, before anything is spelled out: a place that is no value of its column ends here.
    const writer = await this.#session.rowWriter(select({ ...selection, limit: 0 }, postgresDialect).text, values, wanted)
    if (writer === null) yield* this.#session.records(text, values)
    else yield* this.#session.copied(spelledOut(selection), (line) => writer.write(line))
    await this.#session.query('COMMIT')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#session.close()
  }

  #tableOf({ schema, name, isView, columns, key, unique }: PostgresTable): Table {
    const zoneIsUtc = /^(?:etc\/)?(?:utc|gmt|uct|zulu|universal)$/i.test(this.#session.timeZone)
    return {
      id: `${schema}.${name}`,
      quoted: `${quoteName(schema)}.${quoteName(name)}`,
      isView,
      columns: columns.map(({ name: column, type, nullable }) => ({
        name: column, kind: KINDS[type] ?? 'other', type, columnType: columnTypeOf(type), nullable, isUtc: type === 'timestamptz' || zoneIsUtc,
      })),
      key,
      unique,
    }
  }
}

const UTC = `'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'`

const KINDS: Record<string, ColumnKind> = {
  timestamptz: 'instant', timestamp: 'instant', date: 'instant', int2: 'integer', int4: 'integer', int8: 'integer', bytea: 'binary',
}
