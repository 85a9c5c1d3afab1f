import type { RecordVersion } from './versioned-records.ts'

/** Which records a read shows, and in which order. Compared by identity, so declare each once. */
export interface RecordView {
  /** Reads of the primary store show a write at once; those of an index, when it has been indexed. */
  readonly reads: 'primary' | 'index'
  /** A total order: no two records are equal. */
  readonly order: (a: RecordVersion, b: RecordVersion) => number
  readonly includes: (version: RecordVersion) => boolean
  /** Records of one group are listed separately from those of another. */
  readonly group?: (version: RecordVersion) => string
}

/** More than this many are merged by a sort rather than inserted one by one. */
const SINGLE_INSERTS_MAX = 32

/** A view of one type, kept sorted between reads: a page costs the same in a large table as in a small one. */
export class SortedView {
  readonly #view: RecordView
  #groups = new Map<string, RecordVersion[]>()
  #shown = new Map<string, RecordVersion>()
  #delayed: RecordVersion[] = []
  #journalOffset = 0
  #nowMs = -Infinity

  constructor(view: RecordView) {
    this.#view = view
  }

  /** `journal`: every write to the type so far. */
  list(journal: readonly RecordVersion[], nowMs: number, group: string): readonly RecordVersion[] {
    // A clock that was set back hides again the writes it had shown.
    if (nowMs < this.#nowMs) this.#forget()
    this.#nowMs = nowMs
    if (this.#journalOffset < journal.length || this.#delayed.length > 0) this.#catchUp(journal)
    return this.#groups.get(group) ?? []
  }

  #catchUp(journal: readonly RecordVersion[]): void {
    const waiting = [...this.#delayed, ...journal.slice(this.#journalOffset)]
    this.#journalOffset = journal.length
    this.#delayed = this.#view.reads === 'primary' ? [] : waiting.filter((version) => version.visibleAtMs > this.#nowMs)
    const before = new Map<string, RecordVersion | undefined>()
    for (const version of this.#delayed.length === 0
      ? waiting
      : waiting.filter(({ visibleAtMs }) => visibleAtMs <= this.#nowMs)) {
      const shown = this.#shown.get(version.id)
      // An older version that becomes visible late does not hide the newer one.
      if (shown !== undefined && shown.serial > version.serial) continue
      if (!before.has(version.id)) before.set(version.id, shown)
      this.#shown.set(version.id, version)
    }
    const removed = [...before.values()].filter(
      (version) => version !== undefined && this.#view.includes(version),
    ) as RecordVersion[]
    const added = [...before.keys()].map((id) => this.#shown.get(id)!).filter((version) => this.#view.includes(version))
    const groups = new Map<string, { removed: RecordVersion[]; added: RecordVersion[] }>()
    const changesOf = (version: RecordVersion): { removed: RecordVersion[]; added: RecordVersion[] } => {
      const name = this.#view.group?.(version) ?? ''
      if (!groups.has(name)) groups.set(name, { removed: [], added: [] })
      return groups.get(name)!
    }
    for (const version of removed) changesOf(version).removed.push(version)
    for (const version of added) changesOf(version).added.push(version)
    for (const [name, changes] of groups)
      this.#groups.set(name, this.#changed(this.#groups.get(name) ?? [], changes.removed, changes.added))
  }

  #changed(list: RecordVersion[], removed: readonly RecordVersion[], added: readonly RecordVersion[]): RecordVersion[] {
    const { order } = this.#view
    if (removed.length + added.length > SINGLE_INSERTS_MAX) {
      const gone = new Set(removed)
      return [...list.filter((version) => !gone.has(version)), ...added].toSorted(order)
    }
    const placeOf = (version: RecordVersion): number => countLeading(list, (other) => order(other, version) < 0)
    for (const version of removed) list.splice(placeOf(version), 1)
    for (const version of added) list.splice(placeOf(version), 0, version)
    return list
  }

  #forget(): void {
    this.#groups = new Map()
    this.#shown = new Map()
    this.#delayed = []
    this.#journalOffset = 0
  }
}

/** Number of leading items of a sorted list for which the predicate holds. */
export function countLeading<T>(sorted: readonly T[], holds: (item: T) => boolean): number {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (holds(sorted[middle]!)) low = middle + 1
    else high = middle
  }
  return low
}
