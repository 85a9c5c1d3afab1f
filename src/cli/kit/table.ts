import { stripVTControlCharacters } from 'node:util'

/** Pads columns to their widest cell; the last column is not padded. Cells may contain colour codes. */
export function formatTable(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = head.map((title, column) =>
    Math.max(visibleWidth(title), ...rows.map((row) => visibleWidth(row[column] ?? ''))),
  )
  return [head, ...rows].map((row) =>
    row
      .map((cell, column) => (column === row.length - 1 ? cell : padToWidth(cell, widths[column] ?? 0)))
      .join('  ')
      .trimEnd(),
  )
}

export function padToWidth(cell: string, to: number): string {
  return cell + ' '.repeat(Math.max(0, to - visibleWidth(cell)))
}

/** Truncates to a visible width. Colour codes are kept, so that a cut does not leave a colour open. */
export function truncateToWidth(text: string, to: number): string {
  if (visibleWidth(text) <= to) return text
  let left = Math.max(0, to - 1)
  const kept = text.split(ANSI_COLOR).map((part, at) => {
    // Odd parts are colour codes, which have no width.
    if (at % 2 === 1) return part
    const shown = part.slice(0, left)
    left -= shown.length
    return shown
  })
  return `${kept.join('')}…`
}

const ANSI_COLOR = new RegExp(`(${String.fromCharCode(27)}\\[[\\d;]*m)`)

export function visibleWidth(text: string): number {
  return stripVTControlCharacters(text).length
}
