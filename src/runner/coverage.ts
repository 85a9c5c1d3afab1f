import type { CycleRecord, Mode, CheckpointSummary, SyncStatusRow, StateText } from '../contract/index.ts'
import type { PairPlan } from '../engine/sync-plan.ts'

/** The part of the source's history that is in the copy, from its beginning (left) to the tidemark (right). */
export interface Coverage {
  /** pair: a backfill and its delta. frontier: head and tail of a list sorted newest first. */
  readonly kind: 'snapshot' | 'stream' | 'pair' | 'frontier'
  /** The shares add up to 1. They show the order of the parts, not their sizes, which are unknown. */
  readonly parts: readonly CoveragePart[]
  /**
   * Fraction of the current cycle that is done, estimated from the previous cycle; null if unknown or no cycle runs.
   */
  readonly progress: number | null
  /** The same as text, for screen readers and terminals. */
  readonly words: string
}

export interface CoveragePart {
  /** proven: read by a complete cycle. filling: being read. hole: not read. */
  readonly state: 'proven' | 'filling' | 'hole'
  readonly share: number
  readonly what: string
  /** A line to draw at the end of this part that is nearer to the unread part. */
  readonly edge?: 'head' | 'tail' | 'anchor'
}

export interface CoverageFacts {
  readonly mode: Mode | null
  /** Set when the state belongs to a list sorted newest first. */
  readonly frontier: Frontier | null
  readonly pair: PairPlan | undefined
  /** Changes were lost; see `findPairBackfill`. A backfill request in the store implies it. */
  readonly hasLostChanges?: boolean
  /** Status rows of the same worker by sync name: a pair needs both halves. */
  readonly siblings: ReadonlyMap<string, SyncStatusRow>
}

export function computeCoverage(
  status: SyncStatusRow,
  { mode, frontier, pair, hasLostChanges = false, siblings }: CoverageFacts,
): Coverage {
  if (pair?.role === 'delta') return computePairCoverage(status, siblings.get(pair.backfill), hasLostChanges)
  if (frontier !== null) return computeFrontierCoverage(status, frontier)
  const kind = mode === 'replace' ? 'snapshot' : 'stream'
  const { parts, words } = describeWhole(status, kind === 'snapshot' ? 'the list' : 'history', hasLostChanges)
  return { kind, parts, words, progress: computeProgress(status) }
}

type CoverageDescription = Pick<Coverage, 'parts' | 'words'>

function describeWhole(status: SyncStatusRow, what: string, hasLostChanges: boolean): CoverageDescription {
  const { lastSuccessAt, inflight, failures, backfillNeeded } = status.checkpoint
  const one = (state: CoveragePart['state'], words: string): CoverageDescription => ({
    parts: [{ state, share: 1, what: words }],
    words,
  })
  if (hasLostChanges || backfillNeeded !== null)
    return one('hole', `Changes were lost; ${what} has to be read again from the start.`)
  if (lastSuccessAt !== null) return one('proven', `${capitalize(what)} has been read completely.`)
  if (inflight === null) return one('hole', 'Nothing has been read yet.')
  if (failures > 0) return one('hole', `Reading stopped after ${formatPages(inflight)} and will continue from there.`)
  const words = `${capitalize(what)} is being read for the first time: ${formatPages(inflight)} so far.`
  return {
    parts: buildFillingParts(computeProgress(status), words, `The rest of ${what} has not been read yet.`),
    words,
  }
}

function computePairCoverage(
  delta: SyncStatusRow,
  backfill: SyncStatusRow | undefined,
  hasLostChanges: boolean,
): Coverage {
  const past = backfill === undefined ? NEVER_RAN : describeWhole(backfill, 'the list', hasLostChanges)
  const recent = describeWhole(delta, 'the change history since', false)
  const parts: CoveragePart[] = [
    ...past.parts.map((part) => ({ ...part, share: part.share / 2, what: `Backfill: ${part.what}` })),
    // The first part of the delta begins at the backfill's anchor.
    ...recent.parts.map((part, index) => ({
      ...part,
      share: part.share / 2,
      what: `Delta: ${part.what}`,
      ...(index === 0 && { edge: 'anchor' as const }),
    })),
  ]
  return {
    kind: 'pair',
    parts,
    words: `Backfill: ${past.words} Delta: ${recent.words}`,
    progress: computeProgress(delta),
  }
}

const NEVER_RAN: CoverageDescription = { parts: [{ state: 'hole', share: 1, what: 'Never ran.' }], words: 'Never ran.' }

export interface Frontier {
  readonly tailComplete: boolean
  readonly isReadingHead: boolean
}

function computeFrontierCoverage(status: SyncStatusRow, { tailComplete, isReadingHead }: Frontier): Coverage {
  const reads = status.checkpoint.inflight !== null && status.checkpoint.failures === 0
  const parts: CoveragePart[] = [
    ...(tailComplete
      ? []
      : ([
          { state: 'hole', share: 0.2, what: 'Older items have not been read yet.' },
          {
            state: reads ? 'filling' : 'hole',
            share: 0.2,
            what: 'The tail: the backfill continues from here to the end of the list.',
            edge: 'tail',
          },
        ] as const)),
    {
      state: 'proven',
      share: (tailComplete ? 1 : 0.6) - (isReadingHead ? 0.15 : 0),
      what: tailComplete
        ? 'Everything from the head to the end of the list.'
        : 'Everything between the tail and the head.',
      ...(!isReadingHead && { edge: 'head' as const }),
    },
    ...(isReadingHead
      ? ([
          {
            state: 'filling',
            share: 0.15,
            what: 'The head: newer items are being read down to the last known one.',
            edge: 'head',
          },
        ] as const)
      : []),
  ]
  const words = `${tailComplete ? 'The list has been read to its end.' : 'The tail has not reached the end of the list.'} ${isReadingHead ? 'Newer items are being read at the head.' : 'The head is at the newest item of the last read.'}`
  return { kind: 'frontier', parts, words, progress: computeProgress(status) }
}

/** Recognised by its shape: state is opaque, but this one comes from a built-in strategy. */
export function parseFrontier(text: StateText): Frontier | null {
  const state = parseState(text)
  if (typeof state !== 'object' || state === null) return null
  const { phase, anchors, tailComplete, pass } = state as Record<string, unknown>
  if ((phase !== 'forward' && phase !== 'backfill') || typeof anchors !== 'string' || typeof tailComplete !== 'boolean')
    return null
  return { tailComplete, isReadingHead: typeof pass === 'object' && pass !== null }
}

function parseState(state: StateText): unknown {
  try {
    return state === null ? null : JSON.parse(state)
  } catch {
    // Not written by a built-in strategy. The source reports it when it reads its state.
    return null
  }
}

function buildFillingParts(progress: number | null, what: string, rest: string): CoveragePart[] {
  const share = progress ?? 0.5
  return [
    { state: 'filling', share, what, edge: 'head' },
    { state: 'hole', share: 1 - share, what: rest },
  ]
}

/** Compares with the page count of the last complete cycle, and stays below 1. */
function computeProgress({ checkpoint: { inflight }, recent }: SyncStatusRow): number | null {
  if (inflight === null) return null
  const previous = recent.find(
    ({ stopReason, cycle }: CycleRecord) => stopReason === 'complete' && cycle !== inflight.cycle,
  )
  return previous === undefined || previous.pages < 2 ? null : Math.min(0.95, inflight.page / previous.pages)
}

function formatPages({ page }: NonNullable<CheckpointSummary['inflight']>): string {
  return page === 1 ? '1 page' : `${page} pages`
}

function capitalize(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`
}
