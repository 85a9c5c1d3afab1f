import type { ErrorCode } from './errors.ts'
import type { WebhookMessage } from './webhooks.ts'

/** The status of a destination, as the store records it. The tokens in the destination itself decide what is applied. */
export interface DestinationStatus {
  readonly name: string
  /** The product and its address at the last run. */
  readonly kind: string
  readonly location: string
  readonly mode: string
  readonly isPaused: boolean
  /** The holder of the claim; null if there is none. */
  readonly heldBy: string | null
  /** An operator requested a run that has not begun. */
  readonly triggeredAt: number | null
  /** Databases that an operator requested to load again. */
  readonly resync: readonly string[]
  readonly startedAt: number | null
  readonly endedAt: number | null
  /** Consecutive failed runs. */
  readonly failures: number
  readonly retryAt: number | null
  readonly error: { readonly code: ErrorCode; readonly message: string } | null
  readonly databases: readonly DestinationProgress[]
}

/** The progress of one database of a destination. */
export interface DestinationProgress {
  readonly database: string
  /** `waiting`: a temporary error, such as a full disk. `failed`: the destination rejects a batch or its setup. */
  readonly state: 'loading' | 'following' | 'waiting' | 'failed'
  /** The sequence of the token in the destination. */
  readonly sequence: number
  /** The log was read up to this sequence; it may be above `sequence`, if no later change belongs to the database. */
  readonly readSequence: number
  /** When the newest applied change was committed. */
  readonly committedAt: number
  /** Changes applied since the destination was added. */
  readonly changes: number
  /** Why the database was loaded the last time. */
  readonly loadReason: string | null
  /** Why it does not advance, while it is `waiting` or `failed`. The position stays; nothing is skipped. */
  readonly failure?: DestinationFailure | null
}

/** The last error of one database of a destination, and the batch that was not applied. */
export interface DestinationFailure {
  readonly code: ErrorCode
  readonly message: string
  readonly at: number
  /** The sequences of the batch; null if the error occurred before a batch. */
  readonly firstSequence: number | null
  readonly lastSequence: number | null
  /** The key of the record that is rejected; null if the error does not depend on one. */
  readonly key: string | null
}

/** The right to write to one destination. A claim with a newer epoch fences it off. */
export interface DestinationClaim {
  readonly name: string
  readonly epoch: number
}

/** The result of a run so far; written atomically. */
export interface DestinationReport {
  readonly kind: string
  readonly location: string
  readonly mode: string
  readonly startedAt: number
  /** Null while the run continues. */
  readonly endedAt: number | null
  readonly failures: number
  readonly retryAt: number | null
  readonly error: DestinationStatus['error']
  readonly databases: readonly DestinationProgress[]
  /** Databases whose requested load has begun. */
  readonly resynced: readonly string[]
  /** For the webhooks that receive their action, in the transaction of the report. */
  readonly messages?: readonly WebhookMessage[]
}

/** A change in the state of a destination. It needs no attention before it happened, so nothing repeats it. */
export type DestinationEvent = { readonly destination: string; readonly at: number } & (
  | {
      /** Databases that do not advance since this run. `databases` is empty if the run itself failed. */
      readonly kind: 'destination.failing'
      readonly databases: readonly string[]
      readonly code: ErrorCode
      readonly message: string
      /** It is tried again by itself: a server that is down, or a full disk. */
      readonly isTemporary: boolean
      readonly retryAt: number | null
    }
  /** Every database advances again. */
  | { readonly kind: 'destination.recovered' }
  | {
      /** A load from the tables began. `behind`: the log no longer has the changes since the last run. */
      readonly kind: 'destination.loading'
      readonly database: string
      readonly reason: 'new' | 'missing' | 'requested' | 'behind'
    }
)

/** A request of an operator. `resync` without databases means all of them. */
export type DestinationSignal =
  | { readonly kind: 'pause' | 'resume' | 'run' }
  | { readonly kind: 'resync'; readonly databases: readonly string[] }
