import { hostname } from 'node:os'
import { SyncError, type DestinationSignal, type Store } from '../contract/index.ts'
import { toDestinationDocument, type DestinationDocument } from '../destinations/loop/destination-document.ts'
import { readDestinationOverviews, type ScheduledDestination } from '../destinations/loop/destination-overview.ts'
import {
  checkDestinationName,
  dropDestinationRows,
  findDeclaredDestination,
  listResyncDatabases,
  type DestinationActor,
} from '../destinations/loop/manage-destinations.ts'
import type { DestinationPlan } from '../destinations/loop/run-destination.ts'
import { systemClock } from '../platform/clock.ts'
import type { TenantOption } from './options.ts'

/** The result of a run of a destination. */
export interface DestinationRunResult {
  readonly destination: string
  /** False if it did not run: it is paused, or another process runs it. */
  readonly ran: boolean
  /** Changes that were applied. */
  readonly changes: number
  /** Null after a complete run. The position stays before what was not applied. */
  readonly error: { readonly code: string; readonly message: string } | null
}

/** The parts of an instance that `Destinations` uses. */
export interface DestinationsContext {
  readonly declared: readonly ScheduledDestination[]
  readonly signal: AbortSignal
  storeOf(options: TenantOption): Promise<Store>
  run(plan: DestinationPlan, store: Store): Promise<DestinationRunResult>
}

/** The destinations of the workers, per tenant. */
export class Destinations {
  readonly #context: DestinationsContext

  constructor(context: DestinationsContext) {
    this.#context = context
  }

  /** Health, lag, progress and the last error of each; from the store alone, the same in every process. */
  async list(options: TenantOption = {}): Promise<DestinationDocument[]> {
    const { declared, storeOf } = this.#context
    return (await readDestinationOverviews(await storeOf(options), declared, systemClock.now())).map(
      toDestinationDocument,
    )
  }

  /** Applies the changes that a destination has not received, now, in this process. A failed run is a result. */
  async run(name: string, options: TenantOption = {}): Promise<DestinationRunResult> {
    const { declared, storeOf, run } = this.#context
    return run(findDeclaredDestination(declared, name), await storeOf(options))
  }

  /** Pauses a destination in every process, after the current batch. */
  pause(name: string, options: TenantOption = {}): Promise<void> {
    return this.#signal(name, { kind: 'pause' }, options)
  }

  /** Resumes a destination, and clears its wait after an error. */
  resume(name: string, options: TenantOption = {}): Promise<void> {
    return this.#signal(name, { kind: 'resume' }, options)
  }

  /** Requests a load from the tables beside the current rows, which stay until it is complete. Default: every database. */
  async resync(name: string, options: TenantOption & { readonly databases?: readonly string[] } = {}): Promise<void> {
    const plan = findDeclaredDestination(this.#context.declared, name)
    const databases = listResyncDatabases(plan, options.databases ?? [])
    await this.#signal(name, { kind: 'resync', databases }, options)
  }

  /**
   * Forgets a destination. Its rows stay, unless `dropRows`: they are then deleted at the destination. A worker that still
   * declares it adds it again with its next run.
   */
  async remove(name: string, options: TenantOption & { readonly dropRows?: boolean } = {}): Promise<void> {
    const { declared, signal, storeOf } = this.#context
    const store = await storeOf(options)
    await checkDestinationName(store, declared, name)
    if (options.dropRows === true) {
      const plan = declared.find((one) => one.name === name)
      if (plan === undefined)
        throw new SyncError('DESTINATION_UNKNOWN', `No worker declares ${name}, so its rows cannot be deleted.`)
      await dropDestinationRows(store, plan, signal)
    }
    await store.removeDestination(name, createActor())
  }

  async #signal(name: string, signal: DestinationSignal, options: TenantOption): Promise<void> {
    const { declared, storeOf } = this.#context
    const store = await storeOf(options)
    await checkDestinationName(store, declared, name)
    await store.signalDestination(name, signal, createActor())
  }
}

function createActor(): DestinationActor {
  return { actor: `program@${hostname()}`, at: systemClock.now() }
}
