import { chooseMode, type Answers } from './answers.ts'
import { KNOWN_APIS, type KnownApiProfile } from './known-apis.ts'
import { QUESTIONS, listRelevantQuestions, type QuestionName } from './questions.ts'
import { streamsStateShape, STATE_SHAPES, type StateShape, type StrategyName } from './state-shapes.ts'

export interface Advice {
  /** `pair`: a backfill by hand and a scheduled delta over one database. `replace`: the whole list every time. */
  readonly mode: 'pair' | 'replace'
  /** The source that does all of this already. */
  readonly source: string | null
  /** Reads all there is; in a pair, when asked to. */
  readonly backfill: SyncAdvice
  readonly delta: SyncAdvice | null
  readonly deletes: 'swept' | 'told' | 'streams' | 'until-backfill'
  /** How deletions that are told elsewhere are read. */
  readonly deletesBy: StrategyName | null
  /** How far every cycle stays behind now; null where no clock is involved. */
  readonly lagMs: number | null
  readonly schedule: string
  readonly reasons: readonly AdviceReason[]
  readonly cautions: readonly string[]
}

export interface SyncAdvice {
  readonly mode: 'replace' | 'incremental'
  readonly strategy: StrategyName
  /** Null when there is nothing to remember. */
  readonly state: StateShape | null
}

export interface AdviceReason {
  readonly question: QuestionName
  readonly answer: string
  readonly therefore: string
  readonly rule: string
}

/** A leaf of the tree. The answers are complete: `nextQuestion` has no further one. */
export function chooseStrategy(given: Answers): Advice {
  const known = findKnownApi(given)
  const answers = known === null ? given : { ...given, ...known.answers }
  const mode = chooseMode(answers)
  const backfill = chooseBackfill(answers)
  const isApart = mode === 'pair' && answers.deletes === 'elsewhere'
  const delta = mode === 'pair' ? chooseDelta(answers) : null
  const deletesBy = isApart ? (known?.deletesBy ?? 'keyset') : null
  return {
    mode,
    source: known !== null ? `tidemark/sources/${given.api}` : isDeclarative(answers) ? 'tidemark/sources/rest' : null,
    backfill: { mode: 'replace', strategy: backfill, state: known?.backfillExtraState ? { ...STATE_SHAPES[backfill], ...known.backfillExtraState } : STATE_SHAPES[backfill] },
    delta: delta === null ? null : { mode: 'incremental', strategy: delta, state: deletesBy === null ? STATE_SHAPES[delta] : streamsStateShape(delta, deletesBy) },
    deletes: mode === 'replace' ? 'swept' : chooseDeletes(answers),
    deletesBy,
    lagMs: mode === 'pair' && answers.lagSeconds !== undefined ? answers.lagSeconds * 1_000 : null,
    schedule: known?.schedule ?? (mode === 'pair' ? (answers.changes === 'newest-first' ? '15m' : '5m') : answers.size === 'large' ? '6h' : '30m'),
    reasons: explainAnswers(given, answers),
    cautions: listCautions(answers),
  }
}

export function findKnownApi({ api }: Answers): KnownApiProfile | null {
  return api === undefined || api === 'other' ? null : KNOWN_APIS[api]
}

/** Whether the `rest` source can be told all of it in words. */
export function isDeclarative(answers: Answers): boolean {
  return answers.http === 'plain' || (answers.order === 'unsorted' && chooseMode(answers) === 'pair')
}

function chooseBackfill(answers: Answers): StrategyName {
  if (answers.changes === 'newest-first') return 'frontier'
  switch (answers.paging) {
    case undefined: // A sync token: its pages are chained as well.
    case 'token':
      return 'token'
    case 'none':
      return 'whole'
    case 'graphql':
      return answers.nested === 'yes' ? 'relayNested' : 'relay'
    case 'page':
      return 'pageNumber'
    case 'offset':
      return 'offset'
    case 'time':
      return chooseTimePaging(answers.ties === 'yes', answers)
    default:
      answers.paging satisfies never
      throw new TypeError('no such paging')
  }
}

function chooseDelta(answers: Answers): StrategyName {
  if (answers.changes === 'events') return 'eventFeed'
  if (answers.changes === 'sync-token') return 'token'
  if (answers.changes === 'newest-first') return 'frontier'
  switch (answers.order) {
    case undefined: // The list itself is read by time.
      return chooseTimePaging(answers.ties === 'yes', answers)
    case 'time-and-id':
      return 'keyset'
    case 'one-field':
      return 'search'
    case 'unique':
      return chooseTimePaging(false, answers)
    case 'unsorted':
      return 'window'
    default:
      answers.order satisfies never
      throw new TypeError('no such order')
  }
}

/** In code, times that never tie are a keyset whose id never decides. */
function chooseTimePaging(hasTies: boolean, answers: Answers): StrategyName {
  return hasTies || !isDeclarative(answers) ? 'keyset' : 'timestamp'
}

function chooseDeletes({ deletes }: Answers): Advice['deletes'] {
  if (deletes === 'elsewhere') return 'streams'
  return deletes === 'told' ? 'told' : 'until-backfill'
}

function explainAnswers(given: Answers, answers: Answers): AdviceReason[] {
  const own: AdviceReason[] = findKnownApi(given) === null ? [] : [
    { question: 'api', answer: String(given.api), therefore: 'A source for it is here, tested against its documented rules: use that, and write none.', rule: 'N88' },
  ]
  const path = findKnownApi(given) === null ? listRelevantQuestions(answers).slice(1) : QUESTIONS.filter(({ name }) => name !== 'api' && answers[name] !== undefined)
  return [...own, ...path.map(({ name }) => ({ question: name, answer: String(answers[name]), ...CONCLUSIONS[name](answers) }))]
}

type Conclusion = Pick<AdviceReason, 'therefore' | 'rule'>

const PAGING_CONCLUSIONS: Readonly<Record<NonNullable<Answers['paging']>, string>> = {
  none: 'The whole list is one page.',
  token: 'The token is the state; it is sent back as it came.',
  graphql: '`endCursor` is the state; `hasNextPage` is the end.',
  page: 'The page number is the state. Rows move while pages are counted, so the list is read until two passes agree.',
  offset: 'The offset is the state. Rows move while it is counted, so the list is read until two passes agree.',
  time: 'The last record’s place is the state, and the next page begins after it.',
}

const ORDER_CONCLUSIONS: Readonly<Record<NonNullable<Answers['order']>, string>> = {
  'time-and-id': 'Time and id together name one record, so no page border skips or repeats any.',
  'one-field': 'A page full of one moment leads no further by time; that moment is then read by id.',
  unique: 'The time alone names the record.',
  unsorted: 'All that changed since a moment is read as one window, whose end is fixed before its first page.',
}

const CONCLUSIONS: Readonly<Record<QuestionName, (answers: Answers) => Conclusion>> = {
  api: () => ({ therefore: '', rule: 'N88' }),
  changes: ({ changes, deletes }) => {
    if (changes === 'none') return { therefore: 'Read the whole list every time; what is no longer in it is swept.', rule: 'N80' }
    if (deletes === 'matter') return { therefore: 'It could be followed, were it not for the deletions.', rule: 'N86' }
    if (changes === 'events') return { therefore: 'Follow the events by id, from the one that was newest before the backfill began.', rule: 'N86' }
    if (changes === 'newest-first') return { therefore: 'Read from the top until what is known is met, and from the bottom of that until the list ends: two frontiers.', rule: 'S6' }
    if (changes === 'sync-token') return { therefore: 'Follow the token; it is the position.', rule: 'N86' }
    return { therefore: 'Follow the changes by their time, beside a backfill that reads everything when asked to.', rule: 'N86' }
  },
  deletes: ({ deletes }) => {
    if (deletes === 'told') return { therefore: 'Changes and deletions come from one stream.', rule: 'N87' }
    if (deletes === 'elsewhere') return { therefore: 'Changes and deletions are read in every cycle, each with a state of its own.', rule: 'N87' }
    if (deletes === 'matter') return { therefore: 'Only a list of everything shows what is gone: replace, and no delta.', rule: 'N87' }
    return { therefore: 'Follow the changes; what is gone stays until the next backfill sweeps it.', rule: 'N87' }
  },
  paging: ({ paging }) => ({ therefore: PAGING_CONCLUSIONS[paging!], rule: 'N85' }),
  nested: ({ nested }) => (nested === 'yes'
    ? { therefore: 'Two cursors: one for the outer list, one for each entry whose own list is not at its end.', rule: 'N61' }
    : { therefore: 'One cursor is enough.', rule: 'N60' }),
  ties: ({ ties }) => (ties === 'yes'
    ? { therefore: 'The id breaks ties, or a border between two of them would lose one.', rule: 'N85' }
    : { therefore: 'The time alone names the record.', rule: 'N85' }),
  order: (answers) => (chooseMode(answers) === 'replace'
    ? { therefore: 'Changes in no order, paged by position, can be passed unseen: replace, and no delta.', rule: 'N86' }
    : { therefore: ORDER_CONCLUSIONS[answers.order!], rule: 'N86' }),
  http: ({ http }) => (http === 'plain'
    ? { therefore: 'No code is needed: the `rest` source is told in words.', rule: 'N85' }
    : { therefore: 'A strategy in code, with a request of your own.', rule: 'N85' }),
  size: ({ size }) => (size === 'small'
    ? { therefore: 'Reading all of it every half hour is cheap enough.', rule: 'N73' }
    : { therefore: 'Reading all of it takes long, so seldom.', rule: 'N73' }),
  lagSeconds: ({ lagSeconds }) => ({ therefore: `No cycle reads beyond ${lagSeconds} seconds ago: a record that shows later than its time is then never passed.`, rule: 'N85' }),
}

function listCautions(answers: Answers): string[] {
  const mode = chooseMode(answers)
  const cautions: string[] = []
  if (mode === 'replace' && answers.size === 'large') cautions.push('A list of more than some 50,000 records is slow to read whole. Ask the vendor for a filter by time or a log of changes.')
  if (answers.paging === 'none') cautions.push('One answer must hold everything. When it grows beyond a few thousand records, page it.')
  if (mode === 'pair' && answers.deletes === 'ignore' && answers.changes !== 'newest-first') cautions.push('Deleted records stay until a backfill runs: `npx tidemark run <name> --backfill`, now and then.')
  if (mode === 'pair' && answers.changes === 'events') cautions.push('Events are kept for a limited time: say how long in `retentionMs`, so that a gap is noticed.')
  if (answers.ties === 'no' || answers.order === 'unique') cautions.push('Times that never tie are rare: a batch job gives many records one. If unsure, page by time and id.')
  return cautions
}
