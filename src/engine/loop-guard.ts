import { hash } from 'node:crypto'
import { SyncError, type ErrorCode, type Inflight, type LastError, type StateText } from '../contract/index.ts'
import type { CheckedPage } from './check-page.ts'
import type { PreparedPage } from './page-preparer.ts'

type PageContent = Pick<PreparedPage, 'landings' | 'quarantined'> & Pick<CheckedPage, 'partitions'>

/** States remembered per run. The anchor detects a longer loop. */
const VISITED_STATES_MAX = 10_000

/**
 * Number of runs in which the page after a standstill may be the same: a source that advances behind an unchanged state
 * starts there again with each run.
 */
const STANDSTILL_RUNS_MAX = 3

const LOOP_ERROR_CODES: readonly ErrorCode[] = ['EMPTY_PAGES', 'CURSOR_STALLED', 'CURSOR_CYCLE']

/** Stored with every page, so that a cycle over many runs is checked as one. A few bytes, regardless of its length. */
interface LoopGuardState {
  /**
   * When the cycle last failed here. Each failure resets the guard: a fixed source may have to pass the same states
   * again.
   */
  readonly failedAt: number | null
  /**
   * The state after the last page whose number is a power of two. A loop of n pages passes it again as soon as that
   * number is at least n and lies on the loop.
   */
  readonly anchor: string | null
  readonly emptyPages: number
  /** The content of a page that left the state unchanged, and the number of consecutive runs that returned it. */
  readonly standstill: { readonly content: string; readonly runs: number } | null
}

/** The result for a page that may be committed. */
export interface LoopGuardStep {
  readonly stateDigest: string
  readonly guardState: LoopGuardState
}

export interface LoopGuardOptions {
  readonly sync: string
  readonly emptyPagesMax: number
  readonly inflight: Pick<Inflight, 'state' | 'guardState'>
  /** The error of the last cycle. */
  readonly lastError: LastError | null
}

/** Invariant 9: a cycle that loops, stalls or makes no progress fails, over any number of runs. */
export class LoopGuard {
  readonly #sync: string
  readonly #emptyPagesMax: number
  readonly #visited = new Set<string>()
  #state: LoopGuardState
  #isConfirmingStandstill = false

  constructor({ sync, emptyPagesMax, inflight: { state, guardState: storedGuard }, lastError }: LoopGuardOptions) {
    this.#sync = sync
    this.#emptyPagesMax = emptyPagesMax
    const start = state === null ? null : digest(state)
    if (start !== null) this.#visited.add(start)
    const failedAt = lastError !== null && LOOP_ERROR_CODES.includes(lastError.code) ? lastError.at : null
    const resumed = storedGuard === null ? null : (JSON.parse(storedGuard) as LoopGuardState)
    this.#state =
      resumed?.failedAt === failedAt ? resumed : { failedAt, anchor: start, emptyPages: 0, standstill: null }
  }

  /** Call before committing a page with `hasMore`. A page that is read again may be checked again. */
  check(
    { state: requestState, page: committedPages }: Pick<Inflight, 'state' | 'page'>,
    next: string,
    page: PageContent,
  ): LoopGuardStep {
    const { failedAt, anchor, emptyPages } = this.#state
    if (isEmpty(page) && emptyPages >= this.#emptyPagesMax) {
      throw new SyncError(
        'EMPTY_PAGES',
        `${this.#sync}: ${emptyPages + 1} empty pages in a row, each with \`hasMore: true\`.`,
      )
    }
    const stateDigest = digest(next)
    if (next !== requestState && (stateDigest === anchor || this.#visited.has(stateDigest))) {
      throw new SyncError(
        'CURSOR_CYCLE',
        `${this.#sync}: the source returned a state that this cycle has already used.`,
      )
    }
    const guardState = {
      failedAt,
      anchor: isPowerOfTwo(committedPages + 1) ? stateDigest : anchor,
      emptyPages: isEmpty(page) ? emptyPages + 1 : 0,
      standstill: this.#checkStandstill(requestState, next, page),
    }
    return { stateDigest, guardState }
  }

  /** Call after the page is committed. */
  advance({ stateDigest, guardState }: LoopGuardStep): void {
    this.#state = guardState
    this.#isConfirmingStandstill = guardState.standstill !== null
    this.#visited.add(stateDigest)
    if (this.#visited.size <= VISITED_STATES_MAX) return
    const [oldest] = this.#visited
    if (oldest !== undefined) this.#visited.delete(oldest)
  }

  /** Some sources advance behind an unchanged state; so request once more, and compare the content. */
  #checkStandstill(requestState: StateText, next: string, page: PageContent): LoopGuardState['standstill'] {
    if (next !== requestState) return null
    const content = digestContent(page)
    const runs = content === this.#state.standstill?.content ? this.#state.standstill.runs : 0
    if (runs >= (this.#isConfirmingStandstill ? 1 : STANDSTILL_RUNS_MAX))
      throw new SyncError('CURSOR_STALLED', `${this.#sync}: two requests with the same state returned the same page.`)
    return { content, runs: runs + 1 }
  }
}

function isPowerOfTwo(count: number): boolean {
  return Number.isInteger(Math.log2(count))
}

function digest(text: string): string {
  return hash('sha1', text, 'base64')
}

/**
 * Quarantined records count as content, and so do partitions: most of a sync's partitions may have no changes. A strategy
 * with partitions counts the empty pages of each.
 */
function isEmpty({ landings, quarantined, partitions }: PageContent): boolean {
  return landings.length === 0 && quarantined.length === 0 && partitions.length === 0
}

function digestContent({ landings, quarantined, partitions }: PageContent): string {
  const landed = landings.map((landing) => [
    landing.database,
    landing.key,
    landing.type === 'upsert' ? landing.hash : null,
  ])
  return digest(JSON.stringify(partitions.length === 0 ? [landed, quarantined] : [landed, quarantined, partitions]))
}
