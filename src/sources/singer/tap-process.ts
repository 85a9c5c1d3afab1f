import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import type { SyncContext } from '../../contract/index.ts'
import { readLines, type TapLine } from './lines.ts'
import type { Redact } from './tap-config.ts'

type TapChild = ChildProcessByStdio<Writable, Readable, Readable>

export interface TapProgram {
  /** The tap and its own arguments. */
  readonly command: readonly string[]
  /** Environment variables besides `PATH`, `HOME` and the locale. */
  readonly environment: Readonly<Record<string, string>>
  /** Working directory. */
  readonly folder: string | URL | undefined
}

/** The tap's input, passed as files because other users can read arguments. */
export interface TapInput {
  readonly config: string
  readonly state?: string | undefined
  readonly catalog?: { readonly flag: '--catalog' | '--properties'; readonly text: string } | undefined
  /** Lists the streams instead of reading them. */
  readonly discover?: boolean
}

/**
 * Runs the tap and stops it when this process is gone for any reason, which closes its standard input. Its input files
 * are removed too. A signal to the group reaches the tap but not this shell, which reports the exit code.
 */
const GUARD_SCRIPT = `
exec 3<&0 </dev/null
(trap '' TERM; cat <&3; rm -rf "$0"; kill -TERM 0; sleep 5; kill -KILL 0) >/dev/null 2>&1 &
guard=$!
exec 3<&-
trap : TERM
"$@"
code=$?
kill -KILL $guard
exit $code`

/** How long a tap may take to stop after SIGTERM. */
const STOP_GRACE_MS = 5_000
const INHERITED_ENV = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ']
const STDERR_LINES_MAX = 200
const STDERR_LINE_MAX = 500

/** A running tap. Backpressure: its pipe is read only on demand. */
export class TapProcess {
  readonly #child: TapChild
  readonly #folder: string
  readonly #context: Pick<SyncContext, 'clock' | 'log'>
  readonly #lines: AsyncIterator<readonly TapLine[]>
  readonly #exit: Promise<number>
  #next: Promise<IteratorResult<readonly TapLine[]>> | null = null
  #removal: Promise<void> | null = null
  /** The last line on standard error. */
  lastStderrLine = ''
  /** When it last wrote anything. */
  lastOutputAt: number

  private constructor(child: TapChild, folder: string, redact: Redact, context: Pick<SyncContext, 'clock' | 'log'>) {
    this.#child = child
    this.#folder = folder
    this.#context = context
    this.lastOutputAt = context.clock.now()
    this.#lines = readLines(child.stdout)
    this.#exit = new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('exit', (code) => resolve(code ?? SIGNAL_EXIT_CODE))
    })
    this.#exit.catch(() => {})
    // The process may exit while its input is closed.
    child.stdin.on('error', () => {})
    this.#logStderr(redact)
  }

  static async start(
    { command, environment, folder: cwd }: TapProgram,
    input: TapInput,
    redact: Redact,
    context: Pick<SyncContext, 'clock' | 'log' | 'signal'>,
  ): Promise<TapProcess> {
    // Readable only by the current account.
    const folder = await mkdtemp(join(tmpdir(), 'tidemark-singer-'))
    try {
      const file = async (name: string, text: string): Promise<string> => {
        const path = join(folder, name)
        await writeFile(path, text, { mode: 0o600, flag: 'wx' })
        return path
      }
      const args = ['--config', await file('config.json', input.config)]
      if (input.state !== undefined) args.push('--state', await file('state.json', input.state))
      if (input.catalog !== undefined) args.push(input.catalog.flag, await file('catalog.json', input.catalog.text))
      if (input.discover === true) args.push('--discover')
      context.signal.throwIfAborted()
      const child = spawn('/bin/sh', ['-c', GUARD_SCRIPT, folder, ...command, ...args], {
        ...(cwd !== undefined && { cwd }),
        env: { ...pickInheritedEnv(), ...environment },
        stdio: ['pipe', 'pipe', 'pipe'],
        // Its own process group, so that its child processes are stopped with it.
        detached: true,
      })
      return new TapProcess(child, folder, redact, context)
    } catch (error) {
      await rm(folder, { recursive: true, force: true })
      throw error
    }
  }

  /** Returns the next lines, an empty list on timeout, or null at the end. */
  async readLines(until: number, signal: AbortSignal): Promise<readonly TapLine[] | null> {
    this.#next ??= this.#lines.next()
    const read = await waitUntil(this.#next, until, signal, this.#context)
    if (read === TIMED_OUT) return []
    this.#next = null
    this.lastOutputAt = this.#context.clock.now()
    return read.done === true ? null : read.value
  }

  /** Returns the exit code, 128 or more for a signal; null on timeout. */
  async waitForExit(until: number, signal: AbortSignal): Promise<number | null> {
    const code = await waitUntil(this.#exit, until, signal, this.#context)
    if (code === TIMED_OUT) return null
    await this.#removeFolder()
    return code
  }

  /** Stops the tap and its child processes: SIGTERM first, SIGKILL after the grace period. */
  async stop(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      this.#signal('SIGTERM')
      const exited = new AbortController()
      const ended = this.#exit.finally(() => exited.abort()).catch(() => {})
      await Promise.race([ended, this.#context.clock.sleep(STOP_GRACE_MS, exited.signal).catch(() => {})])
      this.#signal('SIGKILL')
    }
    this.#child.stdout.destroy()
    await this.#removeFolder()
  }

  #signal(name: 'SIGTERM' | 'SIGKILL'): void {
    try {
      if (this.#child.pid !== undefined) process.kill(-this.#child.pid, name)
    } catch {
      // The process group no longer exists.
    }
  }

  #removeFolder(): Promise<void> {
    this.#child.stdin.destroy()
    return (this.#removal ??= rm(this.#folder, { recursive: true, force: true }))
  }

  /** Logs a bounded part of standard error. It is always read, or the tap would block. */
  #logStderr(redact: Redact): void {
    let rest = ''
    let lineCount = 0
    const logLine = (line: string): void => {
      const text = redact(line).trim().slice(0, STDERR_LINE_MAX)
      if (text === '') return
      this.lastStderrLine = text
      if (++lineCount > STDERR_LINES_MAX) return
      const { log } = this.#context
      if (lineCount === STDERR_LINES_MAX) log.warn('the tap wrote more lines to standard error; they are omitted')
      else if (/\b(?:WARN|WARNING|ERROR|CRITICAL|FATAL)\b/.test(text)) log.warn('tap output', { line: text })
      else log.debug('tap output', { line: text })
    }
    this.#child.stderr
      .setEncoding('utf8')
      .on('data', (chunk: string) => {
        this.lastOutputAt = this.#context.clock.now()
        const parts = `${rest}${chunk}`.split('\n')
        rest = (parts.pop() ?? '').slice(0, STDERR_BUFFER_MAX)
        for (const part of parts) logLine(part)
      })
      .on('end', () => logLine(rest))
      .on('error', () => {})
  }
}

/** Exit code of a shell that a signal terminated. */
const SIGNAL_EXIT_CODE = 128
/** The rest of a line is ignored; longer than the logged part, so that a truncated secret is still redacted. */
const STDERR_BUFFER_MAX = 16_384
export const TIMED_OUT: unique symbol = Symbol('late')

/** The promise stays pending after a timeout: it can be awaited again. */
export async function waitUntil<T>(
  promise: Promise<T>,
  until: number,
  signal: AbortSignal,
  { clock }: Pick<SyncContext, 'clock'>,
): Promise<T | typeof TIMED_OUT> {
  const settled = new AbortController()
  const timedOut = clock
    .sleep(Math.max(0, until - clock.now()), AbortSignal.any([signal, settled.signal]))
    .then((): typeof TIMED_OUT => TIMED_OUT)
  timedOut.catch(() => {})
  try {
    return await Promise.race([promise, timedOut])
  } finally {
    settled.abort()
  }
}

function pickInheritedEnv(): Record<string, string> {
  return Object.fromEntries(
    INHERITED_ENV.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
  )
}
