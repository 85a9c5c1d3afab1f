import { SyncError, type Log, type LogFields } from '../contract/index.ts'
import { maskSecrets } from '../redaction/known-secrets.ts'

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

export interface LogOptions {
  level?: LogLevel
  /** Writes one line with its newline. Defaults to standard error, because standard output carries the result. */
  write?: (line: string) => void
  now?: () => number
  /** Context fields that are added to every line, such as the trace id. */
  context?: () => LogFields
}

const TEXT_CHARACTERS_MAX = 2_000
const FIELDS_MAX = 40
/** Characters that JSON does not escape but a terminal interprets: control and direction characters, line separators. */
const UNSAFE_CHARACTERS = /[\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g

/** Writes JSON lines. Invariant 10: only plain values are logged, because an object could contain state, a record or a secret. */
export function createLog(options: LogOptions = {}): Log {
  const { level = 'warn', write = writeToStandardError, now = Date.now, context } = options
  const threshold = LOG_LEVELS.indexOf(level)
  function writer(name: Exclude<LogLevel, 'silent'>): (message: string, fields?: LogFields) => void {
    if (LOG_LEVELS.indexOf(name) < threshold) return () => {}
    return (message, fields) =>
      write(formatLine(name, message, context === undefined ? fields : { ...fields, ...context() }, now()))
  }
  return { debug: writer('debug'), info: writer('info'), warn: writer('warn'), error: writer('error') }
}

/** Throws ARGUMENT_INVALID for an unknown level from the environment or a flag. */
export function parseLogLevel(text: string): LogLevel {
  const level = LOG_LEVELS.find((known) => known === text.trim().toLowerCase())
  if (level !== undefined) return level
  throw new SyncError(
    'ARGUMENT_INVALID',
    `TIDEMARK_LOG is ${JSON.stringify(text.slice(0, 40))}, but it must be one of ${LOG_LEVELS.join(', ')}.`,
  )
}

function formatLine(level: string, message: string, fields: LogFields = {}, at: number): string {
  const head = { time: new Date(at).toISOString(), level, message: maskAndTruncate(message) }
  const plain = Object.entries(fields)
    // Fields cannot override the time, the level or the message.
    .filter(([name, value]) => value !== undefined && !Object.hasOwn(head, name))
    .slice(0, FIELDS_MAX)
    .map(([name, value]) => [maskAndTruncate(name), toPlainValue(value)] as const)
  const json = JSON.stringify({ ...head, ...Object.fromEntries(plain) })
  return `${json.replace(UNSAFE_CHARACTERS, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)}\n`
}

function toPlainValue(value: unknown): string | number | boolean | null {
  if (typeof value === 'string') return maskAndTruncate(value)
  if (typeof value === 'number' || typeof value === 'boolean' || value === null) return value
  return '[omitted]'
}

function maskAndTruncate(given: string): string {
  const text = maskSecrets(given)
  return text.length <= TEXT_CHARACTERS_MAX
    ? text
    : `${text.slice(0, TEXT_CHARACTERS_MAX)}… (${text.length} characters)`
}

function writeToStandardError(text: string): void {
  process.stderr.write(text)
}
