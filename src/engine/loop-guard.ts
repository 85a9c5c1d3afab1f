import { hash } from 'node:crypto'
import { SyncError, type ErrorCode, type Inflight, type LastError, type StateText } from '../contract/index.ts'
import type { PreparedPage } from './page-preparer.ts'

type PageContent = Pick<PreparedPage, 'landings' | 'quarantined'>

/** How many positions of one run are remembered. A longer way round is found by the anchor. */
const VISITED_STATES_MAX = 10_000

/** In so many runs the page after a standstill may be the same: a source that goes on behind its position begins there again with each. */
const STANDSTILL_RUNS_MAX = 3

const LOOP_ERROR_CODES: readonly ErrorCode[] = ['EMPTY_PAGES', 'CURSOR_STALLED', 'CURSOR_CYCLE']

/** What is kept with every page, so that a cycle in many runs is judged as one: a few bytes, however long it is. */
interface LoopGuardState {
  /** When the cycle failed here, if it did. Each failure begins all of this anew: a source that was mended may have to pass the same positions. */
  readonly failedAt: number | null
  /**
   * The position after the last page whose number is a power of two. Whoever goes in circles of n pages passes it again
   * as soon as that number is n or more and lies on the circle.
   */
  readonly anchor: string | null
  readonly emptyPages: number
  /** The content of a page that left the position as it was, and in how many runs in a row it came. */
  readonly standstill: { readonly content: string; readonly runs: number } | null
}

/** A page that may land, and what is known then. */
export interface LoopGuardStep {
  readonly stateDigest: string
  readonly guardState: LoopGuardState
}

/** Invariant 9: a cycle that goes in circles, stands still or never gets anywhere fails instead, in however many runs. */
export class LoopGuard {
  readonly #sync: string
  readonly #emptyPagesMax: number
  readonly #visited = new Set<string>()
  #state: LoopGuardState
  #isConfirmingStandstill = false

  constructor(sync: string, emptyPagesMax: number, { state, guardState: guard }: Pick<Inflight, 'state' | 'guardState'>, lastError: LastError | null) {
    this.#sync = sync
    this.#emptyPagesMax = emptyPagesMax
    const start = state === null ? null : digest(state)
    if (start !== null) this.#visited.add(start)
    const failedAt = lastError !== null && LOOP_ERROR_CODES.includes(lastError.code) ? lastError.at : null
    const kept = guard === null ? null : (JSON.parse(guard) as LoopGuardState)
    this.#state = kept?.failedAt === failedAt ? kept : { failedAt, anchor: start, emptyPages: 0, standstill: null }
  }

  /** Before a page that says there is more is landed. A page read again for other reasons may be checked again. */
  check({ state: asked, page: landed }: Pick<Inflight, 'state' | 'page'>, next: string, page: PageContent): LoopGuardStep {
    const { failedAt, anchor, emptyPages } = this.#state
    if (isEmpty(page) && emptyPages >= this.#emptyPagesMax) {
      throw new SyncError('EMPTY_PAGES', `${this.#sync}: ${emptyPages + 1} empty pages in a row, each saying that more would come.`)
    }
    const mark = digest(next)
    if (next !== asked && (mark === anchor || this.#visited.has(mark))) {
      throw new SyncError('CURSOR_CYCLE', `${this.#sync}: the state came back to one that this cycle has already asked with.`)
    }
    const kept = {
      failedAt,
      anchor: isPowerOfTwo(landed + 1) ? mark : anchor,
      emptyPages: isEmpty(page) ? emptyPages + 1 : 0,
      standstill: this.#checkStandstill(asked, next, page),
    }
    return { stateDigest: mark, guardState: kept }
  }

  /** After it has landed. */
  advance({ stateDigest: mark, guardState: kept }: LoopGuardStep): void {
    this.#state = kept
    this.#isConfirmingStandstill = kept.standstill !== null
    this.#visited.add(mark)
    if (this.#visited.size > VISITED_STATES_MAX) this.#visited.delete(this.#visited.values().next().value!)
  }

  /** Some sources advance behind an unchanged position; so ask once more, and believe the content. */
  #checkStandstill(asked: StateText, next: string, page: PageContent): LoopGuardState['standstill'] {
    if (next !== asked) return null
    const content = digestContent(page)
    const runs = content === this.#state.standstill?.content ? this.#state.standstill.runs : 0
    if (runs >= (this.#isConfirmingStandstill ? 1 : STANDSTILL_RUNS_MAX)) throw new SyncError('CURSOR_STALLED', `${this.#sync}: asked twice with the same state and got the same page twice.`)
    return { content, runs: runs + 1 }
  }
}

function isPowerOfTwo(count: number): boolean {
  return Number.isInteger(Math.log2(count))
}

function digest(text: string): string {
  return hash('sha1', text, 'base64')
}

/** What could not be landed was there all the same. */
function isEmpty({ landings, quarantined }: PageContent): boolean {
  return landings.length === 0 && quarantined.length === 0
}

function digestContent({ landings, quarantined }: PageContent): string {
  const landed = landings.map((landing) => [landing.database, landing.key, landing.type === 'upsert' ? landing.hash : null])
  return digest(JSON.stringify([landed, quarantined]))
}
