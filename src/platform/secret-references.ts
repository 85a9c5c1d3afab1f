import { execFileSync } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { SyncError } from '../contract/index.ts'
import { registerSecret } from '../redaction/known-secrets.ts'

type Environment = Readonly<Record<string, string | undefined>>

const BYTES_MAX = 64 * 1024
const COMMAND_TIMEOUT_MS = 10_000
/** The result of a command is kept this long, so that a page does not start one for every request. */
const COMMAND_TTL_MS = 60_000
const REFERENCE = /^(env|file|exec):(.+)$/s

/** Whether a text refers to a secret instead of being one. */
export function isSecretReference(text: string): boolean {
  const [, kind, target = ''] = REFERENCE.exec(text) ?? []
  return kind === 'file' ? isAbsolute(target) : kind !== undefined
}

/**
 * Reads the secret that a reference names: `env:NAME`, `file:/absolute/path`, or `exec:command argument …`. A file and
 * a command are read again, so that a secret can rotate without a restart. The command runs without a shell: its words
 * are separated by spaces, and nothing in them is expanded. Errors never contain its output.
 */
export function readSecretReference(reference: string, environment: Environment): string {
  const [, kind, target = ''] = REFERENCE.exec(reference) ?? []
  const value = (
    kind === 'env' ? (environment[target] ?? '') : kind === 'file' ? readSecretFile(target) : runCommand(target)
  ).replace(/\r?\n$/, '')
  if (value === '') throw new SyncError('SECRET_MISSING', `The secret ${kind}:${target} is empty or not set.`)
  registerSecret(value)
  return value
}

function readSecretFile(path: string): string {
  try {
    if (statSync(path).size > BYTES_MAX) throw new Error('too large')
    return readFileSync(path, 'utf8')
  } catch {
    throw new SyncError('SECRET_MISSING', `The secret file ${path} cannot be read, or is larger than 64 KiB.`)
  }
}

const results = new Map<string, { readonly value: string; readonly endsAt: number }>()

function runCommand(command: string): string {
  const known = results.get(command)
  if (known !== undefined && known.endsAt > performance.now()) return known.value
  const [program = '', ...args] = command.split(/ +/).filter((word) => word !== '')
  let value: string
  try {
    value = execFileSync(program, args, {
      encoding: 'utf8',
      timeout: COMMAND_TIMEOUT_MS,
      killSignal: 'SIGKILL',
      maxBuffer: BYTES_MAX,
      stdio: ['ignore', 'pipe', 'ignore'],
      shell: false,
    })
  } catch {
    throw new SyncError(
      'SECRET_MISSING',
      `The command ${program} for a secret failed, took longer than 10 s, or printed more than 64 KiB.`,
    )
  }
  results.set(command, { value, endsAt: performance.now() + COMMAND_TTL_MS })
  return value
}
