import type {
  Acquired, AcquireRequest, BeginRequest, Begun, Commit, CommitOutcome, Held, Inflight, Lease, LogEntry, StateText, Store, SyncRef,
} from '../../contract/index.ts'
import type { AdversarialSource, Version } from './adversarial-source.ts'
import { recordOf, type DeltaState } from './connectors.ts'
import type { StoreMethod } from './faulty-store.ts'
import { FeedMirror, versionOf, type MirrorRow } from './feed-mirror.ts'

export interface Violation {
  /** Which promise, such as O4. */
  readonly oracle: string
  readonly message: string
  readonly atMs: number
}

/** What the oracle knows of a sync beside what it sees. */
export type SyncFacts =
  | { readonly sync: string; readonly mode: 'replace'; readonly listing: string; readonly soleOwner: boolean }
  | { readonly sync: string; readonly mode: 'incremental'; readonly windowMs: number; readonly asksTime: boolean; readonly deletions: 'none' | 'inline' | 'apart' }

interface SyncModel {
  readonly facts: SyncFacts
  epoch: number
  holder: string | null
  heldUntil: number
  version: number
  committed: StateText
  committedBy: number | null
  inflight: Unfinished | null
}

/** What the oracle follows of an unfinished cycle. */
type Unfinished = Pick<Inflight, 'cycle' | 'mode' | 'page' | 'state' | 'startedAt' | 'startSequence'>

export interface OracleOptions {
  readonly store: Store
  readonly source: AdversarialSource
  readonly now: () => number
  readonly worker: string
  readonly database: string
  readonly syncs: readonly SyncFacts[]
  /** The source breaks its word: then only "nothing that lives is deleted" is asked for. */
  readonly lies: boolean
}

/**
 * Knows the truth and watches every call that reaches the store. It keeps a model of its own of the registry and of the
 * rows, built from the calls and from the feed, and never asks the code under test what should be.
 */
export class Oracle {
  readonly violations: Violation[] = []
  /** True time at which each cycle began. */
  readonly #beganAt = new Map<number, number>()
  readonly #models = new Map<string, SyncModel>()
  readonly #mirror = new FeedMirror((oracle, message) => this.violate(oracle, message))
  /** The newest version known to be gone, for every key that was deleted. */
  readonly #dead = new Map<string, number>()
  /** When another sync last landed a page with the key on it: key → sync → true time. */
  readonly #sighted = new Map<string, Map<string, number>>()
  readonly #finished = new Set<number>()
  readonly #options: OracleOptions
  /** How commits were answered. */
  readonly outcomes: Partial<Record<CommitOutcome['kind'], number>> = {}
  /** The last complete cycle of each sync. */
  readonly completed = new Map<string, { beganAt: number; count: number }>()

  constructor(options: OracleOptions) {
    this.#options = options
    for (const facts of options.syncs) {
      this.#models.set(facts.sync, { facts, epoch: 0, holder: null, heldUntil: 0, version: 0, committed: null, committedBy: null, inflight: null })
    }
  }

  /** How old what a listing shows can be. */
  get #behindMs(): number {
    const { monotonic, lagMs } = this.#options.source.contract
    return monotonic ? 0 : lagMs
  }

  violate(oracle: string, message: string): void {
    this.violations.push({ oracle, message, atMs: this.#options.now() })
  }

  /** Right after a call took effect, whoever made it and whether or not anybody hears the answer. */
  async observe(method: StoreMethod, args: readonly unknown[], answer: unknown): Promise<void> {
    switch (method) {
      case 'acquire':
        return this.#acquired(args as [SyncRef, AcquireRequest], answer as Acquired | Held)
      case 'renew':
        return this.#renewed(args as [Lease, { ttlMs: number; at: number }], answer as boolean)
      case 'release':
        return this.#released(args[0] as Lease)
      case 'begin':
        return this.#begun(args as [Lease, BeginRequest], answer as Begun | null)
      case 'commit':
        return this.#committed(args[0] as Commit, answer as CommitOutcome)
      default:
    }
  }

  // ── O5, O11: leases and the registry ───────────────────────────────────────────────────────────────────────────────

  async #acquired([ref, request]: [SyncRef, AcquireRequest], answer: Acquired | Held): Promise<void> {
    const model = this.#models.get(ref.sync)!
    const isFree = model.holder === null || model.heldUntil <= request.at || model.holder === request.evict
    if (answer.kind === 'held') {
      if (isFree) this.violate('O13', `${ref.sync} is free, but ${request.holder} was told that ${answer.by} holds it`)
      return
    }
    if (!isFree) this.violate('O5', `${request.holder} took ${ref.sync} while ${model.holder} held it`)
    if (answer.lease.epoch !== model.epoch + 1) this.violate('O5', `${ref.sync}: epoch ${answer.lease.epoch} after ${model.epoch}`)
    model.epoch = answer.lease.epoch
    model.holder = request.holder
    model.heldUntil = request.at + request.ttlMs
    await this.#compareRegistry(model)
  }

  #renewed([lease, { ttlMs, at }]: [Lease, { ttlMs: number; at: number }], kept: boolean): void {
    const model = this.#models.get(lease.ref.sync)!
    const isOurs = this.#holds(model, lease)
    if (kept !== isOurs) this.violate('O5', `${lease.ref.sync}: a lease of epoch ${lease.epoch} was ${kept ? '' : 'not '}renewed; the newest is ${model.epoch}`)
    if (isOurs) model.heldUntil = Math.max(model.heldUntil, at + ttlMs)
  }

  async #released(lease: Lease): Promise<void> {
    const model = this.#models.get(lease.ref.sync)!
    if (this.#holds(model, lease)) model.holder = null
    await this.#compareRegistry(model)
  }

  async #begun([lease, request]: [Lease, BeginRequest], begun: Begun | null): Promise<void> {
    const model = this.#models.get(lease.ref.sync)!
    const isOurs = this.#holds(model, lease)
    if ((begun !== null) !== isOurs) this.violate('O5', `${lease.ref.sync}: a lease of epoch ${lease.epoch} could ${begun === null ? 'not ' : ''}begin a cycle; the newest is ${model.epoch}`)
    if (begun === null) return
    if (begun.position !== this.#mirror.position) this.violate('O7', `begin says position ${begun.position}, the feed ends at ${this.#mirror.position}`)
    const mayResume = model.inflight !== null && !request.fresh && model.inflight.mode === request.mode
    if (begun.resumed !== mayResume) this.violate('O5', `${lease.ref.sync}: the unfinished cycle was ${begun.resumed ? '' : 'not '}resumed`)
    if (!mayResume) {
      const state = request.mode === 'replace' ? null : model.committed
      model.inflight = { cycle: begun.inflight.cycle, mode: request.mode, page: 0, state, startedAt: request.at, startSequence: this.#mirror.position }
      this.#beganAt.set(begun.inflight.cycle, this.#options.now())
    }
    await this.#compareRegistry(model)
  }

  #holds(model: SyncModel, lease: Lease): boolean {
    return model.epoch === lease.epoch && model.holder === lease.holder
  }

  async #compareRegistry(model: SyncModel): Promise<void> {
    const { version, committed, committedBy, inflight } = await this.#options.store.read({ worker: this.#options.worker, sync: model.facts.sync })
    const actual = JSON.stringify([version, committed, committedBy, inflight && pickUnfinished(inflight)])
    const expected = JSON.stringify([model.version, model.committed, model.committedBy, model.inflight])
    if (actual !== expected) this.violate('O5', `${model.facts.sync}: the registry holds ${actual}; by what was committed it should be ${expected}`)
  }

  // ── every commit ───────────────────────────────────────────────────────────────────────────────────────────────────

  async #committed(commit: Commit, outcome: CommitOutcome): Promise<void> {
    const model = this.#models.get(commit.lease.ref.sync)!
    const { move } = commit
    if (move.kind === 'set') return
    this.outcomes[outcome.kind] = (this.outcomes[outcome.kind] ?? 0) + 1
    const held = this.#holds(model, commit.lease)
    const expected = model.version === commit.version && model.inflight?.cycle === move.cycle && model.inflight.page === move.page - 1
    if (outcome.kind === 'landed') {
      if (!held) this.violate('O5', `${commit.lease.ref.sync}: epoch ${commit.lease.epoch} of ${commit.lease.holder} landed a page; the newest is ${model.epoch} of ${model.holder}`)
      else if (!expected) this.violate('O5', `${commit.lease.ref.sync}: page ${move.page} of cycle ${move.cycle} on version ${commit.version} landed on ${JSON.stringify([model.version, model.inflight?.cycle, model.inflight?.page])}`)
    } else if ((outcome.kind === 'fenced') === held || (held && (outcome.kind === 'conflict') === expected)) {
      this.violate('O5', `${commit.lease.ref.sync}: a commit with ${held ? 'the newest' : 'an old'} lease, ${expected ? 'as' : 'not as'} expected, was answered ${outcome.kind}`)
    }

    const entries = await this.#options.store.changes({ after: this.#mirror.position, limit: 100_000 })
    if (outcome.kind !== 'landed') {
      if (entries.length > 0) this.violate('O7', `a commit answered ${outcome.kind} left ${entries.length} entries in the feed`)
      return this.#compareRegistry(model)
    }
    const inflight = model.inflight
    for (const landing of commit.landings) if (landing.type === 'upsert') this.#note(landing.key, model.facts.sync)
    for (const entry of entries) this.#judgeEntry(model, commit, entry)
    this.#mirror.apply(entries)
    if (outcome.position !== this.#mirror.position) this.violate('O7', `the commit says position ${outcome.position}, the feed ends at ${this.#mirror.position}`)
    this.#compareCounts(outcome, entries)

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
    if (move.kind !== 'complete' || inflight === null || this.violations.length > 0) return
    this.#finished.add(move.cycle)
    const beganAt = this.#beganAt.get(move.cycle) ?? 0
    const completed = this.completed.get(model.facts.sync)
    // Its horizon is that of the clock it began by, and its answer may have been long on the way.
    this.completed.set(model.facts.sync, { beganAt: Math.min(beganAt, inflight.startedAt), count: (completed?.count ?? 0) + 1 })
    if (!this.#options.lies) this.#judgeCompleted(model.facts, inflight, beganAt, move.state)
    await this.compareRows()
  }

  #note(key: string, sync: string): void {
    let syncs = this.#sighted.get(key)
    if (syncs === undefined) this.#sighted.set(key, (syncs = new Map()))
    syncs.set(sync, this.#options.now())
  }

  /** Another sync told of the key since: its page may be older, but the sweep cannot know. */
  #isTold(key: string, bySyncOtherThan: string, since: number): boolean {
    return [...(this.#sighted.get(key) ?? [])].some(([sync, at]) => sync !== bySyncOtherThan && at >= since)
  }

  #compareCounts(outcome: Extract<CommitOutcome, { kind: 'landed' }>, entries: readonly LogEntry[]): void {
    const count = (action: string): number => entries.filter((entry) => entry.action === action).length
    const { created, updated, deleted, swept } = outcome.counts
    if (created !== count('created') || updated !== count('updated') || deleted + swept !== count('deleted')) {
      this.violate('O7', `the commit counts ${JSON.stringify(outcome.counts)}, the feed has ${count('created')}, ${count('updated')}, ${count('deleted')}`)
    }
  }

  // ── O2, O3, O4: every change ───────────────────────────────────────────────────────────────────────────────────────

  #judgeEntry(model: SyncModel, commit: Commit, entry: LogEntry): void {
    const { key } = entry
    const row = this.#mirror.rows.get(key)
    if (commit.move.kind !== 'set' && (entry.cycle !== commit.move.cycle || entry.page !== commit.move.page || entry.sync !== model.facts.sync)) {
      this.violate('O8', `${key}: the entry names ${entry.sync} cycle ${entry.cycle} page ${entry.page}, the commit was another`)
    }
    if (entry.action !== 'deleted') {
      const v = versionOf(entry.text!)
      if (row !== undefined && v <= row.v) this.violate('O4', `${key} went from version ${row.v} to ${v}`)
      const dead = this.#dead.get(key)
      if (row === undefined && dead !== undefined && v < dead) this.violate('O4', `${key} came back as version ${v} although it was known to be gone at version ${dead}`)
      return
    }
    const landing = commit.landings.find((other) => other.type === 'delete' && other.key === key)
    if (landing === undefined) return this.#judgeSweep(model, entry, row)
    const told = this.#options.source.versions(key).findLast((version) => version.deleted && new Date(version.stamp).toISOString().slice(0, 23) === landing.upstreamAt?.slice(0, 23))
    if (told === undefined) return this.violate('O2', `${key} was deleted, but the source never deleted it at ${landing.upstreamAt}`)
    if (row !== undefined && row.v > told.v) this.violate('O4', `${key} was deleted as of version ${told.v}, but version ${row.v} had landed`)
    this.#dead.set(key, Math.max(told.v, this.#dead.get(key) ?? 0))
  }

  #judgeSweep(model: SyncModel, entry: LogEntry, row: { sequence: number } | undefined): void {
    const { source, now } = this.#options
    const { facts, inflight } = model
    const { key } = entry
    if (facts.mode !== 'replace' || inflight === null) return this.violate('O2', `${key} was swept by ${facts.sync}, which does not sweep`)
    if (row !== undefined && row.sequence > inflight.startSequence) this.violate('O3', `${key} was swept by cycle ${inflight.cycle}, which began at ${inflight.startSequence}, though it landed at ${row.sequence}`)
    const seen = source.seenDuring(key, this.#beganAt.get(inflight.cycle)! - this.#behindMs, now())
    const isListed = (version: Version | undefined): boolean => version !== undefined && !version.deleted && version.listings.includes(facts.listing)
    if (seen.every(isListed)) this.violate('O2', `${key} was swept by cycle ${inflight.cycle} although the source listed it all the time`)
    const first = seen[0]
    if (first !== undefined && !isListed(first) && first.deleted) this.#dead.set(key, Math.max(first.v, this.#dead.get(key) ?? 0))
  }

  // ── O1, O6, O9: every completed cycle ──────────────────────────────────────────────────────────────────────────────

  #judgeCompleted(facts: SyncFacts, inflight: Unfinished, beganAt: number, state: StateText): void {
    const { source, now } = this.#options
    if (facts.mode === 'replace') {
      for (const id of source.ids()) {
        const seen = source.seenDuring(id, beganAt - this.#behindMs, now())
        const isListed = (version: Version | undefined): boolean => version !== undefined && !version.deleted && version.listings.includes(facts.listing)
        const row = this.#mirror.rows.get(id)
        if (seen.length === 1 && isListed(seen[0]) && !seen[0]!.unstorable && !holds(row, id, seen[0]!)) {
          this.violate('O1', `after a complete ${facts.sync}, ${id} is ${nameOf(row)}; it was version ${seen[0]!.v} all the time`)
        }
        if (facts.soleOwner && row !== undefined && row.sequence <= inflight.startSequence && !seen.some(isListed) && !this.#isTold(id, facts.sync, beganAt)) {
          this.violate('O1', `after a complete ${facts.sync}, ${id} is still there; it was gone before the cycle began`)
        }
      }
      return
    }
    const { since, deletedSince } = JSON.parse(state ?? 'null') as DeltaState
    const horizon = (facts.asksTime ? Math.min(inflight.startedAt, beganAt - source.contract.skewMs) : inflight.startedAt) - facts.windowMs
    const before = JSON.parse(inflight.state ?? 'null') as DeltaState | null
    if ((before?.since ?? 0) > (since ?? 0)) this.violate('O5', `${facts.sync}: the frontier went back from ${before!.since} to ${since}`)
    for (const id of source.ids()) {
      const latest = source.latest(id)!
      if (latest.unstorable || (latest.deleted && facts.deletions === 'none')) continue
      const frontier = latest.deleted && facts.deletions === 'apart' ? deletedSince : since
      const passed = latest.stamp < (frontier ?? 0)
      if (latest.stamp > horizon && !passed) continue
      const row = this.#mirror.rows.get(id)
      const landed = latest.deleted ? row === undefined : holds(row, id, latest)
      if (!landed) {
        this.violate(passed ? 'O6' : 'O9', `after a complete ${facts.sync}, ${id} is ${nameOf(row)}; version ${latest.v}${latest.deleted ? ' (deleted)' : ''} has the stamp ${latest.stamp}, the horizon was ${horizon}, the frontier is ${frontier}`)
      }
    }
  }

  /** XB5: what a cycle says of itself has happened. */
  judgeResult(sync: string, cycle: number | null): void {
    if (cycle === null || !this.#finished.has(cycle)) this.violate('O5', `${sync}: cycle ${cycle} says that it is complete; it was never committed`)
  }

  // ── at any moment ──────────────────────────────────────────────────────────────────────────────────────────────────

  /** O7: the rows are what the feed says. */
  async compareRows(): Promise<void> {
    const { store, database } = this.#options
    const rows = await store.rows({ database, limit: 100_000 })
    const fromFeed = this.#mirror.rows
    for (const row of rows) {
      const known = fromFeed.get(row.key)
      if (known === undefined) this.violate('O7', `${row.key} is a row, but by the feed it is gone`)
      else if (known.text !== row.text || known.sequence !== row.sequence) this.violate('O7', `${row.key} is ${row.text} at ${row.sequence}; by the feed it is ${known.text} at ${known.sequence}`)
    }
    if (rows.length < fromFeed.size) this.violate('O7', `${fromFeed.size} rows by the feed, ${rows.length} in the table`)
  }

  /** O1: the rows are the truth. */
  compareTruth(listings: readonly string[] | null, deletions: boolean): void {
    const { source } = this.#options
    for (const id of source.ids()) {
      const latest = source.latest(id)!
      const row = this.#mirror.rows.get(id)
      const lives = !latest.deleted && (listings === null || latest.listings.some((listing) => listings.includes(listing)))
      if (lives && !latest.unstorable && !holds(row, id, latest)) this.violate('O1', `at rest, ${id} is ${nameOf(row)}; the truth is version ${latest.v}`)
      if (!lives && deletions && row !== undefined) this.violate('O1', `at rest, ${id} is still there as ${row.text}; the truth is that version ${latest.v} is gone`)
    }
    for (const key of this.#mirror.rows.keys()) if (source.latest(key) === undefined) this.violate('O1', `at rest, there is a row ${key} that the source never had`)
  }

  /** O11: one audit entry for every version, and none without one. */
  async compareAudit(): Promise<void> {
    for (const model of this.#models.values()) {
      const entries = await this.#options.store.audit({ worker: this.#options.worker, sync: model.facts.sync }, { limit: 100_000 })
      const moves = entries.filter((entry) => entry.action === 'complete' || entry.action === 'set').map((entry) => entry.version)
      const expected = Array.from({ length: model.version }, (_, index) => model.version - index)
      if (JSON.stringify(moves) !== JSON.stringify(expected)) this.violate('O11', `${model.facts.sync}: version ${model.version}, audited moves ${moves.join()}`)
    }
  }

  /** Without what no database can hold: which older version of it is kept depends on what was seen. */
  digest(): string {
    const { source } = this.#options
    return JSON.stringify([...this.#mirror.rows].filter(([key]) => source.latest(key)?.unstorable !== true).toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([key, row]) => [key, row.text]))
  }

  rowKeys(): string[] {
    return [...this.#mirror.rows.keys()]
  }
}

function pickUnfinished({ cycle, mode, page, state, startedAt, startSequence }: Inflight): Unfinished {
  return { cycle, mode, page, state, startedAt, startSequence }
}

function holds(row: MirrorRow | undefined, id: string, version: Version): boolean {
  return row !== undefined && row.text === JSON.stringify(recordOf(id, version))
}

function nameOf(row: MirrorRow | undefined): string {
  return row === undefined ? 'missing' : `at ${row.text}`
}
