import type { Column, ColumnKind } from '../contract/index.ts'

type ColumnsByDatabase = Readonly<Record<string, readonly Column[]>>

/** Of so many pages of a run the drift is put on record, and of each so much: records whose members are keys of a map drift for ever. */
const REPORTED_PAGES_MAX = 5
const MESSAGES_PER_PAGE_MAX = 10
const NAME_LENGTH_MAX = 64

/**
 * How the records of a cycle differ from all that landed before it: members that are new, that are gone, or that are of another
 * kind. It is told, and they land. An integer that becomes a larger or a broken number is no other kind.
 */
export class DriftDetector {
  readonly #baseline: ColumnsByDatabase
  readonly #knownFamilies = new Map<string, number>()
  readonly #seenMembers = new Set<string>()
  readonly #seenDatabases = new Set<string>()
  #reportedPages = 0
  /** All that was told in this run. */
  readonly messages: string[] = []

  constructor(before: ColumnsByDatabase) {
    this.#baseline = before
    this.#addKnownColumns(before)
  }

  /** What a page brings that is not as before, in words. A database without records has no before. */
  detect(columns: ColumnsByDatabase): string[] {
    return Object.entries(columns).flatMap(([database, seen]) => (this.#hasBaseline(database) ? seen.flatMap((column) => this.#describeColumn(database, column)) : []))
  }

  /** Of a listing that was read from its beginning: what no record has any more. `columns` are those of its last page. */
  detectRemoved(columns: ColumnsByDatabase): string[] {
    for (const [database, seen] of Object.entries(columns)) this.#markSeen(database, seen)
    return Object.entries(this.#baseline).filter(([database]) => this.#seenDatabases.has(database)).flatMap(([database, known]) => (
      known.filter(({ name }) => !this.#seenMembers.has(toMemberId(database, name))).map(({ name }) => `gone ${formatMember(database, name)}`)
    ))
  }

  /** The words of a page as they are put on record; null when there is nothing to tell, or too much has been told. */
  formatMessages(words: readonly string[]): string | null {
    if (words.length === 0 || this.#reportedPages >= REPORTED_PAGES_MAX) return null
    return words.length <= MESSAGES_PER_PAGE_MAX ? words.join('; ') : `${words.slice(0, MESSAGES_PER_PAGE_MAX).join('; ')}; and ${words.length - MESSAGES_PER_PAGE_MAX} more`
  }

  /** Only now: a page that is read again is looked at again. */
  recordLanded(columns: ColumnsByDatabase, words: readonly string[], noted: readonly string[] = []): void {
    this.#addKnownColumns(columns)
    for (const [database, seen] of Object.entries(columns)) this.#markSeen(database, seen)
    if (words.length > 0 && ++this.#reportedPages <= REPORTED_PAGES_MAX) this.messages.push(...words.slice(0, MESSAGES_PER_PAGE_MAX))
    // The store notes each once.
    this.messages.push(...noted.slice(0, MESSAGES_PER_PAGE_MAX))
  }

  #hasBaseline(database: string): boolean {
    return (this.#baseline[database]?.length ?? 0) > 0
  }

  #describeColumn(database: string, { name, kinds }: Column): string[] {
    const before = this.#knownFamilies.get(toMemberId(database, name))
    if (before === undefined) return [`new ${formatMember(database, name)} (${kinds.join(', ') || 'null'})`]
    // Only nulls so far say nothing.
    const other = before === 0 ? [] : kinds.filter((kind) => (before & getKindFamily(kind)) === 0)
    return other.length === 0 ? [] : [`${formatMember(database, name)} is ${other.join(', ')} now`]
  }

  #addKnownColumns(columns: ColumnsByDatabase): void {
    for (const [database, seen] of Object.entries(columns)) {
      for (const { name, kinds } of seen) {
        const id = toMemberId(database, name)
        this.#knownFamilies.set(id, kinds.reduce((bits, kind) => bits | getKindFamily(kind), this.#knownFamilies.get(id) ?? 0))
      }
    }
  }

  #markSeen(database: string, seen: readonly Column[]): void {
    if (seen.length > 0) this.#seenDatabases.add(database)
    for (const { name } of seen) this.#seenMembers.add(toMemberId(database, name))
  }
}

const KIND_FAMILIES: Readonly<Record<ColumnKind, number>> = { bigint: 1, integer: 1, number: 1, boolean: 2, json: 4, string: 8 }

function getKindFamily(kind: ColumnKind): number {
  return KIND_FAMILIES[kind]
}

function toMemberId(database: string, name: string): string {
  return JSON.stringify([database, name])
}

function formatMember(database: string, name: string): string {
  return `${database}.${name.length > NAME_LENGTH_MAX ? `${name.slice(0, NAME_LENGTH_MAX)}…` : name}`
}
