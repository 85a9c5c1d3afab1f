import { SyncError } from '../../contract/index.ts'

/** Negative, zero or positive, by the same order the source sorts with. */
export type CompareIds = (a: string, b: string) => number

/** By code point, which is the order of the bytes in UTF-8 and of `COLLATE "C"`. No language, no folding of case. */
export const binaryIds: CompareIds = (a, b) => {
  const length = Math.min(a.length, b.length)
  for (let index = 0; index < length; index++) {
    const x = a.charCodeAt(index)
    const y = b.charCodeAt(index)
    if (x !== y) return rankCodeUnit(x) - rankCodeUnit(y)
  }
  return a.length - b.length
}

/** Whole numbers of any length, as text: "9" comes before "10", and beyond 2^53 no two ids become one. */
export const numericIds: CompareIds = (a, b) => {
  const x = parseWholeNumber(a)
  const y = parseWholeNumber(b)
  return x < y ? -1 : x > y ? 1 : 0
}

export function parseWholeNumber(id: string): bigint {
  if (!/^-?\d{1,100}$/.test(id)) throw new SyncError('SOURCE_INVALID', 'An id is not a whole number, though the source is declared to have numeric ids.')
  return BigInt(id)
}

/** Surrogates stand for code points above every other unit, but are numbered below the last 8192 of them. */
function rankCodeUnit(unit: number): number {
  if (unit < 0xd800) return unit
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800
}
