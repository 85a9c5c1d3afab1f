import type { Clock, Random } from '../../../contract/index.ts'

/** A vendor's API, played by its documented rules. Whoever holds one may stand it behind fetch or behind a socket. */
export interface Simulator {
  handle(request: Request): Promise<Response>
}

/** Time and chance come from outside: under a virtual clock and a seeded stream, a run repeats itself exactly. */
export interface SimulatorPorts {
  readonly clock: Clock
  readonly random: Random
}

export type Fields = Readonly<Record<string, unknown>>
