import { hash } from 'node:crypto'

/**
 * A set of keys in 8 bytes each. It keeps 52 bits of a hash, so that a key which was not added is found with a
 * probability of about the number of keys in 2^52.
 */
export class KeySet {
  #slots = new Float64Array(1_024)
  #size = 0

  get size(): number {
    return this.#size
  }

  add(key: string): void {
    if (this.#size * 2 >= this.#slots.length) this.#grow()
    if (insert(this.#slots, fingerprint(key))) this.#size++
  }

  has(key: string): boolean {
    const value = fingerprint(key)
    return this.#slots[findSlot(this.#slots, value)] === value
  }

  #grow(): void {
    const slots = new Float64Array(this.#slots.length * 2)
    for (const value of this.#slots) if (value !== 0) insert(slots, value)
    this.#slots = slots
  }
}

/** Never 0, which marks a free slot. */
function fingerprint(key: string): number {
  const digest = hash('md5', key, 'buffer')
  return digest.readUInt32BE(0) * 2 ** 20 + (digest.readUInt32BE(4) >>> 12) + 1
}

function insert(slots: Float64Array, value: number): boolean {
  const at = findSlot(slots, value)
  if (slots[at] === value) return false
  slots[at] = value
  return true
}

/** The slot of the value, or the free slot where it belongs. */
function findSlot(slots: Float64Array, value: number): number {
  let at = value % slots.length
  while (slots[at] !== 0 && slots[at] !== value) at = at + 1 === slots.length ? 0 : at + 1
  return at
}
