import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { SyncError } from '../../contract/index.ts'

/** Where reading a folder stands. */
export interface FilesState {
  readonly cursorField: '_file_checkpoint'
  /** The file that was read last, as `<path>#sha256=<hash>`; null before the first. */
  readonly cursorValue: string | null
  /** Every file read so far; see Manifest. */
  readonly manifest: string
  /** Which keys each file has, where rows have keys of their own; see packKeys. */
  readonly keys?: string
  /** In the middle of a file. */
  readonly reading?: FileReadState
  /** Rows that are no longer in their file. */
  readonly removing?: RowRemovalState
}

export interface FileReadState extends FileOffset {
  readonly path: string
  /** The content that these rows are of. */
  readonly sha256: string
  readonly tag: string
  /** How many rows an earlier content of the file may have left. */
  readonly before: number
}

export interface FileOffset {
  /** Rows read so far. */
  readonly row: number
  /** Where the next one begins, in bytes of the unpacked text; where rows are found by their number, 0. */
  readonly offset: number
}

/** From the last row that the manifest knows down to those that stay; where rows have keys of their own, those under DOOMED. */
export interface RowRemovalState {
  readonly path: string
  readonly keep: number
}

/** What is known of a file. Tag and sum are empty while its content is not known to have been read to the end. */
export interface KnownFile {
  /** Of its version, so that a folder can be looked at without reading every file. */
  readonly tag: string
  /** The beginning of its checksum: 60 bits, compared only with the same path's. */
  readonly sum: string
  /** Rows that may have landed. */
  readonly rows: number
}

const SUM_LENGTH = 10
/** As much as a manifest may unpack to; about a million files. */
const MANIFEST_BYTES_MAX = 256_000_000

export function shortenChecksum(sha256: string): string {
  return Buffer.from(sha256, 'hex').toString('base64').slice(0, SUM_LENGTH)
}

/**
 * The files of a folder in about 25 bytes each: sorted, so that names that begin alike pack well. A frontier by name would
 * miss what arrives late, and one by time what was replaced.
 */
export function packManifest(files: ReadonlyMap<string, KnownFile>): string {
  const lines = [...files].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([path, { tag, sum, rows }]) => `${path}\0${tag}\0${sum}\0${rows}`)
  return lines.length === 0 ? '' : deflateRawSync(lines.join('\0')).toString('base64')
}

export function unpackManifest(text: string): Map<string, KnownFile> {
  const files = new Map<string, KnownFile>()
  if (text === '') return files
  let parts: string[]
  try {
    parts = inflateRawSync(Buffer.from(text, 'base64'), { maxOutputLength: MANIFEST_BYTES_MAX }).toString().split('\0')
  } catch (error) {
    throw stateRejectedError('its manifest cannot be unpacked', error)
  }
  for (let at = 0; at < parts.length; at += 4) {
    const rows = Number(parts[at + 3])
    // Also where it is cut off.
    if (!isCount(rows)) throw stateRejectedError('its manifest has a file without a number of rows')
    files.set(parts[at]!, { tag: parts[at + 1]!, sum: parts[at + 2]!, rows })
  }
  return files
}

/** No path has such a name: the keys of the content that is being read, and those that are no longer in any. */
export const READING_KEYS = '\0reading'
export const TO_DELETE_KEYS = '\0doomed'

/** As much as the keys of all files may be, packed. */
const KEYS_BYTES_MAX = 6_000_000

/** Sorted, so that keys that begin alike pack well: a row then costs what is its own, such as four bytes of a running number. */
export function packKeys(keys: ReadonlyMap<string, ReadonlySet<string>>): string {
  const text = JSON.stringify([...keys].map(([path, of]) => [path, [...of].toSorted()]))
  const packed = deflateRawSync(text).toString('base64')
  if (packed.length > KEYS_BYTES_MAX) {
    throw new SyncError('SYNC_INVALID', `The keys of these files are too many to be remembered (${packed.length} bytes): to keep rows that a file has no more, set \`removedRows: "keep"\`.`)
  }
  return packed
}

export function unpackKeys(text: string): Map<string, Set<string>> {
  try {
    const packed = JSON.parse(inflateRawSync(Buffer.from(text, 'base64'), { maxOutputLength: MANIFEST_BYTES_MAX }).toString()) as Array<[string, string[]]>
    return new Map(packed.map(([path, keys]) => [path, new Set(keys)]))
  } catch (error) {
    throw stateRejectedError('its keys cannot be unpacked', error)
  }
}

/** A state may have been set by hand. */
export function checkState(state: FilesState | undefined): void {
  if (state === undefined) return
  if (state.cursorField !== '_file_checkpoint' || typeof state.manifest !== 'string') throw stateRejectedError('it is no checkpoint of files')
  if (state.keys !== undefined && typeof state.keys !== 'string') throw stateRejectedError('`keys` is not a text')
  if (state.cursorValue !== null && typeof state.cursorValue !== 'string') throw stateRejectedError('`cursorValue` is not a text')
  const { reading, removing } = state
  if (reading !== undefined) {
    checkPath(reading.path)
    if (!/^[0-9a-f]{64}$/.test(reading.sha256) || typeof reading.tag !== 'string') throw stateRejectedError('`reading` names no content')
    if (![reading.row, reading.offset, reading.before].every(isCount)) throw stateRejectedError('`reading` is no place in a file')
  }
  if (removing !== undefined) {
    checkPath(removing.path)
    if (!isCount(removing.keep)) throw stateRejectedError('`removing` is no number of rows')
  }
}

/** Never out of the folder. */
function checkPath(path: unknown): void {
  if (typeof path !== 'string' || path === '' || path.startsWith('/') || path.includes('\0') || path.split('/').includes('..')) throw stateRejectedError('it names a file outside the folder')
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function stateRejectedError(what: string, cause?: unknown): SyncError {
  return new SyncError('CURSOR_REJECTED', `The stored state is not one of this folder: ${what}.`, { cause })
}
