import { chooseMode, type Answers } from './answers.ts'

export type QuestionName = keyof Answers

export type Question = ChoiceQuestion | NumberQuestion

interface QuestionBase {
  readonly name: QuestionName
  readonly text: string
  /** Whether it matters after what has been answered. */
  isRelevant(answers: Answers): boolean
}

export interface ChoiceQuestion extends QuestionBase {
  readonly kind: 'choice'
  readonly choices: readonly Choice[]
}

export interface NumberQuestion extends QuestionBase {
  readonly kind: 'number'
  readonly min: number
  readonly max: number
  readonly defaultValue: number
}

export interface Choice {
  readonly value: string
  readonly label: string
  /** Only after some answers. */
  readonly isOffered?: (answers: Answers) => boolean
}

/** In the order they are asked. An answer to a question that is not asked would change nothing, and is refused. */
export const QUESTIONS: readonly Question[] = [
  {
    name: 'api', kind: 'choice', text: 'Which API is it?',
    choices: [
      { value: 'salesforce', label: 'Salesforce' },
      { value: 'stripe', label: 'Stripe' },
      { value: 'hubspot', label: 'HubSpot' },
      { value: 'github', label: 'GitHub' },
      { value: 'servicenow', label: 'ServiceNow' },
      { value: 'linear', label: 'Linear' },
      { value: 'airtable', label: 'Airtable' },
      { value: 'bookmarks', label: 'bookmarks of X' },
      { value: 'github-stars', label: 'stars of GitHub' },
      { value: 'other', label: 'another one' },
    ],
    isRelevant: () => true,
  },
  {
    name: 'changes', kind: 'choice', text: 'Does it tell what changed?',
    choices: [
      { value: 'events', label: 'yes, an endpoint of events or a change log' },
      { value: 'timestamp', label: 'yes, the list can be filtered by when a record was changed' },
      { value: 'sync-token', label: 'yes, the last page hands out a token that the next sync goes on with' },
      { value: 'newest-first', label: 'no, but the list comes newest first: bookmarks, stars, likes' },
      { value: 'none', label: 'no' },
    ],
    isRelevant: ({ api }) => api === 'other',
  },
  {
    name: 'deletes', kind: 'choice', text: 'Does it tell what was deleted?',
    choices: [
      { value: 'told', label: 'yes, in the same place: a flag of the record, a kind of event', isOffered: ({ changes }) => changes !== 'newest-first' },
      { value: 'elsewhere', label: 'yes, elsewhere: an audit log, a trash, an archived filter', isOffered: ({ changes }) => changes !== 'newest-first' },
      { value: 'matter', label: 'no, and it matters' },
      { value: 'ignore', label: 'no, and what is gone may stay for a while' },
    ],
    isRelevant: ({ changes }) => changes !== undefined && changes !== 'none',
  },
  {
    name: 'paging', kind: 'choice', text: 'How is the whole list read?',
    choices: [
      { value: 'none', label: 'in one answer' },
      { value: 'token', label: 'by a token or a link that the last page gave' },
      { value: 'graphql', label: 'as a GraphQL connection: endCursor, hasNextPage' },
      { value: 'page', label: 'by page number' },
      { value: 'offset', label: 'by offset and limit' },
      { value: 'time', label: 'by time: after the last record of the page before' },
    ],
    isRelevant: ({ changes }) => changes !== undefined && changes !== 'sync-token' && changes !== 'newest-first',
  },
  {
    name: 'nested', kind: 'choice', text: 'Is it a list inside each entry of another list (the issues of every repository)?',
    choices: [{ value: 'no', label: 'no' }, { value: 'yes', label: 'yes' }],
    isRelevant: ({ paging }) => paging === 'graphql',
  },
  {
    name: 'ties', kind: 'choice', text: 'Can two records share a timestamp?',
    choices: [{ value: 'yes', label: 'yes, or not sure; the list is sorted by time and id' }, { value: 'no', label: 'never' }],
    isRelevant: ({ paging }) => paging === 'time',
  },
  {
    name: 'order', kind: 'choice', text: 'How does it sort what changed?',
    choices: [
      { value: 'time-and-id', label: 'by time and id, and it filters by both' },
      { value: 'one-field', label: 'by one field at a time: by time, or by id' },
      { value: 'unique', label: 'by time, and no two records ever share one' },
      { value: 'unsorted', label: 'in no order that it promises' },
    ],
    isRelevant: ({ changes, deletes, paging }) => changes === 'timestamp' && deletes !== 'matter' && paging !== undefined && paging !== 'time',
  },
  {
    name: 'http', kind: 'choice', text: 'How is it asked?',
    choices: [{ value: 'plain', label: 'by GET with parameters; it answers in JSON' }, { value: 'other', label: 'otherwise: bodies, signatures, a client library' }],
    // A connection, a search and a sync token are code; a window is not.
    isRelevant: (answers) => answers.paging !== undefined && answers.paging !== 'graphql' && answers.order !== 'one-field' && !(answers.order === 'unsorted' && chooseMode(answers) === 'pair'),
  },
  {
    name: 'size', kind: 'choice', text: 'How many records are there?',
    choices: [{ value: 'small', label: 'up to some 50,000' }, { value: 'large', label: 'more' }],
    isRelevant: (answers) => answers.changes !== undefined && chooseMode(answers) === 'replace',
  },
  {
    name: 'lagSeconds', kind: 'number', text: 'How many seconds may pass until a change can be found? (30 if nobody knows)', min: 10, max: 3_600, defaultValue: 30,
    isRelevant: (answers) => chooseMode(answers) === 'pair' && answers.changes !== 'newest-first' && (answers.changes !== 'sync-token' || answers.deletes === 'elsewhere'),
  },
]

/** The first that is asked and not yet answered; null when the advice can be given. */
export function nextQuestion(answers: Answers): Question | null {
  // One after the other: whether a question is asked depends on the answers before it, never on those after.
  const before: Record<string, unknown> = {}
  for (const question of QUESTIONS) {
    if (!question.isRelevant(before)) continue
    if (answers[question.name] === undefined) return question
    before[question.name] = answers[question.name]
  }
  return null
}

export function listChoices(question: ChoiceQuestion, answers: Answers): Choice[] {
  return question.choices.filter(({ isOffered }) => isOffered?.(answers) ?? true)
}

/** The questions that these answers lead through, in order. */
export function listRelevantQuestions(answers: Answers): Question[] {
  const before: Record<string, unknown> = {}
  return QUESTIONS.filter((question) => {
    if (!question.isRelevant(before)) return false
    before[question.name] = answers[question.name]
    return true
  })
}
