import { formatIso } from './instants.ts'

/** The part of a state that confirms empty answers. */
export interface AnsweredState {
  /** The horizon of the previous cycle's answers. An empty answer from the same cursor confirms that they were complete. */
  readonly answeredMs?: number
}

/**
 * Invariant 12: one empty answer does not move the tidemark, because it may be wrong. With the previous cycle's answers it
 * proves everything up to the previous horizon. Undefined if there was none.
 */
export function confirmHorizon(state: AnsweredState | undefined, untilMs: number): string | undefined {
  return hasAnswered(state) ? formatIso(Math.min(state.answeredMs, untilMs)) : undefined
}

export function hasAnswered(state: AnsweredState | undefined): state is Required<AnsweredState> {
  return Number.isSafeInteger(state?.answeredMs)
}

/** `answeredMs` of a state whose cursor has not moved. */
export function keepAnswered(state: AnsweredState | undefined): AnsweredState {
  return hasAnswered(state) ? { answeredMs: state.answeredMs } : {}
}
