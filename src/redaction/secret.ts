import { MASK, registerSecret } from './known-secrets.ts'

/** A value that is masked in templates, JSON, log lines and error causes, and readable only by `reveal`. */
export class Secret {
  readonly #value: string

  constructor(value: string) {
    this.#value = value
    registerSecret(value)
  }

  /** Use only for sending the value over the network. */
  reveal(): string {
    return this.#value
  }

  toString(): string {
    return MASK
  }

  toJSON(): string {
    return MASK
  }

  [Symbol.toPrimitive](): string {
    return MASK
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return MASK
  }

  get [Symbol.toStringTag](): string {
    return MASK
  }
}
