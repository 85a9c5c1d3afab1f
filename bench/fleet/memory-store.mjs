import { EMPTY_CHECKPOINT } from '../../dist/contract/index.js'

/**
 * The part of a store that a runner needs for cycles that land nothing, in memory and shared by all processes of a
 * simulated fleet: leases by one clock and fenced by epoch, status by change, notifications at once.
 */
export class MemoryStore {
  tenants = new Map()
  listeners = new Set()
  calls = { status: 0, acquire: 0, held: 0 }
  #clock
  #cycles = 0

  constructor(clock, fail) {
    this.#clock = clock
    this.fail = fail
  }

  /** The store as one process reaches it; calls of a killed process never return. */
  door(process, tenant = 'default') {
    const own = this.#tenant(tenant)
    const reach =
      (method) =>
      (...args) =>
        process.dead ? new Promise(() => {}) : Promise.resolve(this[method](own, ...args))
    const methods = [
      'listSyncStatus',
      'acquire',
      'renew',
      'release',
      'beginCycle',
      'commit',
      'readCheckpoint',
      'signalSync',
      'headSequence',
      'pauses',
    ]
    return {
      ...Object.fromEntries(methods.map((method) => [method, reach(method)])),
      tenant,
      forTenant: (other) => this.door(process, other),
      close: async () => {},
      subscribe: (listener) => {
        const notify = (changed) => process.dead || listener.onChange(changed)
        this.listeners.add(notify)
        listener.onConnected(true)
        return { addTenant: () => {}, close: async () => this.listeners.delete(notify) }
      },
    }
  }

  #tenant(name) {
    if (!this.tenants.has(name)) this.tenants.set(name, { name, rows: new Map(), moves: [] })
    return this.tenants.get(name)
  }

  #row(tenant, { worker, sync }) {
    if (!tenant.rows.has(sync))
      tenant.rows.set(sync, { worker, sync, epoch: 0, checkpoint: EMPTY_CHECKPOINT, recent: [] })
    return tenant.rows.get(sync)
  }

  #move(tenant, row, checkpoint) {
    row.checkpoint = { ...row.checkpoint, ...checkpoint }
    tenant.moves.push(row)
  }

  #notify(tenant) {
    for (const notify of this.listeners) notify(tenant.name)
  }

  listSyncStatus(tenant, { ref, changedSince }) {
    this.calls.status++
    const rows =
      ref !== undefined
        ? [tenant.rows.get(ref.sync)].filter(Boolean)
        : changedSince === undefined
          ? tenant.rows.values()
          : new Set(tenant.moves.slice(Number(changedSince)))
    return {
      now: this.#clock.now(),
      changeToken: String(tenant.moves.length),
      syncs: [...rows].map(({ worker, sync, checkpoint, recent }) => ({ worker, sync, checkpoint, recent })),
    }
  }

  acquire(tenant, ref, { holder, ttlMs, evictHolder }) {
    this.calls.acquire++
    const row = this.#row(tenant, ref)
    const { heldBy, heldUntil } = row.checkpoint
    const now = this.#clock.now()
    if (heldBy !== null && heldUntil > now && heldBy !== evictHolder) {
      this.calls.held++
      return { kind: 'held', holder: heldBy, expiresAt: heldUntil }
    }
    const checkpoint = row.checkpoint
    row.epoch++
    this.#move(tenant, row, { heldBy: holder, heldSince: now, heldUntil: now + ttlMs })
    return { kind: 'acquired', lease: { ref, holder, epoch: row.epoch }, checkpoint }
  }

  #held(tenant, { ref, epoch }) {
    const row = this.#row(tenant, ref)
    return row.epoch === epoch ? row : null
  }

  renew(tenant, lease, { ttlMs }) {
    const row = this.#held(tenant, lease)
    if (row === null) return false
    this.#move(tenant, row, { heldUntil: this.#clock.now() + ttlMs })
    return true
  }

  beginCycle(tenant, lease, { at, mode, trigger }) {
    const row = this.#held(tenant, lease)
    if (row === null) return null
    const known = row.checkpoint.inflight
    const inflight = known ?? {
      cycle: ++this.#cycles,
      mode,
      page: 0,
      state: null,
      startedAt: at,
      scope: null,
      tidemark: null,
      startSequence: 0,
      guardState: null,
    }
    if (known === null)
      row.recent = [
        {
          worker: row.worker,
          sync: row.sync,
          cycle: inflight.cycle,
          mode,
          trigger,
          startedAt: at,
          endedAt: null,
          stopReason: null,
          counts: COUNTS,
        },
      ]
    this.#move(tenant, row, { inflight, triggeredAt: null })
    return { inflight, resumed: known !== null, headSequence: 0, columns: {} }
  }

  commit(tenant, { lease, version, transition }) {
    const row = this.#held(tenant, lease)
    if (row === null) return { kind: 'fenced' }
    if (transition.kind !== 'complete') throw new Error('cycles of one page only')
    this.#move(tenant, row, { version: version + 1, inflight: null })
    return { kind: 'landed', version: version + 1, headSequence: 0, counts: COUNTS, paused: false }
  }

  release(tenant, lease, report) {
    const row = this.#held(tenant, lease)
    if (row === null) return
    // No cycle of the simulation fails; one that does would be due again at once, without end.
    if (report?.stopReason === 'error') this.fail(new Error(report.error.message))
    if (report !== undefined)
      row.recent = row.recent.map((cycle) => ({ ...cycle, endedAt: report.endedAt, stopReason: report.stopReason }))
    this.#move(tenant, row, {
      heldBy: null,
      heldSince: null,
      heldUntil: null,
      ...(report?.stopReason === 'complete' && { lastSuccessAt: report.endedAt, failures: 0 }),
    })
    this.#notify(tenant)
  }

  signalSync(tenant, ref, { kind, at }) {
    if (kind !== 'trigger') throw new Error('triggers only')
    this.#move(tenant, this.#row(tenant, ref), { triggeredAt: at })
    this.#notify(tenant)
  }

  readCheckpoint(tenant, ref) {
    return this.#row(tenant, ref).checkpoint
  }

  headSequence() {
    return 0
  }

  pauses() {
    return { now: this.#clock.now(), pauses: [] }
  }
}

const COUNTS = { created: 0, updated: 0, deleted: 0, swept: 0, unchanged: 0, stale: 0, missing: 0, quarantined: 0 }
