import type { Column } from '../../contract/index.ts'

/**
 * Returns the known columns plus the new ones of a page, in order of first appearance; the same array when nothing is
 * new.
 */
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
  /** The column's name in the view: the field's own name, unless another name is equal to the database. */
  readonly columnName: string
}

/**
 * Names the columns of a view. Databases fold case and truncate long names, so two fields may collide: the first keeps
 * its name and later ones get a number, in order of first appearance, so a name never changes.
 */
export function nameColumns(
  columns: readonly Column[],
  reserved: readonly string[],
  bytesMax: number,
  columnsMax: number,
): NamedColumn[] {
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

/** Returns a free column name for a field; null when no valid name exists. */
export function nameColumn(member: string, taken: ReadonlySet<string>, bytesMax: number): string | null {
  if (member === '' || member.includes('\0') || !member.isWellFormed()) return null
  let name = truncateToBytes(member, bytesMax)
  for (let n = 2; taken.has(name.toLowerCase()); n++) name = `${truncateToBytes(member, bytesMax - 6)}_${n}`
  return name
}

/** Quotes a name for SQL. */
export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** Quotes a text as a SQL literal. */
export function quoteLiteral(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

function truncateToBytes(text: string, bytesMax: number): string {
  let cut = text
  while (Buffer.byteLength(cut) > bytesMax) cut = cut.slice(0, -1)
  return cut.isWellFormed() ? cut : cut.slice(0, -1)
}
