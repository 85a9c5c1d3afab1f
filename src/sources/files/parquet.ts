import {
  parquetMetadataAsync,
  parquetReadObjects,
  parquetSchema,
  type AsyncBuffer,
  type Compressors,
  type FileMetaData,
  type SchemaElement,
  type SchemaTree,
} from 'hyparquet'
import { SyncError, type ColumnType, type JsonObject, type JsonValue } from '../../contract/index.ts'
import { parseJson } from '../../values/json.ts'
import type { OpenFile } from './folder.ts'
import { setMember, UnreadableFileError, type FileRow, type RowReader } from './row-reader.ts'
import { importPackage } from '../../values/import-package.ts'

/** Rows are addressed by number; one row group is held in memory. */
export const parquetReader: RowReader = async function* rows(file, from, rowsMax, onColumns) {
  const buffer = toAsyncBuffer(file)
  const metadata = await wrapParquetErrors(() => parquetMetadataAsync(buffer))
  const compressors = await loadCompressors(metadata)
  const shape = parquetSchema(metadata).children.flatMap(({ element, children }) => {
    const type = children.length > 0 ? null : toColumnType(element)
    return type === null ? [] : [{ name: element.name, type }]
  })
  onColumns?.(shape)
  const columns = readColumns(metadata)
  const total = Number(metadata.num_rows)
  for (let row = from.row; row < total; row += rowsMax) {
    const read = await wrapParquetErrors(() =>
      parquetReadObjects({
        file: buffer,
        metadata,
        rowStart: row,
        rowEnd: Math.min(row + rowsMax, total),
        utf8: false,
        geoparquet: false,
        parsers: PARSERS,
        ...(compressors !== undefined && { compressors }),
      }),
    )
    for (const [index, values] of read.entries()) {
      const record = toRecord(values, columns)
      yield {
        record,
        end: { row: row + index + 1, offset: 0 },
        bytes: Object.keys(record).length * 16,
      } satisfies FileRow
    }
  }
}

/** Read errors keep their code; any other error means that the library cannot parse the file. */
async function wrapParquetErrors<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof SyncError) throw error
    throw new UnreadableFileError('the file is not readable Parquet', { cause: error })
  }
}

function toAsyncBuffer(file: OpenFile): AsyncBuffer {
  return {
    byteLength: file.size,
    slice: async (start, end = file.size) => {
      const bytes = await file.read(start < 0 ? Math.max(0, file.size + start) : start, end)
      return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer
    },
  }
}

/** Optional dependency, needed only for these codecs. */
async function loadCompressors({ row_groups }: FileMetaData): Promise<Compressors | undefined> {
  const codecs = new Set(
    row_groups.flatMap(({ columns }) => columns.map(({ meta_data }) => meta_data?.codec ?? 'UNCOMPRESSED')),
  )
  const other = [...codecs].find((codec) => codec !== 'UNCOMPRESSED' && codec !== 'SNAPPY')
  if (other === undefined) return undefined
  const { compressors } = await importPackage(
    'hyparquet-compressors',
    `Parquet files compressed with ${other} need`,
    () => import('hyparquet-compressors'),
  )
  return compressors as Compressors
}

// ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────────

interface ParquetColumn {
  readonly name: string
  /** Scale of a decimal; null for other types. */
  readonly scale: number | null
  /** A timestamp without a time zone. */
  readonly isLocal: boolean
}

/** Removes the decimal annotation, so the unscaled integer is returned: the library would convert it to a double. */
function readColumns(metadata: FileMetaData): ParquetColumn[] {
  return parquetSchema(metadata).children.map((tree) => {
    const { element } = tree
    if (isDecimal(element)) {
      const { scale = 0 } = element
      delete element.converted_type
      delete element.logical_type
      return { name: element.name, scale, isLocal: false }
    }
    if (holdsDecimals(tree))
      throw new UnreadableFileError(
        `the column ${JSON.stringify(element.name)} has decimals inside a list or a group, which cannot be read exactly`,
      )
    const { logical_type } = element
    return {
      name: element.name,
      scale: null,
      isLocal: logical_type?.type === 'TIMESTAMP' && !logical_type.isAdjustedToUTC,
    }
  })
}

/** Returns null if the type must be inferred from the values: lists, groups and intervals. */
function toColumnType(element: SchemaElement): ColumnType | null {
  const { type, converted_type: converted, logical_type: logical, repetition_type: repetition } = element
  if (repetition === 'REPEATED') return null
  if (isDecimal(element)) return 'decimal'
  if (logical?.type === 'TIMESTAMP') return logical.isAdjustedToUTC ? 'timestamp' : 'datetime'
  switch (converted) {
    case 'UTF8':
    case 'ENUM':
      return 'text'
    case 'JSON':
    case 'BSON':
      return 'json'
    case 'DATE':
      return 'date'
    case 'TIMESTAMP_MILLIS':
    case 'TIMESTAMP_MICROS':
      return 'timestamp'
    case 'UINT_64':
      return 'numeric'
    case 'INTERVAL':
    case 'TIME_MILLIS':
    case 'TIME_MICROS':
      return null
    default:
      return logical === undefined || logical.type === 'INTEGER'
        ? (PHYSICAL_TYPES[type ?? ''] ?? null)
        : logical.type === 'DATE'
          ? 'date'
          : logical.type === 'STRING'
            ? 'text'
            : null
  }
}

const PHYSICAL_TYPES: Readonly<Record<string, ColumnType>> = {
  BOOLEAN: 'boolean',
  BYTE_ARRAY: 'bytes',
  DOUBLE: 'double',
  FIXED_LEN_BYTE_ARRAY: 'bytes',
  FLOAT: 'double',
  INT32: 'bigint',
  INT64: 'bigint',
  INT96: 'timestamp',
}

function isDecimal({ converted_type, logical_type }: SchemaElement): boolean {
  return converted_type === 'DECIMAL' || logical_type?.type === 'DECIMAL'
}

function holdsDecimals({ children }: SchemaTree): boolean {
  return children.some((child) => isDecimal(child.element) || holdsDecimals(child))
}

function toRecord(values: Record<string, unknown>, columns: readonly ParquetColumn[]): JsonObject {
  const record: JsonObject = {}
  for (const { name, scale, isLocal } of columns) {
    const raw = values[name]
    const value =
      scale === null || raw === null || raw === undefined ? toJsonValue(raw) : formatDecimal(toBigInt(raw), scale)
    setMember(record, name, isLocal && typeof value === 'string' ? value.replace(/Z$/, '') : value)
  }
  return record
}

function toJsonValue(value: unknown): JsonValue {
  if (value === null || value === undefined) return null
  if (typeof value === 'bigint')
    return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value
  // Numbers that JSON cannot represent become strings.
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value)
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  if (Array.isArray(value)) return value.map(toJsonValue)
  if (typeof value !== 'object') return value as JsonValue
  const object: JsonObject = {}
  for (const [name, field] of Object.entries(value)) setMember(object, name, toJsonValue(field))
  return object
}

/** Two's complement, big-endian. */
function toBigInt(value: unknown): bigint {
  if (!(value instanceof Uint8Array)) return BigInt(value as bigint | number)
  return value.length === 0 ? 0n : BigInt.asIntN(value.length * 8, BigInt(`0x${Buffer.from(value).toString('hex')}`))
}

function formatDecimal(integer: bigint, scale: number): string {
  if (scale === 0) return integer.toString()
  const digits = (integer < 0n ? -integer : integer).toString().padStart(scale + 1, '0')
  return `${integer < 0n ? '-' : ''}${digits.slice(0, -scale)}.${digits.slice(-scale)}`
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const decodeText = (bytes: Uint8Array | undefined): string | undefined => bytes && decoder.decode(bytes)

/** Timestamps keep every digit of the file. */
const PARSERS = {
  timestampFromMilliseconds: (value: bigint) => formatTimestamp(value, 3),
  timestampFromMicroseconds: (value: bigint) => formatTimestamp(value, 6),
  timestampFromNanoseconds: (value: bigint) => formatTimestamp(value, 9),
  dateFromDays: (days: number) => formatDate(days),
  stringFromBytes: decodeText,
  jsonFromBytes: (bytes: Uint8Array | undefined) =>
    bytes === undefined ? undefined : parseJson(decoder.decode(bytes)),
} as never

function formatTimestamp(given: bigint | null | undefined, digits: 3 | 6 | 9): string | null {
  if (given === null || given === undefined) return null
  const at = BigInt(given)
  const unit = 10n ** BigInt(digits)
  const fraction = ((at % unit) + unit) % unit
  const seconds = Number((at - fraction) / unit)
  return `${new Date(seconds * 1_000).toISOString().slice(0, -5)}.${fraction.toString().padStart(digits, '0')}Z`
}

function formatDate(days: number | null | undefined): string | null {
  return days === null || days === undefined ? null : new Date(days * 86_400_000).toISOString().replace(/T.*/, '')
}
