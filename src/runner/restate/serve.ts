import type { RunnerOptions } from '../runner-options.ts'

export interface RestateOptions extends Omit<RunnerOptions, 'looksMax'> {
  /** Where Restate takes calls, as http://127.0.0.1:8080. */
  readonly ingress: string
  /** Where this process listens for Restate: this machine alone, on any free port, unless said otherwise. */
  readonly host?: string
  readonly port?: number
}

export interface ServedRestate {
  /** Where this process listens; what is registered with Restate, unless a balancer stands before it. */
  readonly url: string
  /** No new cycle begins; running ones stop between two pages. Resolves when all have ended, or after `graceMs`. */
  close(options?: { readonly graceMs?: number }): Promise<void>
}

/** Runs every sync when Restate says so. */
export async function serveRestate(_options: RestateOptions): Promise<ServedRestate> {
  throw new Error('not yet')
}
