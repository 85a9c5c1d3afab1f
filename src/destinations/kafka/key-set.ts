import { hash } from 'node:crypto'

const WORDS = 4

/** A set of keys as 128-bit hashes: 16 bytes per slot, at most half of the slots used. */
export class KeySet {
  #slots = new Uint32Array(1_024 * WORDS)
  #size = 0

  get size(): number {
    return this.#size
  }

  /** Returns whether the key was not in the set. */
  add(key: HashedKey): boolean {
    if (this.#size * 2 >= this.#slots.length / WORDS) this.#grow()
    if (!insert(this.#slots, key)) return false
    this.#size++
    return true
  }

  #grow(): void {
    const before = this.#slots
    this.#slots = new Uint32Array(before.length * 2)
    for (let at = 0; at < before.length; at += WORDS) {
      const key = before.subarray(at, at + WORDS)
      if (!isEmpty(key, 0)) insert(this.#slots, key)
    }
  }
}

/** Four words of 32 bits, not all of them zero. */
export type HashedKey = Uint32Array

export function hashKey(key: Buffer): HashedKey {
  const digest = hash('md5', key, 'buffer')
  const words = new Uint32Array(WORDS)
  for (let at = 0; at < WORDS; at++) words[at] = digest.readUInt32LE(at * 4)
  // An empty slot is all zeros.
  words[WORDS - 1] = (words[WORDS - 1] ?? 0) | 1
  return words
}

function insert(slots: Uint32Array, key: HashedKey): boolean {
  const count = slots.length / WORDS
  for (let slot = (key[0] ?? 0) % count; ; slot = (slot + 1) % count) {
    const at = slot * WORDS
    if (isEmpty(slots, at)) {
      slots.set(key, at)
      return true
    }
    if (key.every((word, n) => slots[at + n] === word)) return false
  }
}

function isEmpty(slots: Uint32Array, at: number): boolean {
  return slots[at + WORDS - 1] === 0
}
