import { chooseStrategy, nextQuestion, type Advice, type Answers } from '../advisor/index.ts'
import type { ListPaging } from '../sources/rest/stream.ts'
import type { Fact, Topic } from './fact.ts'

/** The strategy that `advise` chooses for the facts, and its settings. */
export interface Recommendation {
  readonly answers: Answers
  readonly advice: Advice
  readonly settings: Settings
  /** Facts that make the list unsafe to read with any strategy. */
  readonly cautions: readonly string[]
}

/** The settings of a stream that follow from the facts. */
export interface Settings {
  readonly lagMs: number
  /** The largest page size that the API is known to return. */
  readonly pageSizeMax: number | null
  /** How far each window of changes begins before the end of the last one. */
  readonly overlapMs: number
  /** The field that marks deleted records. */
  readonly deletedField: string | null
}

const LAG_SECONDS_MIN = 30
const LAG_SECONDS_MAX = 3_600
const OVERLAP_MS = 1_000
const PRECISIONS_MS: Readonly<Record<string, number>> = { day: 86_400_000, minute: 60_000, second: 1_000 }
const LARGE_LIST = 50_000

/** Answers the questions of `advise` by the facts, the safer answer where a fact is unknown. `given` takes precedence. */
export function recommend(
  facts: readonly Fact[],
  page: ListPaging,
  total: number | null,
  given: Answers = {},
): Recommendation {
  const valuesOf = (topic: Topic): string[] => facts.filter((fact) => fact.topic === topic).map(({ value }) => value)
  const [lower = 'unknown'] = valuesOf('lower-bound')
  const deletes = valuesOf('deletes')
  const flag = deletes.find((value) => value.startsWith('flag:'))?.slice('flag:'.length) ?? null
  const late = Number(valuesOf('late-rows')[0])
  const stepMs = PRECISIONS_MS[valuesOf('time-precision')[0] ?? ''] ?? 0
  const unsafe = facts.filter(({ topic, value }) => UNSAFE.includes(`${topic} ${value}`))
  const isFiltered = ['inclusive', 'exclusive', 'rounded'].includes(lower) && unsafe.length === 0
  const lagSeconds = Math.min(
    LAG_SECONDS_MAX,
    Math.max(LAG_SECONDS_MIN, Number.isFinite(late) ? late * 2 : 0, Math.ceil(stepMs / 1_000)),
  )
  const candidates: Answers = {
    api: 'other',
    changes: isFiltered ? 'timestamp' : 'none',
    deletes: flag !== null ? 'reported' : deletes.some((value) => value.startsWith('filter:')) ? 'elsewhere' : 'matter',
    paging: PAGINGS[page.kind],
    nested: 'no',
    ties: 'yes',
    order: 'unsorted',
    http: 'plain',
    size: total !== null && total > LARGE_LIST ? 'large' : 'small',
    lagSeconds,
    ...given,
  }
  const answers = answerAll(candidates)
  const [size] = valuesOf('page-size')
  return {
    answers,
    advice: chooseStrategy(answers),
    settings: {
      lagMs: (answers.lagSeconds ?? lagSeconds) * 1_000,
      pageSizeMax: /^\d+$/.test(size ?? '') ? Number(size) : null,
      overlapMs: Math.max(OVERLAP_MS, stepMs),
      deletedField: flag,
    },
    cautions: unsafe.map(({ text }) => text),
  }
}

/** Facts that no strategy can repair: the list itself loses rows. */
const UNSAFE: readonly string[] = [
  'page-border ties-lost',
  'page-border rows-lost',
  'list-end too-early',
  'stability changing-answers',
]

const PAGINGS: Readonly<Record<ListPaging['kind'], NonNullable<Answers['paging']>>> = {
  none: 'none',
  token: 'token',
  link: 'token',
  relay: 'graphql',
  pageNumber: 'page',
  offset: 'offset',
  keyset: 'time',
  timestamp: 'time',
  export: 'none',
}

/** Only the answers to questions that are asked. */
function answerAll(candidates: Answers): Answers {
  let answers: Answers = {}
  for (let question = nextQuestion(answers); question !== null; question = nextQuestion(answers)) {
    const value = candidates[question.name]
    if (value === undefined) throw new TypeError(`The probe has no answer to ${question.name}.`)
    answers = { ...answers, [question.name]: value }
  }
  return answers
}
