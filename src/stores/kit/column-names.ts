import type { Column } from '../../contract/index.ts'

/** The known columns with what a page adds; the same array when it adds nothing. Order of first sight is kept. */
export function mergeColumns(known: readonly Column[], seen: readonly Column[]): readonly Column[] {
  let merged: Column[] | null = null
  for (const column of seen) {
    const at = (merged ?? known).findIndex((other) => other.name === column.name)
    const old = (merged ?? known)[at]
    if (old === undefined) (merged ??= [...known]).push(column)
    else if (column.kinds.some((kind) => !old.kinds.includes(kind))) {
      merged ??= [...known]
      merged[at] = { name: old.name, kinds: [...new Set([...old.kinds, ...column.kinds])].toSorted() }
    }
  }
  return merged ?? known
}

export interface NamedColumn extends Column {
  /** The column's name in the view: the member's own, unless another one is the same to the database. */
  readonly columnName: string
}

/**
 * Names for a view. Databases fold case and cut long names, so two members may want one name: the first keeps it, the
 * next gets a number, in the order of first sight, so that a name once given never moves.
 */
export function nameColumns(columns: readonly Column[], reserved: readonly string[], bytesMax: number, columnsMax: number): NamedColumn[] {
  const taken = new Set(reserved.map((name) => name.toLowerCase()))
  const named: NamedColumn[] = []
  for (const column of columns) {
    if (named.length >= columnsMax) break
    const as = nameColumn(column.name, taken, bytesMax)
    if (as === null) continue
    taken.add(as.toLowerCase())
    named.push({ ...column, columnName: as })
  }
  return named
}

/** A free name for the column of a member; null for a member that no column can be named for. */
export function nameColumn(member: string, taken: ReadonlySet<string>, bytesMax: number): string | null {
  if (member === '' || member.includes('\0') || !member.isWellFormed()) return null
  let name = truncateToBytes(member, bytesMax)
  for (let n = 2; taken.has(name.toLowerCase()); n++) name = `${truncateToBytes(member, bytesMax - 6)}_${n}`
  return name
}

/** As an SQL identifier. */
export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** As an SQL string. */
export function quoteLiteral(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

function truncateToBytes(text: string, bytesMax: number): string {
  let cut = text
  while (Buffer.byteLength(cut) > bytesMax) cut = cut.slice(0, -1)
  return cut.isWellFormed() ? cut : cut.slice(0, -1)
}
