import { stripVTControlCharacters } from 'node:util'

/** Columns as wide as their widest cell; the last one takes what is left and is not padded. Cells may carry colours. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = head.map((title, column) => Math.max(width(title), ...rows.map((row) => width(row[column] ?? ''))))
  return [head, ...rows].map((row) => row.map((cell, column) => (column === row.length - 1 ? cell : pad(cell, widths[column]!))).join('  ').trimEnd())
}

export function pad(cell: string, to: number): string {
  return cell + ' '.repeat(Math.max(0, to - width(cell)))
}

/** Cut to what a line can show. Only for text without colours: a cut inside one would leave it open. */
export function clip(text: string, to: number): string {
  return text.length <= to ? text : `${text.slice(0, Math.max(0, to - 1))}…`
}

export function width(text: string): number {
  return stripVTControlCharacters(text).length
}
