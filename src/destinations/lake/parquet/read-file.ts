import {
  parquetMetadataAsync,
  parquetRead,
  parquetSchema,
  type AsyncBuffer,
  type FileMetaData,
  type SchemaTree,
} from 'hyparquet'
import { SyncError } from '../../../contract/index.ts'
import type { PhysicalValue } from '../encode-values.ts'
import type { Storage } from '../storage/storage.ts'
import { KEYS_ENTRY, type GroupKeys } from './write-file.ts'

/** A row group, with the first and the last value of the sort column. */
export interface GroupInfo {
  readonly rowStart: number
  readonly rows: number
  readonly first: Buffer
  readonly last: Buffer
}

const FOOTER_FETCH_BYTES = 64 * 1024

/** Reads the row groups of a file that `ParquetFileWriter` wrote, as physical values. */
export class ParquetFileReader {
  readonly groups: readonly GroupInfo[]
  readonly #file: AsyncBuffer
  readonly #metadata: FileMetaData
  readonly #decimals: ReadonlySet<string>

  private constructor(file: AsyncBuffer, metadata: FileMetaData, groups: readonly GroupInfo[]) {
    this.#file = file
    this.#metadata = metadata
    this.groups = groups
    this.#decimals = stripTypes(metadata)
  }

  /** `only` keeps the metadata of one column, for readers that stay in memory. */
  static async open(
    storage: Storage,
    { path, bytes }: { readonly path: string; readonly bytes: number },
    only?: string,
  ): Promise<ParquetFileReader> {
    const file: AsyncBuffer = {
      byteLength: bytes,
      slice: async (start, end = bytes) => toArrayBuffer(await storage.readRange(path, start, end)),
    }
    try {
      const metadata = await parquetMetadataAsync(file, { geoparquet: false, initialFetchSize: FOOTER_FETCH_BYTES })
      const groups = readGroups(metadata)
      return new ParquetFileReader(file, only === undefined ? metadata : keepColumn(metadata, only), groups)
    } catch (error) {
      throw toReadError(storage, path, error)
    }
  }

  /** The columns of one row group, by name. */
  async readGroup(at: number, columns?: string[]): Promise<Map<string, PhysicalValue[]>> {
    const group = this.groups[at]
    const values = new Map<string, PhysicalValue[]>()
    if (group === undefined) return values
    await parquetRead({
      file: this.#file,
      metadata: this.#metadata,
      rowStart: group.rowStart,
      rowEnd: group.rowStart + group.rows,
      utf8: false,
      geoparquet: false,
      ...(columns !== undefined && { columns }),
      onChunk: ({ columnName, columnData }) => {
        const list = values.get(columnName)
        const isDecimal = this.#decimals.has(columnName)
        const part = Array.from(columnData as ArrayLike<PhysicalValue>, (value) =>
          isDecimal ? decodeDecimal(value) : (value ?? null),
        )
        values.set(columnName, list === undefined ? part : list.concat(part))
      },
    })
    return values
  }
}

function readGroups({ key_value_metadata: entries, row_groups }: FileMetaData): GroupInfo[] {
  const text = entries?.find(({ key }) => key === KEYS_ENTRY)?.value
  if (text === undefined) throw new Error(`the file has no ${KEYS_ENTRY}`)
  const { rows, first, last } = JSON.parse(text) as GroupKeys
  if (rows.length !== row_groups.length) throw new Error(`${KEYS_ENTRY} does not match the row groups`)
  let rowStart = 0
  return rows.map((count, at) => {
    const group = {
      rowStart,
      rows: count,
      first: Buffer.from(first[at] ?? ''),
      last: Buffer.from(last[at] ?? ''),
    }
    rowStart += count
    return group
  })
}

/** Without the logical types, the library returns the stored values unchanged. Returns the decimal columns. */
function stripTypes(metadata: FileMetaData): Set<string> {
  const decimals = new Set<string>()
  const visit = ({ element, children }: SchemaTree, column: string): void => {
    for (const child of children) visit(child, column)
    if (children.length > 0) return
    if (element.converted_type === 'DECIMAL') decimals.add(column)
    delete element.converted_type
    delete element.logical_type
  }
  for (const child of parquetSchema(metadata).children) visit(child, child.element.name)
  return decimals
}

function keepColumn(metadata: FileMetaData, name: string): FileMetaData {
  const [root] = metadata.schema
  return {
    ...metadata,
    schema: [
      { ...root, name: 'table', num_children: 1 },
      ...metadata.schema.filter((element) => element.name === name),
    ],
    row_groups: metadata.row_groups.map((group) => ({
      ...group,
      columns: group.columns.filter(({ meta_data }) => meta_data?.path_in_schema[0] === name),
    })),
    key_value_metadata: [],
  }
}

/** Two's complement, big-endian. */
function decodeDecimal(value: PhysicalValue): PhysicalValue {
  if (Array.isArray(value)) return value.map(decodeDecimal)
  if (!(value instanceof Uint8Array)) return value ?? null
  return BigInt.asIntN(value.length * 8, BigInt(`0x${Buffer.from(value).toString('hex')}`))
}

function toArrayBuffer(bytes: Buffer): ArrayBuffer {
  if (bytes.byteOffset === 0 && bytes.length === bytes.buffer.byteLength) return bytes.buffer as ArrayBuffer
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer
}

function toReadError(storage: Storage, path: string, error: unknown): SyncError {
  if (error instanceof SyncError) return error
  return new SyncError(
    'DESTINATION_FOREIGN',
    `${storage.uri}/${path} is not a file that Tidemark wrote: ${error instanceof Error ? error.message : String(error)}.`,
    { cause: error },
  )
}
