import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline/promises'
import {
  listChoices,
  nextQuestion,
  listRelevantQuestions,
  QUESTIONS,
  type Answers,
  type Question,
} from '../../advisor/index.ts'
import { didYouMean } from '../../values/did-you-mean.ts'
import { describeValue } from '../../config/names.ts'
import { SyncError } from '../../contract/index.ts'
import type { Cli } from '../cli.ts'
import { readStandardInput } from './state-argument.ts'

export interface AnswerFlags {
  readonly answers?: string
  /** Each in the form name=value. */
  readonly answer?: readonly string[]
}

/** Reads answers from the file, then the flags, then the terminal. */
export async function readAnswers(cli: Cli, flags: AnswerFlags): Promise<Answers> {
  const given = checkAnswers({ ...(await readAnswerFile(cli, flags.answers)), ...parseAnswerFlags(flags.answer ?? []) })
  const answers =
    process.stdin.isTTY && cli.terminal.isInteractive ? await promptForAnswers(cli, given) : withDefaults(given)
  const missing = nextQuestion(answers)
  if (missing !== null)
    throw new SyncError(
      'ARGUMENT_INVALID',
      `"${missing.name}" is not answered: ${missing.text} Add --answer ${missing.name}=… with ${describeAllowedAnswers(missing)}.`,
    )
  const relevant = listRelevantQuestions(answers).map(({ name }) => name)
  for (const question of listRelevantQuestions(answers)) {
    const offered = question.kind === 'choice' ? listChoices(question, answers) : []
    if (question.kind === 'choice' && !offered.some(({ value }) => value === answers[question.name])) {
      throw new SyncError(
        'ARGUMENT_INVALID',
        `With the other answers, "${question.name}" must be one of ${offered.map(({ value }) => value).join(', ')}.`,
      )
    }
  }
  const unused = Object.keys(given).find((name) => !relevant.includes(name as keyof Answers))
  if (unused !== undefined)
    throw new SyncError(
      'ARGUMENT_INVALID',
      `With the other answers, "${unused}" has no effect. Leave it out; the relevant questions are ${relevant.join(', ')}.`,
    )
  return answers
}

async function readAnswerFile(cli: Cli, file: string | undefined): Promise<object> {
  if (file === undefined) return {}
  let answers: unknown
  try {
    answers = JSON.parse(file === '-' ? await readStandardInput() : readFileSync(resolve(cli.folder, file), 'utf8'))
  } catch (cause) {
    throw new SyncError(
      'ARGUMENT_INVALID',
      `The answers in ${file === '-' ? 'standard input' : file} are not valid JSON: ${(cause as Error).message}`,
      { cause },
    )
  }
  if (typeof answers === 'object' && answers !== null && !Array.isArray(answers)) return answers
  throw new SyncError(
    'ARGUMENT_INVALID',
    'The answers must be a JSON object such as {"api": "other", "changes": "none"}.',
  )
}

/** Answers in the form name=value, checked one by one. */
export function parseAnswers(given: readonly string[]): Answers {
  return checkAnswers(parseAnswerFlags(given))
}

function parseAnswerFlags(given: readonly string[]): object {
  return Object.fromEntries(
    given.map((text) => {
      const at = text.indexOf('=')
      if (at < 1)
        throw new SyncError('ARGUMENT_INVALID', `${describeValue(text)} is not a valid answer. Write it as name=value.`)
      return [text.slice(0, at), text.slice(at + 1)]
    }),
  )
}

function checkAnswers(given: object): Answers {
  return Object.fromEntries(
    Object.entries(given).map(([name, value]: [string, unknown]) => {
      const question = QUESTIONS.find((one) => one.name === name)
      if (question === undefined)
        throw new SyncError(
          'ARGUMENT_INVALID',
          `Unknown question ${describeValue(name)}.${didYouMean(
            name,
            QUESTIONS.map((one) => one.name),
          )}`,
        )
      return [name, parseAnswer(question, value)]
    }),
  )
}

function parseAnswer(question: Question, value: unknown): string | number {
  if (question.kind === 'number') {
    const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value
    if (typeof number === 'number' && Number.isSafeInteger(number) && number >= question.min && number <= question.max)
      return number
  } else if (question.choices.some((choice) => choice.value === value)) return value as string
  throw new SyncError(
    'ARGUMENT_INVALID',
    `The answer to "${question.name}" is ${describeValue(value)}, but it must be ${describeAllowedAnswers(question)}.`,
  )
}

function describeAllowedAnswers(question: Question): string {
  return question.kind === 'number'
    ? `a whole number from ${question.min} to ${question.max}`
    : `one of ${question.choices.map(({ value }) => value).join(', ')}`
}

/** Without a terminal, a missing number gets its default. */
function withDefaults(given: Answers): Answers {
  const question = nextQuestion(given)
  return question?.kind === 'number' ? { ...given, [question.name]: question.defaultValue } : given
}

async function promptForAnswers(cli: Cli, given: Answers): Promise<Answers> {
  const lines = createInterface({ input: process.stdin, output: process.stdout })
  // Ctrl-C and Ctrl-D close the interface; the pending question would never settle.
  const ended = new Promise<never>((_, reject) =>
    lines.once('close', () =>
      reject(new SyncError('CANCELLED', 'The questions were not answered. Nothing was written.')),
    ),
  )
  ended.catch(() => {})
  let answers = given
  try {
    for (let question = nextQuestion(answers); question !== null; question = nextQuestion(answers)) {
      answers = {
        ...answers,
        [question.name]: await promptForAnswer(cli, question, answers, (prompt) =>
          Promise.race([lines.question(prompt), ended]),
        ),
      }
    }
    return answers
  } finally {
    lines.close()
  }
}

async function promptForAnswer(
  { terminal }: Cli,
  question: Question,
  answers: Answers,
  read: (prompt: string) => Promise<string>,
): Promise<string | number> {
  terminal.print('', terminal.colors.bold(question.text))
  const choices = question.kind === 'choice' ? listChoices(question, answers) : []
  if (question.kind === 'choice') terminal.print(...choices.map(({ label }, index) => `  ${index + 1}  ${label}`))
  for (;;) {
    const typed = (
      await read(question.kind === 'choice' ? `1–${choices.length}: ` : `${question.defaultValue}: `)
    ).trim()
    const value =
      question.kind === 'choice'
        ? (choices[Number(typed) - 1]?.value ?? typed)
        : typed === ''
          ? question.defaultValue
          : typed
    try {
      return parseAnswer(question, value)
    } catch (error) {
      terminal.print((error as Error).message)
    }
  }
}
