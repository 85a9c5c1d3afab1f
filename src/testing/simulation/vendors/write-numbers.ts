/** Every write stores its number in a text field of the record, so that a row identifies its write. */
export function formatWriteNumber(n: number): string {
  return `write ${n}`
}

export function parseWriteNumber(text: unknown): number {
  const match = typeof text === 'string' ? /^write (\d+)$/.exec(text) : null
  return match === null ? Number.NaN : Number(match[1])
}
