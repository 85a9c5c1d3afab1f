import type { Clock, Random } from './ports.ts'

/** A vendor's API, simulated by its documented rules. It can be served through fetch or through a socket. */
export interface Simulator {
  handle(request: Request): Promise<Response>
}

/** Time and randomness are injected: with a virtual clock and a seeded stream, a run repeats exactly. */
export interface SimulatorPorts {
  readonly clock: Clock
  readonly random: Random
}

/** The fields of a simulated record. */
export type Fields = Readonly<Record<string, unknown>>
