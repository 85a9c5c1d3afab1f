import { hash } from 'node:crypto'
import { SyncError, type StateText } from '../contract/index.ts'
import type { PreparedPage } from './prepare-page.ts'

type Content = Pick<PreparedPage, 'landings' | 'quarantined'>

/** How many positions of a cycle are remembered; a longer way round ends at the page budget. */
const HISTORY_MAX = 10_000

/** Invariant 9: a cycle that goes in circles, stands still or never gets anywhere fails instead. */
export class LoopGuard {
  readonly #sync: string
  readonly #emptyPagesMax: number
  readonly #visited = new Set<string>()
  #emptyPages = 0
  #confirming: string | null = null

  constructor(sync: string, emptyPagesMax: number, start: StateText) {
    this.#sync = sync
    this.#emptyPagesMax = emptyPagesMax
    if (start !== null) this.#visit(digest(start))
  }

  /** Before a page that says there is more is landed. A page read again for other reasons may be checked again. */
  check(asked: StateText, next: string, page: Content): void {
    if (isEmpty(page) && this.#emptyPages >= this.#emptyPagesMax) {
      throw new SyncError('EMPTY_PAGES', `${this.#sync}: ${this.#emptyPages + 1} empty pages in a row, each saying that more would come.`)
    }
    if (next === asked) {
      // Some sources advance behind an unchanged position; so ask once more, and believe the content.
      if (this.#confirming === contentOf(page)) throw new SyncError('CURSOR_STALLED', `${this.#sync}: asked twice with the same state and got the same page twice.`)
    } else if (this.#visited.has(digest(next))) {
      throw new SyncError('CURSOR_CYCLE', `${this.#sync}: the state came back to one that this cycle has already asked with.`)
    }
  }

  /** After it has landed. */
  advance(asked: StateText, next: string, page: Content): void {
    this.#emptyPages = isEmpty(page) ? this.#emptyPages + 1 : 0
    this.#confirming = next === asked ? contentOf(page) : null
    this.#visit(digest(next))
  }

  #visit(mark: string): void {
    this.#visited.add(mark)
    if (this.#visited.size > HISTORY_MAX) this.#visited.delete(this.#visited.values().next().value!)
  }
}

function digest(text: string): string {
  return hash('sha1', text, 'base64')
}

/** What could not be landed was there all the same. */
function isEmpty({ landings, quarantined }: Content): boolean {
  return landings.length === 0 && quarantined.length === 0
}

function contentOf({ landings, quarantined }: Content): string {
  const landed = landings.map((landing) => [landing.database, landing.key, landing.type === 'upsert' ? landing.hash : null])
  return digest(JSON.stringify([landed, quarantined]))
}
