import type {
  LeaseAcquired,
  AcquireRequest,
  BeginRequest,
  BeginResult,
  Commit,
  CommitOutcome,
  LeaseHeld,
  Inflight,
  Lease,
  LogEntry,
  StateText,
  Store,
  SyncRef,
} from '../../contract/index.ts'
import type { StoreMethod } from './faulty-store.ts'
import { FeedMirror } from './feed-mirror.ts'
import { required } from '../../values/required.ts'

export interface Violation {
  /** The broken invariant, such as O4. */
  readonly oracle: string
  readonly message: string
  readonly atMs: number
}

export interface SyncModel<Facts> {
  readonly facts: Facts
  epoch: number
  holder: string | null
  heldUntil: number
  version: number
  committed: StateText
  committedBy: number | null
  inflight: UnfinishedCycle | null
  /** When its last replace cycle ended, complete or abandoned. */
  listedAt: number
  /** As the store holds it: the time up to which the copy claims to be complete. */
  tidemark: string | null
}

/** The oracle's model of an unfinished cycle. */
export type UnfinishedCycle = Pick<Inflight, 'cycle' | 'mode' | 'page' | 'state' | 'startedAt' | 'startSequence'>

export interface StoreOracleOptions<Facts> {
  readonly store: Store
  readonly now: () => number
  readonly worker: string
  readonly database: string
  readonly syncs: readonly Facts[]
  /** Leases expire by the store's clock, which is right, and not by the clock of the runner that asks. */
  readonly storeHasClock: boolean
}

/**
 * Observes every call that reaches the store. It maintains its own model of the registry and of the rows, built from
 * the calls and the feed, and never derives the expected state from the code under test. Subclasses define the expected
 * rows.
 */
export abstract class StoreOracle<Facts extends { readonly sync: string }> {
  readonly violations: Violation[] = []
  /** True time at which each cycle began. */
  readonly #beganAt = new Map<number, number>()
  readonly #models = new Map<string, SyncModel<Facts>>()
  protected readonly mirror = new FeedMirror(
    (oracle, message) => this.reportViolation(oracle, message),
    (entry) => this.mayRelog(entry),
  )
  readonly #finished = new Set<number>()
  readonly #options: StoreOracleOptions<Facts>
  /** Commit outcomes, counted. */
  readonly outcomes: Partial<Record<CommitOutcome['kind'], number>> = {}
  /** The last complete cycle of each sync. */
  readonly completed = new Map<string, { beganAt: number; count: number }>()

  constructor(options: StoreOracleOptions<Facts>) {
    this.#options = options
    for (const facts of options.syncs) {
      this.#models.set(facts.sync, {
        facts,
        epoch: 0,
        holder: null,
        heldUntil: 0,
        version: 0,
        committed: null,
        committedBy: null,
        inflight: null,
        listedAt: 0,
        tidemark: null,
      })
    }
  }

  /** Called with the whole page before its changes are checked. */
  protected checkLandings(_model: SyncModel<Facts>, _commit: Commit): void {}
  /** Called with the whole page after its changes were applied to `mirror`. */
  protected checkLandedPage(_model: SyncModel<Facts>, _commit: Commit): void {}
  /** Called with one change before it is applied to `mirror`. */
  protected abstract checkEntry(model: SyncModel<Facts>, commit: Commit, entry: LogEntry): void
  /** Called with a completed cycle, as of when it began. */
  protected abstract checkCompletedCycle(
    facts: Facts,
    inflight: UnfinishedCycle,
    beganAt: number,
    state: StateText,
  ): void | Promise<void>
  /** O16, after every commit of any sync: the claim of a sync's `tidemark` is true. */
  protected checkTidemark(_facts: Facts, _tidemark: string): void {}

  /** Commit.forceLogSince: what changes nothing may be put on record by a delta whose cycle and that of a listing overlap. */
  protected mayRelog({ sync, cycle }: LogEntry): boolean {
    if (this.#models.get(sync)?.inflight?.mode === 'replace') return false
    return [...this.#models.values()].some(
      ({ inflight, listedAt }) => inflight?.mode === 'replace' || listedAt >= this.beganAt(cycle),
    )
  }

  reportViolation(oracle: string, message: string): void {
    this.violations.push({ oracle, message, atMs: this.#options.now() })
  }

  protected beganAt(cycle: number): number {
    return required(this.#beganAt.get(cycle), 'an entry of beganAt')
  }

  /** Called right after a call took effect, whether or not its answer is delivered. */
  async observe(method: StoreMethod, args: readonly unknown[], answer: unknown): Promise<void> {
    switch (method) {
      case 'acquire':
        return this.#onAcquire(args as [SyncRef, AcquireRequest], answer as LeaseAcquired | LeaseHeld)
      case 'renew':
        return this.#onRenew(args as [Lease, { ttlMs: number; at: number }], answer as boolean)
      case 'release':
        return this.#onRelease(args[0] as Lease)
      case 'beginCycle':
        return this.#onBegin(args as [Lease, BeginRequest], answer as BeginResult | null)
      case 'commit':
        return this.#onCommit(args[0] as Commit, answer as CommitOutcome)
      default:
    }
  }

  // ── O5, O11: leases and the registry ───────────────────────────────────────────────────────────────────────────────

  async #onAcquire([ref, request]: [SyncRef, AcquireRequest], answer: LeaseAcquired | LeaseHeld): Promise<void> {
    const model = required(this.#models.get(ref.sync), 'an entry of models')
    const at = this.#leaseClock(request.at)
    const isFree = model.holder === null || model.heldUntil <= at || model.holder === request.evictHolder
    if (answer.kind === 'held') {
      if (isFree)
        this.reportViolation(
          'O13',
          `${ref.sync} is free, but ${request.holder} was answered that ${answer.holder} holds it`,
        )
      return
    }
    if (!isFree) this.reportViolation('O5', `${request.holder} took ${ref.sync} while ${model.holder} held it`)
    if (answer.lease.epoch !== model.epoch + 1)
      this.reportViolation('O5', `${ref.sync}: epoch ${answer.lease.epoch} after ${model.epoch}`)
    model.epoch = answer.lease.epoch
    model.holder = request.holder
    model.heldUntil = at + request.ttlMs
    await this.#compareRegistry(model)
  }

  #onRenew([lease, { ttlMs, at }]: [Lease, { ttlMs: number; at: number }], kept: boolean): void {
    const model = required(this.#models.get(lease.ref.sync), 'an entry of models')
    const isOurs = this.#holds(model, lease)
    if (kept !== isOurs)
      this.reportViolation(
        'O5',
        `${lease.ref.sync}: a lease of epoch ${lease.epoch} was ${kept ? '' : 'not '}renewed; the newest is ${model.epoch}`,
      )
    if (isOurs) model.heldUntil = Math.max(model.heldUntil, this.#leaseClock(at) + ttlMs)
  }

  #leaseClock(callersMs: number): number {
    return this.#options.storeHasClock ? this.#options.now() : callersMs
  }

  async #onRelease(lease: Lease): Promise<void> {
    const model = required(this.#models.get(lease.ref.sync), 'an entry of models')
    if (this.#holds(model, lease)) model.holder = null
    await this.#compareRegistry(model)
  }

  async #onBegin([lease, request]: [Lease, BeginRequest], begun: BeginResult | null): Promise<void> {
    const model = required(this.#models.get(lease.ref.sync), 'an entry of models')
    const isOurs = this.#holds(model, lease)
    if ((begun !== null) !== isOurs)
      this.reportViolation(
        'O5',
        `${lease.ref.sync}: a lease of epoch ${lease.epoch} could ${begun === null ? 'not ' : ''}begin a cycle; the newest is ${model.epoch}`,
      )
    if (begun === null) return
    if (begun.headSequence !== this.mirror.lastSequence)
      this.reportViolation(
        'O7',
        `begin returned sequence ${begun.headSequence}, the feed ends at ${this.mirror.lastSequence}`,
      )
    const mayResume = model.inflight !== null && !request.fresh && model.inflight.mode === request.mode
    if (begun.resumed !== mayResume)
      this.reportViolation('O5', `${lease.ref.sync}: the unfinished cycle was ${begun.resumed ? '' : 'not '}resumed`)
    if (!mayResume) {
      const state = request.mode === 'replace' ? null : model.committed
      model.inflight = {
        cycle: begun.inflight.cycle,
        mode: request.mode,
        page: 0,
        state,
        startedAt: request.at,
        startSequence: this.mirror.lastSequence,
      }
      this.#beganAt.set(begun.inflight.cycle, this.#options.now())
    }
    await this.#compareRegistry(model)
  }

  #holds(model: SyncModel<Facts>, lease: Lease): boolean {
    return model.epoch === lease.epoch && model.holder === lease.holder
  }

  async #compareRegistry(model: SyncModel<Facts>): Promise<void> {
    const { version, committed, committedBy, inflight, tidemark } = await this.#options.store.readCheckpoint({
      worker: this.#options.worker,
      sync: model.facts.sync,
    })
    model.tidemark = tidemark
    const actual = JSON.stringify([version, committed, committedBy, inflight && pickUnfinishedCycle(inflight)])
    const expected = JSON.stringify([model.version, model.committed, model.committedBy, model.inflight])
    if (actual !== expected)
      this.reportViolation('O5', `${model.facts.sync}: the registry holds ${actual}; the commits imply ${expected}`)
  }

  // ── every commit ───────────────────────────────────────────────────────────────────────────────────────────────────

  async #onCommit(commit: Commit, outcome: CommitOutcome): Promise<void> {
    const model = required(this.#models.get(commit.lease.ref.sync), 'an entry of models')
    const { transition: move } = commit
    if (move.kind === 'set') return this.#onStateSet(model, commit, move.state, outcome)
    // An operator action, which the simulation never performs.
    if (move.kind === 'replay' || move.kind === 'repair' || move.kind === 'columns') return
    this.outcomes[outcome.kind] = (this.outcomes[outcome.kind] ?? 0) + 1
    const held = this.#holds(model, commit.lease)
    const expected =
      model.version === commit.version && model.inflight?.cycle === move.cycle && model.inflight.page === move.page - 1
    if (outcome.kind === 'landed') {
      if (!held)
        this.reportViolation(
          'O5',
          `${commit.lease.ref.sync}: epoch ${commit.lease.epoch} of ${commit.lease.holder} landed a page; the newest is ${model.epoch} of ${model.holder}`,
        )
      else if (!expected)
        this.reportViolation(
          'O5',
          `${commit.lease.ref.sync}: page ${move.page} of cycle ${move.cycle} on version ${commit.version} landed on ${JSON.stringify([model.version, model.inflight?.cycle, model.inflight?.page])}`,
        )
    } else if ((outcome.kind === 'fenced') === held || (held && (outcome.kind === 'conflict') === expected)) {
      this.reportViolation(
        'O5',
        `${commit.lease.ref.sync}: a commit with ${held ? 'the newest' : 'an old'} lease, ${expected ? 'as' : 'not as'} expected, was answered ${outcome.kind}`,
      )
    }

    const entries = await this.#options.store.changes({ after: this.mirror.lastSequence, limit: 100_000 })
    if (outcome.kind !== 'landed') {
      if (entries.length > 0)
        this.reportViolation('O7', `a commit answered ${outcome.kind} left ${entries.length} entries in the feed`)
      return this.#compareRegistry(model)
    }
    const inflight = model.inflight
    this.checkLandings(model, commit)
    for (const entry of entries) {
      if (entry.cycle !== move.cycle || entry.page !== move.page || entry.sync !== model.facts.sync) {
        this.reportViolation(
          'O8',
          `${entry.key}: the entry names ${entry.sync} cycle ${entry.cycle} page ${entry.page}, the commit was another`,
        )
      }
      this.checkEntry(model, commit, entry)
    }
    this.mirror.apply(entries)
    this.checkLandedPage(model, commit)
    if (outcome.headSequence !== this.mirror.lastSequence)
      this.reportViolation(
        'O7',
        `the commit returned sequence ${outcome.headSequence}, the feed ends at ${this.mirror.lastSequence}`,
      )
    this.#compareCounts(outcome, entries)

    if (move.kind !== 'continue' && inflight?.mode === 'replace') model.listedAt = this.#options.now()
    switch (move.kind) {
      case 'continue':
        if (inflight !== null) model.inflight = { ...inflight, page: move.page, state: move.state }
        break
      case 'complete':
        model.version++
        model.committed = move.state
        model.committedBy = move.cycle
        model.inflight = null
        break
      case 'abandon':
        model.inflight = null
        break
      default:
        move satisfies never
    }
    await this.#compareRegistry(model)
    if (this.violations.length > 0) return
    for (const { facts, tidemark } of this.#models.values()) if (tidemark !== null) this.checkTidemark(facts, tidemark)
    if (move.kind !== 'complete' || inflight === null || this.violations.length > 0) return
    this.#finished.add(move.cycle)
    const beganAt = this.#beganAt.get(move.cycle) ?? 0
    const completed = this.completed.get(model.facts.sync)
    // Its horizon follows the clock it began by, and its response may have been delayed for long.
    this.completed.set(model.facts.sync, {
      beganAt: Math.min(beganAt, inflight.startedAt),
      count: (completed?.count ?? 0) + 1,
    })
    await this.checkCompletedCycle(model.facts, inflight, beganAt, move.state)
    await this.compareRows()
  }

  /** An operator's or a backfill's state: no row lands, and an unfinished cycle is abandoned. */
  async #onStateSet(model: SyncModel<Facts>, commit: Commit, state: StateText, outcome: CommitOutcome): Promise<void> {
    const { sync } = model.facts
    const may = this.#holds(model, commit.lease) && model.version === commit.version
    if ((outcome.kind === 'landed') !== may)
      this.reportViolation(
        'O5',
        `${sync}: a state set on version ${commit.version} was answered ${outcome.kind}; the version is ${model.version}`,
      )
    if (outcome.kind === 'landed' && model.inflight?.mode === 'replace') model.listedAt = this.#options.now()
    if (outcome.kind === 'landed')
      Object.assign(model, { version: model.version + 1, committed: state, committedBy: null, inflight: null })
    await this.#compareRegistry(model)
  }

  #compareCounts(outcome: Extract<CommitOutcome, { kind: 'landed' }>, entries: readonly LogEntry[]): void {
    const count = (action: string): number => entries.filter((entry) => entry.action === action).length
    const { created, updated, deleted, swept } = outcome.counts
    if (created !== count('created') || updated !== count('updated') || deleted + swept !== count('deleted')) {
      this.reportViolation(
        'O7',
        `the commit counts ${JSON.stringify(outcome.counts)}, the feed has ${count('created')}, ${count('updated')}, ${count('deleted')}`,
      )
    }
  }

  /** XB5: a reported cycle result has really happened. */
  checkResult(sync: string, cycle: number | null): void {
    if (cycle === null || !this.#finished.has(cycle))
      this.reportViolation('O5', `${sync}: cycle ${cycle} is reported as complete; it was never committed`)
  }

  // ── at any time ────────────────────────────────────────────────────────────────────────────────────────────────────

  /** O7: the rows equal the replayed feed. */
  async compareRows(): Promise<void> {
    const { store, database } = this.#options
    const rows = await store.rows({ database, limit: 100_000 })
    const fromFeed = this.mirror.rows
    for (const row of rows) {
      const known = fromFeed.get(row.key)
      if (known === undefined) this.reportViolation('O7', `${row.key} is a row, but the feed deleted it`)
      else if (known.text !== row.text || known.sequence !== row.sequence)
        this.reportViolation(
          'O7',
          `${row.key} is ${row.text} at ${row.sequence}; by the feed it is ${known.text} at ${known.sequence}`,
        )
    }
    if (rows.length < fromFeed.size)
      this.reportViolation('O7', `${fromFeed.size} rows by the feed, ${rows.length} in the table`)
  }

  /** O11: exactly one audit entry for every version. */
  async compareAudit(): Promise<void> {
    for (const model of this.#models.values()) {
      const entries = await this.#options.store.audit(
        { worker: this.#options.worker, sync: model.facts.sync },
        { limit: 100_000 },
      )
      const moves = entries
        .filter((entry) => entry.action === 'complete' || entry.action === 'set')
        .map((entry) => entry.version)
      const expected = Array.from({ length: model.version }, (_, index) => model.version - index)
      if (JSON.stringify(moves) !== JSON.stringify(expected))
        this.reportViolation(
          'O11',
          `${model.facts.sync}: version ${model.version}, audited checkpoint versions ${moves.join()}`,
        )
    }
  }

  rowKeys(): string[] {
    return [...this.mirror.rows.keys()]
  }
}

function pickUnfinishedCycle({ cycle, mode, page, state, startedAt, startSequence }: Inflight): UnfinishedCycle {
  return { cycle, mode, page, state, startedAt, startSequence }
}
