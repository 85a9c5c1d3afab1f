import type { Meter, Tracer } from './telemetry.ts'

/**
 * Everything the engine needs from outside. Time, chance and logging reach it only through these, so that a run under a
 * virtual clock is a pure function of its seed and a crash is a promise that never settles.
 */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /** Rejects with the signal's reason when it is aborted while asleep. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

export interface Random {
  /** Uniform in [0, 1). */
  next(): number
}

export type LogFields = Record<string, string | number | boolean | null | undefined>

/** Fields are named one by one and are never state, cursors, records or secrets. */
export interface Log {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
}

export interface Ports {
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  /** Absent where nobody watches, and then it costs nothing. */
  readonly tracer?: Tracer | undefined
  readonly meter?: Meter | undefined
}
