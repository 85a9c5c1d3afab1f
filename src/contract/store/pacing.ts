/** Slots of shared rate limits, and the pauses that sources announced. */
export interface PacingStore {
  /**
   * Reserves the next slots of a pacer for the caller, evenly spaced after the last slot reserved by any process, and
   * never in the past. Unused slots are lost.
   */
  takeSlots(request: SlotRequest): Promise<SlotGrant>
  /** The last reserved slot of each pacer of a worker: pacer → ms. */
  lastSlotTimes(worker: string): Promise<Record<string, number>>
  /** Stores a pause that a source has announced. If the account has two pauses, the later end wins. */
  recordPause(request: PauseRequest): Promise<void>
  /** The pauses of a worker's accounts that have not ended. */
  pauses(query: { worker: string; at: number }): Promise<PauseList>
}

/** A request for slots of a pacer that all processes share. */
export interface SlotRequest {
  readonly worker: string
  readonly pacer: string
  readonly count: number
  readonly paceMs: number
  readonly at: number
}

/** Times are relative to `now`: the store's own clock, or else the `at` of the request. */
export interface SlotGrant {
  readonly now: number
  readonly firstSlotAt: number
}

/** A source asked for no requests for a while. */
export interface PauseRequest {
  readonly worker: string
  /** The pacers of the refused request; empty for a sync without one. */
  readonly pacers: readonly string[]
  /** The origin of the refused request; empty if it is unknown, which applies to every origin. */
  readonly origin: string
  readonly ms: number
  readonly at: number
}

/** A pause that a source requested for an origin. */
export interface Pause {
  /** Empty for a sync without a pacer. */
  readonly pacer: string
  readonly origin: string
  readonly until: number
}

/** Times are relative to `now`: the store's own clock, or else the `at` of the query. */
export interface PauseList {
  readonly now: number
  readonly pauses: readonly Pause[]
}
