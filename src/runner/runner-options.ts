import type { Ports, Secrets, Store, SyncRef } from '../contract/index.ts'
import type { CycleOptions, CycleResult, CycleProgress } from '../engine/cycle-options.ts'
import type { DeclaredSync } from './declared-sync.ts'
import type { DueReason } from './due.ts'
import type { SyncStatus } from './status.ts'

export interface RunnerOptions {
  readonly store: Store
  readonly syncs: readonly DeclaredSync[]
  /** Whose data; each gets the same syncs and an even share of the places. The store's own tenant when absent. */
  readonly tenants?: readonly string[]
  readonly ports: Ports
  readonly fetch: CycleOptions['fetch']
  readonly secrets: Secrets | ((tenant: string) => Secrets)
  /** Different for every process; every cycle adds a number of its own after a `#`. */
  readonly holder: string
  /** Whether a holder, as it was named by whichever process, is known to have died. */
  readonly isDead?: (holder: string) => boolean
  /** Cycles at once; 4 unless said otherwise. */
  readonly concurrency?: number
  /** How often the store is asked what others did; every second unless said otherwise. */
  readonly pollMs?: number
  /** Syncs asked about in one round at most; 250 unless said otherwise. With more of them a trigger is seen some rounds later. */
  readonly pollBatchMax?: number
  /** The least time between two cycles of a continuous sync; a second unless said otherwise. */
  readonly pauseMs?: number
  readonly onEvent?: (event: RunnerEvent) => void
}

/** What happens, for a log. Events of a cycle say whose it is. */
export type RunnerEvent =
  | (CycleEvent & { readonly kind: 'started'; readonly why: DueReason; readonly cycle: number; readonly resumed: boolean; readonly page: number })
  | (CycleEvent & Extract<CycleProgress, { kind: 'landed' | 'waiting' }>)
  | (CycleEvent & { readonly kind: 'ended'; readonly result: CycleResult })
  /** Somebody else is at work on it: normal where several processes share a store. */
  | (CycleEvent & { readonly kind: 'held'; readonly by: string | null; readonly until: number | null })
  /** The store could not be asked; it is asked again after `waitMs`. A cycle that could not even begin says so too, with its sync. */
  | ({ readonly kind: 'store'; readonly code: string; readonly message: string; readonly waitMs: number } & Partial<CycleEvent>)
  /** A promise that nobody waited for failed somewhere in a connector. */
  | { readonly kind: 'stray'; readonly message: string }

export interface CycleEvent extends SyncRef {
  readonly tenant: string
}

export interface RunnerStatus {
  readonly state: 'idle' | 'running' | 'stopping' | 'stopped'
  readonly running: readonly RunningCycle[]
  /** Due, and waiting for a place. */
  readonly waiting: number
  /** As last seen; those never looked at are missing. */
  readonly syncs: readonly SyncStatus[]
}

/** How much one process does at once, and how much more it could. */
export interface RunnerCapacity {
  readonly places: number
  readonly running: number
  /** Due, and waiting for a place. */
  readonly waiting: number
}

export interface RunningCycle extends CycleEvent {
  readonly why: DueReason
  readonly holder: string
  readonly startedAt: number
  /** Landed so far in this cycle; null before it began. */
  readonly page: number | null
}
