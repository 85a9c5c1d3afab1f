import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { SyncError } from '../../contract/index.ts'

/** Progress of reading a folder. */
export interface FilesState {
  readonly cursorField: '_file_checkpoint'
  /** The last file read, as `<path>#sha256=<hash>`; null before the first. */
  readonly cursorValue: string | null
  /** Every file read so far; see packManifest. */
  readonly manifest: string
  /** The keys of each file, if rows have their own keys; see packKeys. */
  readonly keys?: string
  /** Set while a file is partly read. */
  readonly reading?: FileReadState
  /** Set while rows that are missing from their file are deleted. */
  readonly removing?: RowRemovalState
}

export interface FileReadState extends FileOffset {
  readonly path: string
  /** Hash of the content that these rows belong to. */
  readonly sha256: string
  readonly tag: string
  /** Number of rows that an earlier content of the file may have left. */
  readonly before: number
}

export interface FileOffset {
  /** Rows read so far. */
  readonly row: number
  /** Where the next row begins, in bytes of the uncompressed text; 0 for formats that address rows by number. */
  readonly offset: number
}

/** Deletes rows from the manifest's last down to `keep`; with own keys, the keys under TO_DELETE_KEYS. */
export interface RowRemovalState {
  readonly path: string
  readonly keep: number
}

/** A file in the manifest. Tag and sum are empty until its content has been read completely. */
export interface KnownFile {
  /** Version tag, so that a folder can be checked without reading every file. */
  readonly tag: string
  /** The first 60 bits of the checksum, compared only within the same path. */
  readonly sum: string
  /** Number of rows that may have been committed. */
  readonly rows: number
}

const SUM_LENGTH = 10
/** Maximum uncompressed size of a manifest, about a million files. */
const MANIFEST_BYTES_MAX = 256_000_000

export function shortenChecksum(sha256: string): string {
  return Buffer.from(sha256, 'hex').toString('base64').slice(0, SUM_LENGTH)
}

/**
 * Encodes a file in about 25 bytes: paths are sorted, so common prefixes compress well. A high-water mark by name would
 * miss late files, and one by time would miss replaced files.
 */
export function packManifest(files: ReadonlyMap<string, KnownFile>): string {
  const lines = [...files]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([path, { tag, sum, rows }]) => `${path}\0${tag}\0${sum}\0${rows}`)
  return lines.length === 0 ? '' : deflateRawSync(lines.join('\0')).toString('base64')
}

export function unpackManifest(text: string): Map<string, KnownFile> {
  const files = new Map<string, KnownFile>()
  if (text === '') return files
  let parts: string[]
  try {
    parts = inflateRawSync(Buffer.from(text, 'base64'), { maxOutputLength: MANIFEST_BYTES_MAX }).toString().split('\0')
  } catch (error) {
    throw stateRejectedError('its manifest cannot be decompressed', error)
  }
  for (let at = 0; at < parts.length; at += 4) {
    const [path, tag, sum, count] = parts.slice(at, at + 4)
    const rows = Number(count)
    // Also detects a truncated manifest.
    if (path === undefined || tag === undefined || sum === undefined || !isCount(rows))
      throw stateRejectedError('its manifest has a file without a row count')
    files.set(path, { tag, sum, rows })
  }
  return files
}

/** Not valid paths: the keys of the content being read, and the keys to delete. */
export const READING_KEYS = '\0reading'
export const TO_DELETE_KEYS = '\0doomed'

/** Maximum compressed size of all keys. */
const KEYS_BYTES_MAX = 6_000_000

/** Keys are sorted, so common prefixes compress well: a consecutive number costs about four bytes. */
export function packKeys(keys: ReadonlyMap<string, ReadonlySet<string>>): string {
  const text = JSON.stringify([...keys].map(([path, fileKeys]) => [path, [...fileKeys].toSorted()]))
  const packed = deflateRawSync(text).toString('base64')
  if (packed.length > KEYS_BYTES_MAX) {
    throw new SyncError(
      'SYNC_INVALID',
      `The keys of these files exceed the limit of the state (${packed.length} of ${KEYS_BYTES_MAX} bytes). Set \`removedRows: "keep"\` to keep removed rows without tracking keys.`,
    )
  }
  return packed
}

export function unpackKeys(text: string): Map<string, Set<string>> {
  try {
    const packed = JSON.parse(
      inflateRawSync(Buffer.from(text, 'base64'), { maxOutputLength: MANIFEST_BYTES_MAX }).toString(),
    ) as Array<[string, string[]]>
    return new Map(packed.map(([path, keys]) => [path, new Set(keys)]))
  } catch (error) {
    throw stateRejectedError('its keys cannot be decompressed', error)
  }
}

/** A state may have been edited by hand. */
export function checkState(state: FilesState | undefined): void {
  if (state === undefined) return
  if (state.cursorField !== '_file_checkpoint' || typeof state.manifest !== 'string')
    throw stateRejectedError('it is not a files state')
  if (state.keys !== undefined && typeof state.keys !== 'string') throw stateRejectedError('`keys` is not a string')
  if (state.cursorValue !== null && typeof state.cursorValue !== 'string')
    throw stateRejectedError('`cursorValue` is not a string')
  const { reading, removing } = state
  if (reading !== undefined) {
    checkPath(reading.path)
    if (!/^[0-9a-f]{64}$/.test(reading.sha256) || typeof reading.tag !== 'string')
      throw stateRejectedError('`reading` has no valid hash or tag')
    if (![reading.row, reading.offset, reading.before].every(isCount))
      throw stateRejectedError('`reading` has no valid offset')
  }
  if (removing !== undefined) {
    checkPath(removing.path)
    if (!isCount(removing.keep)) throw stateRejectedError('`removing` has no valid row count')
  }
}

/** Rejects paths outside the folder. */
function checkPath(path: unknown): void {
  if (
    typeof path !== 'string' ||
    path === '' ||
    path.startsWith('/') ||
    path.includes('\0') ||
    path.split('/').includes('..')
  )
    throw stateRejectedError('it names a file outside the folder')
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function stateRejectedError(what: string, cause?: unknown): SyncError {
  return new SyncError('CURSOR_REJECTED', `The stored state does not belong to this folder: ${what}.`, { cause })
}
