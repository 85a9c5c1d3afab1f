const CHUNK = 65_536

/** A set of sequences at one bit each, allocated in chunks: a million rows cost an eighth of a megabyte. */
export class SequenceSet {
  readonly #chunks = new Map<number, Uint8Array>()

  /** Adds first to last, both included. */
  add(first: number, last: number): void {
    for (let sequence = first; sequence <= last; sequence++) {
      const chunk = Math.floor(sequence / CHUNK)
      let bits = this.#chunks.get(chunk)
      if (bits === undefined) this.#chunks.set(chunk, (bits = new Uint8Array(CHUNK / 8)))
      const at = sequence % CHUNK
      bits[at >> 3] = (bits[at >> 3] ?? 0) | (1 << (at & 7))
    }
  }

  /** Ascending and disjoint, both ends included. */
  *ranges(): Generator<[number, number]> {
    let first: number | null = null
    let last = -1
    for (const [chunk, bits] of [...this.#chunks].toSorted(([a], [b]) => a - b)) {
      for (let at = 0; at < CHUNK; at++) {
        if (bits[at >> 3] === 0) {
          at |= 7
          continue
        }
        if (((bits[at >> 3] ?? 0) & (1 << (at & 7))) === 0) continue
        const sequence = chunk * CHUNK + at
        if (first !== null && sequence > last + 1) {
          yield [first, last]
          first = null
        }
        first ??= sequence
        last = sequence
      }
    }
    if (first !== null) yield [first, last]
  }
}
