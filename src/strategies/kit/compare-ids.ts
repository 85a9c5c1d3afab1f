import { SyncError } from '../../contract/index.ts'

/** Returns a negative number, zero or a positive number, in the source's own sort order. */
export type CompareIds = (a: string, b: string) => number

/** By code point, the order of UTF-8 bytes and of `COLLATE "C"`, without locale or case folding. */
export const binaryIds: CompareIds = (a, b) => {
  const length = Math.min(a.length, b.length)
  for (let index = 0; index < length; index++) {
    const x = a.charCodeAt(index)
    const y = b.charCodeAt(index)
    if (x !== y) return rankCodeUnit(x) - rankCodeUnit(y)
  }
  return a.length - b.length
}

/** Whole numbers of any length, as text: "9" sorts before "10", and ids beyond 2^53 stay distinct. */
export const numericIds: CompareIds = (a, b) => {
  const x = parseWholeNumber(a)
  const y = parseWholeNumber(b)
  return x < y ? -1 : x > y ? 1 : 0
}

export function parseWholeNumber(id: string): bigint {
  if (!/^-?\d{1,100}$/.test(id))
    throw new SyncError(
      'SOURCE_INVALID',
      'An id is not a whole number, but the source declares numeric ids. Use `binaryIds` or correct the declaration.',
    )
  return BigInt(id)
}

/** Surrogates encode the highest code points, but their code units sort below the last 8192 units. */
function rankCodeUnit(unit: number): number {
  if (unit < 0xd800) return unit
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800
}
