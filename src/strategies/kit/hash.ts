/** Sums of hashes below this stay exact, so the order of summation does not matter. */
export const HASH_RANGE = 2 ** 48

/** FNV-1a in two lanes: distinguishes values, not for cryptography. */
export function hashText(text: string): number {
  let low = 0x811c9dc5
  let high = 0x050c5d1f
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    low = Math.imul(low ^ unit, 0x01000193)
    high = Math.imul(high ^ unit, 0x0100019f)
  }
  return (high >>> 16) * 2 ** 32 + (low >>> 0)
}
