import { isRangeName } from '../../engine/range-plan.ts'
import { CommanderError } from 'commander'
import { ERROR_CODES, isSyncError, SyncError, type ErrorCode } from '../../contract/index.ts'
import { waitHintMs } from '../../engine/retry.ts'
import { systemClock } from '../../platform/clock.ts'
import type { Cli } from '../cli.ts'
import { maskSecrets } from '../../redaction/known-secrets.ts'
import { exitCodeOf } from './exit-code.ts'
import { toPrintable } from './printable.ts'
import { addTargetFlags } from './target-flags.ts'

export interface ErrorReport {
  readonly code: ErrorCode
  readonly message: string
  readonly advice: string
  /** When the source accepts requests again, if it announced a time. */
  readonly retryAt?: string
}

/** A refused command, with the plan of what it would do. */
export class RefusedError extends SyncError {
  readonly plan: object

  constructor(code: ErrorCode, message: string, plan: object) {
    super(code, message)
    this.plan = plan
  }
}

/** Prints the error with its advice and returns the exit code. `help` is the help command of the verb. */
export function reportError(cli: Cli, error: unknown, help: string): number {
  if (error instanceof CommanderError && error.exitCode === 0) return 0
  const report = toErrorReport(error, help)
  if (cli.terminal.json)
    cli.terminal.printDocument({ error: report, ...(error instanceof RefusedError ? { plan: error.plan } : {}) })
  else cli.terminal.log(`${formatErrorReport(cli, report).join('\n')}\n`)
  if (cli.environment['TIDEMARK_LOG'] === 'debug' && error instanceof Error && !(error instanceof CommanderError))
    cli.terminal.log(`${stackFramesOf(error)}\n`)
  return exitCodeOf(report.code)
}

export function formatErrorReport(
  { terminal: { colors }, targetFlags }: Cli,
  { code, message, advice }: ErrorReport,
): string[] {
  return [
    `${colors.red('error')} ${colors.bold(code)}  ${toPrintable(message)}`,
    `      ${toPrintable(addTargetFlags(advice, targetFlags))}`,
  ]
}

/** Replaces `<sync>` in the advice with the name of the sync. */
export function adviceFor(code: ErrorCode, sync?: string): string {
  const { advice } = ERROR_CODES[code]
  if (sync === undefined) return advice
  const command = '`tidemark run <sync> --allow-deletes`'
  const repeated = 'the same command with --allow-deletes'
  return isRangeName(sync) ? advice.replaceAll(command, repeated) : advice.replaceAll('<sync>', sync)
}

function toErrorReport(error: unknown, help: string): ErrorReport {
  const { code, message, ...rest } = describeError(error, help)
  return { code, message: maskSecrets(message), ...rest }
}

function describeError(error: unknown, help: string): ErrorReport {
  const advice = (code: ErrorCode): string => adviceFor(code).replace('tidemark <verb> --help', help)
  if (error instanceof CommanderError)
    return { code: 'ARGUMENT_INVALID', message: formatCommanderMessage(error), advice: advice('ARGUMENT_INVALID') }
  if (isSyncError(error))
    return { code: error.code, message: error.message, advice: advice(error.code), ...readRetryAt(error) }
  return {
    code: 'INTERNAL',
    message: error instanceof Error ? error.message : String(error),
    advice: adviceFor('INTERNAL'),
  }
}

function readRetryAt(error: SyncError): Pick<ErrorReport, 'retryAt'> {
  const ms = waitHintMs(error)
  return ms > 0 ? { retryAt: new Date(systemClock.now() + ms).toISOString() } : {}
}

/** Turns `error: unknown command 'stauts'\n(Did you mean status?)` into a sentence. */
function formatCommanderMessage({ message }: CommanderError): string {
  const [what = '', ...more] = message.replace(/^error: /, '').split('\n')
  const sentence = `${what.charAt(0).toUpperCase()}${what.slice(1)}${/[.!?]$/.test(what) ? '' : '.'}`
  return [sentence, ...more.map((line) => line.replace(/^\((.*)\)$/, '$1'))].join(' ').trim()
}

/** Stack frames only: the message may quote a value from the source. */
function stackFramesOf(error: Error): string {
  return maskSecrets(error.stack ?? '')
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .join('\n')
}
