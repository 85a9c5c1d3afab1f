/** Kraken reports errors as a list of codes, with status 200. */
export class KrakenError extends Error {
  readonly code: string

  constructor(code: string) {
    super(code)
    this.code = code
  }
}
