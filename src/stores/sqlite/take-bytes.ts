/** Rows up to so many bytes of text, at least one. The rest is not read, so a page of large records costs no more memory than that. */
export function takeBytes<Row>(rows: Iterable<Row>, bytesMax: number, textOf: (row: Row) => string | null): { taken: Row[]; isCut: boolean } {
  const taken: Row[] = []
  let bytes = 0
  for (const row of rows) {
    // Breaking off also resets the statement.
    if (bytes >= bytesMax) return { taken, isCut: true }
    taken.push(row)
    bytes += Buffer.byteLength(textOf(row) ?? '')
  }
  return { taken, isCut: false }
}
