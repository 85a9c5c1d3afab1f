import { SyncError } from '../contract/index.ts'

/**
 * The cycle as a state machine: pure, without I/O. It starts when the lease is held. The driver in cycle.ts performs the
 * action of a step and passes the resulting event to `advance`. docs/explanation/cycle.md shows the same table.
 *
 *   beginning ── begun ──▶ anchoring ── anchored ──▶ reading ◀─────── more ──────┐
 *    ▲  └──────────────── resumed ─────────────────▶ │  │ ▲                       │
 *    └──────────────── stateRejected ────────────────┘  │ │                       │
 *                                              pageRead │ │ overlap               │
 *                                                       ▼ │                       │
 *   confirming ◀────────── undecided ────────────── committing ── landed ──▶ recording
 *    │  └───────────────── answered ──────────────▶     │                     ▲   │
 *    │ sweepRefused                        sweepRefused │                     │   │
 *    ▼                                                  │                     │   │
 *   abandoning ◀────────────────────────────────────────┘                     │   │
 *    │  └────────────────── landed ───────────────────────────────────────────┘   │
 *    │ overlap                                               completed, stopped   │
 *    ▼                                                                            │
 *   ending ◀──────────────────────────────────────────────────────────────────────┘
 *
 *   reading ── pageOlder, firstStateRejected ──▶ reading
 *   reading ── historyLost ──▶ handlingLoss ── lossHandled ──▶ ending
 *   abandoning ── undecided, answered ──▶ abandoning
 *   every state ── failed ──▶ ending
 */
export type ActiveCycleState =
  /** The store begins a cycle, or resumes the unfinished one. */
  | 'beginning'
  /** The start of the delta is stored before the backfill reads its first page. */
  | 'anchoring'
  /** The source returns a page. */
  | 'reading'
  /** The store commits the page. The next page is being read. */
  | 'committing'
  /** The source looks up rows that the listing alone does not decide. Nothing of the page is written yet. */
  | 'confirming'
  /** The sweep was refused. The store commits the rows of the page and discards the cycle. */
  | 'abandoning'
  /** The page is committed. The run updates its counters, logs and progress. */
  | 'recording'
  /** The source dropped changes that the sync has not read. A backfill is requested. */
  | 'handlingLoss'

/** `ending` is final: the lease is released with the report, and the machine takes no more events. */
export type CycleState = ActiveCycleState | 'ending'

export type CycleEvent =
  /** The cycle has no committed page. */
  | 'begun'
  /** The cycle has committed pages of an earlier run. */
  | 'resumed'
  | 'anchored'
  | 'pageRead'
  /** A listing page is dated before the pages before it. */
  | 'pageOlder'
  /** The source rejected a state, after pages of this cycle were committed. */
  | 'stateRejected'
  /** The source rejected the state of the first page, which is the committed one. */
  | 'firstStateRejected'
  | 'landed'
  /** Rows are contested, or rows to sweep have to be confirmed as absent. Nothing was written. */
  | 'undecided'
  /** Another sync wrote the same rows while the page was read. Nothing was written. */
  | 'overlap'
  /** The delete limit blocked the sweep, or the source still has a row that it did not list. Nothing was written. */
  | 'sweepRefused'
  | 'answered'
  | 'more'
  | 'completed'
  /** A limit, a requested pause or an abandoned cycle ends the run. */
  | 'stopped'
  | 'historyLost'
  | 'lossHandled'
  | 'failed'

export type ActiveCycleAction =
  | 'beginCycle'
  | 'restartCycle'
  | 'takeAnchor'
  | 'startReading'
  | 'readPage'
  | 'readPageAgain'
  | 'readAfterOverlap'
  | 'awaitNextPage'
  | 'commitPage'
  | 'lookUpRows'
  | 'commitAgain'
  | 'abandonCycle'
  | 'recordPage'
  | 'handleHistoryLoss'

export type CycleAction = ActiveCycleAction | 'endCycle'

/** The action to perform, and the state while it is performed. */
export type CycleStep =
  | { readonly action: ActiveCycleAction; readonly state: ActiveCycleState }
  | { readonly action: 'endCycle'; readonly state: 'ending' }

type Cell = CycleStep | 'impossible'

const impossible = 'impossible'
const end: CycleStep = { action: 'endCycle', state: 'ending' }

export const FIRST_STEP: CycleStep = { action: 'beginCycle', state: 'beginning' }

export const CYCLE_TABLE: Readonly<Record<ActiveCycleState, Readonly<Record<CycleEvent, Cell>>>> = {
  beginning: {
    begun: { action: 'takeAnchor', state: 'anchoring' },
    resumed: { action: 'startReading', state: 'reading' },
    anchored: impossible,
    pageRead: impossible,
    pageOlder: impossible,
    stateRejected: impossible,
    firstStateRejected: impossible,
    landed: impossible,
    undecided: impossible,
    overlap: impossible,
    sweepRefused: impossible,
    answered: impossible,
    more: impossible,
    completed: impossible,
    stopped: impossible,
    historyLost: impossible,
    lossHandled: impossible,
    failed: end,
  },
  anchoring: {
    begun: impossible,
    resumed: impossible,
    anchored: { action: 'startReading', state: 'reading' },
    pageRead: impossible,
    pageOlder: impossible,
    stateRejected: impossible,
    firstStateRejected: impossible,
    landed: impossible,
    undecided: impossible,
    overlap: impossible,
    sweepRefused: impossible,
    answered: impossible,
    more: impossible,
    completed: impossible,
    stopped: impossible,
    // Only an incremental sync loses history, and only a backfill takes an anchor.
    historyLost: impossible,
    lossHandled: impossible,
    failed: end,
  },
  reading: {
    begun: impossible,
    resumed: impossible,
    anchored: impossible,
    pageRead: { action: 'commitPage', state: 'committing' },
    pageOlder: { action: 'readPageAgain', state: 'reading' },
    stateRejected: { action: 'restartCycle', state: 'beginning' },
    firstStateRejected: { action: 'readPage', state: 'reading' },
    landed: impossible,
    undecided: impossible,
    overlap: impossible,
    sweepRefused: impossible,
    answered: impossible,
    more: impossible,
    completed: impossible,
    stopped: impossible,
    historyLost: { action: 'handleHistoryLoss', state: 'handlingLoss' },
    lossHandled: impossible,
    failed: end,
  },
  committing: {
    begun: impossible,
    resumed: impossible,
    anchored: impossible,
    pageRead: impossible,
    pageOlder: impossible,
    stateRejected: impossible,
    firstStateRejected: impossible,
    landed: { action: 'recordPage', state: 'recording' },
    undecided: { action: 'lookUpRows', state: 'confirming' },
    overlap: { action: 'readAfterOverlap', state: 'reading' },
    sweepRefused: { action: 'abandonCycle', state: 'abandoning' },
    answered: impossible,
    more: impossible,
    completed: impossible,
    stopped: impossible,
    historyLost: impossible,
    lossHandled: impossible,
    failed: end,
  },
  confirming: {
    begun: impossible,
    resumed: impossible,
    anchored: impossible,
    pageRead: impossible,
    pageOlder: impossible,
    stateRejected: impossible,
    firstStateRejected: impossible,
    landed: impossible,
    undecided: impossible,
    overlap: impossible,
    sweepRefused: { action: 'abandonCycle', state: 'abandoning' },
    answered: { action: 'commitAgain', state: 'committing' },
    more: impossible,
    completed: impossible,
    stopped: impossible,
    historyLost: impossible,
    lossHandled: impossible,
    failed: end,
  },
  abandoning: {
    begun: impossible,
    resumed: impossible,
    anchored: impossible,
    pageRead: impossible,
    pageOlder: impossible,
    stateRejected: impossible,
    firstStateRejected: impossible,
    landed: { action: 'recordPage', state: 'recording' },
    undecided: { action: 'lookUpRows', state: 'abandoning' },
    // The next cycle lists the rows of the page again.
    overlap: end,
    // An abandoned cycle has no sweep.
    sweepRefused: impossible,
    answered: { action: 'commitAgain', state: 'abandoning' },
    more: impossible,
    completed: impossible,
    stopped: impossible,
    historyLost: impossible,
    lossHandled: impossible,
    failed: end,
  },
  recording: {
    begun: impossible,
    resumed: impossible,
    anchored: impossible,
    pageRead: impossible,
    pageOlder: impossible,
    stateRejected: impossible,
    firstStateRejected: impossible,
    landed: impossible,
    undecided: impossible,
    overlap: impossible,
    sweepRefused: impossible,
    answered: impossible,
    more: { action: 'awaitNextPage', state: 'reading' },
    completed: end,
    stopped: end,
    historyLost: impossible,
    lossHandled: impossible,
    failed: end,
  },
  handlingLoss: {
    begun: impossible,
    resumed: impossible,
    anchored: impossible,
    pageRead: impossible,
    pageOlder: impossible,
    stateRejected: impossible,
    firstStateRejected: impossible,
    landed: impossible,
    undecided: impossible,
    overlap: impossible,
    sweepRefused: impossible,
    answered: impossible,
    more: impossible,
    completed: impossible,
    stopped: impossible,
    historyLost: impossible,
    lossHandled: end,
    failed: end,
  },
}

/** Throws if the event is impossible in the state: the driver has a bug. */
export function advance(state: ActiveCycleState, event: CycleEvent): CycleStep {
  const step = CYCLE_TABLE[state][event]
  if (step === impossible) throw new SyncError('INTERNAL', `The event ${event} is impossible while ${state}.`)
  return step
}
