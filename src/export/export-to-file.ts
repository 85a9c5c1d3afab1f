import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, extname, join } from 'node:path'
import { SyncError, type JsonObject, type LogEntry, type Row, type Store } from '../contract/index.ts'
import { parseJson } from '../values/json.ts'
import {
  toExportColumns,
  isMixedNumeric,
  LOG_COLUMNS,
  ShapeChangedError,
  type ExportColumn,
  type ExportItem,
} from './columns.ts'
import { EXPORT_FORMATS, openWriter, type ExportFormat } from './formats.ts'

export interface ExportRequest {
  /** A database, or null for the change log of all databases. */
  readonly database: string | null
  readonly file: string
  /** Exports only changes since the previous export, each time to a new file. */
  readonly sinceLast: boolean
}

export interface ExportResult {
  /** Null if nothing has changed. */
  readonly file: string | null
  readonly rows: number
  /** The last sequence that the export includes. */
  readonly headSequence: number
}

const PAGE_SIZE = 1_000
const ATTEMPTS_MAX = 3

/** Streams rows or log entries into a file. The file appears atomically. */
export async function exportToFile(store: Store, request: ExportRequest): Promise<ExportResult> {
  const format = detectFormat(request.file)
  mkdirSync(dirname(request.file), { recursive: true })
  for (let attempt = 1; ; attempt++) {
    try {
      return request.sinceLast ? await exportSinceLast(store, request, format) : await exportAll(store, request, format)
    } catch (error) {
      if (!(error instanceof ShapeChangedError)) throw error
      if (attempt === ATTEMPTS_MAX)
        throw new SyncError(
          'STORE_BUSY',
          `The columns of ${request.database ?? 'the log'} kept changing during the export. Try again later.`,
        )
    }
  }
}

export function detectFormat(file: string): ExportFormat {
  const format = EXPORT_FORMATS.find((name) => file.toLowerCase().endsWith(`.${name}`))
  if (format === undefined)
    throw new SyncError(
      'ARGUMENT_INVALID',
      `${JSON.stringify(basename(file))} has no known format. Use a file name that ends with ${EXPORT_FORMATS.map((name) => `.${name}`).join(', ')}.`,
    )
  return format
}

async function exportAll(store: Store, { database, file }: ExportRequest, format: ExportFormat): Promise<ExportResult> {
  const position = await store.headSequence()
  const items = (): AsyncIterable<ExportItem[]> =>
    database === null ? readLogItems(store, 0, position, null) : readRowItems(store, database, Infinity)
  return {
    file,
    rows: await writeFile(file, format, items, await readShape(store, database, items)),
    headSequence: position,
  }
}

/**
 * The cursor is stored next to the files. Each file is named for its sequences, so that a process killed before it wrote
 * the cursor does not export the same changes again under another name.
 */
async function exportSinceLast(store: Store, request: ExportRequest, format: ExportFormat): Promise<ExportResult> {
  const { database } = request
  const note = `${request.file}.position`
  const last = findLastExported(request.file, readExportCursor(note, database), database)
  const {
    headSequence,
    headCommittedAt: committedAt,
    floor,
    afterCommittedAt,
  } = await store.feed({ after: last?.sequence ?? 0, limit: 0, scanMax: 0 })
  if (last !== null) {
    if (
      floor > last.sequence ||
      headSequence < last.sequence ||
      (last.committedAt !== null && afterCommittedAt !== null && afterCommittedAt !== last.committedAt)
    ) {
      throw new SyncError(
        'HISTORY_LOST',
        `The log no longer has the changes since ${note}. Use another file name to export everything again.`,
      )
    }
    if (headSequence === last.sequence) return { file: null, rows: 0, headSequence }
  }
  const from = last?.sequence ?? 0
  const items = (): AsyncIterable<ExportItem[]> =>
    database === null || last !== null
      ? readLogItems(store, from, headSequence, database)
      : readRowItems(store, database, headSequence)
  const file = exportPartName(request.file, from, headSequence)
  const rows = await writeFile(file, format, items, await readShape(store, database, items))
  if (rows === 0) rmSync(file)
  writeExportCursor(note, { database, sequence: headSequence, committedAt })
  return { file: rows === 0 ? null : file, rows, headSequence }
}

async function writeFile(
  file: string,
  format: ExportFormat,
  items: () => AsyncIterable<ExportItem[]>,
  { columns, members }: ExportShape,
): Promise<number> {
  const part = `${file}.part`
  const writer = openWriter(format, part, columns)
  let rows = 0
  try {
    for await (const page of items()) {
      for (const { record } of page) checkMembers(record, members)
      writer.write(page)
      rows += page.length
    }
    writer.finish()
  } catch (error) {
    rmSync(part, { force: true })
    throw error
  }
  publishFile(part, file)
  return rows
}

/** A field without a column would be lost. */
function checkMembers(record: JsonObject | null, members: ReadonlySet<string> | null): void {
  if (record === null || members === null) return
  for (const name of Object.keys(record)) if (!members.has(name)) throw new ShapeChangedError(name)
}

/** Syncs the content before the rename, and the folder after it, so that the file is durable when this returns. */
function publishFile(part: string, file: string): void {
  fsyncPath(part)
  renameSync(part, file)
  fsyncPath(dirname(file))
}

function fsyncPath(path: string): void {
  const descriptor = openSync(path, 'r')
  fsyncSync(descriptor)
  closeSync(descriptor)
}

// ── Items ────────────────────────────────────────────────────────────────────────────────────────────────────────────

interface ExportShape {
  readonly columns: readonly ExportColumn[]
  /** The fields that have a column; null if the record is exported as one column. */
  readonly members: ReadonlySet<string> | null
}

async function readShape(
  store: Store,
  database: string | null,
  items: () => AsyncIterable<ExportItem[]>,
): Promise<ExportShape> {
  if (database === null) return { columns: LOG_COLUMNS, members: null }
  const info = (await store.databases()).find(({ name }) => name === database)
  if (info === undefined)
    throw new SyncError(
      'DATABASE_UNKNOWN',
      `The store has no database ${JSON.stringify(database)}. List the databases with \`tidemark query\`.`,
    )
  const mixed = info.columns.filter(isMixedNumeric).map(({ name }) => name)
  const wide = new Set<string>()
  // Reads all values first: the column type precedes the first value, and only the values show whether a double suffices.
  if (mixed.length > 0)
    for await (const page of items())
      for (const { record } of page) for (const name of mixed) if (typeof record?.[name] === 'bigint') wide.add(name)
  return { columns: toExportColumns(info.columns, wide), members: new Set(info.columns.map(({ name }) => name)) }
}

/** Current rows. Changes after `until` belong to the next export. */
async function* readRowItems(store: Store, database: string, until: number): AsyncGenerator<ExportItem[]> {
  for (let after: string | undefined; ;) {
    const rows: Row[] = await store.rows({ database, limit: PAGE_SIZE, ...(after !== undefined && { after }) })
    const last = rows.at(-1)
    if (last === undefined) return
    after = last.key
    yield rows
      .filter(({ sequence }) => sequence <= until)
      .map((row) => ({ ...row, action: 'row', record: parseJson(row.text) as JsonObject }))
  }
}

async function* readLogItems(
  store: Store,
  from: number,
  until: number,
  database: string | null,
): AsyncGenerator<ExportItem[]> {
  for (let after = from; ;) {
    const entries: LogEntry[] = await store.changes({
      after,
      limit: PAGE_SIZE,
      ...(database !== null && { databases: [database] }),
    })
    const wanted = entries.filter(({ sequence }) => sequence <= until)
    yield wanted.map((entry) => ({
      ...entry,
      record: entry.text === null ? null : (parseJson(entry.text) as JsonObject),
    }))
    const last = entries.at(-1)
    if (last === undefined || wanted.length < entries.length) return
    after = last.sequence
  }
}

// ── Export cursors ───────────────────────────────────────────────────────────────────────────────────────────────────────────

interface ExportCursor {
  readonly database: string | null
  readonly sequence: number
  /** The commit time of that entry; it differs in a restored store. Null if only a file name recorded the sequence. */
  readonly committedAt: number | null
}

function readExportCursor(note: string, database: string | null): ExportCursor | null {
  if (!existsSync(note)) return null
  let cursor: ExportCursor
  try {
    cursor = JSON.parse(readFileSync(note, 'utf8')) as ExportCursor
  } catch (error) {
    throw new SyncError('STATE_UNREADABLE', `${note} is damaged. Delete it: the file names also record the sequence.`, {
      cause: error,
    })
  }
  if (cursor.database !== database || !Number.isSafeInteger(cursor.sequence))
    throw new SyncError('ARGUMENT_INVALID', `${note} belongs to another export. Use another file name.`)
  return cursor
}

function writeExportCursor(note: string, cursor: ExportCursor): void {
  writeFileSync(`${note}.part`, `${JSON.stringify(cursor)}\n`)
  publishFile(`${note}.part`, note)
}

/** Advances the stored cursor over files that were exported after it. */
function findLastExported(file: string, stored: ExportCursor | null, database: string | null): ExportCursor | null {
  const extension = extname(file)
  const names = readdirSync(dirname(file))
  for (let last = stored; ;) {
    const start = `${basename(file, extension)}.${last?.sequence ?? 0}-`
    const ends = names
      .filter((name) => name.startsWith(start) && name.endsWith(extension))
      .map((name) => name.slice(start.length, -extension.length))
    const next = Number(ends.find((end) => /^\d+$/.test(end)))
    if (!(next > (last?.sequence ?? 0))) return last
    last = { database, sequence: next, committedAt: null }
  }
}

function exportPartName(file: string, from: number, until: number): string {
  const extension = extname(file)
  return join(dirname(file), `${basename(file, extension)}.${from}-${until}${extension}`)
}
