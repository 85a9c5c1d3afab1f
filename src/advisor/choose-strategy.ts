import type { StrategyName } from '../sources/kit/source-advice.ts'
import { required } from '../values/required.ts'
import { chooseMode, type Answers } from './answers.ts'
import { KNOWN_APIS, type KnownApiProfile } from './known-apis.ts'
import { QUESTIONS, listRelevantQuestions, type QuestionName } from './questions.ts'
import { streamsStateShape, STATE_SHAPES, type StateShape } from './state-shapes.ts'

export interface Advice {
  /** `pair`: a manual backfill and a scheduled delta into one database. `replace`: the whole list in every cycle. */
  readonly mode: 'pair' | 'replace'
  /** The built-in source that implements the strategy. */
  readonly source: string | null
  /** Reads everything; in a pair, only on request. */
  readonly backfill: SyncAdvice
  readonly delta: SyncAdvice | null
  readonly deletes: 'swept' | 'reported' | 'streams' | 'until-backfill'
  /** The strategy that reads deletions from a separate endpoint. */
  readonly deletesBy: StrategyName | null
  /** How far every cycle stays behind the current time; null if the strategy does not depend on time. */
  readonly lagMs: number | null
  readonly schedule: string
  readonly reasons: readonly AdviceReason[]
  readonly cautions: readonly string[]
}

export interface SyncAdvice {
  readonly mode: 'replace' | 'incremental'
  readonly strategy: StrategyName
  /** Null if the strategy keeps no state. */
  readonly state: StateShape | null
}

export interface AdviceReason {
  readonly question: QuestionName
  readonly answer: string
  readonly therefore: string
}

/** Chooses the strategy. Legal only with complete answers, when `nextQuestion` returns null. */
export function chooseStrategy(given: Answers): Advice {
  const known = findKnownApi(given)
  const answers = known === null ? given : { ...given, ...known.facts }
  const mode = chooseMode(answers)
  const backfill = chooseBackfill(answers)
  const hasSeparateDeletes = mode === 'pair' && answers.deletes === 'elsewhere'
  const delta = mode === 'pair' ? chooseDelta(answers) : null
  const deletesBy = hasSeparateDeletes ? (known?.deletesBy ?? 'keyset') : null
  return {
    mode,
    source: known !== null ? `tidemark/sources/${given.api}` : isDeclarative(answers) ? 'tidemark/sources/rest' : null,
    backfill: { mode: 'replace', strategy: backfill, state: STATE_SHAPES[backfill] },
    delta:
      delta === null
        ? null
        : {
            mode: 'incremental',
            strategy: delta,
            state: deletesBy === null ? STATE_SHAPES[delta] : streamsStateShape(delta, deletesBy),
          },
    deletes: mode === 'replace' ? 'swept' : chooseDeletes(answers),
    deletesBy,
    lagMs: mode === 'pair' && answers.lagSeconds !== undefined ? answers.lagSeconds * 1_000 : null,
    schedule:
      known?.schedule ??
      (mode === 'pair' ? (answers.changes === 'newest-first' ? '15m' : '5m') : answers.size === 'large' ? '6h' : '30m'),
    reasons: explainAnswers(given, answers),
    cautions: listCautions(answers),
  }
}

export function findKnownApi({ api }: Answers): KnownApiProfile | null {
  return KNOWN_APIS.find(({ name }) => name === api) ?? null
}

/** Whether the `rest` source can describe the whole API declaratively. */
export function isDeclarative(answers: Answers): boolean {
  return answers.http === 'plain' || (answers.order === 'unsorted' && chooseMode(answers) === 'pair')
}

function chooseBackfill(answers: Answers): StrategyName {
  if (answers.changes === 'newest-first') return 'frontier'
  switch (answers.paging) {
    case undefined: // A sync token, whose pages are chained too.
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
      throw new TypeError('unknown paging')
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
      throw new TypeError('unknown order')
  }
}

/** In code, unique timestamps are a keyset whose id is never needed. */
function chooseTimePaging(hasTies: boolean, answers: Answers): StrategyName {
  return hasTies || !isDeclarative(answers) ? 'keyset' : 'timestamp'
}

function chooseDeletes({ deletes }: Answers): Advice['deletes'] {
  if (deletes === 'elsewhere') return 'streams'
  return deletes === 'reported' ? 'reported' : 'until-backfill'
}

function explainAnswers(given: Answers, answers: Answers): AdviceReason[] {
  const own: AdviceReason[] =
    findKnownApi(given) === null
      ? []
      : [
          {
            question: 'api',
            answer: String(given.api),
            therefore: 'Tidemark has a tested source for this API: use it instead of writing one.',
          },
        ]
  const path =
    findKnownApi(given) === null
      ? listRelevantQuestions(answers).slice(1)
      : QUESTIONS.filter(({ name }) => name !== 'api' && answers[name] !== undefined)
  return [
    ...own,
    ...path.map(({ name }) => ({
      question: name,
      answer: String(answers[name]),
      therefore: CONCLUSIONS[name](answers),
    })),
  ]
}

const PAGING_CONCLUSIONS: Readonly<Record<NonNullable<Answers['paging']>, string>> = {
  none: 'The whole list is one page.',
  token: 'The token is the state and is sent back unchanged.',
  graphql: '`endCursor` is the state; `hasNextPage` marks the end.',
  page: 'The page number is the state. Rows can shift between pages, so the list is read until two passes agree.',
  offset: 'The offset is the state. Rows can shift between pages, so the list is read until two passes agree.',
  time: 'The time and id of the last record are the state; the next page starts after them.',
}

const ORDER_CONCLUSIONS: Readonly<Record<NonNullable<Answers['order']>, string>> = {
  'time-and-id': 'Time and id together identify one record, so no page boundary skips or repeats a record.',
  'one-field':
    'If a whole page shares one timestamp, paging by time cannot advance; that timestamp is then read by id.',
  unique: 'The timestamp alone identifies the record.',
  unsorted: 'All changes since a time are read as one window, whose end is fixed before its first page.',
}

const CONCLUSIONS: Readonly<Record<QuestionName, (answers: Answers) => string>> = {
  api: () => '',
  changes: ({ changes, deletes }) => {
    if (changes === 'none') return 'Read the whole list every time; rows that are no longer in it are swept.'
    if (deletes === 'matter') return 'Changes could be followed incrementally, but deletions would be missed.'
    if (changes === 'events') return 'Follow the events by id, starting at the newest event before the backfill.'
    if (changes === 'newest-first')
      return 'Read from the top until a known record, then continue from the oldest known record to the end of the list: two frontiers.'
    if (changes === 'sync-token') return 'Follow the sync token; it is the state.'
    return 'Follow the changes by their timestamp, next to a backfill that reads everything on request.'
  },
  deletes: ({ deletes }) => {
    if (deletes === 'reported') return 'Changes and deletions come from one stream.'
    if (deletes === 'elsewhere') return 'Every cycle reads changes and deletions, each with its own state.'
    if (deletes === 'matter') return 'Only a complete list shows which records are gone: use replace, without a delta.'
    return 'Follow the changes; deleted records stay until the next backfill sweeps them.'
  },
  paging: ({ paging }) => PAGING_CONCLUSIONS[required(paging, 'the answer to paging')],
  nested: ({ nested }) =>
    nested === 'yes'
      ? 'Two levels of cursors: one for the outer list, and one for each entry whose inner list is unfinished.'
      : 'One cursor is enough.',
  ties: ({ ties }) =>
    ties === 'yes'
      ? 'The id breaks ties; otherwise a page boundary between two records with the same time would lose one.'
      : 'The timestamp alone identifies the record.',
  order: (answers) =>
    chooseMode(answers) === 'replace'
      ? 'Unsorted changes that are paged by number can be missed: use replace, without a delta.'
      : ORDER_CONCLUSIONS[required(answers.order, 'the answer to order')],
  http: ({ http }) =>
    http === 'plain'
      ? 'No code needed: describe the API declaratively with the `rest` source.'
      : 'Use a strategy in code, with your own request function.',
  size: ({ size }) =>
    size === 'small'
      ? 'Reading everything every 30 minutes is cheap enough.'
      : 'Reading everything takes long, so it runs rarely.',
  lagSeconds: ({ lagSeconds }) =>
    `Every cycle stays ${lagSeconds} seconds behind, so that a record that appears later than its timestamp is not missed.`,
}

function listCautions(answers: Answers): string[] {
  const mode = chooseMode(answers)
  const cautions: string[] = []
  if (mode === 'replace' && answers.size === 'large')
    cautions.push(
      'Reading a list of more than about 50,000 records in full is slow. Ask the vendor for a time filter or a change log.',
    )
  if (answers.paging === 'none')
    cautions.push('One response must contain everything. Add paging when it grows beyond a few thousand records.')
  if (mode === 'pair' && answers.deletes === 'ignore' && answers.changes !== 'newest-first')
    cautions.push(
      'Deleted records stay until a backfill runs. Run `npx tidemark run <name> --backfill` from time to time.',
    )
  if (mode === 'pair' && answers.changes === 'events')
    cautions.push('The API keeps events for a limited time. Set `retentionMs`, so that a gap is detected.')
  if (answers.ties === 'no' || answers.order === 'unique')
    cautions.push(
      'Unique timestamps are rare: a batch job gives many records the same one. If unsure, page by time and id.',
    )
  return cautions
}
