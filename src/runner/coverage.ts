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

export function computeCoverage(standing: SyncStatusRow, { mode, frontier, pair, hasLostChanges: isLacking = false, siblings: others }: CoverageFacts): Coverage {
  if (pair?.role === 'delta') return computePairCoverage(standing, others.get(pair.backfill), isLacking)
  if (frontier !== null) return computeFrontierCoverage(standing, frontier)
  const kind = mode === 'replace' ? 'snapshot' : 'stream'
  const { parts, words } = describeWhole(standing, kind === 'snapshot' ? 'the list' : 'history', isLacking)
  return { kind, parts, words, progress: computeProgress(standing) }
}

type CoverageDescription = Pick<Coverage, 'parts' | 'words'>

function describeWhole(standing: SyncStatusRow, what: string, isLacking: boolean): CoverageDescription {
  const { lastSuccessAt, inflight, failures, backfillNeeded } = standing.checkpoint
  const one = (state: CoveragePart['state'], words: string): CoverageDescription => ({ parts: [{ state, share: 1, what: words }], words })
  if (isLacking || backfillNeeded !== null) return one('hole', `Changes were lost, so all of ${what} has to be read again.`)
  if (lastSuccessAt !== null) return one('proven', `All of ${what} has been read.`)
  if (inflight === null) return one('hole', 'Nothing has been read yet.')
  if (failures > 0) return one('hole', `Reading broke off after ${formatPages(inflight)}; it goes on from there.`)
  const words = `${what[0]!.toUpperCase()}${what.slice(1)} is being read for the first time: ${formatPages(inflight)} so far.`
  return { parts: buildFillingParts(computeProgress(standing), words, `The rest of ${what} has not been read yet.`), words }
}

function computePairCoverage(delta: SyncStatusRow, backfill: SyncStatusRow | undefined, isLacking: boolean): Coverage {
  const past = backfill === undefined ? NEVER_RAN : describeWhole(backfill, 'the list', isLacking)
  const recent = describeWhole(delta, 'what changed since', false)
  const parts: CoveragePart[] = [
    ...past.parts.map((part) => ({ ...part, share: part.share / 2, what: `Backfill: ${part.what}` })),
    ...recent.parts.map((part) => ({ ...part, share: part.share / 2, what: `Delta: ${part.what}` })),
  ]
  // The backfill's anchor: the delta covers everything after it.
  parts[past.parts.length] = { ...parts[past.parts.length]!, edge: 'anchor' }
  return { kind: 'pair', parts, words: `Backfill: ${past.words} Delta: ${recent.words}`, progress: computeProgress(delta) }
}

const NEVER_RAN: CoverageDescription = { parts: [{ state: 'hole', share: 1, what: 'It never ran.' }], words: 'It never ran.' }

export interface Frontier {
  readonly tailComplete: boolean
  readonly isReadingHead: boolean
}

function computeFrontierCoverage(standing: SyncStatusRow, { tailComplete, isReadingHead: isPassing }: Frontier): Coverage {
  const reads = standing.checkpoint.inflight !== null && standing.checkpoint.failures === 0
  const parts: CoveragePart[] = [
    ...(tailComplete ? [] : [
      { state: 'hole', share: 0.2, what: 'Older items have not been read yet.' },
      { state: reads ? 'filling' : 'hole', share: 0.2, what: 'The tail: backfill goes on from here to the end of the list.', edge: 'tail' },
    ] as const),
    { state: 'proven', share: (tailComplete ? 1 : 0.6) - (isPassing ? 0.15 : 0), what: tailComplete ? 'Everything below the head, to the end of the list.' : 'Everything between tail and head.', ...(!isPassing && { edge: 'head' as const }) },
    ...(isPassing ? [{ state: 'filling', share: 0.15, what: 'The head: newer items are being read down to the last known one.', edge: 'head' }] as const : []),
  ]
  const words = `${tailComplete ? 'The list has been read to its end.' : 'The tail has not reached the end of the list.'} ${isPassing ? 'Newer items are being read at the head.' : 'The head stands at the newest item of the last look.'}`
  return { kind: 'frontier', parts, words, progress: computeProgress(standing) }
}

/** Recognised by its shape: state is opaque, but this one comes from a built-in strategy. */
export function parseFrontier(text: StateText): Frontier | null {
  const state = parseState(text)
  if (typeof state !== 'object' || state === null) return null
  const { phase, anchors, tailComplete, pass } = state as Record<string, unknown>
  if ((phase !== 'forward' && phase !== 'backfill') || typeof anchors !== 'string' || typeof tailComplete !== 'boolean') return null
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
  return [{ state: 'filling', share, what, edge: 'head' }, { state: 'hole', share: 1 - share, what: rest }]
}

/** Compares with the page count of the last complete cycle, and stays below 1. */
function computeProgress({ checkpoint: { inflight }, recent }: SyncStatusRow): number | null {
  const before = inflight === null ? undefined : recent.find(({ stopReason, cycle }: CycleRecord) => stopReason === 'complete' && cycle !== inflight.cycle)
  return before === undefined || before.pages < 2 ? null : Math.min(0.95, inflight!.page / before.pages)
}

function formatPages({ page }: NonNullable<CheckpointSummary['inflight']>): string {
  return page === 1 ? '1 page' : `${page} pages`
}
