/** Slots of shared rate limits, and the pauses that sources announced. */
export interface PacingStore {
  /**
   * Gives the next slots of a pacer to the caller alone, evenly spaced after the last one given to anybody, and none in the
   * past. What is never used is lost.
   */
  takeSlots(request: SlotRequest): Promise<SlotGrant>
  /** Where each pacer of a worker stands: pacer → ms of the last slot given. */
  lastSlotTimes(worker: string): Promise<Record<string, number>>
  /** Keeps a pause that a source has announced. Of two pauses of the same account the one that ends later stays. */
  recordPause(request: PauseRequest): Promise<void>
  /** The pauses of a worker's accounts that are not over. */
  pauses(query: { worker: string; at: number }): Promise<PauseList>
}

export interface SlotRequest {
  readonly worker: string
  readonly pacer: string
  readonly count: number
  readonly paceMs: number
  readonly at: number
}

/** By the clock that says `now`: the store's own, or else the `at` of the request. */
export interface SlotGrant {
  readonly now: number
  readonly firstSlotAt: number
}

/** A source asked not to be asked for a while. */
export interface PauseRequest {
  readonly worker: string
  /** The pacers that the refused request was paced by; empty for a sync without one. */
  readonly pacers: readonly string[]
  /** The origin of the refused request; empty when it is not known, and then every origin is meant. */
  readonly origin: string
  readonly ms: number
  readonly at: number
}

export interface Pause {
  /** Empty for a sync without a pacer. */
  readonly pacer: string
  readonly origin: string
  readonly until: number
}

/** By the clock that says `now`: the store's own, or else the `at` of the query. */
export interface PauseList {
  readonly now: number
  readonly pauses: readonly Pause[]
}
