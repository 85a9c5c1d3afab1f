import type { CycleRecord, Mode, CheckpointSummary, SyncStatusRow, StateText } from '../contract/index.ts'
import type { PairPlan } from '../engine/sync-plan.ts'

/** What of the source's history is in the copy, from its beginning on the left to the tidemark on the right. */
export interface Coverage {
  /** pair: a backfill and its delta together. frontier: head and tail of a list that comes newest first. */
  readonly kind: 'snapshot' | 'stream' | 'pair' | 'frontier'
  /** Their shares add up to one. They tell the order of things, not how many there are: nobody knows that. */
  readonly parts: readonly CoveragePart[]
  /** How much of the cycle under way is done, as far as the one before tells; null when it cannot be told, or nothing is. */
  readonly progress: number | null
  /** The same for who cannot see it. */
  readonly words: string
}

export interface CoveragePart {
  /** proven: a complete cycle has told all of it. filling: being read. hole: not read. */
  readonly state: 'proven' | 'filling' | 'hole'
  readonly share: number
  readonly what: string
  /** A line to be drawn at its end that is nearer to what is unknown. */
  readonly edge?: 'head' | 'tail' | 'anchor'
}

export interface CoverageFacts {
  readonly mode: Mode | null
  /** What the state tells, when it is one of a list that comes newest first. */
  readonly frontier: Frontier | null
  readonly pair: PairPlan | undefined
  /** Changes were lost; see backfillOf. An order in the store says so too. */
  readonly hasLostChanges?: boolean
  /** The standings of the same worker, by name: of a pair, both halves tell. */
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
  // Where the backfill's anchor lies: from there on the delta tells.
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

/** By its shape: what a source keeps is its own, and this one is known. */
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
    // Not of our making; whoever reads it next will say so.
    return null
  }
}

function buildFillingParts(progress: number | null, what: string, rest: string): CoveragePart[] {
  const share = progress ?? 0.5
  return [{ state: 'filling', share, what, edge: 'head' }, { state: 'hole', share: 1 - share, what: rest }]
}

/** Of the pages that the last complete cycle had; never quite all of them. */
function computeProgress({ checkpoint: { inflight }, recent }: SyncStatusRow): number | null {
  const before = inflight === null ? undefined : recent.find(({ stopReason, cycle }: CycleRecord) => stopReason === 'complete' && cycle !== inflight.cycle)
  return before === undefined || before.pages < 2 ? null : Math.min(0.95, inflight!.page / before.pages)
}

function formatPages({ page }: NonNullable<CheckpointSummary['inflight']>): string {
  return page === 1 ? '1 page' : `${page} pages`
}
