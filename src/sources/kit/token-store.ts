/** What a token endpoint gave, as text: whoever stores it is responsible for encrypting it. */
export interface Tokens {
  /** Null before the first renewal. */
  readonly accessToken: string | null
  /** The newest one; null for grants without. The one before it may be worthless, or worse, an alarm at the other side. */
  readonly refreshToken: string | null
  /** A while before it expires; null when nobody said that it does. */
  readonly renewAt: number | null
  /** Somebody is renewing, and has until then. */
  readonly claimedUntil: number | null
}

export interface StoredTokens extends Tokens {
  /** Grows with every write. */
  readonly version: number
}

/** Where tokens live that are renewed. A rotated token is written here before anybody uses what came with it. */
export interface TokenStore {
  read(): Promise<StoredTokens | null>
  /** Compare-and-swap, durable when it resolves. False when the version there is another by now: read again; 0 means that nothing is there. */
  write(expectedVersion: number, tokens: Tokens): Promise<boolean>
}

/** For one process, and gone with it: enough for grants whose tokens can be had again. */
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
