import type { DestinationEvent, DestinationStatus, Store } from '../../contract/index.ts'
import type { Schedule } from '../../config/schedule.ts'
import { isDestinationDue } from './destination-due.ts'
import { runDestination, type DestinationPlan, type RunDestinationOptions } from './run-destination.ts'

export interface DestinationRunnerOptions extends Omit<RunDestinationOptions, 'signal' | 'isAutomatic' | 'onEvent'> {
  readonly destinations: ReadonlyArray<DestinationPlan & { readonly schedule: Schedule }>
  /** Interval at which the store is polled for due destinations; defaults to one second. */
  readonly pollMs?: number
  readonly onEvent?: (event: TenantDestinationEvent) => void
}

/** An event of a destination of one tenant, or the end of a run. */
export type TenantDestinationEvent = { readonly tenant: string } & (
  | DestinationEvent
  | {
      readonly kind: 'destination.ended'
      readonly destination: string
      readonly at: number
      /** Changes that were applied in this run. */
      readonly changes: number
      readonly error: DestinationStatus['error']
    }
)

/** Runs destinations on their schedules, for one or many tenants. Any number of processes may share a store. */
export class DestinationRunner {
  readonly #options: DestinationRunnerOptions
  readonly #stores = new Map<string, Store>()
  readonly #active = new Map<string, Promise<void>>()
  readonly #stopping = new AbortController()
  readonly #since: number
  #loop: Promise<void> = Promise.resolve()
  #hasPolled = false

  constructor(options: DestinationRunnerOptions) {
    this.#options = options
    this.#since = options.ports.clock.now()
    this.add(options.store.tenant)
  }

  add(tenant: string): void {
    const { store } = this.#options
    if (!this.#stores.has(tenant)) this.#stores.set(tenant, tenant === store.tenant ? store : store.forTenant(tenant))
  }

  start(): void {
    if (this.#options.destinations.length > 0) this.#loop = this.#runLoop()
  }

  /** Whether no destination runs and none was due when the store was last read. */
  isIdle(): boolean {
    return this.#options.destinations.length === 0 || (this.#hasPolled && this.#active.size === 0)
  }

  /** Stops after the current batches. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the destinations are stopping'))
    await this.#loop
    await Promise.all(this.#active.values())
  }

  async #runLoop(): Promise<void> {
    const { ports, pollMs = 1_000 } = this.#options
    while (!this.#stopping.signal.aborted) {
      for (const store of this.#stores.values()) {
        await this.#startDue(store).catch((error: unknown) =>
          ports.log.warn('destinations could not be read', {
            tenant: store.tenant,
            reason: error instanceof Error ? error.message : String(error),
          }),
        )
      }
      this.#hasPolled = true
      await ports.clock.sleep(pollMs, this.#stopping.signal).catch(() => {})
    }
  }

  async #startDue(store: Store): Promise<void> {
    const { ports, destinations, onEvent } = this.#options
    const { tenant } = store
    const statuses = new Map((await store.destinations()).map((status) => [status.name, status]))
    const headSequence = await store.headSequence()
    for (const { schedule, ...plan } of destinations) {
      const id = `${store.tenant}\n${plan.name}`
      const facts = { now: ports.clock.now(), since: this.#since, headSequence }
      if (this.#active.has(id) || !isDestinationDue(plan, schedule, statuses.get(plan.name), facts)) continue
      const run = runDestination(plan, {
        ...this.#options,
        store,
        signal: this.#stopping.signal,
        isAutomatic: true,
        onEvent: (event) => onEvent?.({ tenant, ...event }),
      }).then(
        ({ report, changes }) => {
          if (report === null) return
          const { endedAt, error } = report
          onEvent?.({
            kind: 'destination.ended',
            tenant,
            destination: plan.name,
            at: endedAt ?? ports.clock.now(),
            changes,
            error,
          })
        },
        (error: unknown) =>
          ports.log.warn('destination could not run', {
            tenant,
            destination: plan.name,
            reason: error instanceof Error ? error.message : String(error),
          }),
      )
      this.#active.set(
        id,
        run.finally(() => this.#active.delete(id)),
      )
    }
  }
}
