import { createHash } from 'node:crypto'
import type { Random } from './ports.ts'

/** The same numbers on every machine for the same seed and name. */
export class SeededRandom implements Random {
  readonly #seed: number
  readonly #name: string
  #drawn = 0

  constructor(seed: number, name: string) {
    this.#seed = seed
    this.#name = name
  }

  next(): number {
    return hashOf(this.#seed, this.#name, this.#drawn++) / 4_294_967_296
  }
}

/** Hashes any values into 32 well-mixed bits. */
export function hashOf(...parts: ReadonlyArray<string | number>): number {
  return createHash('sha256').update(JSON.stringify(parts)).digest().readUInt32BE()
}
