import pg from 'pg'
import { required } from '../../values/required.ts'
import { describeTable, listTables, type PostgresTable, type TableName } from '../kit/postgres/catalog.ts'
import { mapColumnType } from '../kit/postgres/column-types.ts'
import { PostgresSession, quoteName } from '../kit/postgres/session.ts'
import type { SqlColumn, SqlColumnKind, SqlDatabase, SqlDialect, ReadHorizon, SqlRow, SqlTable } from './database.ts'
import { buildSelect, type RowSelection, type SqlStatement } from './statements.ts'

export async function openPostgres(url: string, signal: AbortSignal): Promise<SqlDatabase> {
  return new PostgresDatabase(await PostgresSession.open(url, signal))
}

export const postgresDialect: SqlDialect = {
  quote: quoteName,
  placeholder: (number) => `$${number}`,
  bind: (text, { kind, type }) => {
    if (kind === 'binary') return `\\x${Buffer.from(text, 'base64').toString('hex')}`
    if (kind !== 'instant') return text
    const plain = text.replace('T', ' ').replace(/Z$/, '')
    return type === 'timestamptz' && /\d$/.test(plain) ? `${plain}+00` : plain
  },
  supportsRowComparison: true,
  textOrder: ({ name }) => `${quoteName(name)}::text COLLATE "C"`,
  digests: {
    text: ({ name, type }) => {
      const quoted = quoteName(name)
      const text = `${quoted}::text`
      if (type === 'timestamptz') return `replace(replace(${text}, ' ', 'T'), '+00', 'Z')`
      if (type === 'timestamp') return `replace(${text}, ' ', 'T')`
      return TEXT_TYPES.has(type) ? text : null
    },
    rowText: (texts) =>
      texts.map((text) => `coalesce('t' || char_length(${text}) || ':' || ${text}, 'n')`).join(' || '),
    sum: (rowText) => `sum(('x' || left(md5(${rowText}), 16))::bit(64)::bigint)`,
    condition: "current_setting('server_encoding') = 'UTF8'",
  },
}

/** Types whose text is the same in a record. A `char(n)` loses its spaces when it becomes text. */
const TEXT_TYPES: ReadonlySet<string> = new Set([
  'bool',
  'date',
  'int2',
  'int4',
  'int8',
  'name',
  'numeric',
  'oid',
  'text',
  'time',
  'uuid',
  'varchar',
])

/** COPY has no bind parameters, so values are inlined as untyped literals, like bound ones. */
function inlineValues(selection: RowSelection): string {
  const literals: string[] = []
  return buildSelect(selection, {
    ...postgresDialect,
    bind: (value, column) => literals.push(pg.escapeLiteral(postgresDialect.bind(value, column) as string)),
    placeholder: (number) => required(literals[number - 1], `literal ${number}`),
  }).text
}

class PostgresDatabase implements SqlDatabase {
  readonly dialect = postgresDialect
  readonly #session: PostgresSession

  constructor(session: PostgresSession) {
    this.#session = session
  }

  async describeTable(name: TableName): Promise<SqlTable> {
    return this.#toTable(await describeTable(this.#session, name))
  }

  async listTables(): Promise<SqlTable[]> {
    return (await listTables(this.#session)).map((table) => this.#toTable(table))
  }

  async detectCursorKind(_: SqlTable, column: SqlColumn): Promise<SqlColumnKind> {
    return column.kind
  }

  /** The horizon is also before every open transaction: its rows have the time it began. */
  async readHorizon(_: SqlTable, { type }: SqlColumn, lagMs: number): Promise<ReadHorizon> {
    const { rows } = await this.#session.query(
      `select to_char(now_, ${UTC_FORMAT}), to_char(settled, ${UTC_FORMAT}),
        case $2 when 'timestamptz' then to_char(settled, ${UTC_FORMAT}) when 'date' then to_char(settled at time zone $3, 'YYYY-MM-DD')
          else to_char(settled at time zone $3, 'YYYY-MM-DD"T"HH24:MI:SS.US') end
      from (select clock_timestamp() as now_, least(clock_timestamp() - $1 * interval '1 millisecond',
          (select min(xact_start) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend') - interval '1 microsecond',
          (select min(prepared) from pg_prepared_xacts where database = current_database()) - $1 * interval '1 millisecond') as settled) h`,
      [lagMs, type, this.#session.timeZone],
    )
    const [now, settled, until] = required(rows[0], 'the horizon')
    return { now: required(now, 'now'), settled: required(settled, 'settled'), until: required(until, 'until') }
  }

  async readMaxValue(table: SqlTable, column: SqlColumn): Promise<string | null> {
    const { rows } = await this.#session.query(`SELECT max(${quoteName(column.name)}) FROM ${table.quoted}`)
    return rows[0]?.[0] ?? null
  }

  async readRowCount(table: SqlTable): Promise<number> {
    const { rows } = await this.#session.query(`SELECT count(*) FROM ${table.quoted}`)
    return Number(rows[0]?.[0] ?? 0)
  }

  async readValues({ text, values }: SqlStatement): Promise<ReadonlyArray<string | null>> {
    const { rows } = await this.#session.query(text, values)
    return required(rows[0], 'the row of a statement')
  }

  /** Serializes rows without building records where possible; a record is parsed from the text on demand. */
  async *readRows(selection: RowSelection, wanted: readonly string[]): AsyncIterable<readonly SqlRow[]> {
    const { text, values } = buildSelect(selection, postgresDialect)
    await this.#session.query('BEGIN READ ONLY')
    // Values are bound here first: a cursor that is not a value of its column fails before values are inlined.
    const writer = await this.#session.createRowSerializer(
      buildSelect({ ...selection, limit: 0 }, postgresDialect).text,
      values,
      wanted,
    )
    if (writer === null) yield* this.#session.streamRecords(text, values)
    else yield* this.#session.streamCopy(inlineValues(selection), (line) => writer.serialize(line))
    await this.#session.query('COMMIT')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#session.close()
  }

  #toTable({ schema, name, isView, columns, key, unique }: PostgresTable): SqlTable {
    const zoneIsUtc = /^(?:etc\/)?(?:utc|gmt|uct|zulu|universal)$/i.test(this.#session.timeZone)
    return {
      id: `${schema}.${name}`,
      quoted: `${quoteName(schema)}.${quoteName(name)}`,
      isView,
      columns: columns.map(({ name: column, type, nullable }) => ({
        name: column,
        kind: COLUMN_KINDS[type] ?? 'other',
        type,
        columnType: mapColumnType(type),
        nullable,
        isUtc: type === 'timestamptz' || zoneIsUtc,
      })),
      key,
      unique,
    }
  }
}

const UTC_FORMAT = `'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'`

const COLUMN_KINDS: Record<string, SqlColumnKind> = {
  timestamptz: 'instant',
  timestamp: 'instant',
  date: 'instant',
  int2: 'integer',
  int4: 'integer',
  int8: 'integer',
  bytea: 'binary',
}
