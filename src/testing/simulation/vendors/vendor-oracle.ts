import type { Fields, VendorSimulator } from '@tidemark/simulators'
import type { Commit, JsonObject, LogEntry, SyncSignal, StateText, SyncRef } from '../../../contract/index.ts'
import type { Health } from '../../../runner/health.ts'
import type { StoreMethod } from '../faulty-store.ts'
import { isSameRecord } from '../same-record.ts'
import { StoreOracle, type StoreOracleOptions, type SyncModel, type UnfinishedCycle } from '../store-oracle.ts'
import type { DeltaGuarantee, VendorStream } from './vendor-stream.ts'
import type { WriteHistory, VendorWrite } from './write-history.ts'
import { required } from '../../../values/required.ts'

export type VendorSyncFacts =
  | { readonly sync: string; readonly mode: 'replace'; readonly lagMs: number }
  | { readonly sync: string; readonly mode: 'incremental'; readonly guarantee: DeltaGuarantee }
  | { readonly sync: typeof TAMPERING; readonly mode: 'tampering' }

export interface VendorOracleOptions extends StoreOracleOptions<VendorSyncFacts> {
  readonly simulator: VendorSimulator
  readonly stream: VendorStream
  readonly pageSize: number
  readonly history: WriteHistory
  /** The modification time as the vendor shows it. */
  readonly granularityMs: number
  /** How far the vendor's clock was set back so far. */
  readonly clockBackMs: () => number
  /** The reported status of each sync. */
  readonly health: () => Promise<ReadonlyMap<string, Health>>
  /** Maximum lag of the lists of a cycle that began at this time. */
  readonly listsBehindMs: (sinceMs: number) => number
  /** The oldest response served from a cache so far. */
  readonly oldestCachedMs: () => number
  /** When the newest response was stored that a cache has served since; -Infinity if there is none. */
  readonly newestCachedAt: (sinceMs: number) => number
  /** Whether a Date header was wrong or missing so far. */
  readonly isDateWrong: () => boolean
  /** Maximum lag of the vendor's Date header. */
  readonly dateBehindMs: () => number
  /** Maximum error of a runner's clock. */
  readonly runnerSkewMs: number
}

/** The write that a key landed as, and when the cycle that read it began. */
interface LandedWrite {
  readonly write: number
  readonly readSince: number
}

/**
 * Knows the vendor's records, and the guarantees of each way to read them. A vendor never reuses an id: a deleted
 * record stays deleted.
 */
export class VendorOracle extends StoreOracle<VendorSyncFacts> {
  /** The test writes rows to the store that no vendor returned; they are not checked. */
  isTampering = false
  wasTampered = false
  /** Since when a backfill is requested, because the delta cannot recover the changes it missed; null when none is. */
  #backfillOrderedAt: number | null = null
  readonly #options: VendorOracleOptions
  readonly #writes = new Map<string, LandedWrite>()
  /** When another sync last landed a page with the key on it: key → sync → true time. */
  readonly #lastListedAt = new Map<string, Map<string, number>>()
  /** Since when the delta has had a state: it must report every later write. */
  #deltaSince: number | null = null
  /** The backfill set its state: earlier writes are the backfill's to report. */
  #isAnchored = false
  #firstDelta: { readonly beganAt: number; readonly endedAt: number } | null = null
  /** The last complete listing left a deleted row to the next one, because the row was younger than the sync's lag. */
  hasUnsweptRows = false

  constructor(options: VendorOracleOptions) {
    super(options)
    this.#options = options
  }

  override async observe(method: StoreMethod, args: readonly unknown[], answer: unknown): Promise<void> {
    await super.observe(method, args, answer)
    if (method === 'signalSync' && (args[1] as SyncSignal).kind === 'trigger' && (args[0] as SyncRef).sync !== 'sync')
      this.#backfillOrderedAt = this.#options.now()
    if (method === 'commit') this.#noteStateSet(args[0] as Commit, answer as { kind: string })
  }

  get needsBackfill(): boolean {
    return this.#backfillOrderedAt !== null
  }

  #noteStateSet({ transition: move }: Commit, { kind }: { kind: string }): void {
    if (move.kind !== 'set' || kind !== 'landed') return
    if (move.backfillRequest !== undefined) this.#backfillOrderedAt = this.#options.now()
    this.#deltaSince = move.state === null ? null : this.#options.now()
    this.#isAnchored = move.state !== null
  }

  // ── O2, O4: every change ───────────────────────────────────────────────────────────────────────────────────────────

  protected override checkLandings({ facts }: SyncModel<VendorSyncFacts>, { landings }: Commit): void {
    for (const landing of landings) {
      if (landing.type !== 'upsert') continue
      let syncs = this.#lastListedAt.get(landing.key)
      if (syncs === undefined) this.#lastListedAt.set(landing.key, (syncs = new Map()))
      syncs.set(facts.sync, this.#options.now())
    }
  }

  protected override checkEntry(model: SyncModel<VendorSyncFacts>, _commit: Commit, entry: LogEntry): void {
    const { facts } = model
    const { key, action, text } = entry
    const { history, stream } = this.#options
    // The first true version after that may be any.
    if (this.isTampering) return void this.#writes.delete(key)
    const readSince = model.inflight === null ? this.#options.now() : this.beganAt(model.inflight.cycle)
    const latest = history.writesOf(key).at(-1)
    if (latest === undefined && action === 'deleted') return
    if (latest === undefined) return this.reportViolation('O2', `${key} was ${action}; the vendor never had it`)
    if (action === 'deleted') {
      if (!latest.deleted) this.reportViolation('O2', `${key} was deleted by ${facts.sync}; it exists at the vendor`)
      this.#writes.set(key, { write: Infinity, readSince })
      return
    }
    const write = stream.writeNumberOf(JSON.parse(required(text, 'text')) as JsonObject)
    const before = this.#writes.get(key)
    const isOlder = before !== undefined && !(write > before.write)
    const isRestated = this.mirror.rows.get(key)?.text === text && this.mayRelog(entry)
    const isUnknowable =
      this.#isLogInDisorder(facts, key) ||
      this.#isShownLate(model, key, write) ||
      (before !== undefined && this.#isCachedWithinSecond(facts, before, readSince))
    if (isOlder && !isRestated && !isUnknowable) {
      this.reportViolation(
        'O4',
        `${key} went from ${before.write === Infinity ? 'deleted' : `write ${before.write}`} to write ${write}`,
      )
    }
    this.#writes.set(key, { write, readSince })
  }

  /**
   * A log is in timestamp order. After the vendor's clock was set back, it shows the later of two changes first and
   * nothing reveals it: only a listing, which repairs the row, can.
   */
  #isLogInDisorder({ mode }: VendorSyncFacts, key: string): boolean {
    const { stream, history } = this.#options
    return mode === 'incremental' && stream.readsLog === true && history.isBackdated(key)
  }

  /**
   * A lagging list or search index shows a version for a while after it was replaced. Its time reveals that, unless the
   * vendor's clock was set back in between: then the replaced version has the later time. The next listing repairs the
   * row.
   */
  #isShownLate({ inflight }: SyncModel<VendorSyncFacts>, key: string, write: number): boolean {
    const { history, listsBehindMs } = this.#options
    if (inflight === null || !history.isBackdated(key)) return false
    const replacement = history.writesOf(key).find((later) => later.write > write)
    const beganAt = this.beganAt(inflight.cycle)
    return replacement !== undefined && replacement.visibleAtMs + listsBehindMs(beganAt) > beganAt
  }

  /**
   * A cached page of a listing has the Date header of its first delivery, in whole seconds. If a newer version was read
   * in the same second, nothing shows which is older. The next listing repairs the row.
   */
  #isCachedWithinSecond({ mode }: VendorSyncFacts, before: LandedWrite, readSince: number): boolean {
    const toSecond = (ms: number): number => Math.floor(ms / 1_000)
    return mode === 'replace' && toSecond(this.#options.newestCachedAt(readSince)) >= toSecond(before.readSince)
  }

  // ── O16: the tidemark ──────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Every record with a timestamp at or before the tidemark is current in the copy. A later version may hide the one
   * before it.
   */
  protected override checkTidemark(facts: VendorSyncFacts, tidemark: string): void {
    // The engine cannot know that the store was modified behind its back.
    if (this.wasTampered) return
    // With a wrong Date header a runner cannot know the error of its own clock, nor how long a response was cached.
    const { isDateWrong, runnerSkewMs, oldestCachedMs: cachedMs } = this.#options
    const reachedMs = Date.parse(tidemark) - (isDateWrong() ? runnerSkewMs + cachedMs() : 0)
    if (Number.isNaN(reachedMs)) return
    const { history, granularityMs } = this.#options
    const owedSince = this.#responsibleFrom(facts)
    for (const versions of history.records()) {
      const { id, write, deleted, modifiedAtMs } = required(versions.at(-1), 'an entry of versions')
      // Where its clock may be wrong, a runner does not know in which second of the source's clock it began either.
      const shownMs = isDateWrong() ? modifiedAtMs : Math.floor(modifiedAtMs / granularityMs) * granularityMs
      if (shownMs > reachedMs || modifiedAtMs < owedSince || history.isBackdated(id)) continue
      const landed = this.mirror.rows.has(id) ? (this.#writes.get(id)?.write ?? -1) : null
      // A listing does not report when a record was deleted, and the record no longer has a time.
      if (deleted ? landed === null || facts.mode !== 'incremental' : landed === write) continue
      this.reportViolation(
        'O16',
        `the tidemark of ${facts.sync} is ${tidemark}, but ${id} is ${landed === null ? 'missing' : `at write ${landed}`}; write ${write}${deleted ? ' deleted it' : ''} at ${new Date(modifiedAtMs).toISOString()}`,
      )
      return
    }
  }

  /** Writes from this time on must be reported by the sync. */
  #responsibleFrom(facts: VendorSyncFacts): number {
    if (facts.mode !== 'incremental' || this.completed.has(LISTING)) return 0
    return facts.guarantee.startsFrom === 'first' && !this.#isAnchored ? 0 : (this.#deltaSince ?? Infinity)
  }

  // ── O1, O9, O14: every completed cycle ─────────────────────────────────────────────────────────────────────────────

  protected override async checkCompletedCycle(
    facts: VendorSyncFacts,
    inflight: UnfinishedCycle,
    beganAt: number,
    state: StateText,
  ): Promise<void> {
    this.#checkRows(facts, inflight, beganAt, state)
    if (this.violations.length === 0 && !this.wasTampered) await this.#checkHealth(facts)
  }

  /** O19: a pair that lacks a change its delta cannot deliver is not HEALTHY. */
  async #checkHealth({ mode }: VendorSyncFacts): Promise<void> {
    const lack = this.#describeMissing(mode === 'incremental')
    if (lack === null) return
    for (const [sync, health] of await this.#options.health()) {
      if (sync !== LISTING && health === 'HEALTHY') this.reportViolation('O19', `${sync} is HEALTHY although ${lack}`)
    }
  }

  /** The loss of history is known once the delta has run. */
  #describeMissing(hasDeltaRun: boolean): string | null {
    const { stream, syncs, now } = this.#options
    if (syncs.every(({ sync }) => sync !== LISTING)) return null
    if (!this.completed.has(LISTING)) return 'its backfill has never been complete'
    if (this.needsBackfill) return 'its backfill is requested and not done'
    if (!hasDeltaRun) return null
    const keptSince = now() - (stream.retentionMs ?? Infinity)
    const lost = this.#latest().find(
      ({ id, deleted, modifiedAtMs }) => deleted && modifiedAtMs < keptSince && this.mirror.rows.has(id),
    )
    return lost === undefined
      ? null
      : `${lost.id} still exists; it was deleted longer ago than the vendor keeps deletions`
  }

  #checkRows(facts: VendorSyncFacts, inflight: UnfinishedCycle, beganAt: number, state: StateText): void {
    if (facts.mode === 'tampering') return
    const { pageSize, history, stream } = this.#options
    // Every write needs at most one slot on a page, however it is reported; pages may be short, and a page whose
    // records need requests of their own is split. A search whose count or order is in doubt is read in time windows.
    const pagesMax =
      10 +
      4 * Math.ceil(history.count / pageSize) +
      this.#latest().length +
      (stream.readsWindows === true ? WINDOWS_MAX : 0)
    if (inflight.page >= pagesMax)
      this.reportViolation(
        'O14',
        `${facts.sync} took ${inflight.page + 1} pages of ${pageSize} to read the result of ${history.count} writes`,
      )
    if (facts.mode === 'replace') {
      // A backfill that began before the request does not fulfil it.
      if (beganAt >= (this.#backfillOrderedAt ?? 0)) this.#backfillOrderedAt = null
      return this.#checkListing(facts, inflight, beganAt)
    }
    const follows = (this.#deltaSince ??= this.#options.now())
    this.#firstDelta ??= { beganAt, endedAt: this.#options.now() }
    const { guarantee: promise } = facts
    this.#checkDelta(
      facts.sync,
      promise,
      promise.startsFrom === 'first' && !this.#isAnchored ? 0 : follows,
      inflight,
      beganAt,
      promise.reports(JSON.parse(state ?? 'null')),
    )
  }

  /** Records unchanged from before the cycle to its end are present, and records deleted before it are not. */
  #checkListing(
    { sync, lagMs }: { readonly sync: string; readonly lagMs: number },
    inflight: UnfinishedCycle,
    beganAt: number,
  ): void {
    if (this.wasTampered) return
    const behindMs = this.#options.listsBehindMs(beganAt)
    const truth = this.#truth()
    this.hasUnsweptRows = false
    for (const { id, deleted, visibleAtMs } of this.#latest()) {
      if (visibleAtMs + behindMs > beganAt || this.#options.history.isBackdated(id)) continue
      const row = this.mirror.rows.get(id)
      if (!deleted && !isSameRow(row?.text, truth.get(id)))
        this.reportViolation(
          'O1',
          `after a complete ${sync}, ${id} is ${describeRow(row?.text)}; throughout it was ${JSON.stringify(truth.get(id))}`,
        )
      const isTold = [...(this.#lastListedAt.get(id) ?? [])].some(([other, at]) => other !== sync && at >= beganAt)
      const isListed = row !== undefined && row.sequence <= inflight.startSequence
      // A row younger than the sync's declared lag is left to the next cycle.
      const isYoung = isListed && lagMs > 0 && row.committedAt >= inflight.startedAt - lagMs
      if (deleted && isYoung) this.hasUnsweptRows = true
      if (deleted && isListed && !isYoung && !isTold)
        this.reportViolation(
          'O1',
          `after a complete ${sync}, ${id} still exists; it was deleted before the cycle began`,
        )
    }
  }

  /** Writes made well before the cycle began are present. */
  #checkDelta(
    sync: string,
    promise: DeltaGuarantee,
    owedSince: number,
    inflight: UnfinishedCycle,
    beganAt: number,
    tells: { changes: boolean; deletes: boolean },
  ): void {
    const { now, runnerSkewMs } = this.#options
    // A slow response lowers the horizon by its latency, the vendor's clock has whole seconds, and a runner's clock may
    // be wrong.
    const horizon =
      Math.min(beganAt, inflight.startedAt) -
      promise.windowMs -
      2 * runnerSkewMs -
      3_000 -
      (now() - beganAt) -
      this.#options.dateBehindMs()
    const truth = this.#truth()
    for (const { id, deleted, modifiedAtMs } of this.#latest()) {
      // Changes the vendor no longer reports are the backfill's to repair, and O19 requires the status to show it.
      if (deleted && modifiedAtMs < now() - (this.#options.stream.retentionMs ?? Infinity)) continue
      if (
        modifiedAtMs < owedSince ||
        modifiedAtMs + this.#options.clockBackMs() > horizon ||
        this.#options.history.isBackdated(id)
      )
        continue
      const row = this.mirror.rows.get(id)
      if (deleted ? tells.deletes && row !== undefined : tells.changes && !isSameRow(row?.text, truth.get(id))) {
        this.reportViolation(
          'O9',
          `after a complete ${sync}, ${id} is ${describeRow(row?.text)}; since ${modifiedAtMs - horizon} ms before its horizon it is ${deleted ? 'deleted' : JSON.stringify(truth.get(id))}`,
        )
      }
    }
  }

  // ── final state ────────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * O1: the rows equal the vendor's records. A row the delta could not learn about may be missing; a wrong row is a
   * finding. A delta that does not report deletions leaves deleted rows.
   */
  compareWithVendor(owedSince = 0, { hasDeletes = true }: { readonly hasDeletes?: boolean } = {}): void {
    const { history } = this.#options
    this.#compare(
      'O1',
      'in the final state',
      owedSince,
      (id) => history.isBackdated(id) || (!hasDeletes && history.writesOf(id).at(-1)?.deleted === true),
    )
  }

  /** O17: after two undisturbed listings the rows equal the vendor's records, whatever was stored before. */
  compareRepaired(): void {
    this.#compare('O17', 'after two undisturbed listings', 0, () => false)
    const known = new Set(this.#latest().map(({ id }) => id))
    for (const key of this.mirror.rows.keys())
      if (!known.has(key))
        this.reportViolation('O17', `after two undisturbed listings, ${key} still exists; the vendor never had it`)
  }

  #compare(oracle: string, when: string, owedSince: number, isExempt: (id: string) => boolean): void {
    const truth = this.#truth()
    for (const { id, deleted, modifiedAtMs } of this.#latest()) {
      if (isExempt(id)) continue
      const row = this.mirror.rows.get(id)
      if (deleted && row !== undefined)
        this.reportViolation(oracle, `${when}, ${id} still exists as ${row.text}; the vendor has deleted it`)
      if (!deleted && (row !== undefined || modifiedAtMs >= owedSince) && !isSameRow(row?.text, truth.get(id)))
        this.reportViolation(
          oracle,
          `${when}, ${id} is ${describeRow(row?.text)}; the vendor has ${JSON.stringify(truth.get(id))}`,
        )
    }
  }

  /** The time since which a delta alone must be correct in the final state. */
  responsibleSince({ startsFrom: begins }: DeltaGuarantee): number {
    if (begins === 'first') return 0
    const first = required(this.#firstDelta, 'firstDelta')
    return begins === 'anchor' ? first.endedAt : first.beganAt - begins.lookBackMs + 2 * this.#options.runnerSkewMs
  }

  /** Includes changes the vendor has expired. */
  #latest(): VendorWrite[] {
    return [...this.#options.history.records()].map((versions) => required(versions.at(-1), 'an entry of versions'))
  }

  #truth(): Map<string, Fields> {
    const { simulator, stream } = this.#options
    return new Map(
      simulator.truth(stream.type).map((record) => [String(record[stream.keyField]), stream.rowOf(record, simulator)]),
    )
  }
}

const WINDOWS_MAX = 250

/** The name `worker.track` gives the listing. */
export const LISTING = 'sync-backfill'
/** A sync that stores rows the vendor does not have. */
export const TAMPERING = 'tampering'

function isSameRow(text: string | undefined, expected: Fields | undefined): boolean {
  return text !== undefined && expected !== undefined && isSameRecord(text, expected)
}

function describeRow(text: string | undefined): string {
  return text === undefined ? 'missing' : `at ${text}`
}
