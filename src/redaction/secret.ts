import { MASK, registerSecret } from './known-secrets.ts'

/** A value that shows itself only when asked: not in a template, in JSON, in a log line, nor as the cause of an error. */
export class Secret {
  readonly #value: string

  constructor(value: string) {
    this.#value = value
    registerSecret(value)
  }

  /** Only for what goes over the wire. */
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
