import type { Random, Store } from '../contract/index.ts'
import type { DeclaredSync } from './declared-sync.ts'
import type { ConnectionFacts } from './due.ts'
import { Job } from './job.ts'
import { toConnectionFacts } from './status.ts'

export interface JobSetOptions {
  readonly store: Store
  readonly syncs: readonly DeclaredSync[]
  readonly random: Random
}

/** The effect of changed connections of one tenant. */
export interface JobChanges {
  readonly added: readonly Job[]
  readonly removed: readonly Job[]
  /** Their connection has another status. */
  readonly changed: readonly Job[]
}

/**
 * The jobs of a runner: one for every tenant and sync. A sync that names a connection has a job for each tenant that
 * has the connection. Every change costs the same, however many tenants there are.
 */
export class JobSet {
  readonly #options: JobSetOptions
  readonly #tenants = new Map<string, TenantJobs>()

  constructor(options: JobSetOptions) {
    this.#options = options
  }

  has(tenant: string): boolean {
    return this.#tenants.has(tenant)
  }

  *all(): Iterable<Job> {
    for (const { jobs } of this.#tenants.values()) yield* jobs.values()
  }

  *of(tenant: string): Iterable<Job> {
    yield* this.#tenants.get(tenant)?.jobs.values() ?? []
  }

  find(tenant: string, worker: string, sync: string): Job | undefined {
    return this.#tenants.get(tenant)?.jobs.get(toKey(worker, sync))
  }

  /** Returns the jobs of the syncs without a connection. */
  addTenant(tenant: string): Job[] {
    const { store, syncs } = this.#options
    const own = { store: tenant === store.tenant ? store : store.forTenant(tenant), jobs: new Map<string, Job>() }
    this.#tenants.set(tenant, own)
    return syncs.filter(({ plan }) => plan.connection == null).map((sync) => this.#createJob(own, sync))
  }

  /** `connections` are all of the tenant. Nothing changes for a tenant that was not added. */
  setConnections(tenant: string, connections: readonly ConnectionFacts[]): JobChanges {
    const own = this.#tenants.get(tenant)
    const changes = { added: [] as Job[], removed: [] as Job[], changed: [] as Job[] }
    if (own === undefined) return changes
    const byName = new Map(connections.map((connection) => [connection.name, connection]))
    for (const sync of this.#options.syncs) {
      const { worker, sync: name, connection: required } = sync.plan
      if (required == null) continue
      const connection = byName.get(required)
      const job = own.jobs.get(toKey(worker, name))
      if (connection === undefined) {
        if (job !== undefined && own.jobs.delete(toKey(worker, name))) changes.removed.push(job)
        continue
      }
      const changed = job ?? this.#createJob(own, sync)
      changed.connection = toConnectionFacts(connection)
      changes[job === undefined ? 'added' : 'changed'].push(changed)
    }
    return changes
  }

  #createJob({ store, jobs }: TenantJobs, sync: DeclaredSync): Job {
    const job = new Job(store, sync, this.#options.random.next())
    jobs.set(toKey(sync.plan.worker, sync.plan.sync), job)
    return job
  }
}

interface TenantJobs {
  readonly store: Store
  readonly jobs: Map<string, Job>
}

function toKey(worker: string, sync: string): string {
  return `${worker}\n${sync}`
}
