import { Command, Option } from 'commander'
import { writeFileSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import { chooseStrategy, QUESTIONS, renderWorker, type Advice, type SyncAdvice } from '../../advisor/index.ts'
import { SyncError } from '../../contract/index.ts'
import { readAnswers, type AnswerFlags } from '../kit/advise-answers.ts'
import type { VerbAction, Cli } from '../cli.ts'
import { RawJson } from '../kit/json-document.ts'

interface AdviseFlags extends AnswerFlags {
  readonly out?: string
  readonly force?: boolean
  readonly questions?: boolean
}

export function adviseVerb(): Command {
  return new Command('advise')
    .summary('recommend a sync strategy for an API')
    .description(
      'Asks how an API can be read, then recommends a strategy, mode, state and lag, gives the reasons, and writes a starter worker. Without a terminal, pass the answers as options.',
    )
    .option('--answers <file>', 'read answers from a JSON file; - reads standard input')
    .addOption(
      new Option('--answer <name=value>', 'give one answer; repeatable').argParser(
        (text: string, before: string[] | undefined) => [...(before ?? []), text],
      ),
    )
    .option('--out <file>', 'write the worker to a file instead of standard output')
    .option('--force', 'overwrite an existing file')
    .option('--questions', 'list the questions and their possible answers')
    .option('--json', 'print JSON')
}

export const advise: VerbAction<[AdviseFlags]> = async (cli, flags) => {
  if (flags.questions === true) return listQuestions(cli)
  const answers = await readAnswers(cli, flags)
  const advice = chooseStrategy(answers)
  const text = renderWorker(answers)
  const out = flags.out === undefined ? null : writeWorkerFile(cli, flags.out, text, flags.force === true)
  if (cli.terminal.json)
    cli.terminal.printDocument({
      answers: new RawJson(answers),
      ...adviceDocument(advice),
      worker: { file: out, text },
    })
  else printAdvice(cli, advice, out, text)
}

function adviceDocument(advice: Advice): object {
  const part = ({ state, ...rest }: SyncAdvice): object => ({ ...rest, state: new RawJson(state) })
  return { ...advice, backfill: part(advice.backfill), delta: advice.delta === null ? null : part(advice.delta) }
}

function writeWorkerFile(cli: Cli, out: string, text: string, force: boolean): string {
  const path = resolve(cli.folder, out)
  try {
    writeFileSync(path, text, { flag: force ? 'w' : 'wx' })
  } catch (cause) {
    const exists = (cause as NodeJS.ErrnoException).code === 'EEXIST'
    throw new SyncError(
      'ARGUMENT_INVALID',
      exists
        ? `${path} already exists. Nothing was written. Choose another name, or add --force to overwrite it.`
        : `${path} cannot be written: ${(cause as Error).message}`,
      { cause },
    )
  }
  return relative(cli.folder, path)
}

function listQuestions({ terminal }: Cli): void {
  const questions = QUESTIONS.map((question) => ({
    name: question.name,
    text: question.text,
    ...(question.kind === 'choice'
      ? { choices: question.choices.map(({ value, label }) => ({ value, label })) }
      : { min: question.min, max: question.max, default: question.defaultValue }),
  }))
  if (terminal.json) return terminal.printDocument({ questions })
  for (const question of QUESTIONS) {
    terminal.print(`${terminal.colors.bold(question.name)}  ${question.text}`)
    if (question.kind === 'choice')
      for (const { value, label } of question.choices) terminal.print(`    ${value.padEnd(12)} ${label}`)
    else terminal.print(`    ${question.min} to ${question.max}`)
  }
}

const MODE_TEXT = {
  pair: 'a manual backfill (replace) and a scheduled delta (incremental) into one database: worker.track',
  replace: 'replace: every cycle reads the whole list and sweeps missing rows: worker.sync',
} as const

const DELETES_TEXT = {
  swept: 'swept by each complete cycle',
  reported: 'reported in the same stream',
  streams: 'read after the changes in every cycle: streams',
  'until-backfill': 'not detected until the next backfill',
} as const

function printAdvice({ terminal }: Cli, advice: Advice, out: string | null, text: string): void {
  const { colors } = terminal
  const state = (part: SyncAdvice): string =>
    part.state === null ? 'none' : JSON.stringify(part.state).replaceAll('"', '')
  terminal.print(
    '',
    `${colors.bold('mode')}      ${MODE_TEXT[advice.mode]}`,
    ...(advice.source === null ? [] : [`${colors.bold('source')}    ${advice.source}`]),
    `${colors.bold('backfill')}  ${advice.backfill.strategy}, state ${state(advice.backfill)}`,
    ...(advice.delta === null
      ? []
      : [`${colors.bold('delta')}     ${advice.delta.strategy}, state ${state(advice.delta)}`]),
    `${colors.bold('deletes')}   ${DELETES_TEXT[advice.deletes]}`,
    `${colors.bold('lag')}       ${advice.lagMs === null ? 'none' : `${advice.lagMs / 1_000} s`}`,
    `${colors.bold('schedule')}  ${advice.schedule}`,
    '',
    colors.bold('why'),
    ...advice.reasons.map(({ question, answer, therefore }) => `  ${question} = ${answer}: ${therefore}`),
    ...advice.cautions.map((caution) => `  ${colors.yellow('!')} ${caution}`),
    '',
    ...(out === null ? [text.trimEnd()] : [`Wrote a starter worker to ${out}. Next: npx tidemark check ${out}`]),
  )
}
