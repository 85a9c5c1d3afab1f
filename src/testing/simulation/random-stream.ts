/**
 * Seeded randomness in integer arithmetic only, so that a run is the same on every machine. One stream per concern:
 * drawing one more fault must not change the workload.
 */
export class RandomStream {
  #a: number
  #b: number
  #c: number
  #counter = 1

  constructor(seed: number, concern: string) {
    this.#a = hashOf(seed, concern, 1)
    this.#b = hashOf(seed, concern, 2)
    this.#c = hashOf(seed, concern, 3)
    for (let i = 0; i < 12; i++) this.next()
  }

  /** Uniform in [0, 1). sfc32. */
  next(): number {
    const t = (this.#a + this.#b + this.#counter) | 0
    this.#counter = (this.#counter + 1) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + t
    return (t >>> 0) / 4_294_967_296
  }

  /** An integer, both ends inclusive. */
  int(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1))
  }

  chance(share: number): boolean {
    return this.next() < share
  }

  pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.next() * items.length)]!
  }

  shuffle<T>(items: T[]): T[] {
    for (let i = items.length - 1; i > 0; i--) {
      const j = this.int(0, i)
      const item = items[i]!
      items[i] = items[j]!
      items[j] = item
    }
    return items
  }
}

/** Hashes any values into 32 well-mixed bits. */
export function hashOf(...parts: ReadonlyArray<string | number>): number {
  let hash = 0x811c9dc5
  for (const part of parts) {
    if (typeof part === 'number') hash = mix(hash ^ part ^ Math.floor(part / 4_294_967_296))
    else {
      for (let i = 0; i < part.length; i++) hash = Math.imul(hash ^ part.charCodeAt(i), 0x01000193)
      hash = mix(hash)
    }
  }
  return hash >>> 0
}

function mix(value: number): number {
  let hash = value | 0
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}

/** A running digest of all events, in order. */
export class Trace {
  #high = 0x811c9dc5
  #low = 0x1000193
  readonly #recent: string[] = []
  #count = 0

  add(at: number, text: string): void {
    const hash = hashOf(at, text)
    this.#high = mix(Math.imul(this.#high, 31) + hash)
    this.#low = Math.imul(this.#low ^ hash, 0x01000193)
    this.#recent[this.#count++ % RECENT_MAX] = `${at} ${text}`
  }

  /** Oldest first. */
  recent(): string[] {
    if (this.#count <= RECENT_MAX) return this.#recent.slice(0, this.#count)
    const at = this.#count % RECENT_MAX
    return [...this.#recent.slice(at), ...this.#recent.slice(0, at)]
  }

  digest(): string {
    return (this.#high >>> 0).toString(16).padStart(8, '0') + (this.#low >>> 0).toString(16).padStart(8, '0')
  }
}

const RECENT_MAX = 200
