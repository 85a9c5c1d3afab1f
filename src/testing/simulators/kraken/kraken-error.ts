/** Kraken says what is wrong in a list of codes, under status 200. */
export class KrakenError extends Error {
  readonly code: string

  constructor(code: string) {
    super(code)
    this.code = code
  }
}
