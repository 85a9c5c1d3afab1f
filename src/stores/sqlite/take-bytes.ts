/**
 * Takes rows up to `bytesMax` bytes of text, at least one. The rest is not read, which bounds the memory of a page of
 * large records.
 */
export function takeBytes<Row>(
  rows: Iterable<Row>,
  bytesMax: number,
  textOf: (row: Row) => string | null,
): { taken: Row[]; isCut: boolean } {
  const taken: Row[] = []
  let bytes = 0
  for (const row of rows) {
    // Leaving the loop also resets the statement.
    if (bytes >= bytesMax) return { taken, isCut: true }
    taken.push(row)
    bytes += Buffer.byteLength(textOf(row) ?? '')
  }
  return { taken, isCut: false }
}
