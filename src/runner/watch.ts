import { NEVER_RUN, type Listening, type Ports, type Standing, type Standings, type StandingsQuery, type Store, type SyncRef } from '../contract/index.ts'
import { classify } from '../engine/classify.ts'
import { markOf, RECENT_CYCLES, type DueOptions } from './due.ts'
import type { Job } from './job.ts'
import type { StoreClock } from './store-clock.ts'

export interface WatchOptions {
  readonly clock: StoreClock
  readonly ports: Ports
  readonly pollMs: number
  readonly looksMax: number
  readonly pauseMs: number
  readonly isBusy: (job: Job) => boolean
  /** What is known of it may have changed. */
  readonly onSeen: (job: Job) => void
  readonly onTrouble: (trouble: Trouble) => void
  /** There is a reason to look. */
  readonly onNews: () => void
}

export interface Trouble {
  readonly code: string
  readonly message: string
  readonly waitMs: number
}

/**
 * Keeps what is known of the jobs true. Each tenant's store is asked in turn, a bounded number in one round, with one
 * question for all its syncs that moved; whose store tells of news is asked at once, and all of them more seldom.
 */
export class Watch {
  readonly #options: WatchOptions
  readonly #tenants = new Map<string, Tenant>()
  readonly #round: Tenant[] = []
  readonly #called = new Set<Tenant>()
  #since: number | null = null
  #cursor = 0
  #seenAll = false
  #failures = 0
  #lookedAt = -Infinity
  #roundAt = -Infinity
  #everyMs: number
  #isLive = false
  #listening: Listening | null = null

  constructor(jobs: readonly Job[], options: WatchOptions) {
    this.#options = options
    this.#everyMs = options.pollMs
    this.#take(jobs)
  }

  /** They are looked at as soon as possible. */
  add(jobs: readonly Job[]): void {
    const added = this.#take(jobs)
    for (const { store: { tenant } } of added) this.#listening?.add(tenant)
    this.#call(added)
  }

  /** From now on news are heard, where the store tells them. */
  listen(): void {
    this.#listening = this.#round[0]?.store.listen({
      tenants: [...this.#tenants.keys()],
      heard: (tenant) => this.#call([this.#tenants.get(tenant)!]),
      live: (is) => {
        this.#isLive = is
        this.#everyMs = this.#options.pollMs
        // Something may have been told while nobody heard it; and it may be another server that is heard now.
        for (const tenant of this.#round) tenant.mark = null
        this.#call(this.#round)
      },
    }) ?? null
  }

  async close(): Promise<void> {
    await this.#listening?.close()
  }

  /** How long the next look may wait; 0 when it is time. The first round goes on without a rest. */
  restMs(): number {
    if (!this.#seenAll && this.#failures === 0) return 0
    const round = this.#left(this.#roundAt, this.#everyMs)
    return this.#called.size > 0 && this.#failures === 0 ? Math.min(round, this.#left(this.#lookedAt, NEWS_GAP_MS)) : round
  }

  /** Those with news, and the next few in the round when it is time. A store that cannot be asked is left alone for longer and longer. */
  async lookAround(): Promise<void> {
    const { clock, ports, pollMs, looksMax, onTrouble } = this.#options
    const isRound = !this.#seenAll || this.#left(this.#roundAt, this.#everyMs) === 0
    const end = this.#cursor + (isRound ? looksMax : 0)
    const batch = [...new Set([...this.#called, ...this.#round.slice(this.#cursor, end)])]
    const before = clock.now()
    try {
      for (let start = 0; start < batch.length; start += LOOKS_AT_ONCE) {
        await Promise.all(batch.slice(start, start + LOOKS_AT_ONCE).map((tenant) => this.#lookAtTenant(tenant)))
      }
      this.#failures = 0
      if (isRound) {
        this.#cursor = end < this.#round.length ? end : 0
        if (this.#cursor === 0) this.#seenAll = true
        // Different for everybody, or processes that were started together would reach for the same sync together for ever.
        this.#everyMs = Math.round(pollMs * (this.#isLive ? LIVE_POLLS : 1) * (0.9 + 0.2 * ports.random.next()))
      }
    } catch (thrown) {
      const { code, message } = classify(thrown)
      this.#everyMs = backoffMs(pollMs, this.#failures++)
      onTrouble({ code, message, waitMs: this.#everyMs })
    }
    if (before < this.#lookedAt) this.#judgeAnew()
    this.#lookedAt = clock.now()
    if (isRound || this.#failures > 0) this.#roundAt = this.#lookedAt
  }

  async lookAt(job: Job): Promise<void> {
    const { worker, sync } = job.name
    const tenant = this.#tenants.get(job.tenant)!
    await this.#ask(tenant, { recent: recentOf(job), ref: { worker, sync } }, ({ syncs }) => this.#see(job, syncs[0]))
  }

  async #lookAtTenant(tenant: Tenant): Promise<void> {
    const { jobs, mark, recent } = tenant
    this.#called.delete(tenant)
    try {
      await this.#ask(tenant, { recent, ...(mark !== null && { since: mark }) }, (answer) => {
        if (tenant.mark === mark) tenant.mark = answer.mark
        // What runs here is looked at when it ends.
        const unknown = mark === null ? new Set(jobs.values()) : new Set<Job>()
        for (const standing of answer.syncs) {
          const job = jobs.get(keyOf(standing))
          if (job === undefined) continue
          unknown.delete(job)
          if (!this.#options.isBusy(job)) this.#see(job, standing)
        }
        for (const job of unknown) if (!this.#options.isBusy(job)) this.#see(job, undefined)
      })
    } catch (error) {
      this.#called.add(tenant)
      throw error
    }
  }

  /** One question at a time about one tenant, so that the answer that comes later is the newer one. */
  #ask(tenant: Tenant, query: Omit<StandingsQuery, 'at'>, onAnswer: (answer: Standings) => void): Promise<void> {
    const { clock } = this.#options
    const asking = tenant.asking.then(async () => {
      const answer = await clock.ask((at) => tenant.store.standings({ at, ...query }))
      this.#since ??= clock.now()
      onAnswer(answer)
    })
    tenant.asking = asking.catch(() => {})
    return asking
  }

  #see(job: Job, { checkpoint, recent }: Pick<Standing, 'checkpoint' | 'recent'> = { checkpoint: NEVER_RUN, recent: [] }): void {
    const moved = job.standing === null || markOf(job.standing.checkpoint) !== markOf(checkpoint)
    job.standing = { checkpoint, recent }
    if (moved) job.judge(this.#dueOptions())
    this.#options.onSeen(job)
  }

  #take(jobs: readonly Job[]): Tenant[] {
    const added: Tenant[] = []
    for (const job of jobs) {
      let tenant = this.#tenants.get(job.tenant)
      if (tenant === undefined) {
        this.#tenants.set(job.tenant, (tenant = { store: job.store, jobs: new Map(), mark: null, recent: 1, asking: Promise.resolve() }))
        added.push(tenant)
      }
      tenant.jobs.set(keyOf(job.name), job)
      tenant.recent = Math.max(tenant.recent, recentOf(job))
    }
    this.#round.push(...added)
    return added
  }

  #call(tenants: Iterable<Tenant>): void {
    for (const tenant of tenants) this.#called.add(tenant)
    this.#options.onNews()
  }

  /** What was reckoned by a clock that has been set back since may lie hours ahead. */
  #judgeAnew(): void {
    for (const { jobs } of this.#tenants.values()) {
      for (const job of jobs.values()) {
        job.notBefore = -Infinity
        job.judge(this.#dueOptions())
        this.#options.onSeen(job)
      }
    }
  }

  #dueOptions(): DueOptions {
    const now = this.#options.clock.now()
    return { now, since: Math.min(this.#since ?? now, now), pauseMs: this.#options.pauseMs }
  }

  /** Nothing when the clock was set back. */
  #left(since: number, ms: number): number {
    const passed = this.#options.clock.now() - since
    return passed < 0 ? 0 : Math.max(0, ms - passed)
  }
}

interface Tenant {
  readonly store: Store
  readonly jobs: Map<string, Job>
  /** How far its news are known; null before the first answer. */
  mark: string | null
  recent: number
  asking: Promise<unknown>
}

function keyOf({ worker, sync }: SyncRef): string {
  return `${worker}\n${sync}`
}

function recentOf({ sync: { schedule } }: Job): number {
  return schedule.kind === 'continuous' ? RECENT_CYCLES : 1
}

/** Twice as long with every failure in a row. */
export function backoffMs(firstMs: number, failures: number): number {
  return Math.min(firstMs * 2 ** failures, Math.max(firstMs, BACKOFF_MAX_MS))
}

const BACKOFF_MAX_MS = 30_000
/** Few, because running cycles want their connections too. */
const LOOKS_AT_ONCE = 4
/** So many times as seldom is a store asked that tells by itself. */
const LIVE_POLLS = 10
/** News that come thick and fast are looked at together. */
const NEWS_GAP_MS = 50
