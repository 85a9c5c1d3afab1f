/** The digits of a decimal column: the most that Iceberg and Parquet readers support. */
export const DECIMAL_DIGITS = 38

/** The value times 10^scale; null if it has more decimals, or more digits than a column holds. */
export function toUnscaled(value: string | number | bigint, scale: number): bigint | null {
  const parts = splitDecimal(value)
  if (parts === null || parts.decimals.length > scale) return null
  const unscaled = BigInt(`${parts.digits}${parts.decimals.padEnd(scale, '0')}`)
  if (unscaled >= LIMIT) return null
  return parts.isNegative ? -unscaled : unscaled
}

const LIMIT = 10n ** BigInt(DECIMAL_DIGITS)

/** How many decimals a value is written with; null if it is not a decimal. */
export function decimalsOf(value: string | number | bigint): number | null {
  return splitDecimal(value)?.decimals.length ?? null
}

function splitDecimal(
  value: string | number | bigint,
): { isNegative: boolean; digits: string; decimals: string } | null {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value))
  if (match === null) return null
  const [, sign, digits = '', decimals = '', exponent = '0'] = match
  const shift = Number(exponent)
  // A double has an exponent; beyond these it does not fit anyway.
  if (Math.abs(shift) > DECIMAL_DIGITS) return null
  if (shift === 0) return { isNegative: sign === '-', digits, decimals }
  const all = digits + decimals
  const point = digits.length + shift
  if (point <= 0) return { isNegative: sign === '-', digits: '0', decimals: all.padStart(all.length - point, '0') }
  return {
    isNegative: sign === '-',
    digits: all.slice(0, point).padEnd(point, '0'),
    decimals: all.slice(point),
  }
}
