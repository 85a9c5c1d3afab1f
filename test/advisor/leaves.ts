import { listChoices, nextQuestion, renderWorker, type Answers } from '../../src/advisor/index.ts'

/** Every way through the questions. */
export function everyLeaf(answers: Answers = {}): Answers[] {
  const question = nextQuestion(answers)
  if (question === null) return [answers]
  const values =
    question.kind === 'choice' ? listChoices(question, answers).map(({ value }) => value) : [question.defaultValue]
  return values.flatMap((value) => everyLeaf({ ...answers, [question.name]: value }))
}

/** Leaves that lead to the same file count once. */
export function everyFile(): Map<string, Answers> {
  return new Map(everyLeaf().map((answers) => [renderWorker(answers), answers]))
}

export function nameOf(answers: Answers): string {
  return Object.entries(answers)
    .filter(([name]) => name !== 'lagSeconds')
    .map(([, value]) => value)
    .join('-')
}
