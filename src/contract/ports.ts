import type { ConnectionOpener } from './connections.ts'
import type { Meter, Tracer } from './telemetry.ts'

/**
 * The external dependencies of the engine. Time, randomness and logging reach it only through these, so that a run
 * under a virtual clock is a pure function of its seed, and a crash is a promise that never settles.
 */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /** Rejects with the signal's reason if it is aborted during the sleep. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** A source of randomness. The simulation replaces it with a seeded one. */
export interface Random {
  /** Uniform in [0, 1). */
  next(): number
}

/** Structured fields of a log line. */
export type LogFields = Record<string, string | number | boolean | null | undefined>

/** Fields are named explicitly and never contain state, cursors, records or secrets. */
export interface Log {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
}

/** The services of the platform that the engine needs. The simulation replaces all of them. */
export interface Ports {
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  /** Absent if telemetry is off; it then has no cost. */
  readonly tracer?: Tracer | undefined
  readonly meter?: Meter | undefined
  /** Absent if no sync uses a connection. */
  readonly connections?: ConnectionOpener | undefined
}
