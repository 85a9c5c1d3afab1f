import { EventEmitter } from 'node:events'
import type { ConnectionChange } from '../connections/connection-changes.ts'
import type { ErrorCode } from '../contract/index.ts'
import type { CycleResult } from '../engine/cycle-options.ts'
import type { TenantDestinationEvent } from '../destinations/loop/destination-runner.ts'
import type { RunnerEvent } from '../runner/runner-options.ts'

/** The sync that an event is about. */
export interface SyncEvent {
  readonly tenant: string
  readonly worker: string
  readonly sync: string
}

/** The events of a Tidemark instance, by name. */
export interface TidemarkEvents {
  cycleStarted: SyncEvent & { readonly cycle: number; readonly resumed: boolean }
  pageCommitted: SyncEvent & { readonly cycle: number; readonly page: number; readonly headSequence: number }
  /** The cycle waits, because of a rate limit or an error that is retried. */
  waiting: SyncEvent & { readonly cycle: number; readonly waitMs: number; readonly code: ErrorCode | null }
  cycleEnded: SyncEvent & { readonly result: CycleResult }
  /** Records changed their shape; also part of `cycleEnded`. */
  drift: SyncEvent & { readonly cycle: number; readonly changes: readonly string[] }
  /** A sweep exceeded the delete limit: nothing was deleted, and an operator must confirm. */
  massDeleteBlocked: SyncEvent & { readonly cycle: number | null; readonly message: string }
  /** The source refused the credentials. The sync stops until they are replaced. */
  credentialsRejected: SyncEvent & { readonly cycle: number | null; readonly message: string }
  /** Databases of a destination do not advance. Sent once; `isTemporary` if it is tried again by itself. */
  destinationFailing: Omit<EventOf<'destination.failing'>, 'kind'>
  /** Every database of the destination advances again. */
  destinationRecovered: Omit<EventOf<'destination.recovered'>, 'kind'>
  /** A database is loaded from the tables. `behind`: the log no longer has the changes since the last run. */
  destinationLoading: Omit<EventOf<'destination.loading'>, 'kind'>
  destinationEnded: Omit<EventOf<'destination.ended'>, 'kind'>
  /** A connection of a tenant was added or removed, or has another status. */
  connectionChanged: ConnectionChange
  /** The vendor refused the credentials of a connection: its user has to connect again. */
  connectionNeedsReauthorization: ConnectionChange
  storeUnavailable: { readonly code: string; readonly message: string; readonly retryInMs: number }
  /** A promise of a connector was rejected without a handler. */
  connectorError: { readonly message: string }
}

/** An event of a destination by kind. `at` is in milliseconds. */
type EventOf<Kind extends TenantDestinationEvent['kind']> = Extract<TenantDestinationEvent, { readonly kind: Kind }>

/** Removes the listener. */
export type Unsubscribe = () => void

/** Emits what the runner of this process does. Events of other processes on the same store are not emitted. */
export class TidemarkEventEmitter {
  readonly #emitter = new EventEmitter().setMaxListeners(0)
  readonly #onListenerError: (event: string, error: unknown) => void

  constructor(onListenerError: (event: string, error: unknown) => void) {
    this.#onListenerError = onListenerError
  }

  /** A listener that throws is logged and does not affect the sync. */
  on<Name extends keyof TidemarkEvents>(name: Name, listener: (event: TidemarkEvents[Name]) => void): Unsubscribe {
    const guarded = (event: TidemarkEvents[Name]): void => {
      try {
        listener(event)
      } catch (error) {
        this.#onListenerError(name, error)
      }
    }
    this.#emitter.on(name, guarded)
    return () => this.#emitter.off(name, guarded)
  }

  emitConnection(event: ConnectionChange): void {
    this.#emit('connectionChanged', event)
    if (event.status === 'needs_reauthorization') this.#emit('connectionNeedsReauthorization', event)
  }

  /** Translates an event of the runner. */
  emit(event: RunnerEvent): void {
    switch (event.kind) {
      case 'started':
        return this.#emit('cycleStarted', { ...syncOf(event), cycle: event.cycle, resumed: event.resumed })
      case 'landed':
        return this.#emit('pageCommitted', {
          ...syncOf(event),
          cycle: event.cycle,
          page: event.page,
          headSequence: event.headSequence,
        })
      case 'waiting':
        return this.#emit('waiting', {
          ...syncOf(event),
          cycle: event.cycle,
          waitMs: event.ms,
          code: event.code,
        })
      case 'ended':
        return this.#emitResult(syncOf(event), event.result)
      case 'store':
        return this.#emit('storeUnavailable', { code: event.code, message: event.message, retryInMs: event.waitMs })
      case 'stray':
        return this.#emit('connectorError', { message: event.message })
      case 'held':
        return
      default:
        event satisfies never
    }
  }

  /** Translates an event of a destination. */
  emitDestination({ kind, ...event }: TenantDestinationEvent): void {
    this.#emit(DESTINATION_EVENTS[kind], event as TidemarkEvents[(typeof DESTINATION_EVENTS)[typeof kind]])
  }

  #emitResult(sync: SyncEvent, result: CycleResult): void {
    const { cycle, drift, error } = result
    if (drift.length > 0 && cycle !== null) this.#emit('drift', { ...sync, cycle, changes: drift })
    if (error?.code === 'MASS_DELETE') this.#emit('massDeleteBlocked', { ...sync, cycle, message: error.message })
    if (error?.code === 'AUTH_REJECTED') this.#emit('credentialsRejected', { ...sync, cycle, message: error.message })
    this.#emit('cycleEnded', { ...sync, result })
  }

  #emit<Name extends keyof TidemarkEvents>(name: Name, event: TidemarkEvents[Name]): void {
    this.#emitter.emit(name, event)
  }
}

const DESTINATION_EVENTS = {
  'destination.failing': 'destinationFailing',
  'destination.recovered': 'destinationRecovered',
  'destination.loading': 'destinationLoading',
  'destination.ended': 'destinationEnded',
} as const satisfies Record<TenantDestinationEvent['kind'], keyof TidemarkEvents>

function syncOf({ tenant, worker, sync }: SyncEvent): SyncEvent {
  return { tenant, worker, sync }
}
