import { createHash } from 'node:crypto'
import { isSyncError, SyncError, type Change, type Execute, type JsonObject, type Page, type ShapeColumn, type SyncContext } from '../../contract/index.ts'
import { csvReader, type CsvOptions } from './csv.ts'
import { readChunks, type Folder, type ListedFile, type OpenFile } from './folder.ts'
import { UnreadableFileError, type RowReader } from './row-reader.ts'
import { LocalFolder } from './local-folder.ts'
import { ndjsonReader } from './ndjson.ts'
import { parquetReader } from './parquet.ts'
import { checkState, TO_DELETE_KEYS, packKeys, packManifest, READING_KEYS, shortenChecksum, unpackKeys, unpackManifest, type FilesState, type KnownFile, type FileReadState, type RowRemovalState } from './state.ts'

export type { CsvOptions } from './csv.ts'
export type { FileVersion, Folder, ListedFile, OpenFile } from './folder.ts'
export { s3Folder, type S3Options } from './s3-folder.ts'
export type { FilesState } from './state.ts'

export interface FilesOptions {
  /** The path of a folder, read with all below it; or another place that files lie in. */
  readonly folder: string | Folder
  /** Which paths are read. Unless given: every `.csv`, `.tsv`, `.ndjson`, `.jsonl` (each also with `.gz`) and `.parquet`. */
  readonly match?: RegExp
  readonly csv?: CsvOptions
  /**
   * What tells rows apart, in all files together. Unless given, a row is known by its file's path and its number, such as
   * `2026/orders.csv#17`.
   */
  readonly key?: string | readonly string[]
  /** The column that says when the row was last changed: of two rows of one key, the newer stays. */
  readonly updatedAt?: string
  /** A file is left alone until it has not changed for so long; 10 seconds unless given. */
  readonly settleMs?: number
  /**
   * What becomes of a row that a new content of its file has no more, and no other file has. Deleted unless told otherwise;
   * with `key` that takes a memory of every key, about 300,000 UUIDs or a few million running numbers.
   */
  readonly removedRows?: 'keep' | 'delete'
  /** What becomes of the rows of a file that is no longer there. They are kept unless told otherwise. */
  readonly deletedFiles?: 'keep' | 'delete'
  /** 10,000 unless given; a page of large rows ends earlier. */
  readonly pageSize?: number
}

export interface FilesStream {
  readonly mode: 'incremental'
  readonly execute: Execute<FilesState>
  /** The state names every file: about 25 bytes for each. */
  readonly limits: { readonly stateBytesMax: number }
}

const PAGE_SIZE = 10_000
/** A page holds at most about so much, and one row; it looks into so many files and takes about so long. */
const PAGE_BYTES = 32_000_000
const PAGE_FILES = 1_000
const PAGE_MS = 20_000
const SETTLE_MS = 10_000
/** About 300,000 files. */
const STATE_BYTES_MAX = 8_000_000

/** New and changed files of a folder: `worker.sync('orders', { database, ...files({ folder: 'drop/orders' }) })`. */
export function files(options: FilesOptions): FilesStream {
  const { folder, deletedFiles = 'keep', removedRows = 'delete' } = options
  if (deletedFiles === 'delete' && removedRows === 'keep') throw new SyncError('SYNC_INVALID', '`deletedFiles: "delete"` and `removedRows: "keep"` contradict each other.')
  const place = typeof folder === 'string' ? new LocalFolder(folder) : folder
  return {
    mode: 'incremental',
    limits: { stateBytesMax: STATE_BYTES_MAX },
    async execute(state, context) {
      checkState(state)
      return await new FilesPageReader(place, options, state, context).read()
    },
  }
}

/**
 * One page: first what the last one left undone, then file by file in the order of their paths.
 *
 *   listed, other version ──hash──▶ same content ─▶ known
 *                             └───▶ other content ─▶ reading ──end──▶ removing what is no more ─▶ known
 *                                                       └── changed meanwhile, damaged ─▶ left with what may have landed
 */
class FilesPageReader {
  readonly #folder: Folder
  readonly #options: FilesOptions
  readonly #context: SyncContext
  readonly #manifest: Map<string, KnownFile>
  readonly #pageSize: number
  readonly #until: number
  #columns: readonly ShapeColumn[] | null = null
  readonly #changes: Change[] = []
  /** By path; null where nothing has to be remembered. */
  readonly #keys: Map<string, Set<string>> | null
  #cursorValue: string | null
  #reading: FileReadState | undefined
  #removing: RowRemovalState | undefined
  #bytes = 0
  #filesChecked = 0

  constructor(folder: Folder, options: FilesOptions, state: FilesState | undefined, context: SyncContext) {
    this.#folder = folder
    this.#options = options
    this.#context = context
    this.#manifest = unpackManifest(state?.manifest ?? '')
    this.#keys = options.key === undefined || options.removedRows === 'keep' ? null : state?.keys === undefined ? new Map() : unpackKeys(state.keys)
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

  /** Everything that is to be done by what lies in the folder now; what changes after the cycle began is the next one's. */
  async #planSteps(): Promise<Array<() => Promise<void>>> {
    const { deletedFiles = 'keep', match = READABLE_PATH, settleMs = SETTLE_MS } = this.#options
    const listed = await this.#folder.list(this.#context.signal)
    const settled = this.#context.cycle.startedAt - settleMs
    const fresh = listed.filter(({ path, version }) => isReadablePath(path, match) && version.changedAtMs <= settled && this.#manifest.get(path)?.tag !== version.tag)
    const steps = fresh.toSorted((a, b) => (a.path < b.path ? -1 : 1)).map((file) => () => this.#checkFile(file))
    if (deletedFiles === 'keep') return steps
    const here = new Set(listed.map(({ path }) => path))
    const gone = [...this.#manifest.keys()].filter((path) => !here.has(path))
    // A disk that is not mounted looks like this too.
    if (listed.length === 0 && gone.length > 0) {
      throw new SyncError('SOURCE_UNAVAILABLE', `${this.#folder.name} is empty, and ${gone.length} files of it were read. Nothing was deleted; put any other file there to say that it is the right folder.`)
    }
    return [...steps, ...gone.map((path) => async () => this.#removeFile(path))]
  }

  async #checkFile({ path, version }: ListedFile): Promise<void> {
    this.#filesChecked++
    // One that may not be read is not asked for again until something about it changes.
    const refused = (): void => void this.#manifest.set(path, { tag: version.tag, sum: '', rows: this.#manifest.get(path)?.rows ?? 0 })
    await this.#withFile(path, refused, async (file) => {
      const { tag } = await file.version()
      const sha256 = await hashFile(file, this.#context.signal)
      const known = this.#manifest.get(path)
      if (known?.sum === shortenChecksum(sha256)) return void this.#manifest.set(path, { ...known, tag })
      this.#reading = { path, sha256, tag, before: known?.rows ?? 0, row: 0, offset: 0 }
      this.#keys?.set(READING_KEYS, new Set())
    })
  }

  /** Goes on with what was begun, as far as the page holds. */
  async #finishPending(): Promise<void> {
    if (this.#removing === undefined && this.#reading !== undefined) await this.#continueReading(this.#reading)
    while (this.#removing !== undefined && !this.#isRowLimitReached()) this.#deleteLastRow(this.#removing)
  }

  async #continueReading(reading: FileReadState): Promise<void> {
    const { path, sha256 } = reading
    await this.#withFile(path, () => this.#abandon(reading), async (file) => {
      const { tag } = await file.version()
      const mark = this.#changes.length
      // Another version of the file may still be the same content.
      const isSame = tag === reading.tag || (await hashFile(file, this.#context.signal)) === sha256
      const outcome = isSame ? await this.#readRows(file, reading) : null
      if (outcome === null || (await file.version()).tag !== tag) {
        // What was read here may be of two contents: it never lands.
        this.#changes.length = mark
        return this.#abandon(reading)
      }
      if (outcome.kind === 'full') {
        this.#reading = { ...reading, tag, ...outcome.place }
        return
      }
      this.#reading = undefined
      this.#cursorValue = formatFileCursor(path, sha256)
      const { row } = outcome.place
      // What could not be read may still be there: nothing of a damaged file is deleted.
      const rows = this.#options.key !== undefined ? 0 : Math.max(row, reading.before)
      this.#manifest.set(path, { tag, sum: shortenChecksum(sha256), rows })
      if (this.#keys !== null && this.#replaceKeys(path, outcome.kind === 'end')) this.#removing = { path, keep: 0 }
      else if (outcome.kind === 'end' && rows > row && this.#options.removedRows !== 'keep') this.#removing = { path, keep: row }
    })
  }

  async #readRows(file: OpenFile, { path, sha256, row, offset }: FileReadState): Promise<{ kind: 'end' | 'full' | 'damaged'; place: { row: number; offset: number } }> {
    let place = { row, offset }
    const cursor = formatFileCursor(path, sha256)
    try {
      for await (const read of pickReader(path, this.#options)(file, place, this.#pageSize, (columns) => (this.#columns = columns))) {
        this.#context.signal.throwIfAborted()
        this.#changes.push(this.#toChange(read.record, path, read.end.row, cursor))
        this.#bytes += read.bytes
        place = read.end
        if (this.#isRowLimitReached()) return { kind: 'full', place }
      }
      return { kind: 'end', place }
    } catch (error) {
      if (!(error instanceof UnreadableFileError)) throw error
      this.#changes.push(toFaultChange(path, `${path}: ${error.message}; ${place.row === 0 ? 'nothing of it was read' : `it was read up to row ${place.row}`}`))
      return { kind: 'damaged', place }
    }
  }

  /** With what its rows may be, so that another content can tell which of them are no more. */
  #abandon({ path, before, row }: FileReadState): void {
    this.#reading = undefined
    if (this.#keys !== null) this.#replaceKeys(path, false)
    this.#manifest.set(path, { tag: '', sum: '', rows: this.#options.key !== undefined ? 0 : Math.max(before, row) })
  }

  /** Whether keys of an earlier content are doomed: those that neither this one has, read to its end, nor another file. */
  #replaceKeys(path: string, isWhole: boolean): boolean {
    const keys = this.#keys!
    const now = keys.get(READING_KEYS) ?? new Set<string>()
    const before = keys.get(path) ?? new Set<string>()
    keys.delete(READING_KEYS)
    keys.set(path, isWhole ? now : new Set([...before, ...now]))
    return isWhole && this.#markForDeletion(before)
  }

  #markForDeletion(candidates: ReadonlySet<string>): boolean {
    const doomed = new Set(candidates)
    for (const listed of this.#keys!.values()) for (const key of candidates) if (listed.has(key)) doomed.delete(key)
    if (doomed.size > 0) this.#keys!.set(TO_DELETE_KEYS, doomed)
    return doomed.size > 0
  }

  #removeFile(path: string): void {
    this.#manifest.set(path, { ...this.#manifest.get(path)!, tag: '', sum: '' })
    const before = this.#keys?.get(path)
    this.#keys?.delete(path)
    if (before !== undefined) this.#markForDeletion(before)
    this.#removing = { path, keep: 0 }
  }

  /** From the end, so that the manifest always says what is left. */
  #deleteLastRow({ path, keep }: RowRemovalState): void {
    const known = this.#manifest.get(path)
    const doomed = this.#keys?.get(TO_DELETE_KEYS)
    if (doomed !== undefined) {
      const [key] = doomed as Set<string> & Iterable<string>
      this.#changes.push({ type: 'delete', key: key! })
      doomed.delete(key!)
      if (doomed.size === 0) this.#keys!.delete(TO_DELETE_KEYS)
      return
    }
    if (known !== undefined && known.rows > keep) {
      this.#changes.push({ type: 'delete', key: formatRowKey(path, known.rows) })
      return void this.#manifest.set(path, { ...known, rows: known.rows - 1 })
    }
    this.#removing = undefined
    if (known?.tag === '') this.#manifest.delete(path)
  }

  /** Not there any more, or not for us: `otherwise`. */
  async #withFile(path: string, otherwise: () => void, use: (file: OpenFile) => Promise<void>): Promise<void> {
    let file: OpenFile | null
    try {
      file = await this.#folder.open(path)
    } catch (error) {
      if (!isSyncError(error) || error.code !== 'SOURCE_FORBIDDEN') throw error
      this.#changes.push(toFaultChange(path, error.message))
      return otherwise()
    }
    if (file === null) return otherwise()
    await using open = file
    await use(open)
  }

  #toChange(record: JsonObject | Error, path: string, row: number, cursor: string): Change {
    const { key, updatedAt } = this.#options
    if (record instanceof Error) return toFaultChange(formatRowKey(path, row), `${path}: ${record.message}`)
    const at = updatedAt === undefined ? undefined : record[updatedAt]
    const stamp = at === undefined || at === null ? {} : { upstreamUpdatedAt: at as string }
    const own = key === undefined ? formatRowKey(path, row) : formatKey(record, key)
    this.#keys?.get(READING_KEYS)?.add(own)
    return { type: 'upsert', key: own, record, cursor, ...stamp }
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
      ...(this.#columns !== null && { tables: [{ columns: this.#columns, ...(this.#options.key !== undefined && { key: [this.#options.key].flat() }) }] }),
      nextState: {
        cursorField: '_file_checkpoint', cursorValue: this.#cursorValue, manifest: packManifest(this.#manifest),
        ...(this.#keys !== null && this.#keys.size > 0 && { keys: packKeys(this.#keys) }),
        ...(this.#reading !== undefined && { reading: this.#reading }), ...(this.#removing !== undefined && { removing: this.#removing }),
      },
    }
  }
}

/** The folders below it that hold files of a kind that is read, and how they can be. A row is known by its file and its number. */
export async function discover({ folder }: Pick<FilesOptions, 'folder'>, { signal }: Pick<SyncContext, 'signal'>): Promise<{ id: string; key: string[]; candidates: string[] }[]> {
  const place = typeof folder === 'string' ? new LocalFolder(folder) : folder
  const paths = (await place.list(signal)).map(({ path }) => path).filter((path) => isReadablePath(path, /./))
  const folders = new Set(paths.map((path) => path.slice(0, Math.max(0, path.lastIndexOf('/')))))
  return [...folders].toSorted().map((id) => ({ id: id || '.', key: ['path', 'row'], candidates: [] }))
}

// ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────────

const READABLE_PATH = /\.(?:(?:csv|tsv|ndjson|jsonl)(?:\.gz)?|parquet)$/i
/** As those who write call what is not finished, and what is not for readers. */
const UNFINISHED_PATH = /(?:^|\/)[._~]|~$|\.(?:tmp|temp|part|partial|crdownload|download|swp|filepart)$/i

function isReadablePath(path: string, match: RegExp): boolean {
  // A pattern with the flag `g` or `y` remembers where it stopped.
  return !UNFINISHED_PATH.test(path) && READABLE_PATH.test(path) && path.search(match) !== -1
}

function pickReader(path: string, { csv = {} }: FilesOptions): RowReader {
  const isPacked = /\.gz$/i.test(path)
  const name = path.replace(/\.gz$/i, '').toLowerCase()
  if (name.endsWith('.parquet')) return parquetReader
  if (name.endsWith('.csv')) return csvReader(isPacked, csv)
  return name.endsWith('.tsv') ? csvReader(isPacked, { delimiter: '\t', ...csv }) : ndjsonReader(isPacked)
}

function formatFileCursor(path: string, sha256: string): string {
  return `${path}#sha256=${sha256}`
}

function formatRowKey(path: string, row: number): string {
  return `${path}#${row}`
}

/** What cannot be a key becomes the empty one, which the engine quarantines. */
function formatKey(record: JsonObject, key: string | readonly string[]): string {
  const parts = [key].flat().map((name) => {
    const value = record[name]
    return typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint' ? String(value) : ''
  })
  // As a list, so that no two keys of several parts can ever read the same.
  return typeof key === 'string' ? parts[0]! : parts.includes('') ? '' : JSON.stringify(parts)
}

/** An error in place of a record: the engine sets it apart with the reason. */
function toFaultChange(key: string, message: string): Change {
  return { type: 'upsert', key, record: new Error(message) as unknown as JsonObject }
}

async function hashFile(file: OpenFile, signal: AbortSignal): Promise<string> {
  const digest = createHash('sha256')
  for await (const chunk of readChunks(file)) {
    signal.throwIfAborted()
    digest.update(chunk)
  }
  return digest.digest('hex')
}
