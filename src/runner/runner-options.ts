import type { Ports, Secrets, Store, SyncRef } from '../contract/index.ts'
import type { CycleOptions, CycleResult, CycleProgress } from '../engine/cycle-options.ts'
import type { DeclaredSync } from './declared-sync.ts'
import type { DueReason } from './due.ts'
import type { SyncStatus } from './status.ts'

export interface RunnerOptions {
  readonly store: Store
  readonly syncs: readonly DeclaredSync[]
  /** Each tenant runs the same syncs and gets an even share of the slots. Defaults to the store's tenant. */
  readonly tenants?: readonly string[]
  readonly ports: Ports
  readonly fetch: CycleOptions['fetch']
  readonly secrets: Secrets | ((tenant: string) => Secrets)
  /** Unique per process; each cycle appends `#` and a number. */
  readonly holder: string
  /** Whether the process with this holder name is known to have exited. */
  readonly isDead?: (holder: string) => boolean
  /** Maximum number of concurrent cycles; defaults to 4. */
  readonly concurrency?: number
  /** Interval at which the store is polled for changes made by other processes; defaults to one second. */
  readonly pollMs?: number
  /**
   * Maximum number of tenants polled in one round; defaults to 250. With more tenants, a trigger is seen some rounds
   * later.
   */
  readonly pollBatchMax?: number
  /** Minimum time between two cycles of a continuous sync; defaults to one second. */
  readonly pauseMs?: number
  readonly onEvent?: (event: RunnerEvent) => void
}

/** Runner events, for logging. */
export type RunnerEvent =
  | (CycleEvent & {
      readonly kind: 'started'
      readonly why: DueReason
      readonly cycle: number
      readonly resumed: boolean
      readonly page: number
    })
  | (CycleEvent & Extract<CycleProgress, { kind: 'landed' | 'waiting' }>)
  | (CycleEvent & { readonly kind: 'ended'; readonly result: CycleResult })
  /** Another process holds the lease, which is normal in a fleet. */
  | (CycleEvent & { readonly kind: 'held'; readonly by: string | null; readonly until: number | null })
  /** The store was unreachable; it is retried after `waitMs`. A cycle that failed to begin adds its sync. */
  | ({
      readonly kind: 'store'
      readonly code: string
      readonly message: string
      readonly waitMs: number
    } & Partial<CycleEvent>)
  /** A promise in a connector was rejected without a handler. */
  | { readonly kind: 'stray'; readonly message: string }

export interface CycleEvent extends SyncRef {
  readonly tenant: string
}

export interface RunnerStatus {
  readonly state: 'idle' | 'running' | 'stopping' | 'stopped'
  readonly running: readonly RunningCycle[]
  /** Due syncs that wait for a slot. */
  readonly waiting: number
  /** As last polled; syncs that were not polled yet are missing. */
  readonly syncs: readonly SyncStatus[]
}

/** The load and capacity of one process. */
export interface RunnerCapacity {
  readonly slots: number
  readonly running: number
  /** Due syncs that wait for a slot. */
  readonly waiting: number
}

export interface RunningCycle extends CycleEvent {
  readonly why: DueReason
  readonly holder: string
  readonly startedAt: number
  /** Pages committed so far in this cycle; null before it began. */
  readonly page: number | null
}
