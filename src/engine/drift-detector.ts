import type { Column, ColumnKind } from '../contract/index.ts'

type ColumnsByDatabase = Readonly<Record<string, readonly Column[]>>

/**
 * Drift is recorded for this many pages of a run, and this many messages of each: records whose fields are map keys
 * drift forever.
 */
const REPORTED_PAGES_MAX = 5
const MESSAGES_PER_PAGE_MAX = 10
const NAME_LENGTH_MAX = 64

/**
 * Detects how the records of a cycle differ from all committed before it: fields that are new, gone, or of another
 * kind. The drift is reported, and the records are committed. An integer that becomes a larger number or a fraction
 * keeps its kind.
 */
export class DriftDetector {
  readonly #baseline: ColumnsByDatabase
  readonly #knownFamilies = new Map<string, number>()
  readonly #seenMembers = new Set<string>()
  readonly #seenDatabases = new Set<string>()
  #reportedPages = 0
  /** All drift reported in this run. */
  readonly messages: string[] = []

  constructor(before: ColumnsByDatabase) {
    this.#baseline = before
    this.#addKnownColumns(before)
  }

  /** The drift of a page, as text. A database without records has no baseline. */
  detect(columns: ColumnsByDatabase): string[] {
    return Object.entries(columns).flatMap(([database, seen]) =>
      this.#hasBaseline(database) ? seen.flatMap((column) => this.#describeColumn(database, column)) : [],
    )
  }

  /**
   * For a listing read from its beginning: fields that no record has any more. `columns` are those of its last page.
   */
  detectRemoved(columns: ColumnsByDatabase): string[] {
    for (const [database, seen] of Object.entries(columns)) this.#markSeen(database, seen)
    return Object.entries(this.#baseline)
      .filter(([database]) => this.#seenDatabases.has(database))
      .flatMap(([database, known]) =>
        known
          .filter(({ name }) => !this.#seenMembers.has(toMemberId(database, name)))
          .map(({ name }) => `gone ${formatMember(database, name)}`),
      )
  }

  /** The text to record for a page; null if there is none, or if too much has been reported. */
  formatMessages(messages: readonly string[]): string | null {
    if (messages.length === 0 || this.#reportedPages >= REPORTED_PAGES_MAX) return null
    return messages.length <= MESSAGES_PER_PAGE_MAX
      ? messages.join('; ')
      : `${messages.slice(0, MESSAGES_PER_PAGE_MAX).join('; ')}; and ${messages.length - MESSAGES_PER_PAGE_MAX} more`
  }

  /** Legal only after the commit: a page that is read again is inspected again. */
  recordLanded(columns: ColumnsByDatabase, messages: readonly string[], storeDrift: readonly string[] = []): void {
    this.#addKnownColumns(columns)
    for (const [database, seen] of Object.entries(columns)) this.#markSeen(database, seen)
    if (messages.length > 0 && ++this.#reportedPages <= REPORTED_PAGES_MAX)
      this.messages.push(...messages.slice(0, MESSAGES_PER_PAGE_MAX))
    // The store reports each of them once.
    this.messages.push(...storeDrift.slice(0, MESSAGES_PER_PAGE_MAX))
  }

  #hasBaseline(database: string): boolean {
    return (this.#baseline[database]?.length ?? 0) > 0
  }

  #describeColumn(database: string, { name, kinds }: Column): string[] {
    const before = this.#knownFamilies.get(toMemberId(database, name))
    if (before === undefined) return [`new ${formatMember(database, name)} (${kinds.join(', ') || 'null'})`]
    // Only nulls so far determine no kind.
    const other = before === 0 ? [] : kinds.filter((kind) => (before & getKindFamily(kind)) === 0)
    return other.length === 0 ? [] : [`${formatMember(database, name)} is ${other.join(', ')} now`]
  }

  #addKnownColumns(columns: ColumnsByDatabase): void {
    for (const [database, seen] of Object.entries(columns)) {
      for (const { name, kinds } of seen) {
        const id = toMemberId(database, name)
        this.#knownFamilies.set(
          id,
          kinds.reduce((bits, kind) => bits | getKindFamily(kind), this.#knownFamilies.get(id) ?? 0),
        )
      }
    }
  }

  #markSeen(database: string, seen: readonly Column[]): void {
    if (seen.length > 0) this.#seenDatabases.add(database)
    for (const { name } of seen) this.#seenMembers.add(toMemberId(database, name))
  }
}

const KIND_FAMILIES: Readonly<Record<ColumnKind, number>> = {
  bigint: 1,
  integer: 1,
  number: 1,
  boolean: 2,
  json: 4,
  string: 8,
}

function getKindFamily(kind: ColumnKind): number {
  return KIND_FAMILIES[kind]
}

function toMemberId(database: string, name: string): string {
  return JSON.stringify([database, name])
}

function formatMember(database: string, name: string): string {
  return `${database}.${name.length > NAME_LENGTH_MAX ? `${name.slice(0, NAME_LENGTH_MAX)}…` : name}`
}
