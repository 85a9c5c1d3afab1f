import type { JsonValue } from '../../contract/index.ts'
import { plainDecimal } from '../../values/plain-decimal.ts'
import { itemTypeOf, isDecimal, type ColumnType, type TableColumn } from '../../stores/kit/tables/column.ts'
import type { DecimalFormats } from '../kit/extend-columns.ts'

/** The most digits of a DECIMAL. */
const WIDTH = 38
/** With 18 decimals, a column also holds every 64-bit integer. */
const SCALE = 18

/**
 * The layout of a decimal column: the digits after the point in the type, and those in the texts that it reproduces.
 * `TableColumn.format` stores it, as `18.2`. `18.*` means texts without trailing zeros, `18.?` that no value was seen.
 */
export interface DecimalFormat {
  readonly scale: number
  readonly decimals: number | '*' | '?'
}

export function isDecimalType(type: ColumnType): boolean {
  const item = itemTypeOf(type) ?? type
  return item === 'decimal' || item === 'numeric'
}

export function parseDecimalFormat({ format }: Pick<TableColumn, 'format'>): DecimalFormat {
  const [scale = '', decimals = '?'] = (format ?? `${SCALE}.?`).split('.')
  return { scale: Number(scale), decimals: decimals === '*' || decimals === '?' ? decimals : Number(decimals) }
}

/** The layout of a decimal column follows its first values. The scale of an existing column stays. */
export const DECIMAL_FORMATS: DecimalFormats = {
  isOpen: ({ name, type, format }) =>
    name !== null && isDecimalType(type) && (format === undefined || format.endsWith('?')),
  choose(column, values, isExisting) {
    const texts = values.flatMap(textsOf)
    const scale = isExisting ? parseDecimalFormat(column).scale : findScale(texts)
    return `${scale}.${texts.length === 0 ? '?' : findDecimals(column.type, texts)}`
  },
}

function textsOf(value: JsonValue | undefined): string[] {
  if (Array.isArray(value)) return value.flatMap(textsOf)
  const text = value === undefined || value === null ? null : toDigits(value)
  return text === null ? [] : [text]
}

/** Fewer decimals where the values need more digits before the point. */
function findScale(texts: readonly string[]): number {
  let digits = 0
  for (const text of texts) digits = Math.max(digits, text.replace(/^-/, '').split('.')[0]?.length ?? 0)
  return digits <= WIDTH - SCALE ? SCALE : Math.max(0, WIDTH - digits)
}

/** The most common number of decimals. JSON numbers have no trailing zeros. */
function findDecimals(type: ColumnType, texts: readonly string[]): number | '*' {
  if ((itemTypeOf(type) ?? type) === 'numeric') return '*'
  const counts = new Map<number | '*', number>()
  for (const text of texts) {
    const decimals = text.split('.')[1] ?? ''
    counts.set(decimals.length, (counts.get(decimals.length) ?? 0) + 1)
    if (!decimals.endsWith('0')) counts.set('*', (counts.get('*') ?? 0) + 1)
  }
  return [...counts].toSorted((a, b) => b[1] - a[1] || Number(a[0] === '*') - Number(b[0] === '*'))[0]?.[0] ?? '*'
}

/** A decimal value as its column stores it. */
export interface ScaledDecimal {
  /** The value times 10^scale, rounded; null if it has too many digits. */
  readonly unscaled: bigint | null
  /** The column reproduces the text, or the number, exactly. */
  readonly isExact: boolean
}

export function scaleDecimal(value: string | number | bigint, { scale, decimals }: DecimalFormat): ScaledDecimal {
  const text = toDigits(value)
  if (text === null) return { unscaled: null, isExact: false }
  const [whole = '', fraction = ''] = text.split('.')
  const kept = fraction.slice(0, scale)
  const magnitude = BigInt(`${whole.replace('-', '')}${kept.padEnd(scale, '0')}`)
  // Half away from zero, as DuckDB rounds.
  const rounded = magnitude + (fraction.charCodeAt(scale) >= FIVE ? 1n : 0n)
  if (rounded >= LIMIT) return { unscaled: null, isExact: false }
  const isSpelled =
    typeof value !== 'string' || (decimals === '*' ? !fraction.endsWith('0') : fraction.length === decimals)
  return {
    unscaled: whole.startsWith('-') ? -rounded : rounded,
    isExact: fraction.length <= scale && isSpelled,
  }
}

const FIVE = 53
const LIMIT = 10n ** BigInt(WIDTH)

/** A number as digits without an exponent; null for what is no number, or too long to be worth trying. */
function toDigits(value: JsonValue): string | null {
  if (typeof value === 'string') return value.length <= 200 && isDecimal(value) ? value : null
  if (typeof value === 'bigint') return value > -LIMIT && value < LIMIT ? String(value) : null
  if (typeof value !== 'number' || Math.abs(value) >= 1e38) return null
  return plainDecimal(value)
}
