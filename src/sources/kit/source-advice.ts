/** The facts about an API that decide how to read it. Each field answers a question of `tidemark advise`. */
export interface ApiFacts {
  readonly changes?: 'events' | 'timestamp' | 'sync-token' | 'newest-first' | 'none'
  readonly deletes?: 'reported' | 'elsewhere' | 'matter' | 'ignore'
  readonly paging?: 'none' | 'token' | 'graphql' | 'page' | 'offset' | 'time'
  readonly nested?: 'yes' | 'no'
  readonly ties?: 'yes' | 'no'
  readonly order?: 'time-and-id' | 'one-field' | 'unique' | 'unsorted'
  readonly http?: 'plain' | 'other'
  readonly size?: 'small' | 'large'
  readonly lagSeconds?: number
}

export type StrategyName =
  | 'keyset'
  | 'eventFeed'
  | 'search'
  | 'relay'
  | 'relayNested'
  | 'token'
  | 'pageNumber'
  | 'offset'
  | 'frontier'
  /** Everything in one response. */
  | 'whole'
  /** Only in the `rest` source: paging by time alone, and changes since a time. */
  | 'timestamp'
  | 'window'
  /** Only in the HubSpot source: all archived objects, every few minutes. */
  | 'archive'

/** The recommendation of `tidemark advise` for the API of a source. */
export interface SourceAdvice {
  /** Sorts the choices of the prompt, lowest first. */
  readonly rank: number
  /** The facts from the documentation of the API. */
  readonly facts: ApiFacts
  /** A TypeScript expression for the stream. */
  readonly stream: string
  readonly database: string
  /** The strategy for deletions from a separate endpoint, if it is not keyset. */
  readonly deletesBy?: StrategyName
  /** Overrides the default schedule. */
  readonly schedule?: string
}
