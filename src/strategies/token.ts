import { isSyncError, type Change, type Execute, type SyncContext } from '../contract/index.ts'
import { carryExtra, type ExtraAnswer, type ExtraState } from './kit/extra.ts'
import { INITIAL_TALLY, isListTally, fingerprintLastRow, decideListStep, type ListTally } from './kit/list-end.ts'
import { sourceInvalidError, stateRejectedError } from './kit/strategy-errors.ts'

/** Describes how to read a list by page tokens. */
export interface TokenOptions<Extra = never> {
  /** `token` is undefined on the first page. */
  read(
    query: { readonly token: string | undefined } & ExtraState<Extra>,
    context: SyncContext,
  ): Promise<TokenAnswer<Extra>>
  /** Rows on a full page. A full page that claims to be the last is requested again before it is accepted. */
  limit?: number
  /** In replace mode, request a single-page list twice: the page may be the last page of another read. */
  confirms?: boolean
}

/** A page with the token of the next one. */
export interface TokenAnswer<Extra = never> extends ExtraAnswer<Extra> {
  readonly changes: readonly Change[]
  /** Opaque; null or absent on the last page. The empty string is a valid token. */
  readonly next?: string | null | undefined
  /**
   * On the last page: the token the next incremental cycle starts from, if the source provides one. Without it, every
   * cycle begins at the first page.
   */
  readonly resume?: string | null | undefined
  /** Total rows, if the source counts them. A replace cycle that read fewer rows does not end. */
  readonly total?: number | null | undefined
}

/** The token of the next page, and the progress of the listing. */
export interface TokenState<Extra = never> extends ExtraState<Extra> {
  readonly cursor: string | null
  /** Progress of a listing in replace mode. */
  readonly tally?: ListTally
  /** The changes since `cursor` were empty once. The cursor moves after a second empty answer. */
  readonly isEmpty?: true
  /** The token of that first empty answer. */
  readonly resume?: string
}

/**
 * For sources that return a token for the next page. The end of a replace cycle needs evidence (see `decideListStep`),
 * and an answer without changes moves the cursor only when it is repeated.
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
export function token<Extra = never>({ read, limit, confirms }: TokenOptions<Extra>): Execute<TokenState<Extra>> {
  return carryExtra<TokenState<Extra>, Extra>(async (state, context, extra) => {
    if (state !== undefined && state.cursor !== null && typeof state.cursor !== 'string')
      throw stateRejectedError('token', '`cursor` is not a string')
    if (state?.tally !== undefined && !isListTally(state.tally))
      throw stateRejectedError('token', '`tally` is not a count of rows')
    const requested = state?.cursor ?? null
    const answer = await readOrEnd(
      extra.read((carried) => read({ token: requested ?? undefined, ...carried }, context)),
      state,
    )
    if (answer === null) return { changes: [], hasMore: false }
    const changes = [...answer.changes]
    const { next, resume } = answer
    const hasMore = next !== undefined && next !== null
    const cursor = hasMore ? next : (resume ?? null)
    if (cursor !== null && typeof cursor !== 'string')
      throw sourceInvalidError('The token of the next page is not a string.')

    if (context.cycle.mode === 'replace') {
      const page = {
        count: changes.length,
        mark: fingerprintLastRow(changes),
        isLast: !hasMore,
        total: answer.total,
        limit,
        confirms,
      }
      const step = decideListStep(state?.tally ?? INITIAL_TALLY, page, context.clock.now())
      if (step.kind === 'end') return { changes, hasMore: false }
      return {
        changes,
        hasMore: true,
        nextState: { cursor: step.kind === 'again' ? requested : cursor, tally: step.tally },
      }
    }
    const isUnproven = !hasMore && cursor !== null && changes.length === 0 && state?.isEmpty !== true
    // The next cycle repeats the request. Inside a cycle, whose tokens may expire sooner, it is repeated at once.
    if (isUnproven)
      return {
        changes,
        hasMore: context.cycle.page > 1,
        nextState: { cursor: requested, isEmpty: true, resume: cursor },
      }
    // One of the two empty answers may be wrong. Both agree up to the token of the first.
    const isAgreed = !hasMore && cursor !== null && changes.length === 0
    return { changes, hasMore, nextState: { cursor: isAgreed ? (state?.resume ?? cursor) : cursor } }
  })
}

/** Some sources discard a listing with its last page. Their refusal to return that page again confirms the end. */
async function readOrEnd<Extra>(
  answer: Promise<TokenAnswer<Extra>>,
  state: TokenState<Extra> | undefined,
): Promise<TokenAnswer<Extra> | null> {
  try {
    return await answer
  } catch (error) {
    const isConfirming = state?.tally?.claimed !== undefined && state.tally.isShort === undefined
    if (isConfirming && isSyncError(error) && error.code === 'CURSOR_REJECTED') return null
    throw error
  }
}
