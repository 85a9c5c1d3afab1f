/**
 * The nonces of one API key. Each must be higher than every one before; a window, which is a setting of the key, lets
 * late ones pass that are less than so much below the highest, each once.
 */
export class NonceWindow {
  readonly #window: bigint
  readonly #used = new Set<bigint>()
  #highest = -1n

  constructor(window: number) {
    this.#window = BigInt(window)
  }

  /** Takes the nonce; false when it comes too late or a second time. */
  take(nonce: bigint): boolean {
    const late = nonce <= this.#highest
    if (late && (nonce <= this.#highest - this.#window || this.#used.has(nonce))) return false
    this.#used.add(nonce)
    if (!late) this.#highest = nonce
    return true
  }
}
