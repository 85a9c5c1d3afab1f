import type { Commit, LogEntry, StateText } from '../../contract/index.ts'
import type { AdversarialSource, SourceVersion } from './adversarial-source.ts'
import { recordOf, type DeltaState } from './connectors.ts'
import { parseVersion, type MirrorRow } from './feed-mirror.ts'
import { isSameRecord } from './same-record.ts'
import {
  StoreOracle,
  type StoreOracleOptions,
  type SyncModel,
  type UnfinishedCycle,
  type Violation,
} from './store-oracle.ts'
import { required } from '../../values/required.ts'

export type { Violation }

/** Facts about a sync that the oracle cannot observe. */
export type SyncFacts =
  | {
      readonly sync: string
      readonly mode: 'replace'
      readonly listing: string
      readonly soleOwner: boolean
      readonly lagMs: number
    }
  | {
      readonly sync: string
      readonly mode: 'incremental'
      readonly windowMs: number
      readonly usesSourceTime: boolean
      readonly deletions: 'none' | 'inline' | 'apart'
    }

export interface OracleOptions extends StoreOracleOptions<SyncFacts> {
  readonly source: AdversarialSource
  /** Timestamps of records can go back: then a listing is complete only after the next one has confirmed it. */
  readonly timesGoBack?: boolean
  /** The source violates its guarantees: then only "no live record is deleted" is checked. */
  readonly isSourceIncomplete: boolean
  /** Maximum error of the runner's clock, which sets the commit times. */
  readonly runnerSkewMs: number
}

/** Knows the true state of an adversarial source, and the guarantees of each kind of reader. */
export class SourceOracle extends StoreOracle<SyncFacts> {
  /** The newest version known to be deleted, for every deleted key. */
  readonly #deletedVersions = new Map<string, number>()
  /** When another sync last landed a page with the key on it: key → sync → true time. */
  readonly #lastListedAt = new Map<string, Map<string, number>>()
  readonly #options: OracleOptions

  constructor(options: OracleOptions) {
    super(options)
    this.#options = options
  }

  /** Maximum age of a version that a listing shows. */
  get #behindMs(): number {
    const { monotonic, lagMs } = this.#options.source.contract
    return monotonic ? 0 : lagMs
  }

  /** Quarantined records count as reported, too. */
  protected override checkLandings(model: SyncModel<SyncFacts>, { landings, quarantined }: Commit): void {
    for (const { key } of [...landings.filter(({ type }) => type === 'upsert'), ...quarantined]) {
      if (key === null) continue
      let syncs = this.#lastListedAt.get(key)
      if (syncs === undefined) this.#lastListedAt.set(key, (syncs = new Map()))
      syncs.set(model.facts.sync, this.#options.now())
    }
  }

  /**
   * O9: a page of the only reader lands in full. The source may delete a record before the next cycle completes, and
   * then no other check of the rows looks at it.
   */
  protected override checkLandedPage(_model: SyncModel<SyncFacts>, { landings }: Commit): void {
    const { source, syncs } = this.#options
    if (syncs.length > 1 || syncs.some(({ mode }) => mode === 'replace')) return
    for (const landing of landings) {
      if (landing.type !== 'upsert') continue
      const { key, text } = landing
      const live = source.versions(key).filter((version) => !version.deleted)
      const returned = live.find((version) => isSameRecord(text, recordOf(key, version)))
      const row = this.mirror.rows.get(key)
      if (
        returned === undefined ||
        !live.some((version) => version.v >= returned.v && isRowOfVersion(row, key, version))
      )
        this.reportViolation('O9', `a landed page returned ${text}, but ${key} is ${describeRow(row)}`)
    }
  }

  /** Another sync has reported the key since: its page may be older, but the sweep cannot know. */
  #isReportedSince(key: string, bySyncOtherThan: string, since: number): boolean {
    return [...(this.#lastListedAt.get(key) ?? [])].some(([sync, at]) => sync !== bySyncOtherThan && at >= since)
  }

  // ── O2, O3, O4: every change ───────────────────────────────────────────────────────────────────────────────────────

  protected override checkEntry(model: SyncModel<SyncFacts>, commit: Commit, entry: LogEntry): void {
    const { key } = entry
    const row = this.mirror.rows.get(key)
    if (entry.action !== 'deleted') {
      const v = parseVersion(required(entry.text, 'entry.text'))
      const isRestated = row?.text === entry.text && this.mayRelog(entry)
      if (row !== undefined && v <= row.v && !isRestated)
        this.reportViolation('O4', `${key} went from version ${row.v} back to ${v}`)
      const dead = this.#deletedVersions.get(key)
      if (row === undefined && dead !== undefined && v < dead)
        this.reportViolation(
          'O4',
          `${key} was restored as version ${v} although it was known to be deleted at version ${dead}`,
        )
      return
    }
    const landing = commit.landings.find((other) => other.type === 'delete' && other.key === key)
    if (landing === undefined) return this.#checkSweep(model, entry, row)
    const told = this.#options.source
      .versions(key)
      .findLast(
        (version) =>
          version.deleted && new Date(version.stamp).toISOString().slice(0, 23) === landing.upstreamAt?.slice(0, 23),
      )
    if (told === undefined)
      return this.reportViolation('O2', `${key} was deleted, but the source never deleted it at ${landing.upstreamAt}`)
    if (row !== undefined && row.v > told.v)
      this.reportViolation('O4', `${key} was deleted as of version ${told.v}, but version ${row.v} had landed`)
    this.#deletedVersions.set(key, Math.max(told.v, this.#deletedVersions.get(key) ?? 0))
  }

  #checkSweep(model: SyncModel<SyncFacts>, entry: LogEntry, row: MirrorRow | undefined): void {
    const { source, now } = this.#options
    const { facts, inflight } = model
    const { key } = entry
    if (facts.mode !== 'replace' || inflight === null)
      return this.reportViolation('O2', `${key} was swept by ${facts.sync}, which does not sweep`)
    if (row !== undefined && row.sequence > inflight.startSequence)
      this.reportViolation(
        'O3',
        `${key} was swept by cycle ${inflight.cycle}, which began at sequence ${inflight.startSequence}, though it landed at ${row.sequence}`,
      )
    const seen = source.versionsDuring(key, this.beganAt(inflight.cycle) - this.#behindMs, now())
    const isListed = (version: SourceVersion | undefined): boolean =>
      version !== undefined && !version.deleted && version.listings.includes(facts.listing)
    if (seen.every(isListed))
      this.reportViolation('O2', `${key} was swept by cycle ${inflight.cycle} although the source listed it throughout`)
    // Invariant 5: a lagging listing does not show the newest rows yet.
    const sinceLanded =
      row === undefined ? [] : source.versionsDuring(key, row.committedAt - this.#options.runnerSkewMs, now())
    if (sinceLanded.length > 0 && sinceLanded.every(isListed))
      this.reportViolation(
        'O2',
        `${key} was swept by cycle ${inflight.cycle} although the source has listed it since it landed`,
      )
    const first = seen[0]
    if (first !== undefined && !isListed(first) && first.deleted)
      this.#deletedVersions.set(key, Math.max(first.v, this.#deletedVersions.get(key) ?? 0))
  }

  // ── O1, O6, O9: every completed cycle ──────────────────────────────────────────────────────────────────────────────

  protected override checkCompletedCycle(
    facts: SyncFacts,
    inflight: UnfinishedCycle,
    beganAt: number,
    state: StateText,
  ): void {
    const { source, now, isSourceIncomplete: lies, timesGoBack = false } = this.#options
    if (lies) return
    if (facts.mode === 'replace') {
      for (const id of source.ids()) {
        const seen = source.versionsDuring(id, beganAt - this.#behindMs, now())
        const isListed = (version: SourceVersion | undefined): boolean =>
          version !== undefined && !version.deleted && version.listings.includes(facts.listing)
        const row = this.mirror.rows.get(id)
        if (
          !timesGoBack &&
          seen.length === 1 &&
          isListed(seen[0]) &&
          !required(seen[0], 'seen[0]').unstorable &&
          !isRowOfVersion(row, id, required(seen[0], 'seen[0]'))
        ) {
          this.reportViolation(
            'O1',
            `after a complete ${facts.sync}, ${id} is ${describeRow(row)}; it was version ${required(seen[0], 'the version').v} throughout`,
          )
        }
        // A row younger than the sync's declared lag is left to the next cycle.
        const isSettled =
          row !== undefined &&
          row.sequence <= inflight.startSequence &&
          (facts.lagMs === 0 || row.committedAt < inflight.startedAt - facts.lagMs)
        if (facts.soleOwner && isSettled && !seen.some(isListed) && !this.#isReportedSince(id, facts.sync, beganAt)) {
          this.reportViolation(
            'O1',
            `after a complete ${facts.sync}, ${id} still exists; it was deleted before the cycle began`,
          )
        }
      }
      return
    }
    const { since, deletedSince } = JSON.parse(state ?? 'null') as DeltaState
    const horizon =
      (facts.usesSourceTime ? Math.min(inflight.startedAt, beganAt - source.contract.skewMs) : inflight.startedAt) -
      facts.windowMs
    const before = JSON.parse(inflight.state ?? 'null') as DeltaState | null
    if ((before?.since ?? 0) > (since ?? 0))
      this.reportViolation(
        'O5',
        `${facts.sync}: the frontier went back from ${required(before, 'before').since} to ${since}`,
      )
    for (const id of source.ids()) {
      const latest = required(source.latest(id), 'the result of latest')
      if (latest.unstorable || (latest.deleted && facts.deletions === 'none')) continue
      const frontier = latest.deleted && facts.deletions === 'apart' ? deletedSince : since
      const passed = latest.stamp < (frontier ?? 0)
      if (latest.stamp > horizon && !passed) continue
      const row = this.mirror.rows.get(id)
      const landed = latest.deleted ? row === undefined : isRowOfVersion(row, id, latest)
      if (!landed) {
        this.reportViolation(
          passed ? 'O6' : 'O9',
          `after a complete ${facts.sync}, ${id} is ${describeRow(row)}; version ${latest.v}${latest.deleted ? ' (deleted)' : ''} has the timestamp ${latest.stamp}, the horizon was ${horizon}, the frontier is ${frontier}`,
        )
      }
    }
  }

  // ── O16: the tidemark ──────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Every record with a timestamp at or before the tidemark is current in the copy. Checking a listing's own tidemark
   * would require the source's lag.
   */
  protected override checkTidemark(facts: SyncFacts, tidemark: string): void {
    const { source, isSourceIncomplete: lies } = this.#options
    if (facts.mode === 'replace' || lies) return
    const reachedMs = Date.parse(tidemark)
    for (const id of source.ids()) {
      const latest = required(source.latest(id), 'the result of latest')
      if (latest.stamp > reachedMs || latest.unstorable || (latest.deleted && facts.deletions === 'none')) continue
      const row = this.mirror.rows.get(id)
      if (latest.deleted ? row === undefined : isRowOfVersion(row, id, latest)) continue
      return this.reportViolation(
        'O16',
        `the tidemark of ${facts.sync} is ${tidemark}, but ${id} is ${describeRow(row)}; version ${latest.v}${latest.deleted ? ' (deleted)' : ''} has the timestamp ${new Date(latest.stamp).toISOString()}`,
      )
    }
  }

  // ── final state ────────────────────────────────────────────────────────────────────────────────────────────────────

  /** O1: the rows equal the source. */
  compareWithSource(listings: readonly string[] | null, deletions: boolean): void {
    const { source } = this.#options
    for (const id of source.ids()) {
      const latest = required(source.latest(id), 'the result of latest')
      const row = this.mirror.rows.get(id)
      const lives =
        !latest.deleted && (listings === null || latest.listings.some((listing) => listings.includes(listing)))
      if (lives && !latest.unstorable && !isRowOfVersion(row, id, latest))
        this.reportViolation(
          'O1',
          `in the final state, ${id} is ${describeRow(row)}; the source has version ${latest.v}`,
        )
      if (!lives && deletions && row !== undefined)
        this.reportViolation(
          'O1',
          `in the final state, ${id} still exists as ${row.text}; the source deleted it at version ${latest.v}`,
        )
    }
    for (const key of this.mirror.rows.keys())
      if (source.latest(key) === undefined)
        this.reportViolation('O1', `in the final state, there is a row ${key} that the source never had`)
  }

  /**
   * Excludes rows that depend on the pages that were read, and so on the faults: a record that no database can store
   * keeps an older version, and where nothing reports deletions, a deleted one keeps the last version that was read.
   * A record that no page returned has no row. `checkLandedPage` checks that what was returned is kept.
   */
  digest(): string {
    const { source, syncs } = this.#options
    const reportsDeletions = syncs.some((facts) => facts.mode === 'replace' || facts.deletions !== 'none')
    return JSON.stringify(
      [...this.mirror.rows]
        .filter(([key]) => {
          const latest = source.latest(key)
          return latest?.unstorable !== true && (reportsDeletions || latest?.deleted !== true)
        })
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([key, row]) => [key, row.text]),
    )
  }
}

function isRowOfVersion(row: MirrorRow | undefined, id: string, version: SourceVersion): boolean {
  return row !== undefined && isSameRecord(row.text, recordOf(id, version))
}

function describeRow(row: MirrorRow | undefined): string {
  return row === undefined ? 'missing' : `at ${row.text}`
}
