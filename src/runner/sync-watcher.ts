import { EMPTY_CHECKPOINT, type Subscription, type Ports, type SyncStatusRow, type SyncStatusList, type SyncStatusQuery, type Store, type SyncRef } from '../contract/index.ts'
import { classifyError } from '../engine/classify-error.ts'
import { fingerprintCheckpoint, RECENT_CYCLES, type DueOptions } from './due.ts'
import type { Job } from './job.ts'
import type { StoreClock } from './store-clock.ts'

export interface SyncWatcherOptions {
  readonly clock: StoreClock
  readonly ports: Ports
  readonly pollMs: number
  readonly pollBatchMax: number
  readonly pauseMs: number
  readonly isBusy: (job: Job) => boolean
  /** What is known of it may have changed. */
  readonly onUpdate: (job: Job) => void
  readonly onStoreFailure: (trouble: StoreFailure) => void
  /** There is a reason to look. */
  readonly onWake: () => void
}

export interface StoreFailure {
  readonly code: string
  readonly message: string
  readonly waitMs: number
}

/**
 * Keeps what is known of the jobs true. Each tenant's store is asked in turn, a bounded number in one round, with one
 * question for all its syncs that moved; whose store tells of news is asked at once, and all of them more seldom.
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
  #subscription: Subscription | null = null

  constructor(jobs: readonly Job[], options: SyncWatcherOptions) {
    this.#options = options
    this.#intervalMs = options.pollMs
    this.#addJobs(jobs)
  }

  /** They are looked at as soon as possible. */
  add(jobs: readonly Job[]): void {
    const added = this.#addJobs(jobs)
    for (const { store: { tenant } } of added) this.#subscription?.addTenant(tenant)
    this.#requestPoll(added)
  }

  /** From now on news are heard, where the store tells them. */
  subscribe(): void {
    this.#subscription = this.#tenantOrder[0]?.store.subscribe({
      tenants: [...this.#tenants.keys()],
      onChange: (tenant) => this.#requestPoll([this.#tenants.get(tenant)!]),
      onConnected: (is) => {
        this.#isConnected = is
        this.#intervalMs = this.#options.pollMs
        // Something may have been told while nobody heard it; and it may be another server that is heard now.
        for (const tenant of this.#tenantOrder) tenant.changeCursor = null
        this.#requestPoll(this.#tenantOrder)
      },
    }) ?? null
  }

  async close(): Promise<void> {
    await this.#subscription?.close()
  }

  /** How long the next look may wait; 0 when it is time. The first round goes on without a rest. */
  nextPollMs(): number {
    if (!this.#firstRoundDone && this.#failures === 0) return 0
    const round = this.#remainingMs(this.#roundAt, this.#intervalMs)
    return this.#requested.size > 0 && this.#failures === 0 ? Math.min(round, this.#remainingMs(this.#polledAt, WAKE_GAP_MS)) : round
  }

  /** Those with news, and the next few in the round when it is time. A store that cannot be asked is left alone for longer and longer. */
  async poll(): Promise<void> {
    const { clock, ports, pollMs, pollBatchMax: looksMax, onStoreFailure: onTrouble } = this.#options
    const isRound = !this.#firstRoundDone || this.#remainingMs(this.#roundAt, this.#intervalMs) === 0
    const end = this.#nextIndex + (isRound ? looksMax : 0)
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
        // Different for everybody, or processes that were started together would reach for the same sync together for ever.
        this.#intervalMs = Math.round(pollMs * (this.#isConnected ? CONNECTED_POLL_FACTOR : 1) * (0.9 + 0.2 * ports.random.next()))
      }
    } catch (thrown) {
      const { code, message } = classifyError(thrown)
      this.#intervalMs = backoffMs(pollMs, this.#failures++)
      onTrouble({ code, message, waitMs: this.#intervalMs })
    }
    if (before < this.#polledAt) this.#recomputeDue()
    this.#polledAt = clock.now()
    if (isRound || this.#failures > 0) this.#roundAt = this.#polledAt
  }

  async refresh(job: Job): Promise<void> {
    const { worker, sync } = job.ref
    const tenant = this.#tenants.get(job.tenant)!
    await this.#query(tenant, { recent: recentCyclesFor(job), ref: { worker, sync } }, ({ syncs }) => this.#update(job, syncs[0]))
  }

  async #refreshTenant(tenant: WatchedTenant): Promise<void> {
    const { jobs, changeCursor: mark, recent } = tenant
    this.#requested.delete(tenant)
    try {
      await this.#query(tenant, { recent, ...(mark !== null && { changedSince: mark }) }, (answer) => {
        if (tenant.changeCursor === mark) tenant.changeCursor = answer.changeToken
        // What runs here is looked at when it ends.
        const unknown = mark === null ? new Set(jobs.values()) : new Set<Job>()
        for (const standing of answer.syncs) {
          const job = jobs.get(syncKey(standing))
          if (job === undefined) continue
          unknown.delete(job)
          if (!this.#options.isBusy(job)) this.#update(job, standing)
        }
        for (const job of unknown) if (!this.#options.isBusy(job)) this.#update(job, undefined)
      })
    } catch (error) {
      this.#requested.add(tenant)
      throw error
    }
  }

  /** One question at a time about one tenant, so that the answer that comes later is the newer one. */
  #query(tenant: WatchedTenant, query: Omit<SyncStatusQuery, 'at'>, onAnswer: (answer: SyncStatusList) => void): Promise<void> {
    const { clock } = this.#options
    const asking = tenant.pendingQuery.then(async () => {
      const answer = await clock.synchronize((at) => tenant.store.listSyncStatus({ at, ...query }))
      this.#since ??= clock.now()
      onAnswer(answer)
    })
    tenant.pendingQuery = asking.catch(() => {})
    return asking
  }

  #update(job: Job, { checkpoint, recent }: Pick<SyncStatusRow, 'checkpoint' | 'recent'> = { checkpoint: EMPTY_CHECKPOINT, recent: [] }): void {
    const moved = job.facts === null || fingerprintCheckpoint(job.facts.checkpoint) !== fingerprintCheckpoint(checkpoint)
    job.facts = { checkpoint, recent }
    if (moved) job.updateDue(this.#dueOptions())
    this.#options.onUpdate(job)
  }

  #addJobs(jobs: readonly Job[]): WatchedTenant[] {
    const added: WatchedTenant[] = []
    for (const job of jobs) {
      let tenant = this.#tenants.get(job.tenant)
      if (tenant === undefined) {
        this.#tenants.set(job.tenant, (tenant = { store: job.store, jobs: new Map(), changeCursor: null, recent: 1, pendingQuery: Promise.resolve() }))
        added.push(tenant)
      }
      tenant.jobs.set(syncKey(job.ref), job)
      tenant.recent = Math.max(tenant.recent, recentCyclesFor(job))
    }
    this.#tenantOrder.push(...added)
    return added
  }

  #requestPoll(tenants: Iterable<WatchedTenant>): void {
    for (const tenant of tenants) this.#requested.add(tenant)
    this.#options.onWake()
  }

  /** What was reckoned by a clock that has been set back since may lie hours ahead. */
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

  /** Nothing when the clock was set back. */
  #remainingMs(since: number, ms: number): number {
    const passed = this.#options.clock.now() - since
    return passed < 0 ? 0 : Math.max(0, ms - passed)
  }
}

interface WatchedTenant {
  readonly store: Store
  readonly jobs: Map<string, Job>
  /** How far its news are known; null before the first answer. */
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

/** Twice as long with every failure in a row. */
export function backoffMs(firstMs: number, failures: number): number {
  return Math.min(firstMs * 2 ** failures, Math.max(firstMs, BACKOFF_MAX_MS))
}

const BACKOFF_MAX_MS = 30_000
/** Few, because running cycles want their connections too. */
const QUERIES_AT_ONCE = 4
/** So many times as seldom is a store asked that tells by itself. */
const CONNECTED_POLL_FACTOR = 10
/** News that come thick and fast are looked at together. */
const WAKE_GAP_MS = 50
