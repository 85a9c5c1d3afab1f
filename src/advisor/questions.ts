import { chooseMode, type Answers } from './answers.ts'
import { KNOWN_APIS } from './known-apis.ts'

export type QuestionName = keyof Answers

export type Question = ChoiceQuestion | NumberQuestion

interface QuestionBase {
  readonly name: QuestionName
  readonly text: string
  /** Whether the question is asked after the given answers. */
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
  /** Restricts the choice to certain earlier answers. */
  readonly isOffered?: (answers: Answers) => boolean
}

/** In the order they are asked. An answer to a question that is not asked has no effect and is refused. */
export const QUESTIONS: readonly Question[] = [
  {
    name: 'api',
    kind: 'choice',
    text: 'Which API is it?',
    choices: [
      ...KNOWN_APIS.map(({ name, title }) => ({ value: name, label: title })),
      { value: 'other', label: 'another API' },
    ],
    isRelevant: () => true,
  },
  {
    name: 'changes',
    kind: 'choice',
    text: 'Does the API report changes?',
    choices: [
      { value: 'events', label: 'yes, with an events endpoint or a change log' },
      { value: 'timestamp', label: 'yes, the list can be filtered by modification time' },
      { value: 'sync-token', label: 'yes, the last page returns a token for the next sync' },
      { value: 'newest-first', label: 'no, but the list is sorted newest first: bookmarks, stars, likes' },
      { value: 'none', label: 'no' },
    ],
    isRelevant: ({ api }) => api === 'other',
  },
  {
    name: 'deletes',
    kind: 'choice',
    text: 'Does the API report deletions?',
    choices: [
      {
        value: 'reported',
        label: 'yes, with the changes: a flag in the record, or an event type',
        isOffered: ({ changes }) => changes !== 'newest-first',
      },
      {
        value: 'elsewhere',
        label: 'yes, separately: an audit log, a trash, an archived filter',
        isOffered: ({ changes }) => changes !== 'newest-first',
      },
      { value: 'matter', label: 'no, and it matters' },
      { value: 'ignore', label: 'no, and deleted records may stay for a while' },
    ],
    isRelevant: ({ changes }) => changes !== undefined && changes !== 'none',
  },
  {
    name: 'paging',
    kind: 'choice',
    text: 'How is the whole list read?',
    choices: [
      { value: 'none', label: 'in one response' },
      { value: 'token', label: 'by a token or link from the previous page' },
      { value: 'graphql', label: 'as a GraphQL connection: endCursor, hasNextPage' },
      { value: 'page', label: 'by page number' },
      { value: 'offset', label: 'by offset and limit' },
      { value: 'time', label: 'by time: after the last record of the previous page' },
    ],
    isRelevant: ({ changes }) => changes !== undefined && changes !== 'sync-token' && changes !== 'newest-first',
  },
  {
    name: 'nested',
    kind: 'choice',
    text: 'Is it a list inside each entry of another list (the issues of every repository)?',
    choices: [
      { value: 'no', label: 'no' },
      { value: 'yes', label: 'yes' },
    ],
    isRelevant: ({ paging }) => paging === 'graphql',
  },
  {
    name: 'ties',
    kind: 'choice',
    text: 'Can two records share a timestamp?',
    choices: [
      { value: 'yes', label: 'yes, or not sure; the list is sorted by time and id' },
      { value: 'no', label: 'never' },
    ],
    isRelevant: ({ paging }) => paging === 'time',
  },
  {
    name: 'order',
    kind: 'choice',
    text: 'How are changes sorted?',
    choices: [
      { value: 'time-and-id', label: 'by time and id, and it filters by both' },
      { value: 'one-field', label: 'by one field at a time: by time, or by id' },
      { value: 'unique', label: 'by time, and no two records ever share a timestamp' },
      { value: 'unsorted', label: 'in no guaranteed order' },
    ],
    isRelevant: ({ changes, deletes, paging }) =>
      changes === 'timestamp' && deletes !== 'matter' && paging !== undefined && paging !== 'time',
  },
  {
    name: 'http',
    kind: 'choice',
    text: 'What do requests look like?',
    choices: [
      { value: 'plain', label: 'GET with query parameters, JSON responses' },
      { value: 'other', label: 'anything else: request bodies, signatures, a client library' },
    ],
    // GraphQL, search and sync tokens need code; a window does not.
    isRelevant: (answers) =>
      answers.paging !== undefined &&
      answers.paging !== 'graphql' &&
      answers.order !== 'one-field' &&
      !(answers.order === 'unsorted' && chooseMode(answers) === 'pair'),
  },
  {
    name: 'size',
    kind: 'choice',
    text: 'How many records are there?',
    choices: [
      { value: 'small', label: 'up to about 50,000' },
      { value: 'large', label: 'more' },
    ],
    isRelevant: (answers) => answers.changes !== undefined && chooseMode(answers) === 'replace',
  },
  {
    name: 'lagSeconds',
    kind: 'number',
    text: 'How many seconds can pass until a change is visible? (30 if unknown)',
    min: 10,
    max: 3_600,
    defaultValue: 30,
    isRelevant: (answers) =>
      chooseMode(answers) === 'pair' &&
      answers.changes !== 'newest-first' &&
      (answers.changes !== 'sync-token' || answers.deletes === 'elsewhere'),
  },
]

/** The first relevant question without an answer; null when the answers are complete. */
export function nextQuestion(answers: Answers): Question | null {
  // In order: the relevance of a question depends only on the answers before it.
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

/** The questions that are relevant for these answers, in order. */
export function listRelevantQuestions(answers: Answers): Question[] {
  const before: Record<string, unknown> = {}
  return QUESTIONS.filter((question) => {
    if (!question.isRelevant(before)) return false
    before[question.name] = answers[question.name]
    return true
  })
}
