import type { ConnectionRef, ConnectionSummary } from '../contract/index.ts'

/** A connection was added, removed, or has another status. */
export interface ConnectionChange extends ConnectionRef {
  readonly provider: string
  /** Null if it was removed. */
  readonly status: ConnectionSummary['status'] | null
  readonly reason: string | null
}

/** Compares the connections of tenants with those reported before. The first report of a tenant is no change. */
export class ConnectionChanges {
  readonly #known = new Map<string, readonly ConnectionSummary[]>()
  #isComplete = false

  /** From now on, a tenant that is reported for the first time is new. */
  completeFirstRound(): void {
    this.#isComplete = true
  }

  update(tenant: string, connections: readonly ConnectionSummary[]): ConnectionChange[] {
    const before = this.#known.get(tenant)
    if (connections.length === 0) this.#known.delete(tenant)
    else this.#known.set(tenant, connections)
    if (before === undefined && !this.#isComplete) return []
    const known = new Map((before ?? []).map((connection) => [connection.name, connection]))
    const changes = connections.flatMap(({ name, provider, status, statusReason }): ConnectionChange[] => {
      const isSame = known.get(name)?.status === status
      known.delete(name)
      return isSame ? [] : [{ tenant, name, provider, status, reason: statusReason }]
    })
    const removed = [...known.values()].map(({ name, provider }): ConnectionChange => ({
      tenant,
      name,
      provider,
      status: null,
      reason: null,
    }))
    return [...changes, ...removed]
  }
}
