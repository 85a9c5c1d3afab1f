import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SyncContext } from '../../contract/index.ts'
import { readLines, type TapLine } from './lines.ts'
import type { Redact } from './tap-config.ts'

export interface TapProgram {
  /** The tap and its own arguments. */
  readonly command: readonly string[]
  /** What it sees of the environment besides `PATH`, `HOME` and the language. */
  readonly environment: Readonly<Record<string, string>>
  /** Where it runs. */
  readonly folder: string | URL | undefined
}

/** What a tap is told: files, because others can read arguments. */
export interface TapInput {
  readonly config: string
  readonly state?: string | undefined
  readonly catalog?: { readonly flag: '--catalog' | '--properties'; readonly text: string } | undefined
  /** Asks what there is, instead of for what is in it. */
  readonly discover?: boolean
}

/**
 * Runs the tap, and ends it when we are gone, however that came about: then its standard input is at an end. What it was
 * told goes with it. A signal to the group reaches the tap and not this shell, which is there to tell how it ended.
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

/** How long a tap may take to end when it is asked to. */
const STOP_GRACE_MS = 5_000
const INHERITED_ENV = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ']
const STDERR_LINES_MAX = 200
const STDERR_LINE_MAX = 500

/** A tap at work. It writes no faster than it is read: nothing is taken from its pipe before somebody asks for it. */
export class TapProcess {
  readonly #child: ChildProcess
  readonly #folder: string
  readonly #context: Pick<SyncContext, 'clock' | 'log'>
  readonly #lines: AsyncIterator<readonly TapLine[]>
  readonly #exit: Promise<number>
  #next: Promise<IteratorResult<readonly TapLine[]>> | null = null
  #removal: Promise<void> | null = null
  /** The last thing it said on standard error. */
  lastStderrLine = ''
  /** When it last wrote anything. */
  lastOutputAt: number

  private constructor(child: ChildProcess, folder: string, redact: Redact, context: Pick<SyncContext, 'clock' | 'log'>) {
    this.#child = child
    this.#folder = folder
    this.#context = context
    this.lastOutputAt = context.clock.now()
    this.#lines = readLines(child.stdout!)
    this.#exit = new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('exit', (code) => resolve(code ?? SIGNAL_EXIT_CODE))
    })
    this.#exit.catch(() => {})
    // It may be gone while this is being closed.
    child.stdin!.on('error', () => {})
    this.#logStderr(redact)
  }

  static async start({ command, environment, folder: cwd }: TapProgram, told: TapInput, redact: Redact, context: Pick<SyncContext, 'clock' | 'log' | 'signal'>): Promise<TapProcess> {
    // Only for the account we run as.
    const folder = await mkdtemp(join(tmpdir(), 'tidemark-singer-'))
    try {
      const file = async (name: string, text: string): Promise<string> => {
        const path = join(folder, name)
        await writeFile(path, text, { mode: 0o600, flag: 'wx' })
        return path
      }
      const args = ['--config', await file('config.json', told.config)]
      if (told.state !== undefined) args.push('--state', await file('state.json', told.state))
      if (told.catalog !== undefined) args.push(told.catalog.flag, await file('catalog.json', told.catalog.text))
      if (told.discover === true) args.push('--discover')
      context.signal.throwIfAborted()
      const child = spawn('/bin/sh', ['-c', GUARD_SCRIPT, folder, ...command, ...args], {
        ...(cwd !== undefined && { cwd }), env: { ...pickInheritedEnv(), ...environment }, stdio: ['pipe', 'pipe', 'pipe'],
        // A group of its own: what it starts is ended with it.
        detached: true,
      })
      return new TapProcess(child, folder, redact, context)
    } catch (error) {
      await rm(folder, { recursive: true, force: true })
      throw error
    }
  }

  /** The next lines, an empty list when none came in time, null at the end. */
  async readLines(until: number, signal: AbortSignal): Promise<readonly TapLine[] | null> {
    this.#next ??= this.#lines.next()
    const read = await waitUntil(this.#next, until, signal, this.#context)
    if (read === TIMED_OUT) return []
    this.#next = null
    this.lastOutputAt = this.#context.clock.now()
    return read.done === true ? null : read.value
  }

  /** What it ended with, 128 and more for a signal; null when it has not in time. */
  async waitForExit(until: number, signal: AbortSignal): Promise<number | null> {
    const code = await waitUntil(this.#exit, until, signal, this.#context)
    if (code === TIMED_OUT) return null
    await this.#removeFolder()
    return code
  }

  /** Ends it and everything it started: asks first, and insists after a while. */
  async stop(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      this.#signal('SIGTERM')
      const enough = new AbortController()
      const ended = this.#exit.finally(() => enough.abort()).catch(() => {})
      await Promise.race([ended, this.#context.clock.sleep(STOP_GRACE_MS, enough.signal).catch(() => {})])
      this.#signal('SIGKILL')
    }
    this.#child.stdout!.destroy()
    await this.#removeFolder()
  }

  #signal(name: 'SIGTERM' | 'SIGKILL'): void {
    try {
      if (this.#child.pid !== undefined) process.kill(-this.#child.pid, name)
    } catch {
      // Nobody is left in the group.
    }
  }

  #removeFolder(): Promise<void> {
    this.#child.stdin!.destroy()
    return (this.#removal ??= rm(this.#folder, { recursive: true, force: true }))
  }

  /** Standard error is for people: a bounded part of it goes to the log. It is always read, or the tap would wait for us. */
  #logStderr(redact: Redact): void {
    let rest = ''
    let told = 0
    const say = (line: string): void => {
      const text = redact(line).trim().slice(0, STDERR_LINE_MAX)
      if (text === '') return
      this.lastStderrLine = text
      if (++told > STDERR_LINES_MAX) return
      const { log } = this.#context
      if (told === STDERR_LINES_MAX) log.warn('the tap goes on to say a great deal, which is left out')
      else if (/\b(?:WARN|WARNING|ERROR|CRITICAL|FATAL)\b/.test(text)) log.warn('the tap said', { line: text })
      else log.debug('the tap said', { line: text })
    }
    this.#child.stderr!.setEncoding('utf8').on('data', (chunk: string) => {
      this.lastOutputAt = this.#context.clock.now()
      const parts = `${rest}${chunk}`.split('\n')
      rest = parts.pop()!.slice(0, STDERR_BUFFER_MAX)
      for (const part of parts) say(part)
    }).on('end', () => say(rest)).on('error', () => {})
  }
}

/** Of a shell that a signal ended. */
const SIGNAL_EXIT_CODE = 128
/** More of one line is not looked at; a secret that is cut must not slip through, so this is more than is shown. */
const STDERR_BUFFER_MAX = 16_384
export const TIMED_OUT: unique symbol = Symbol('late')

/** The promise is not lost when it comes late: it can be waited for again. */
export async function waitUntil<T>(promise: Promise<T>, until: number, signal: AbortSignal, { clock }: Pick<SyncContext, 'clock'>): Promise<T | typeof TIMED_OUT> {
  const enough = new AbortController()
  const late = clock.sleep(Math.max(0, until - clock.now()), AbortSignal.any([signal, enough.signal])).then((): typeof TIMED_OUT => TIMED_OUT)
  late.catch(() => {})
  try {
    return await Promise.race([promise, late])
  } finally {
    enough.abort()
  }
}

function pickInheritedEnv(): Record<string, string> {
  return Object.fromEntries(INHERITED_ENV.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])))
}
