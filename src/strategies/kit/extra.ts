import type { Execute, Page, SyncContext } from '../../contract/index.ts'

/**
 * State of the source itself, beside the state of its strategy. Every read receives it, and the strategy keeps it until
 * an answer returns another. It ends with the state: a replace cycle starts and ends without one.
 */
export interface ExtraState<Extra> {
  readonly extra?: Extra
}

/** An answer that may replace the extra state. */
export interface ExtraAnswer<Extra> {
  /**
   * JSON. Absent: the extra state stays as it is. Null: it is removed. It is kept even if the strategy requests the
   * same page again, so store cursors in the answer's own fields.
   */
  readonly extra?: Extra | null
}

/** The extra state during one call of a strategy. */
export interface ExtraCarrier<Extra> {
  /** To be spread into a query or a state. Assign the extra state of a page that the source built itself. */
  state: ExtraState<Extra>
  /** Sends a query with the extra state and keeps the one of the answer. */
  read<Answer extends ExtraAnswer<Extra>>(send: (state: ExtraState<Extra>) => Promise<Answer>): Promise<Answer>
}

/** Creates a strategy whose states carry the extra state; `run` receives and returns states without it. */
export function carryExtra<State extends ExtraState<Extra>, Extra>(
  run: (state: State | undefined, context: SyncContext, extra: ExtraCarrier<Extra>) => Promise<Page<State>>,
): Execute<State> {
  return async (stored, context) => {
    const { extra, ...own } = stored ?? {}
    const carrier: ExtraCarrier<Extra> = {
      state: extra === undefined ? {} : { extra: extra as Extra },
      async read(send) {
        const answer = await send(this.state)
        if (answer.extra === null) this.state = {}
        else if (answer.extra !== undefined) this.state = { extra: answer.extra }
        return answer
      },
    }
    const page = await run(stored === undefined ? undefined : (own as State), context, carrier)
    return page.nextState === undefined ? page : { ...page, nextState: { ...page.nextState, ...carrier.state } }
  }
}
