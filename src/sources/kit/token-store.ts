/** The tokens of an account in plain text. A token store is responsible for encrypting them. */
export interface Tokens {
  /** Null before the first renewal. */
  readonly accessToken: string | null
  /** The newest refresh token; null for grants without one. Sending an older one may revoke all tokens of the account. */
  readonly refreshToken: string | null
  /** Shortly before the access token expires; null if it has no known expiry. */
  readonly renewAt: number | null
  /** A process is renewing the tokens, and its claim expires at this time. */
  readonly claimedUntil: number | null
}

/** Tokens as stored, with the version for compare-and-swap. */
export interface StoredTokens extends Tokens {
  /** Grows with every write. */
  readonly version: number
}

/** Stores renewed tokens. A rotated refresh token is written before the access token that came with it is used. */
export interface TokenStore {
  read(): Promise<StoredTokens | null>
  /**
   * Compare-and-swap, durable when it resolves. Returns false if the stored version is another one: read again. Version 0 means
   * that nothing is stored.
   */
  write(expectedVersion: number, tokens: Tokens): Promise<boolean>
}

/** Keeps tokens in the memory of one process: enough for grants that can request new tokens at any time. */
export class MemoryTokenStore implements TokenStore {
  #stored: StoredTokens | null = null

  read(): Promise<StoredTokens | null> {
    return Promise.resolve(this.#stored)
  }

  write(expectedVersion: number, tokens: Tokens): Promise<boolean> {
    if ((this.#stored?.version ?? 0) !== expectedVersion) return Promise.resolve(false)
    this.#stored = { ...tokens, version: expectedVersion + 1 }
    return Promise.resolve(true)
  }
}
