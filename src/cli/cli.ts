import type { Writable } from 'node:stream'
import type { Environment } from '../config/settings.ts'
import type { Terminal } from './kit/terminal.ts'

/** The context of every verb: its input, its output and its environment. */
export interface Cli {
  readonly terminal: Terminal
  /** Standard output, for a verb that serves a protocol on it. */
  readonly stdout: Writable
  readonly environment: Environment
  /** The flags of this command that select its worker, store and tenant, quoted for a shell. Hints repeat them. */
  targetFlags: readonly string[]
  /** The working directory. */
  readonly folder: string
  /** Returns a signal that the first SIGINT, SIGTERM or SIGHUP aborts. Without this call the signal ends the process. */
  listenForStop(notice?: string): AbortSignal
}

/** Runs a verb. Returns the exit code; nothing means 0. */
export type VerbAction<Arguments extends unknown[]> = (cli: Cli, ...values: Arguments) => Promise<number | void>
