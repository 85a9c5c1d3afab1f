import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  DuckDBBlobValue,
  DuckDBDateValue,
  DuckDBDecimalValue,
  DuckDBInstance,
  DuckDBListValue,
  DuckDBTimestampTZValue,
  DuckDBTimestampValue,
  DuckDBTimeValue,
  DuckDBUUIDValue,
  type DuckDBConnection,
  type DuckDBValue,
} from '@duckdb/node-api'
import { icebergManifests, icebergMetadata } from 'icebird'
import type { LakeColumn } from '../../src/destinations/lake/columns.ts'
import { RecordDecoder } from '../../src/stores/kit/tables/decode-record.ts'
import { itemTypeOf, type ColumnType } from '../../src/stores/kit/tables/column.ts'
import type { StoredRow } from '../../src/testing/destination-cases/harness.ts'
import { parseJson } from '../../src/values/json.ts'

/** The files of a table, as a reader finds them. */
export interface ReadableTable {
  readonly mode: string
  readonly columns: readonly LakeColumn[]
  readonly data: readonly string[]
  readonly deletes: readonly string[]
  /** The location in the metadata, and where the files are read from. */
  readonly location?: string
  readonly tableUrl?: string
  readonly manifests?: ReadonlyArray<{ path: string; content: number; partition: string }>
}

/** Reads the metadata and manifests of an Iceberg table with icebird. `location` is that of the paths in the metadata. */
export async function readIceberg(tableUrl: string, location = tableUrl): Promise<ReadableTable | null> {
  const metadata = await icebergMetadata({ tableUrl: location })
  if (metadata['current-snapshot-id'] === undefined) return null
  const live = JSON.parse(metadata.properties!['tidemark.live']!) as Pick<ReadableTable, 'mode' | 'columns'>
  const entries = (await icebergManifests(metadata)).flatMap((manifest) => manifest.entries)
  const pathsOf = (content: number): string[] =>
    entries
      .filter(({ data_file }) => data_file.content === content)
      .map(({ data_file }) => data_file.file_path.replace(location, tableUrl))
  const manifests = entries.map(({ data_file: { file_path: path, content, partition } }) => ({
    path,
    content,
    partition: JSON.stringify(partition),
  }))
  return { ...live, data: pathsOf(0), deletes: pathsOf(1), location, tableUrl, manifests }
}

type ReadFile = (uri: string) => Promise<Uint8Array | null>

const readLocal: ReadFile = (uri) => readFile(fileURLToPath(uri)).catch(() => null)
const plainFetch = globalThis.fetch
let readS3: ReadFile | null = null
/** icebird reads with fetch, which knows neither files nor the test's bucket. */
globalThis.fetch = async (input, init) => {
  const url = String(input)
  const bucket = /^https:\/\/([^./]+)\.s3\.amazonaws\.com\/(.*)$/.exec(url)
  if (!url.startsWith('file:') && (bucket === null || readS3 === null)) return plainFetch(input, init)
  const bytes = bucket === null ? await readLocal(url) : await readS3?.(`s3://${bucket[1]}/${bucket[2]}`)
  return bytes === null || bytes === undefined
    ? new Response(null, { status: 404 })
    : new Response(new Uint8Array(bytes))
}

/** Copies the files of a table that `read` returns to a folder while `body` runs. */
export async function serveFiles<T>(read: ReadFile, location: string, body: (local: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'tidemark-lake-copy-'))
  readS3 = read
  try {
    const table = await readIceberg(location)
    for (const uri of [...(table?.data ?? []), ...(table?.deletes ?? [])]) {
      const file = join(folder, uri.slice(location.length))
      await mkdir(dirname(file), { recursive: true })
      await writeFile(file, (await read(uri))!)
    }
    return await body(`file://${folder}`)
  } finally {
    readS3 = null
    await rm(folder, { recursive: true, force: true })
  }
}

let connection: Promise<DuckDBConnection> | undefined

/** Reads the Parquet files with DuckDB: every row that no delete file names, in order of sequence. */
export async function readRows(table: ReadableTable): Promise<StoredRow[]> {
  return table.data.length === 0 ? [] : query(table, (select) => `${select} order by _sequence`)
}

/** The same rows in order of key, in pages. */
export async function* readPages(table: ReadableTable, limit = 20_000): AsyncGenerator<StoredRow[]> {
  if (table.data.length === 0) return
  for (let page = 0; ; page++) {
    const rows = await query(table, (select) => {
      if (page === 0) return [`create or replace temp table page as ${select} order by _key`, 'from page limit 0']
      return `from page limit ${limit} offset ${(page - 1) * limit}`
    })
    if (page > 0 && rows.length === 0) return
    if (page > 0) yield rows
  }
}

async function query(table: ReadableTable, toSql: (select: string) => string | string[]): Promise<StoredRow[]> {
  const { mode, columns, data, deletes, location = 'file://', tableUrl = 'file://' } = table
  const duckdb = await (connection ??= DuckDBInstance.create(':memory:').then((instance) => instance.connect()))
  const list = (files: readonly string[]): string =>
    `[${files.map((file) => `'${file.replaceAll("'", "''")}'`).join()}]`
  const parquet = `read_parquet(${list(data)}, union_by_name = true, hive_partitioning = false, filename = true, file_row_number = true)`
  const described = await duckdb.runAndReadAll(`select column_name from (describe select * from ${parquet})`)
  const known = new Set(described.getRows().map(([name]) => String(name)))
  const named = columns.flatMap(({ name }, at) => (name === null ? [] : [{ name, at }]))
  const mark = { mirror: 'null', append: '_action', history: '_is_current' }[mode]!
  const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`
  // A column without a value may be in no file yet.
  const values = named.map(({ name }, at) => `${known.has(name) ? quote(name) : 'null'} as v${at}`)
  const deleted = list(deletes.map((file) => file.replace(/^file:\/\//, '')))
  const toPath = (name: string): string => `replace(replace(${name}, '${location}', '${tableUrl}'), 'file://', '')`
  const select = `select ${['_key', '_sequence', '_extra', `${mark} as mark`, ...values].join()} from ${parquet} d
    ${deletes.length === 0 ? '' : `where not exists (from read_parquet(${deleted}) x where ${toPath('x.file_path')} = ${toPath('d.filename')} and x.pos = d.file_row_number)`}`
  const statements = [toSql(select)].flat()
  for (const statement of statements.slice(0, -1)) await duckdb.run(statement)
  const result = await duckdb.runAndReadAll(statements.at(-1)!)
  const decoder = new RecordDecoder<DuckDBValue>(columns, (value, column) => toJson(value, column.type, column))
  const indexes = new Map(named.map(({ at }, index) => [at, index + 4]))
  return result.getRows().map((row) => {
    const [key, sequence, extra, own] = row
    const isDelete = mode === 'append' && own === 'deleted'
    const text = isDelete
      ? null
      : decoder.decode(Number(sequence), extra as string | null, (at) => row[indexes.get(at) ?? -1] ?? null)
    return {
      key: String(key),
      sequence: Number(sequence),
      ...(mode === 'append' && { action: String(own) }),
      ...(mode === 'history' && { isCurrent: own === true }),
      record: text === null ? null : (parseJson(text) as StoredRow['record']),
    }
  })
}

function toJson(value: DuckDBValue, type: ColumnType, column: Pick<LakeColumn, 'format'>): string {
  const item = itemTypeOf(type)
  if (item !== null)
    return `[${(value as DuckDBListValue).items.map((one) => (one === null ? 'null' : toJson(one, item, column))).join()}]`
  if (value instanceof DuckDBTimestampTZValue || value instanceof DuckDBTimestampValue)
    return JSON.stringify(formatTimestamp(value.micros, column.format ?? '3Z'))
  if (value instanceof DuckDBDateValue)
    return JSON.stringify(new Date(value.days * 86_400_000).toISOString().slice(0, 10))
  if (value instanceof DuckDBTimeValue) return JSON.stringify(formatTime(value.micros))
  if (value instanceof DuckDBDecimalValue)
    return type === 'decimal' ? JSON.stringify(value.toString()) : value.toString().replace(/\.0+$|(\.\d*?)0+$/, '$1')
  if (value instanceof DuckDBBlobValue) return JSON.stringify(Buffer.from(value.bytes).toString('base64'))
  if (value instanceof DuckDBUUIDValue) return JSON.stringify(value.toString())
  if (type === 'json') return String(value)
  return typeof value === 'bigint' ? String(value) : JSON.stringify(value)
}

function formatTimestamp(micros: bigint, format: string): string {
  const fraction = ((micros % 1_000_000n) + 1_000_000n) % 1_000_000n
  const head = new Date(Number((micros - fraction) / 1_000n)).toISOString().slice(0, 19)
  const digits = fraction.toString().padStart(6, '0')
  const decimals = format.startsWith('*') ? digits.replace(/0+$/, '') : digits.slice(0, Number(format[0]))
  const suffix = format.slice(1)
  return `${suffix === '_' ? head.replace('T', ' ') : head}${decimals === '' ? '' : `.${decimals}`}${suffix === '_' ? '' : suffix}`
}

function formatTime(micros: bigint): string {
  return new Date(Number(micros / 1_000n)).toISOString().slice(11, 19) + trimFraction(micros % 1_000_000n)
}

function trimFraction(micros: bigint): string {
  return micros === 0n ? '' : `.${micros.toString().padStart(6, '0').replace(/0+$/, '')}`
}
