import { createHash } from 'node:crypto'
import {
  isSyncError,
  SyncError,
  type Change,
  type Execute,
  type JsonObject,
  type Page,
  type ShapeColumn,
  type SyncContext,
  type TimeRange,
} from '../../contract/index.ts'
import { csvReader, type CsvOptions } from './csv.ts'
import { readChunks, type Folder, type ListedFile, type OpenFile } from './folder.ts'
import { instantToMs } from '../../values/instant.ts'
import { required } from '../../values/required.ts'
import { limitRange, parseSince } from '../kit/since.ts'
import { InvalidRow, UnreadableFileError, type RowReader } from './row-reader.ts'
import { LocalFolder } from './local-folder.ts'
import { ndjsonReader } from './ndjson.ts'
import { parquetReader } from './parquet.ts'
import {
  checkState,
  TO_DELETE_KEYS,
  packKeys,
  packManifest,
  READING_KEYS,
  shortenChecksum,
  unpackKeys,
  unpackManifest,
  type FilesState,
  type KnownFile,
  type FileOffset,
  type FileReadState,
  type RowRemovalState,
} from './state.ts'

export type { CsvOptions } from './csv.ts'
export type { FileVersion, Folder, ListedFile, OpenFile } from './folder.ts'
export { s3Folder, type S3Options } from './s3-folder.ts'
export type { FilesState } from './state.ts'

/** Options of `files`. */
export interface FilesOptions {
  /** Path of a folder, read recursively; or another storage of files. */
  readonly folder: string | Folder
  /** The paths to read. By default every `.csv`, `.tsv`, `.ndjson`, `.jsonl` (also with `.gz`) and `.parquet` file. */
  readonly match?: RegExp
  readonly csv?: CsvOptions
  /**
   * Columns that identify a row across all files. By default, a row is identified by its file's path and its number,
   * such as `2026/orders.csv#17`.
   */
  readonly key?: string | readonly string[]
  /** The column with the time of the last change: of two rows with the same key, the newer wins. */
  readonly updatedAt?: string
  /** The start date: files that last changed before it are not read. */
  readonly since?: string
  /** A file is read only after it has not changed for this long; 10 seconds by default. */
  readonly settleMs?: number
  /**
   * The handling of a row that the new content of its file, and every other file, lacks. Deleted by default; with `key`
   * this stores every key in the state, which fits about 300,000 UUIDs or a few million consecutive numbers.
   */
  readonly removedRows?: 'keep' | 'delete'
  /** The handling of the rows of a deleted file. Kept by default. */
  readonly deletedFiles?: 'keep' | 'delete'
  /** 10,000 by default; a page of large rows ends earlier. */
  readonly pageSize?: number
}

/** The rows of all files of a folder. Pass it to `worker.sync`. */
export interface FilesStream {
  readonly mode: 'incremental'
  readonly execute: Execute<FilesState>
  /** The state contains every file, at about 25 bytes each. */
  readonly limits: { readonly stateBytesMax: number }
}

const PAGE_SIZE = 10_000
/** Limits of one page: bytes (plus one row), files and duration. */
const PAGE_BYTES = 32_000_000
const PAGE_FILES = 1_000
const PAGE_MS = 20_000
const SETTLE_MS = 10_000
/** About 300,000 files. */
const STATE_BYTES_MAX = 8_000_000

/**
 * Reads new and changed files of a folder: `worker.sync('orders', { database, ...files({ folder: 'drop/orders' }) })`.
 */
export function files(options: FilesOptions): FilesStream {
  const { folder, deletedFiles = 'keep', removedRows = 'delete', key, updatedAt } = options
  const since = parseSince(options.since)
  if (deletedFiles === 'delete' && removedRows === 'keep')
    throw new SyncError(
      'SYNC_INVALID',
      '`deletedFiles: "delete"` and `removedRows: "keep"` contradict each other. Remove one of them.',
    )
  const storage = typeof folder === 'string' ? new LocalFolder(folder) : folder
  const read =
    (times: TimeRange, given: FilesOptions): Execute<FilesState> =>
    async (state, context) => {
      checkState(state)
      return await new FilesPageReader(storage, given, times, state, context).read()
    }
  const isOrdered = key === undefined || updatedAt !== undefined
  return {
    mode: 'incremental',
    limits: { stateBytesMax: STATE_BYTES_MAX },
    execute: Object.assign(
      read(since === undefined ? {} : { from: since }, options),
      isOrdered
        ? {
            // Nothing is deleted: the state of a range does not know the earlier contents of its files.
            range: (range: TimeRange) =>
              read(limitRange(range, since), { ...options, deletedFiles: 'keep', removedRows: 'keep' }),
          }
        : { rangeUnsupported: 'a row may be in several files, and without `updatedAt` the newest is unknown' },
    ),
  }
}

/**
 * Reads one page: first the unfinished work of the last page, then file by file in path order.
 *
 *   listed, other version ──hash──▶ same content ─▶ known
 *                             └───▶ other content ─▶ reading ──end──▶ removing missing rows ─▶ known
 *                                                       └── changed meanwhile, damaged ─▶ left with its possible rows
 */
class FilesPageReader {
  readonly #folder: Folder
  readonly #options: FilesOptions
  /** When the files to read last changed. */
  readonly #times: TimeRange
  readonly #context: SyncContext
  readonly #manifest: Map<string, KnownFile>
  readonly #pageSize: number
  readonly #until: number
  #columns: readonly ShapeColumn[] | null = null
  readonly #changes: Change[] = []
  /** Keys by path; null if keys are not tracked. */
  readonly #keys: Map<string, Set<string>> | null
  #cursorValue: string | null
  #reading: FileReadState | undefined
  #removing: RowRemovalState | undefined
  #bytes = 0
  #filesChecked = 0

  constructor(
    folder: Folder,
    options: FilesOptions,
    times: TimeRange,
    state: FilesState | undefined,
    context: SyncContext,
  ) {
    this.#folder = folder
    this.#options = options
    this.#times = times
    this.#context = context
    this.#manifest = unpackManifest(state?.manifest ?? '')
    this.#keys =
      options.key === undefined || options.removedRows === 'keep'
        ? null
        : state?.keys === undefined
          ? new Map()
          : unpackKeys(state.keys)
    this.#cursorValue = state?.cursorValue ?? null
    this.#reading = state?.reading
    this.#removing = state?.removing
    this.#pageSize = options.pageSize ?? PAGE_SIZE
    this.#until = context.clock.now() + PAGE_MS
  }

  async read(): Promise<Page<FilesState>> {
    await this.#finishPending()
    if (!this.#isFull()) {
      for (const step of await this.#planSteps()) {
        await step()
        await this.#finishPending()
        if (this.#isFull()) return this.#buildPage(true)
      }
    }
    return this.#buildPage(this.#reading !== undefined || this.#removing !== undefined || this.#isFull())
  }

  /**
   * Plans the work for the folder's current content; changes after the start of the cycle are left for the next one.
   */
  async #planSteps(): Promise<Array<() => Promise<void>>> {
    const { deletedFiles = 'keep', match = READABLE_PATH, settleMs = SETTLE_MS } = this.#options
    const { from, to } = this.#times
    const fromMs = from === undefined ? -Infinity : instantToMs(from)
    const toMs = to === undefined ? Infinity : instantToMs(to)
    const listed = await this.#folder.list(this.#context.signal)
    const settledBefore = this.#context.cycle.startedAt - settleMs
    const changed = listed.filter(
      ({ path, version }) =>
        isReadablePath(path, match) &&
        version.changedAtMs <= settledBefore &&
        version.changedAtMs >= fromMs &&
        version.changedAtMs < toMs &&
        this.#manifest.get(path)?.tag !== version.tag,
    )
    const steps = changed.toSorted((a, b) => (a.path < b.path ? -1 : 1)).map((file) => () => this.#checkFile(file))
    if (deletedFiles === 'keep') return steps
    const present = new Set(listed.map(({ path }) => path))
    const missing = [...this.#manifest.keys()].filter((path) => !present.has(path))
    // An unmounted disk looks the same.
    if (listed.length === 0 && missing.length > 0) {
      throw new SyncError(
        'SOURCE_UNAVAILABLE',
        `${this.#folder.name} is empty, but ${missing.length} files were read from it before. Nothing was deleted. If the folder is correct, put any other file into it.`,
      )
    }
    return [...steps, ...missing.map((path) => async () => this.#removeFile(path))]
  }

  async #checkFile({ path, version }: ListedFile): Promise<void> {
    this.#filesChecked++
    // An unreadable file is not retried until it changes.
    const markUnreadable = (): void =>
      void this.#manifest.set(path, { tag: version.tag, sum: '', rows: this.#manifest.get(path)?.rows ?? 0 })
    await this.#withFile(path, markUnreadable, async (file) => {
      const { tag } = await file.version()
      const sha256 = await hashFile(file, this.#context.signal)
      const known = this.#manifest.get(path)
      if (known?.sum === shortenChecksum(sha256)) return void this.#manifest.set(path, { ...known, tag })
      this.#reading = { path, sha256, tag, before: known?.rows ?? 0, row: 0, offset: 0 }
      this.#keys?.set(READING_KEYS, new Set())
    })
  }

  /** Continues unfinished work until the page is full. */
  async #finishPending(): Promise<void> {
    if (this.#removing === undefined && this.#reading !== undefined) await this.#continueReading(this.#reading)
    while (this.#removing !== undefined && !this.#isRowLimitReached()) this.#deleteLastRow(this.#removing)
  }

  async #continueReading(reading: FileReadState): Promise<void> {
    const { path, sha256 } = reading
    await this.#withFile(
      path,
      () => this.#abandon(reading),
      async (file) => {
        const { tag } = await file.version()
        const changesBefore = this.#changes.length
        // A new version of the file may still have the same content.
        const isSame = tag === reading.tag || (await hashFile(file, this.#context.signal)) === sha256
        const outcome = isSame ? await this.#readRows(file, reading) : null
        if (outcome === null || (await file.version()).tag !== tag) {
          // These rows may mix two contents, so they are never committed.
          this.#changes.length = changesBefore
          return this.#abandon(reading)
        }
        if (outcome.kind === 'full') {
          this.#reading = { ...reading, tag, ...outcome.offset }
          return
        }
        this.#reading = undefined
        this.#cursorValue = formatFileCursor(path, sha256)
        const { row } = outcome.offset
        // Unread rows may still exist: nothing of a damaged file is deleted.
        const rows = this.#options.key !== undefined ? 0 : Math.max(row, reading.before)
        this.#manifest.set(path, { tag, sum: shortenChecksum(sha256), rows })
        if (this.#keys !== null && this.#replaceKeys(this.#keys, path, outcome.kind === 'end'))
          this.#removing = { path, keep: 0 }
        else if (outcome.kind === 'end' && rows > row && this.#options.removedRows !== 'keep')
          this.#removing = { path, keep: row }
      },
    )
  }

  async #readRows(
    file: OpenFile,
    { path, sha256, row, offset }: FileReadState,
  ): Promise<{ kind: 'end' | 'full' | 'damaged'; offset: { row: number; offset: number } }> {
    let end: FileOffset = { row, offset }
    const cursor = formatFileCursor(path, sha256)
    try {
      for await (const read of pickReader(path, this.#options)(
        file,
        end,
        this.#pageSize,
        (columns) => (this.#columns = columns),
      )) {
        this.#context.signal.throwIfAborted()
        this.#changes.push(this.#toChange(read.record, path, read.end.row, cursor))
        this.#bytes += read.bytes
        end = read.end
        if (this.#isRowLimitReached()) return { kind: 'full', offset: end }
      }
      return { kind: 'end', offset: end }
    } catch (error) {
      if (!(error instanceof UnreadableFileError)) throw error
      this.#changes.push(
        toInvalidFile(
          path,
          `${path}: ${error.message}; ${end.row === 0 ? 'no row was read' : `it was read up to row ${end.row}`}`,
        ),
      )
      return { kind: 'damaged', offset: end }
    }
  }

  /** Keeps the possible rows, so that a later content can determine which of them to delete. */
  #abandon({ path, before, row }: FileReadState): void {
    this.#reading = undefined
    if (this.#keys !== null) this.#replaceKeys(this.#keys, path, false)
    this.#manifest.set(path, { tag: '', sum: '', rows: this.#options.key !== undefined ? 0 : Math.max(before, row) })
  }

  /**
   * Returns whether keys must be deleted: keys of an earlier content that neither this complete content nor another
   * file has.
   */
  #replaceKeys(keys: Map<string, Set<string>>, path: string, isComplete: boolean): boolean {
    const current = keys.get(READING_KEYS) ?? new Set<string>()
    const previous = keys.get(path) ?? new Set<string>()
    keys.delete(READING_KEYS)
    keys.set(path, isComplete ? current : new Set([...previous, ...current]))
    return isComplete && this.#markForDeletion(keys, previous)
  }

  #markForDeletion(keys: Map<string, Set<string>>, candidates: ReadonlySet<string>): boolean {
    const toDelete = new Set(candidates)
    for (const listed of keys.values()) for (const key of candidates) if (listed.has(key)) toDelete.delete(key)
    if (toDelete.size > 0) keys.set(TO_DELETE_KEYS, toDelete)
    return toDelete.size > 0
  }

  #removeFile(path: string): void {
    this.#manifest.set(path, {
      ...required(this.#manifest.get(path), `the manifest entry of ${path}`),
      tag: '',
      sum: '',
    })
    const keys = this.#keys
    const previous = keys?.get(path)
    keys?.delete(path)
    if (keys !== null && previous !== undefined) this.#markForDeletion(keys, previous)
    this.#removing = { path, keep: 0 }
  }

  /** Deletes from the end, so the manifest always matches the remaining rows. */
  #deleteLastRow({ path, keep }: RowRemovalState): void {
    const known = this.#manifest.get(path)
    const toDelete = this.#keys?.get(TO_DELETE_KEYS)
    if (toDelete !== undefined) {
      const [key] = toDelete as Set<string> & Iterable<string>
      if (key !== undefined) this.#changes.push({ type: 'delete', key })
      if (key !== undefined) toDelete.delete(key)
      if (toDelete.size === 0) this.#keys?.delete(TO_DELETE_KEYS)
      return
    }
    if (known !== undefined && known.rows > keep) {
      this.#changes.push({ type: 'delete', key: formatRowKey(path, known.rows) })
      return void this.#manifest.set(path, { ...known, rows: known.rows - 1 })
    }
    this.#removing = undefined
    if (known?.tag === '') this.#manifest.delete(path)
  }

  /** Calls `otherwise` if the file is gone or not readable. */
  async #withFile(path: string, otherwise: () => void, use: (file: OpenFile) => Promise<void>): Promise<void> {
    let file: OpenFile | null
    try {
      file = await this.#folder.open(path)
    } catch (error) {
      if (!isSyncError(error) || error.code !== 'SOURCE_FORBIDDEN') throw error
      this.#changes.push(toInvalidFile(path, error.message))
      return otherwise()
    }
    if (file === null) return otherwise()
    await using open = file
    await use(open)
  }

  #toChange(record: JsonObject | InvalidRow, path: string, row: number, cursor: string): Change {
    const { key, updatedAt } = this.#options
    if (record instanceof InvalidRow)
      return { type: 'invalid', key: formatRowKey(path, row), reason: `${path}: ${record.reason}`, raw: record.raw }
    const value = updatedAt === undefined ? undefined : record[updatedAt]
    const time = value === undefined || value === null ? {} : { upstreamUpdatedAt: value as string }
    const rowKey = key === undefined ? formatRowKey(path, row) : formatKey(record, key)
    this.#keys?.get(READING_KEYS)?.add(rowKey)
    return { type: 'upsert', key: rowKey, record, cursor, ...time }
  }

  #isRowLimitReached(): boolean {
    return this.#changes.length >= this.#pageSize || this.#bytes >= PAGE_BYTES
  }

  #isFull(): boolean {
    return this.#isRowLimitReached() || this.#filesChecked >= PAGE_FILES || this.#context.clock.now() >= this.#until
  }

  #buildPage(hasMore: boolean): Page<FilesState> {
    return {
      changes: this.#changes,
      hasMore,
      ...(this.#columns !== null && {
        tables: [
          { columns: this.#columns, ...(this.#options.key !== undefined && { key: [this.#options.key].flat() }) },
        ],
      }),
      nextState: {
        cursorField: '_file_checkpoint',
        cursorValue: this.#cursorValue,
        manifest: packManifest(this.#manifest),
        ...(this.#keys !== null && this.#keys.size > 0 && { keys: packKeys(this.#keys) }),
        ...(this.#reading !== undefined && { reading: this.#reading }),
        ...(this.#removing !== undefined && { removing: this.#removing }),
      },
    }
  }
}

/** Lists the subfolders with readable files. A row is identified by its file and its number. */
export async function discover(
  { folder }: Pick<FilesOptions, 'folder'>,
  { signal }: Pick<SyncContext, 'signal'>,
): Promise<{ id: string; key: string[]; candidates: string[] }[]> {
  const storage = typeof folder === 'string' ? new LocalFolder(folder) : folder
  const paths = (await storage.list(signal)).map(({ path }) => path).filter((path) => isReadablePath(path, /./))
  const folders = new Set(paths.map((path) => path.slice(0, Math.max(0, path.lastIndexOf('/')))))
  return [...folders].toSorted().map((id) => ({ id: id || '.', key: ['path', 'row'], candidates: [] }))
}

// ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────────

const READABLE_PATH = /\.(?:(?:csv|tsv|ndjson|jsonl)(?:\.gz)?|parquet)$/i
/** Common names of unfinished and hidden files. */
const UNFINISHED_PATH = /(?:^|\/)[._~]|~$|\.(?:tmp|temp|part|partial|crdownload|download|swp|filepart)$/i

function isReadablePath(path: string, match: RegExp): boolean {
  // `search` ignores the `lastIndex` of patterns with the flag `g` or `y`.
  return !UNFINISHED_PATH.test(path) && READABLE_PATH.test(path) && path.search(match) !== -1
}

function pickReader(path: string, { csv = {} }: FilesOptions): RowReader {
  const isCompressed = /\.gz$/i.test(path)
  const name = path.replace(/\.gz$/i, '').toLowerCase()
  if (name.endsWith('.parquet')) return parquetReader
  if (name.endsWith('.csv')) return csvReader(isCompressed, csv)
  return name.endsWith('.tsv') ? csvReader(isCompressed, { delimiter: '\t', ...csv }) : ndjsonReader(isCompressed)
}

function formatFileCursor(path: string, sha256: string): string {
  return `${path}#sha256=${sha256}`
}

function formatRowKey(path: string, row: number): string {
  return `${path}#${row}`
}

/** A missing or invalid key becomes the empty string, which the engine quarantines. */
function formatKey(record: JsonObject, key: string | readonly string[]): string {
  const parts = [key].flat().map((name) => {
    const value = record[name]
    return typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint' ? String(value) : ''
  })
  // Serialized as a list, so composite keys are unambiguous.
  return typeof key === 'string' ? (parts[0] ?? '') : parts.includes('') ? '' : JSON.stringify(parts)
}

function toInvalidFile(path: string, reason: string): Change {
  return { type: 'invalid', key: path, reason, raw: null }
}

async function hashFile(file: OpenFile, signal: AbortSignal): Promise<string> {
  const digest = createHash('sha256')
  for await (const chunk of readChunks(file)) {
    signal.throwIfAborted()
    digest.update(chunk)
  }
  return digest.digest('hex')
}
