import type { LogEntry } from '../../contract/index.ts'
import { required } from '../../values/required.ts'

export interface MirrorRow {
  readonly sequence: number
  readonly committedAt: number
  /** NaN where records carry no version. */
  readonly v: number
  readonly text: string
}

/** A table built by reading the feed, as a consumer would build it, with the invariants of O8 checked on the way. */
export class FeedMirror {
  lastSequence = 0
  readonly rows = new Map<string, MirrorRow>()
  readonly #reportViolation: (oracle: string, message: string) => void
  readonly #mayRelog: (entry: LogEntry) => boolean
  #last: { committedAt: number; commit: string } = { committedAt: 0, commit: '' }

  /** `mayRelog`: whether the entry may repeat the current content of the row; see Commit.forceLogSince. */
  constructor(
    violate: (oracle: string, message: string) => void,
    mayRestate: (entry: LogEntry) => boolean = () => false,
  ) {
    this.#reportViolation = violate
    this.#mayRelog = mayRestate
  }

  apply(entries: readonly LogEntry[]): void {
    for (const entry of entries) {
      const { key, sequence, action, text, committedAt } = entry
      if (sequence !== this.lastSequence + 1)
        this.#reportViolation('O8', `sequence ${sequence} follows ${this.lastSequence}`)
      this.lastSequence = sequence
      const commit = `${entry.sync} ${entry.cycle} ${entry.page}`
      const isSameCommit = commit === this.#last.commit
      // A sweep commits right after its page, with its own commit time.
      const isSwept = isSameCommit && action === 'deleted' && committedAt === this.#last.committedAt + 1
      if (!isSwept && (isSameCommit ? committedAt !== this.#last.committedAt : committedAt <= this.#last.committedAt)) {
        this.#reportViolation(
          'O8',
          `sequence ${sequence} was committed at ${committedAt}, the one before at ${this.#last.committedAt}`,
        )
      }
      this.#last = { committedAt, commit }
      const row = this.rows.get(key)
      const isRestatedDelete = action === 'deleted' && row === undefined && this.#mayRelog(entry)
      if ((action === 'created') !== (row === undefined) && !isRestatedDelete)
        this.#reportViolation(
          'O8',
          `${key} was ${action} at ${sequence} though the row did ${row === undefined ? 'not ' : ''}exist`,
        )
      if (action === 'deleted') this.rows.delete(key)
      else {
        if (row?.text === text && !this.#mayRelog(entry))
          this.#reportViolation('O8', `${key} was ${action} at ${sequence} without a change`)
        this.rows.set(key, {
          sequence,
          committedAt,
          v: parseVersion(required(text, 'text')),
          text: required(text, 'text'),
        })
      }
    }
  }
}

export function parseVersion(text: string): number {
  return (JSON.parse(text) as { v?: number }).v ?? Number.NaN
}
