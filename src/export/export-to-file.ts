import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, extname, join } from 'node:path'
import { SyncError, type JsonObject, type LogEntry, type Row, type Store } from '../contract/index.ts'
import { parseJson } from '../values/json.ts'
import { toExportColumns, isMixedNumeric, LOG_COLUMNS, ShapeChangedError, type ExportColumn, type ExportItem } from './columns.ts'
import { EXPORT_FORMATS, openWriter, type ExportFormat } from './formats.ts'

export interface ExportRequest {
  /** A database, or null for the log of all of them. */
  readonly database: string | null
  readonly file: string
  /** Only what changed since the export before, each time into a file of its own. */
  readonly sinceLast: boolean
}

export interface ExportResult {
  /** Null when nothing has changed. */
  readonly file: string | null
  readonly rows: number
  /** The sequence up to which it reaches. */
  readonly headSequence: number
}

const PAGE_SIZE = 1_000
const ATTEMPTS_MAX = 3

/** Streams what has landed into a file that appears whole or not at all. */
export async function exportToFile(store: Store, request: ExportRequest): Promise<ExportResult> {
  const format = detectFormat(request.file)
  mkdirSync(dirname(request.file), { recursive: true })
  for (let attempt = 1; ; attempt++) {
    try {
      return request.sinceLast ? await exportSinceLast(store, request, format) : await exportAll(store, request, format)
    } catch (error) {
      if (!(error instanceof ShapeChangedError)) throw error
      if (attempt === ATTEMPTS_MAX) throw new SyncError('STORE_BUSY', `The columns of ${request.database ?? 'the log'} kept changing while it was exported.`)
    }
  }
}

export function detectFormat(file: string): ExportFormat {
  const format = EXPORT_FORMATS.find((name) => file.toLowerCase().endsWith(`.${name}`))
  if (format === undefined) throw new SyncError('ARGUMENT_INVALID', `The file to export to ends with ${EXPORT_FORMATS.map((name) => `.${name}`).join(', ')}; ${JSON.stringify(basename(file))} does not.`)
  return format
}

async function exportAll(store: Store, { database, file }: ExportRequest, format: ExportFormat): Promise<ExportResult> {
  const position = await store.headSequence()
  const items = (): AsyncIterable<ExportItem[]> => (database === null ? readLogItems(store, 0, position, null) : readRowItems(store, database, Infinity))
  return { file, rows: await writeFile(file, format, items, await readShape(store, database, items)), headSequence: position }
}

/**
 * The place is kept beside the files. Each is named for what it holds, so that one that was finished by a process that died
 * before it could note the place is not written again under another name.
 */
async function exportSinceLast(store: Store, request: ExportRequest, format: ExportFormat): Promise<ExportResult> {
  const { database } = request
  const note = `${request.file}.position`
  const last = findLastExported(request.file, readExportCursor(note, database), database)
  const { headSequence: position, headCommittedAt: committedAt, floor, afterCommittedAt } = await store.feed({ after: last?.sequence ?? 0, limit: 0, scanMax: 0 })
  if (last !== null) {
    if (floor > last.sequence || position < last.sequence || (last.committedAt !== null && afterCommittedAt !== null && afterCommittedAt !== last.committedAt)) {
      throw new SyncError('HISTORY_LOST', `The log no longer tells what changed since ${note}. Give another file to export everything again.`)
    }
    if (position === last.sequence) return { file: null, rows: 0, headSequence: position }
  }
  const from = last?.sequence ?? 0
  const items = (): AsyncIterable<ExportItem[]> => (database === null || last !== null ? readLogItems(store, from, position, database) : readRowItems(store, database, position))
  const file = exportPartName(request.file, from, position)
  const rows = await writeFile(file, format, items, await readShape(store, database, items))
  if (rows === 0) rmSync(file)
  writeExportCursor(note, { database, sequence: position, committedAt })
  return { file: rows === 0 ? null : file, rows, headSequence: position }
}

async function writeFile(file: string, format: ExportFormat, items: () => AsyncIterable<ExportItem[]>, { columns, members }: ExportShape): Promise<number> {
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

/** A member without a column would be lost. */
function checkMembers(record: JsonObject | null, members: ReadonlySet<string> | null): void {
  if (record === null || members === null) return
  for (const name of Object.keys(record)) if (!members.has(name)) throw new ShapeChangedError(name)
}

/** On the disk before it has its name; the name on the disk before anybody is told. */
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

// ── items ────────────────────────────────────────────────────────────────────────────────────────────────────────────

interface ExportShape {
  readonly columns: readonly ExportColumn[]
  /** Those that have a column; null when the record is one itself. */
  readonly members: ReadonlySet<string> | null
}

async function readShape(store: Store, database: string | null, items: () => AsyncIterable<ExportItem[]>): Promise<ExportShape> {
  if (database === null) return { columns: LOG_COLUMNS, members: null }
  const info = (await store.databases()).find(({ name }) => name === database)
  if (info === undefined) throw new SyncError('DATABASE_UNKNOWN', `Nothing has landed in a database ${JSON.stringify(database)}.`)
  const mixed = info.columns.filter(isMixedNumeric).map(({ name }) => name)
  const wide = new Set<string>()
  // Only the values tell whether a double holds them all, and the type of a column stands before its first value.
  if (mixed.length > 0) for await (const page of items()) for (const { record } of page) for (const name of mixed) if (typeof record?.[name] === 'bigint') wide.add(name)
  return { columns: toExportColumns(info.columns, wide), members: new Set(info.columns.map(({ name }) => name)) }
}

/** Live rows. What changed after `until` is the next export's. */
async function* readRowItems(store: Store, database: string, until: number): AsyncGenerator<ExportItem[]> {
  for (let after: string | undefined; ;) {
    const rows: Row[] = await store.rows({ database, limit: PAGE_SIZE, ...(after !== undefined && { after }) })
    if (rows.length === 0) return
    after = rows.at(-1)!.key
    yield rows.filter(({ sequence }) => sequence <= until).map((row) => ({ ...row, action: 'row', record: parseJson(row.text) as JsonObject }))
  }
}

async function* readLogItems(store: Store, from: number, until: number, database: string | null): AsyncGenerator<ExportItem[]> {
  for (let after = from; ;) {
    const entries: LogEntry[] = await store.changes({ after, limit: PAGE_SIZE, ...(database !== null && { databases: [database] }) })
    const wanted = entries.filter(({ sequence }) => sequence <= until)
    yield wanted.map((entry) => ({ ...entry, record: entry.text === null ? null : (parseJson(entry.text) as JsonObject) }))
    if (entries.length === 0 || wanted.length < entries.length) return
    after = entries.at(-1)!.sequence
  }
}

// ── places ───────────────────────────────────────────────────────────────────────────────────────────────────────────

interface ExportCursor {
  readonly database: string | null
  readonly sequence: number
  /** Of the entry with that sequence: a store that was set back has another. Null where only a file's name told it. */
  readonly committedAt: number | null
}

function readExportCursor(note: string, database: string | null): ExportCursor | null {
  if (!existsSync(note)) return null
  let place: ExportCursor
  try {
    place = JSON.parse(readFileSync(note, 'utf8')) as ExportCursor
  } catch (error) {
    throw new SyncError('STATE_UNREADABLE', `${note} is not what was written. Remove it: the names of the files tell the place too.`, { cause: error })
  }
  if (place.database !== database || !Number.isSafeInteger(place.sequence)) throw new SyncError('ARGUMENT_INVALID', `${note} is of another export. Give this one another file.`)
  return place
}

function writeExportCursor(note: string, place: ExportCursor): void {
  writeFileSync(`${note}.part`, `${JSON.stringify(place)}\n`)
  publishFile(`${note}.part`, note)
}

/** Where the files that follow a place end, when there already are some. */
function findLastExported(file: string, noted: ExportCursor | null, database: string | null): ExportCursor | null {
  const extension = extname(file)
  const names = readdirSync(dirname(file))
  for (let last = noted; ;) {
    const start = `${basename(file, extension)}.${last?.sequence ?? 0}-`
    const ends = names.filter((name) => name.startsWith(start) && name.endsWith(extension)).map((name) => name.slice(start.length, -extension.length))
    const next = Number(ends.find((end) => /^\d+$/.test(end)))
    if (!(next > (last?.sequence ?? 0))) return last
    last = { database, sequence: next, committedAt: null }
  }
}

function exportPartName(file: string, from: number, until: number): string {
  const extension = extname(file)
  return join(dirname(file), `${basename(file, extension)}.${from}-${until}${extension}`)
}
