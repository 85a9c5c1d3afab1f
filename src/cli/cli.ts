import type { Writable } from 'node:stream'
import type { Environment } from '../config/settings.ts'
import type { Terminal } from './kit/terminal.ts'

/** What every verb is given: where it was called, and where it answers. */
export interface Cli {
  readonly terminal: Terminal
  /** Standard output, for a verb that speaks a protocol there. */
  readonly stdout: Writable
  readonly environment: Environment
  /** The flags of this command that name its worker, store and tenant, as words of a shell: hints repeat them. */
  targetFlags: readonly string[]
  /** The current folder. */
  readonly folder: string
  /** Aborted by the first signal to stop. A verb that does not ask for it is ended by the signal itself. `words` say what becomes of the work. */
  listenForStop(words?: string): AbortSignal
}

/** A verb's work. Without a number it went well. */
export type VerbAction<Arguments extends unknown[]> = (cli: Cli, ...given: Arguments) => Promise<number | void>
