import type { Commit, JsonObject, LogEntry, Signal, StateText, SyncRef } from '../../../contract/index.ts'
import type { Fields } from '../../simulators/kit/simulator.ts'
import type { Version } from '../../simulators/kit/truth-table.ts'
import type { VendorSimulator } from '../../simulators/kit/vendor-simulator.ts'
import type { StoreMethod } from '../faulty-store.ts'
import { StoreOracle, type StoreOracleOptions, type SyncModel, type Unfinished } from '../store-oracle.ts'
import type { DeltaPromise, VendorStream } from './vendor.ts'

export type VendorSyncFacts =
  | { readonly sync: string; readonly mode: 'replace' }
  | { readonly sync: string; readonly mode: 'incremental'; readonly promise: DeltaPromise }

export interface VendorOracleOptions extends StoreOracleOptions<VendorSyncFacts> {
  readonly simulator: VendorSimulator
  readonly stream: VendorStream
  readonly pageSize: number
  /** How many writes there were so far. */
  readonly writes: () => number
  /** By how much a runner's clock may be wrong. */
  readonly runnerSkewMs: number
}

/** Knows what the vendor holds, and what each way to read it may promise. A vendor gives no id twice: what is deleted stays so. */
export class VendorOracle extends StoreOracle<VendorSyncFacts> {
  /** A backfill was asked for, because the delta cannot make up for what it missed. */
  owesBackfill = false
  readonly #options: VendorOracleOptions
  /** The write that each key last landed as. */
  readonly #writes = new Map<string, { readonly write: number }>()
  /** When another sync last landed a page with the key on it: key → sync → true time. */
  readonly #sighted = new Map<string, Map<string, number>>()
  /** Since when the delta has had a place: what is written from then on, it must tell. */
  #followsSince: number | null = null
  /** The backfill gave it its place: what lies before that is the backfill's to tell. */
  #isAnchored = false
  #firstDelta: { readonly beganAt: number; readonly endedAt: number } | null = null

  constructor(options: VendorOracleOptions) {
    super(options)
    this.#options = options
  }

  override async observe(method: StoreMethod, args: readonly unknown[], answer: unknown): Promise<void> {
    await super.observe(method, args, answer)
    if (method === 'signal' && (args[1] as Signal).kind === 'trigger' && (args[0] as SyncRef).sync !== 'sync') this.owesBackfill = true
    if (method === 'commit') this.#noteSet(args[0] as Commit, answer as { kind: string })
  }

  #noteSet({ move }: Commit, { kind }: { kind: string }): void {
    if (move.kind !== 'set' || kind !== 'landed') return
    this.#followsSince = move.state === null ? null : this.#options.now()
    this.#isAnchored = move.state !== null
  }

  // ── O2, O4: every change ───────────────────────────────────────────────────────────────────────────────────────────

  protected override judgeLandings({ facts }: SyncModel<VendorSyncFacts>, { landings }: Commit): void {
    for (const landing of landings) {
      if (landing.type !== 'upsert') continue
      let syncs = this.#sighted.get(landing.key)
      if (syncs === undefined) this.#sighted.set(landing.key, (syncs = new Map()))
      syncs.set(facts.sync, this.#options.now())
    }
  }

  protected override judgeEntry({ facts }: SyncModel<VendorSyncFacts>, _commit: Commit, { key, action, text }: LogEntry): void {
    const { simulator, stream } = this.#options
    const latest = simulator.records.find(stream.type, key)
    if (latest === undefined) return this.violate('O2', `${key} was ${action}; the vendor never had it`)
    if (action === 'deleted') {
      if (!latest.deleted) this.violate('O2', `${key} was deleted by ${facts.sync}; at the vendor it lives`)
      return
    }
    const write = stream.writeOf(JSON.parse(text!) as JsonObject)
    const before = this.#writes.get(key)
    const isPast = facts.mode === 'incremental' && facts.promise.tellsPast === true
    if (before !== undefined && !(write >= before.write) && !isPast) this.violate('O4', `${key} went from write ${before.write} to ${write}`)
    this.#writes.set(key, { write })
  }

  // ── O1, O9, O14: every completed cycle ─────────────────────────────────────────────────────────────────────────────

  protected override judgeCompleted(facts: VendorSyncFacts, inflight: Unfinished, beganAt: number, state: StateText): void {
    const { pageSize, writes } = this.#options
    // Nothing that was written needs more than a place on one page, whatever way it is told; pages may come short.
    const pagesMax = 10 + 4 * Math.ceil(writes() / pageSize)
    if (inflight.page >= pagesMax) this.violate('O14', `${facts.sync} took ${inflight.page + 1} pages of ${pageSize} to read what ${writes()} writes left`)
    if (facts.mode === 'replace') {
      this.owesBackfill = false
      return this.#judgeListing(facts.sync, inflight, beganAt)
    }
    const follows = (this.#followsSince ??= this.#options.now())
    this.#firstDelta ??= { beganAt, endedAt: this.#options.now() }
    const { promise } = facts
    this.#judgeDelta(facts.sync, promise, promise.begins === 'first' && !this.#isAnchored ? 0 : follows, inflight, beganAt, promise.tells(JSON.parse(state ?? 'null')))
  }

  /** What stood still from before the cycle to its end is there, and what was gone before is not. */
  #judgeListing(sync: string, inflight: Unfinished, beganAt: number): void {
    const truth = this.#truth()
    for (const { id, deleted, visibleAtMs } of this.#latest()) {
      if (visibleAtMs > beganAt) continue
      const row = this.mirror.rows.get(id)
      if (!deleted && !isRow(row?.text, truth.get(id))) this.violate('O1', `after a complete ${sync}, ${id} is ${nameOf(row?.text)}; all the time it was ${JSON.stringify(truth.get(id))}`)
      const isTold = [...(this.#sighted.get(id) ?? [])].some(([other, at]) => other !== sync && at >= beganAt)
      if (deleted && row !== undefined && row.sequence <= inflight.startSequence && !isTold) this.violate('O1', `after a complete ${sync}, ${id} is still there; it was gone before the cycle began`)
    }
  }

  /** What was written well before the cycle began is there. */
  #judgeDelta(sync: string, promise: DeltaPromise, owedSince: number, inflight: Unfinished, beganAt: number, tells: { changes: boolean; deletes: boolean }): void {
    const { now, runnerSkewMs } = this.#options
    // A slow answer lowers the horizon by as long as it took, the vendor's clock speaks in whole seconds, and a runner's may be wrong.
    const horizon = Math.min(beganAt, inflight.startedAt) - promise.windowMs - 2 * runnerSkewMs - 3_000 - (now() - beganAt)
    const truth = this.#truth()
    for (const { id, deleted, modifiedAtMs } of this.#latest()) {
      if (modifiedAtMs < owedSince || modifiedAtMs > horizon) continue
      const row = this.mirror.rows.get(id)
      if (deleted ? tells.deletes && row !== undefined : tells.changes && !isRow(row?.text, truth.get(id))) {
        this.violate('O9', `after a complete ${sync}, ${id} is ${nameOf(row?.text)}; since ${modifiedAtMs - horizon} ms before its horizon it is ${deleted ? 'deleted' : JSON.stringify(truth.get(id))}`)
      }
    }
  }

  // ── at rest ────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** O1: the rows are what the vendor holds. Of what a delta was never told of, a row may be missing; a wrong one is wrong. */
  compareTruth(owedSince = 0): void {
    const truth = this.#truth()
    for (const { id, deleted, modifiedAtMs } of this.#latest()) {
      const row = this.mirror.rows.get(id)
      if (deleted && row !== undefined) this.violate('O1', `at rest, ${id} is still there as ${row.text}; the vendor has deleted it`)
      if (!deleted && (row !== undefined || modifiedAtMs >= owedSince) && !isRow(row?.text, truth.get(id))) this.violate('O1', `at rest, ${id} is ${nameOf(row?.text)}; the truth is ${JSON.stringify(truth.get(id))}`)
    }
  }

  /** What a delta alone owes at rest: since when. */
  owedSince({ begins }: DeltaPromise): number {
    if (begins === 'first') return 0
    const first = this.#firstDelta!
    return begins === 'anchor' ? first.endedAt : first.beganAt - begins.lookBackMs + 2 * this.#options.runnerSkewMs
  }

  #latest(): Version[] {
    return this.#options.simulator.records.latest(this.#options.stream.type)
  }

  #truth(): Map<string, Fields> {
    const { simulator, stream } = this.#options
    return new Map(simulator.truth(stream.type).map((record) => [String(record[stream.keyField]), stream.rowOf(record, simulator)]))
  }
}

function isRow(text: string | undefined, expected: Fields | undefined): boolean {
  return text !== undefined && expected !== undefined && ordered(JSON.parse(text)) === ordered(expected)
}

function ordered(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) => (
    typeof member === 'object' && member !== null && !Array.isArray(member) ? Object.fromEntries(Object.entries(member).toSorted(([a], [b]) => (a < b ? -1 : 1))) : member
  ))
}

function nameOf(text: string | undefined): string {
  return text === undefined ? 'missing' : `at ${text}`
}
