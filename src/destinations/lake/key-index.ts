import { ParquetFileReader } from './parquet/read-file.ts'
import type { DataFile } from './table-state.ts'
import type { Storage } from './storage/storage.ts'

/** The row of a key. */
export interface RowPosition {
  readonly file: DataFile
  readonly position: number
}

const BLOCK_BYTES_MAX = 32 * 1024 * 1024
const READERS_MAX = 2_000

/**
 * Finds the rows of keys in sorted files. The keys of a row group are read on demand and cached up to a limit, so that
 * memory does not grow with the table. The cache is shared by the batches of a session: files never change.
 */
export class KeyIndex {
  readonly #storage: Storage
  readonly #resolve: (path: string) => string
  readonly #readers = new Map<string, ParquetFileReader>()
  readonly #blocks = new Map<string, KeyBlock>()
  #blockBytes = 0

  constructor(storage: Storage, resolve: (path: string) => string) {
    this.#storage = storage
    this.#resolve = resolve
  }

  /** The last row of every key in every file that has it. */
  async findAll(keys: readonly string[], files: readonly DataFile[]): Promise<Array<[key: string, RowPosition]>> {
    const sorted = keys.map((key) => Buffer.from(key)).toSorted(Buffer.compare)
    const found: Array<[string, RowPosition]> = []
    for (const file of files) {
      const wanted = sorted.slice(lowerBound(sorted, file.lower), upperBound(sorted, file.upper))
      if (wanted.length === 0) continue
      for (const [key, position] of await this.#findInFile(file, wanted))
        found.push([key.toString(), { file, position }])
    }
    return found
  }

  /**
   * The row of every key of a mirror that the files have. Of several files the newest counts: a version is added by a
   * newer commit than the one that it replaces, and files that are written again contain no replaced rows.
   */
  async find(keys: readonly string[], files: readonly DataFile[]): Promise<Map<string, RowPosition>> {
    const found = new Map<string, RowPosition>()
    let missing = keys.map((key) => Buffer.from(key)).toSorted(Buffer.compare)
    for (const file of files.toSorted((a, b) => b.sequence - a.sequence)) {
      if (missing.length === 0) break
      const [from, to] = [lowerBound(missing, file.lower), upperBound(missing, file.upper)]
      if (from >= to) continue
      const positions = await this.#findInFile(file, missing.slice(from, to))
      if (positions.size === 0) continue
      for (const [key, position] of positions) found.set(key.toString(), { file, position })
      missing = missing.filter((key) => !positions.has(key))
    }
    return found
  }

  async #findInFile(file: DataFile, keys: readonly Buffer[]): Promise<Map<Buffer, number>> {
    const reader = await this.#readerOf(file)
    const positions = new Map<Buffer, number>()
    // Versions of one key may continue in the next row group, where the last one is.
    for (let at = reader.groups.length - 1; at >= 0; at--) {
      const group = reader.groups[at]
      if (group === undefined) continue
      const wanted = keys
        .slice(lowerBound(keys, group.first), upperBound(keys, group.last))
        .filter((key) => !positions.has(key))
      if (wanted.length === 0) continue
      const block = await this.#blockOf(file, reader, at)
      for (const key of wanted) {
        const row = block.findLast(key)
        if (row !== null) positions.set(key, group.rowStart + row)
      }
    }
    return positions
  }

  async #readerOf({ path, bytes }: DataFile): Promise<ParquetFileReader> {
    let reader = this.#readers.get(path)
    if (reader === undefined) {
      reader = await ParquetFileReader.open(this.#storage, { path: this.#resolve(path), bytes }, '_key')
      evictOldest(this.#readers, READERS_MAX - 1)
    } else this.#readers.delete(path)
    this.#readers.set(path, reader)
    return reader
  }

  async #blockOf({ path }: DataFile, reader: ParquetFileReader, at: number): Promise<KeyBlock> {
    const id = `${at} ${path}`
    let block = this.#blocks.get(id)
    if (block === undefined) {
      const values = (await reader.readGroup(at, ['_key'])).get('_key') ?? []
      block = new KeyBlock(values as Uint8Array[])
      this.#blockBytes += block.bytes
    } else this.#blocks.delete(id)
    this.#blocks.set(id, block)
    for (const [oldest, { bytes }] of this.#blocks) {
      if (this.#blockBytes <= BLOCK_BYTES_MAX || oldest === id) break
      this.#blocks.delete(oldest)
      this.#blockBytes -= bytes
    }
    return block
  }
}

/** The sorted keys of a row group, in one buffer. */
class KeyBlock {
  readonly #text: Buffer
  readonly #ends: Uint32Array

  constructor(keys: readonly Uint8Array[]) {
    this.#text = Buffer.concat(keys)
    this.#ends = new Uint32Array(keys.length)
    let end = 0
    for (const [at, key] of keys.entries()) this.#ends[at] = end += key.length
  }

  get bytes(): number {
    return this.#text.length + this.#ends.byteLength
  }

  /** The last row with this key; null if there is none. */
  findLast(key: Buffer): number | null {
    let [low, high] = [0, this.#ends.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#compare(middle, key) <= 0) low = middle + 1
      else high = middle
    }
    return low > 0 && this.#compare(low - 1, key) === 0 ? low - 1 : null
  }

  #compare(at: number, key: Buffer): number {
    const start = at === 0 ? 0 : (this.#ends[at - 1] ?? 0)
    return this.#text.compare(key, 0, key.length, start, this.#ends[at] ?? 0)
  }
}

/** The first index whose key is not below the bound. */
function lowerBound(keys: readonly Buffer[], bound: Buffer | null): number {
  return bound === null ? 0 : firstWhere(keys, (key) => key.compare(bound) >= 0)
}

/** The first index whose key is above the bound. */
function upperBound(keys: readonly Buffer[], bound: Buffer | null): number {
  return bound === null ? keys.length : firstWhere(keys, (key) => key.compare(bound) > 0)
}

function firstWhere(keys: readonly Buffer[], isReached: (key: Buffer) => boolean): number {
  let [low, high] = [0, keys.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    const key = keys[middle]
    if (key !== undefined && isReached(key)) high = middle
    else low = middle + 1
  }
  return low
}

function evictOldest(map: Map<string, unknown>, sizeMax: number): void {
  for (const key of map.keys()) {
    if (map.size <= sizeMax) return
    map.delete(key)
  }
}
