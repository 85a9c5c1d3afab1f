import type { Column, ColumnKind } from '../contract/index.ts'

type Columns = Readonly<Record<string, readonly Column[]>>

/** Of so many pages of a run the drift is put on record, and of each so much: records whose members are keys of a map drift for ever. */
const PAGES_MAX = 5
const WORDS_MAX = 10
const NAME_MAX = 64

/**
 * How the records of a cycle differ from all that landed before it: members that are new, that are gone, or that are of another
 * kind. It is told, and they land. An integer that becomes a larger or a broken number is no other kind.
 */
export class Drift {
  readonly #before: Columns
  readonly #known = new Map<string, number>()
  readonly #met = new Set<string>()
  readonly #databases = new Set<string>()
  #pages = 0
  /** All that was told in this run. */
  readonly words: string[] = []

  constructor(before: Columns) {
    this.#before = before
    this.#learn(before)
  }

  /** What a page brings that is not as before, in words. A database without records has no before. */
  look(columns: Columns): string[] {
    return Object.entries(columns).flatMap(([database, seen]) => (this.#hasBefore(database) ? seen.flatMap((column) => this.#wordOf(database, column)) : []))
  }

  /** Of a listing that was read from its beginning: what no record has any more. `columns` are those of its last page. */
  gone(columns: Columns): string[] {
    for (const [database, seen] of Object.entries(columns)) this.#meet(database, seen)
    return Object.entries(this.#before).filter(([database]) => this.#databases.has(database)).flatMap(([database, known]) => (
      known.filter(({ name }) => !this.#met.has(idOf(database, name))).map(({ name }) => `gone ${shown(database, name)}`)
    ))
  }

  /** The words of a page as they are put on record; null when there is nothing to tell, or too much has been told. */
  textOf(words: readonly string[]): string | null {
    if (words.length === 0 || this.#pages >= PAGES_MAX) return null
    return words.length <= WORDS_MAX ? words.join('; ') : `${words.slice(0, WORDS_MAX).join('; ')}; and ${words.length - WORDS_MAX} more`
  }

  /** Only now: a page that is read again is looked at again. */
  landed(columns: Columns, words: readonly string[], noted: readonly string[] = []): void {
    this.#learn(columns)
    for (const [database, seen] of Object.entries(columns)) this.#meet(database, seen)
    if (words.length > 0 && ++this.#pages <= PAGES_MAX) this.words.push(...words.slice(0, WORDS_MAX))
    // The store notes each once.
    this.words.push(...noted.slice(0, WORDS_MAX))
  }

  #hasBefore(database: string): boolean {
    return (this.#before[database]?.length ?? 0) > 0
  }

  #wordOf(database: string, { name, kinds }: Column): string[] {
    const before = this.#known.get(idOf(database, name))
    if (before === undefined) return [`new ${shown(database, name)} (${kinds.join(', ') || 'null'})`]
    // Only nulls so far say nothing.
    const other = before === 0 ? [] : kinds.filter((kind) => (before & familyOf(kind)) === 0)
    return other.length === 0 ? [] : [`${shown(database, name)} is ${other.join(', ')} now`]
  }

  #learn(columns: Columns): void {
    for (const [database, seen] of Object.entries(columns)) {
      for (const { name, kinds } of seen) {
        const id = idOf(database, name)
        this.#known.set(id, kinds.reduce((bits, kind) => bits | familyOf(kind), this.#known.get(id) ?? 0))
      }
    }
  }

  #meet(database: string, seen: readonly Column[]): void {
    if (seen.length > 0) this.#databases.add(database)
    for (const { name } of seen) this.#met.add(idOf(database, name))
  }
}

const FAMILIES: Readonly<Record<ColumnKind, number>> = { bigint: 1, integer: 1, number: 1, boolean: 2, json: 4, string: 8 }

function familyOf(kind: ColumnKind): number {
  return FAMILIES[kind]
}

function idOf(database: string, name: string): string {
  return JSON.stringify([database, name])
}

function shown(database: string, name: string): string {
  return `${database}.${name.length > NAME_MAX ? `${name.slice(0, NAME_MAX)}…` : name}`
}
