const SUFFIX_ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ012345'

/** Appends to fifteen case-sensitive characters the three that encode which of them are capitals. */
export function toId18(id15: string): string {
  let suffix = ''
  for (let block = 0; block < 3; block++) {
    let bits = 0
    for (let i = 0; i < 5; i++) if (/[A-Z]/.test(id15[block * 5 + i]!)) bits |= 1 << i
    suffix += SUFFIX_ALPHABET[bits]!
  }
  return id15 + suffix
}
