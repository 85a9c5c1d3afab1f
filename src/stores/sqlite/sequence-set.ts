const CHUNK = 65_536

/** A set of sequences at one bit each, allocated by the chunk: a million rows cost an eighth of a megabyte. */
export class SequenceSet {
  readonly #chunks = new Map<number, Uint8Array>()

  /** Adds first to last, both included. */
  add(first: number, last: number): void {
    for (let sequence = first; sequence <= last; sequence++) {
      const chunk = Math.floor(sequence / CHUNK)
      let bits = this.#chunks.get(chunk)
      if (bits === undefined) this.#chunks.set(chunk, (bits = new Uint8Array(CHUNK / 8)))
      const at = sequence % CHUNK
      bits[at >> 3]! |= 1 << (at & 7)
    }
  }

  has(sequence: number): boolean {
    const bits = this.#chunks.get(Math.floor(sequence / CHUNK))
    const at = sequence % CHUNK
    return bits !== undefined && (bits[at >> 3]! & (1 << (at & 7))) !== 0
  }
}
