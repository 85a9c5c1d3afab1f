import {
  EMPTY_CHECKPOINT,
  type Subscription,
  type Ports,
  type SyncStatusRow,
  type SyncStatusList,
  type SyncStatusQuery,
  type Store,
  type SyncRef,
} from '../contract/index.ts'
import { classifyError } from '../engine/classify-error.ts'
import { fingerprintCheckpoint, RECENT_CYCLES, type DueOptions } from './due.ts'
import { required } from '../values/required.ts'
import type { Job } from './job.ts'
import type { StoreClock } from './store-clock.ts'

export interface SyncWatcherOptions {
  readonly clock: StoreClock
  readonly ports: Ports
  readonly pollMs: number
  readonly pollBatchMax: number
  readonly pauseMs: number
  readonly isBusy: (job: Job) => boolean
  /** The facts of the job may have changed. */
  readonly onUpdate: (job: Job) => void
  readonly onStoreFailure: (failure: StoreFailure) => void
  /** A poll is worthwhile now. */
  readonly onWake: () => void
}

export interface StoreFailure {
  readonly code: string
  readonly message: string
  readonly waitMs: number
}

/**
 * Keeps the facts of the jobs current. Tenants are polled in turn, a bounded number per round, with one query for all
 * changed syncs of a tenant. A change notification triggers a poll at once, and the regular interval is longer while
 * the subscription is connected.
 */
export class SyncWatcher {
  readonly #options: SyncWatcherOptions
  readonly #tenants = new Map<string, WatchedTenant>()
  readonly #tenantOrder: WatchedTenant[] = []
  readonly #requested = new Set<WatchedTenant>()
  #since: number | null = null
  #nextIndex = 0
  #firstRoundDone = false
  #failures = 0
  #polledAt = -Infinity
  #roundAt = -Infinity
  #intervalMs: number
  #isConnected = false
  /** Without a tenant there is nothing to subscribe to yet. */
  #isSubscribing = false
  #subscription: Subscription | null = null

  constructor(jobs: readonly Job[], options: SyncWatcherOptions) {
    this.#options = options
    this.#intervalMs = options.pollMs
    this.#addJobs(jobs)
  }

  /** New tenants are polled as soon as possible. */
  add(jobs: readonly Job[]): void {
    const added = this.#addJobs(jobs)
    if (this.#isSubscribing && this.#subscription === null) this.subscribe()
    for (const {
      store: { tenant },
    } of added)
      this.#subscription?.addTenant(tenant)
    this.#requestPoll(new Set(jobs.map((job) => required(this.#tenants.get(job.tenant), `tenant ${job.tenant}`))))
  }

  /** The job is no longer polled. */
  remove(job: Job): void {
    const tenant = this.#tenants.get(job.tenant)
    tenant?.jobs.delete(syncKey(job.ref))
    if (tenant !== undefined) tenant.children = tenant.children.filter((child) => child !== job)
  }

  /** A fact that no poll returns has changed. */
  updateDue(job: Job): void {
    if (job.facts === null) return
    job.updateDue(this.#dueOptions())
    this.#options.onUpdate(job)
  }

  /** Subscribes to change notifications, if the store supports them. */
  subscribe(): void {
    this.#isSubscribing = true
    this.#subscription =
      this.#tenantOrder[0]?.store.subscribe({
        tenants: [...this.#tenants.keys()],
        onChange: (name) => {
          const tenant = this.#tenants.get(name)
          if (tenant !== undefined) this.#requestPoll([tenant])
        },
        onConnected: (isConnected) => {
          this.#isConnected = isConnected
          this.#intervalMs = this.#options.pollMs
          // Notifications may have been missed while disconnected, and the new connection may lead to another server.
          for (const tenant of this.#tenantOrder) tenant.changeCursor = null
          this.#requestPoll(this.#tenantOrder)
        },
      }) ?? null
  }

  async close(): Promise<void> {
    await this.#subscription?.close()
  }

  /** Time until the next poll; 0 if one is due. The first round runs without pauses. */
  nextPollMs(): number {
    if (!this.#firstRoundDone && this.#failures === 0) return 0
    const round = this.#remainingMs(this.#roundAt, this.#intervalMs)
    return this.#requested.size > 0 && this.#failures === 0
      ? Math.min(round, this.#remainingMs(this.#polledAt, WAKE_GAP_MS))
      : round
  }

  /**
   * Polls the tenants with notifications, and the next batch of the round if it is due. Backs off while the store is
   * unreachable.
   */
  async poll(): Promise<void> {
    const { clock, ports, pollMs, pollBatchMax, onStoreFailure } = this.#options
    const isRound = !this.#firstRoundDone || this.#remainingMs(this.#roundAt, this.#intervalMs) === 0
    const end = this.#nextIndex + (isRound ? pollBatchMax : 0)
    const batch = [...new Set([...this.#requested, ...this.#tenantOrder.slice(this.#nextIndex, end)])]
    const before = clock.now()
    try {
      for (let start = 0; start < batch.length; start += QUERIES_AT_ONCE) {
        await Promise.all(batch.slice(start, start + QUERIES_AT_ONCE).map((tenant) => this.#refreshTenant(tenant)))
      }
      this.#failures = 0
      if (isRound) {
        this.#nextIndex = end < this.#tenantOrder.length ? end : 0
        if (this.#nextIndex === 0) this.#firstRoundDone = true
        // Jitter: processes that started together must not compete for the same sync in every round.
        this.#intervalMs = Math.round(
          pollMs * (this.#isConnected ? CONNECTED_POLL_FACTOR : 1) * (0.9 + 0.2 * ports.random.next()),
        )
      }
    } catch (thrown) {
      const { code, message } = classifyError(thrown)
      this.#intervalMs = backoffMs(pollMs, this.#failures++)
      onStoreFailure({ code, message, waitMs: this.#intervalMs })
    }
    if (before < this.#polledAt) this.#recomputeDue()
    this.#polledAt = clock.now()
    if (isRound || this.#failures > 0) this.#roundAt = this.#polledAt
  }

  async refresh(job: Job): Promise<void> {
    const { worker, sync } = job.ref
    const tenant = required(this.#tenants.get(job.tenant), `tenant ${job.tenant}`)
    await this.#query(tenant, { recent: recentCyclesFor(job), ref: { worker, sync } }, ({ syncs }) =>
      this.#update(job, syncs[0]),
    )
  }

  async #refreshTenant(tenant: WatchedTenant): Promise<void> {
    const { jobs, changeCursor, recent } = tenant
    this.#requested.delete(tenant)
    try {
      await this.#query(tenant, { recent, ...(changeCursor !== null && { changedSince: changeCursor }) }, (answer) => {
        if (tenant.changeCursor === changeCursor) tenant.changeCursor = answer.changeToken
        // Jobs that run here are refreshed when they end.
        const unknown = changeCursor === null ? new Set(jobs.values()) : new Set<Job>()
        for (const status of answer.syncs) {
          const job = jobs.get(syncKey(status))
          if (job === undefined) continue
          unknown.delete(job)
          if (!this.#options.isBusy(job)) this.#update(job, status)
        }
        for (const job of unknown) if (!this.#options.isBusy(job)) this.#update(job, undefined)
      })
    } catch (error) {
      this.#requested.add(tenant)
      throw error
    }
  }

  /** Serializes the queries of a tenant, so that the later response is the newer one. */
  #query(
    tenant: WatchedTenant,
    query: Omit<SyncStatusQuery, 'at'>,
    onAnswer: (answer: SyncStatusList) => void,
  ): Promise<void> {
    const { clock } = this.#options
    const pending = tenant.pendingQuery.then(async () => {
      const answer = await clock.synchronize((at) => tenant.store.listSyncStatus({ at, ...query }))
      this.#since ??= clock.now()
      onAnswer(answer)
    })
    tenant.pendingQuery = pending.catch(() => {})
    return pending
  }

  #update(
    job: Job,
    { checkpoint, recent }: Pick<SyncStatusRow, 'checkpoint' | 'recent'> = { checkpoint: EMPTY_CHECKPOINT, recent: [] },
  ): void {
    const hasChanged =
      job.facts === null || fingerprintCheckpoint(job.facts.checkpoint) !== fingerprintCheckpoint(checkpoint)
    job.facts = { checkpoint, recent }
    if (hasChanged) job.updateDue(this.#dueOptions())
    this.#options.onUpdate(job)
    if (hasChanged) this.#updateChildren(job)
  }

  /** Their due time depends on this job too. */
  #updateChildren({ tenant, ref: { worker, sync } }: Job): void {
    for (const child of this.#tenants.get(tenant)?.children ?? []) {
      if (child.ref.worker !== worker || child.facts === null || !child.runsAfter(sync)) continue
      child.updateDue(this.#dueOptions())
      this.#options.onUpdate(child)
    }
  }

  #addJobs(jobs: readonly Job[]): WatchedTenant[] {
    const added: WatchedTenant[] = []
    for (const job of jobs) {
      let tenant = this.#tenants.get(job.tenant)
      if (tenant === undefined) {
        this.#tenants.set(
          job.tenant,
          (tenant = {
            store: job.store,
            jobs: new Map(),
            children: [],
            changeCursor: null,
            recent: 1,
            pendingQuery: Promise.resolve(),
          }),
        )
        added.push(tenant)
      }
      const { jobs } = tenant
      jobs.set(syncKey(job.ref), job)
      // A poll for changes would return nothing for a sync that was added later.
      tenant.changeCursor = null
      if (job.sync.after !== undefined) {
        const { worker } = job.ref
        job.findCheckpoint = (sync) => jobs.get(syncKey({ worker, sync }))?.facts?.checkpoint
        tenant.children.push(job)
      }
      tenant.recent = Math.max(tenant.recent, recentCyclesFor(job))
    }
    this.#tenantOrder.push(...added)
    return added
  }

  #requestPoll(tenants: Iterable<WatchedTenant>): void {
    for (const tenant of tenants) this.#requested.add(tenant)
    this.#options.onWake()
  }

  /** Due times computed before the clock was set back may be hours ahead. */
  #recomputeDue(): void {
    for (const { jobs } of this.#tenants.values()) {
      for (const job of jobs.values()) {
        job.notBefore = -Infinity
        job.updateDue(this.#dueOptions())
        this.#options.onUpdate(job)
      }
    }
  }

  #dueOptions(): DueOptions {
    const now = this.#options.clock.now()
    return { now, since: Math.min(this.#since ?? now, now), pauseMs: this.#options.pauseMs }
  }

  /** 0 if the clock was set back. */
  #remainingMs(since: number, ms: number): number {
    const passed = this.#options.clock.now() - since
    return passed < 0 ? 0 : Math.max(0, ms - passed)
  }
}

interface WatchedTenant {
  readonly store: Store
  readonly jobs: Map<string, Job>
  /** The jobs that run after others. */
  children: Job[]
  /** Null before the first response. */
  changeCursor: string | null
  recent: number
  pendingQuery: Promise<unknown>
}

function syncKey({ worker, sync }: SyncRef): string {
  return `${worker}\n${sync}`
}

function recentCyclesFor({ sync: { schedule } }: Job): number {
  return schedule.kind === 'continuous' ? RECENT_CYCLES : 1
}

/** Doubles with every consecutive failure. */
export function backoffMs(firstMs: number, failures: number): number {
  return Math.min(firstMs * 2 ** failures, Math.max(firstMs, BACKOFF_MAX_MS))
}

const BACKOFF_MAX_MS = 30_000
/** Low, because running cycles need connections too. */
const QUERIES_AT_ONCE = 4
/** While notifications arrive, the store is polled this many times less often. */
const CONNECTED_POLL_FACTOR = 10
/** Notifications within this time are handled by one poll. */
const WAKE_GAP_MS = 50
