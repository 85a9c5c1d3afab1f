import { isSyncError, type Change, type Execute, type SyncContext } from '../contract/index.ts'
import { INITIAL_TALLY, isListTally, fingerprintLastRow, decideListStep, type ListTally } from './kit/list-end.ts'
import { sourceInvalidError, stateRejectedError } from './kit/strategy-errors.ts'

export interface TokenOptions {
  /** Without a token on the first page. */
  read(query: { readonly token: string | undefined }, context: SyncContext): Promise<TokenAnswer>
  /** How many rows make a full page. A full page that says it is the last one is asked for again before it is believed. */
  limit?: number
  /** In replace mode, ask for a list of a single page twice. An answer that belongs to another reading may be its last page. */
  confirms?: boolean
}

export interface TokenAnswer {
  readonly changes: readonly Change[]
  /** Opaque; null or absent on the last page. The empty string is a token like any other. */
  readonly next?: string | null | undefined
  /** On the last page: what the next incremental cycle begins with, where the source gives such a thing. Without it, every cycle begins at the first page. */
  readonly resume?: string | null | undefined
  /** How many rows there are in all, where the source counts them. A replace cycle that read fewer does not end. */
  readonly total?: number | null | undefined
}

export interface TokenState {
  readonly cursor: string | null
  /** Of a listing in replace mode. */
  readonly tally?: ListTally
  /** The changes since `cursor` came back empty once. The position moves after a second empty answer. */
  readonly isEmpty?: true
  /** What that answer would have moved it to. */
  readonly resume?: string
}

/**
 * For sources that hand out a token for the next page. The end of a replace cycle needs evidence (see `decideListStep`), and an
 * answer without changes moves a position that the source gave only when it is given twice.
 *
 * ```ts
 * import { token } from 'tidemark'
 *
 * type Contacts = { results: { id: string; email: string }[]; paging?: { next: { after: string } } }
 *
 * export const contacts = token({
 *   read: async ({ token }, { fetch }) => {
 *     const response = await fetch(`https://crm.example/contacts?limit=100${token === undefined ? '' : `&after=${token}`}`)
 *     const { results, paging } = (await response.json()) as Contacts
 *     return { changes: results.map((contact) => ({ type: 'upsert', key: contact.id, record: contact })), next: paging?.next.after }
 *   },
 * })
 * ```
 */
export function token({ read, limit, confirms }: TokenOptions): Execute<TokenState> {
  return async (state, context) => {
    if (state !== undefined && state.cursor !== null && typeof state.cursor !== 'string') throw stateRejectedError('token', '`cursor` is not a string')
    if (state?.tally !== undefined && !isListTally(state.tally)) throw stateRejectedError('token', '`tally` is not a count of rows')
    const asked = state?.cursor ?? null
    const answer = await readOrEnd(read({ token: asked ?? undefined }, context), state)
    if (answer === null) return { changes: [], hasMore: false }
    const changes = [...answer.changes]
    const hasMore = answer.next !== undefined && answer.next !== null
    const cursor = hasMore ? answer.next! : (answer.resume ?? null)
    if (cursor !== null && typeof cursor !== 'string') throw sourceInvalidError('The token of the next page is not a text.')

    if (context.cycle.mode === 'replace') {
      const page = { count: changes.length, mark: fingerprintLastRow(changes), isLast: !hasMore, total: answer.total, limit, confirms }
      const step = decideListStep(state?.tally ?? INITIAL_TALLY, page, context.clock.now())
      if (step.kind === 'end') return { changes, hasMore: false }
      return { changes, hasMore: true, nextState: { cursor: step.kind === 'again' ? asked : cursor, tally: step.tally } }
    }
    const isUnproven = !hasMore && cursor !== null && changes.length === 0 && state?.isEmpty !== true
    // The next cycle begins at the same position; inside a cycle, whose tokens may not live that long, it is asked at once.
    if (isUnproven) return { changes, hasMore: context.cycle.page > 1, nextState: { cursor: asked, isEmpty: true, resume: cursor } }
    // One of the two empty answers may be wrong. Up to the token of the first, the other one agrees with it.
    const isAgreed = !hasMore && cursor !== null && changes.length === 0
    return { changes, hasMore, nextState: { cursor: isAgreed ? (state?.resume ?? cursor) : cursor } }
  }
}

/** Some sources forget a listing with its last page. A refusal to give that page twice agrees with the end it claimed. */
async function readOrEnd(answer: Promise<TokenAnswer>, state: TokenState | undefined): Promise<TokenAnswer | null> {
  try {
    return await answer
  } catch (error) {
    const isConfirming = state?.tally?.claimed !== undefined && state.tally.isShort === undefined
    if (isConfirming && isSyncError(error) && error.code === 'CURSOR_REJECTED') return null
    throw error
  }
}
