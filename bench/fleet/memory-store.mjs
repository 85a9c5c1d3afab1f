import { NEVER_RUN } from '../../dist/contract/index.js'

/**
 * As much of a store as a runner needs for cycles that land nothing, in memory and for all processes of a simulated fleet:
 * leases by one clock and fenced by epoch, standings by what moved, news told at once.
 */
export class MemoryStore {
  tenants = new Map()
  ears = new Set()
  calls = { standings: 0, acquire: 0, held: 0 }
  #clock
  #cycles = 0

  constructor(clock, fail) {
    this.#clock = clock
    this.fail = fail
  }

  /** The store as one process reaches it; a dead process is never answered. */
  door(process, tenant = 'default') {
    const own = this.#tenant(tenant)
    const reach = (method) => (...args) => (process.dead ? new Promise(() => {}) : Promise.resolve(this[method](own, ...args)))
    const methods = ['standings', 'acquire', 'renew', 'release', 'begin', 'commit', 'read', 'signal', 'position', 'pauses']
    return {
      ...Object.fromEntries(methods.map((method) => [method, reach(method)])),
      tenant,
      forTenant: (other) => this.door(process, other),
      close: async () => {},
      listen: (ear) => {
        const told = (heard) => process.dead || ear.heard(heard)
        this.ears.add(told)
        ear.live(true)
        return { close: async () => this.ears.delete(told) }
      },
    }
  }

  #tenant(name) {
    if (!this.tenants.has(name)) this.tenants.set(name, { name, rows: new Map(), moves: [] })
    return this.tenants.get(name)
  }

  #row(tenant, { worker, sync }) {
    if (!tenant.rows.has(sync)) tenant.rows.set(sync, { worker, sync, epoch: 0, checkpoint: NEVER_RUN, recent: [] })
    return tenant.rows.get(sync)
  }

  #move(tenant, row, checkpoint) {
    row.checkpoint = { ...row.checkpoint, ...checkpoint }
    tenant.moves.push(row)
  }

  #tell(tenant) {
    for (const ear of this.ears) ear(tenant.name)
  }

  standings(tenant, { ref, since }) {
    this.calls.standings++
    const rows = ref !== undefined ? [tenant.rows.get(ref.sync)].filter(Boolean) : since === undefined ? tenant.rows.values() : new Set(tenant.moves.slice(Number(since)))
    return { now: this.#clock.now(), mark: String(tenant.moves.length), syncs: [...rows].map(({ worker, sync, checkpoint, recent }) => ({ worker, sync, checkpoint, recent })) }
  }

  acquire(tenant, ref, { holder, ttlMs, evict }) {
    this.calls.acquire++
    const row = this.#row(tenant, ref)
    const { heldBy, heldUntil } = row.checkpoint
    const now = this.#clock.now()
    if (heldBy !== null && heldUntil > now && heldBy !== evict) {
      this.calls.held++
      return { kind: 'held', by: heldBy, until: heldUntil }
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

  begin(tenant, lease, { at, mode, trigger }) {
    const row = this.#held(tenant, lease)
    if (row === null) return null
    const known = row.checkpoint.inflight
    const inflight = known ?? { cycle: ++this.#cycles, mode, page: 0, state: null, startedAt: at, scope: null, tidemark: null, startSequence: 0, guard: null }
    if (known === null) row.recent = [{ worker: row.worker, sync: row.sync, cycle: inflight.cycle, mode, trigger, startedAt: at, endedAt: null, stopReason: null, counts: COUNTS }]
    this.#move(tenant, row, { inflight, triggeredAt: null })
    return { inflight, resumed: known !== null, position: 0, columns: {} }
  }

  commit(tenant, { lease, version, move }) {
    const row = this.#held(tenant, lease)
    if (row === null) return { kind: 'fenced' }
    if (move.kind !== 'complete') throw new Error('cycles of one page only')
    this.#move(tenant, row, { version: version + 1, inflight: null })
    return { kind: 'landed', version: version + 1, position: 0, counts: COUNTS, paused: false }
  }

  release(tenant, lease, report) {
    const row = this.#held(tenant, lease)
    if (row === null) return
    // No cycle of the simulation fails; one that does would be due again at once, without end.
    if (report?.stopReason === 'error') this.fail(new Error(report.error.message))
    if (report !== undefined) row.recent = row.recent.map((cycle) => ({ ...cycle, endedAt: report.endedAt, stopReason: report.stopReason }))
    this.#move(tenant, row, { heldBy: null, heldSince: null, heldUntil: null, ...(report?.stopReason === 'complete' && { lastSuccessAt: report.endedAt, failures: 0 }) })
    this.#tell(tenant)
  }

  signal(tenant, ref, { kind, at }) {
    if (kind !== 'trigger') throw new Error('triggers only')
    this.#move(tenant, this.#row(tenant, ref), { triggeredAt: at })
    this.#tell(tenant)
  }

  read(tenant, ref) {
    return this.#row(tenant, ref).checkpoint
  }

  position() {
    return 0
  }

  pauses() {
    return { now: this.#clock.now(), pauses: [] }
  }
}

const COUNTS = { created: 0, updated: 0, deleted: 0, swept: 0, unchanged: 0, stale: 0, missing: 0, quarantined: 0 }
