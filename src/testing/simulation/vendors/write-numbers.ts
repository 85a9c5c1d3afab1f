/** Every write bears its number in a text of the record, so that a row tells which write it is. */
export function formatWriteNumber(n: number): string {
  return `write ${n}`
}

export function parseWriteNumber(text: unknown): number {
  const match = typeof text === 'string' ? /^write (\d+)$/.exec(text) : null
  return match === null ? Number.NaN : Number(match[1])
}
