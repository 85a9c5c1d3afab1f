/** Time, as a simulator sees it. Any clock of Tidemark satisfies it. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /** Rejects with the signal's reason if it is aborted during the sleep. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** A source of randomness. */
export interface Random {
  /** Uniform in [0, 1). */
  next(): number
}

/** The part of a source's context that a simulated system replaces or reads. */
export interface SourceContext {
  readonly fetch: (input: string | URL, init?: RequestInit) => Promise<Response>
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly secrets: { get(name: string): string }
}
