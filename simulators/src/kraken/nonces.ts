/**
 * The nonces of one API key. Each must be higher than every one before; a nonce window, a setting of the key, accepts
 * late ones that are less than this much below the highest, each once.
 */
export class NonceWindow {
  readonly #window: bigint
  readonly #used = new Set<bigint>()
  #highest = -1n

  constructor(window: number) {
    this.#window = BigInt(window)
  }

  /** Records the nonce; false when it is too low or repeated. */
  take(nonce: bigint): boolean {
    const late = nonce <= this.#highest
    if (late && (nonce <= this.#highest - this.#window || this.#used.has(nonce))) return false
    this.#used.add(nonce)
    if (!late) this.#highest = nonce
    return true
  }
}
