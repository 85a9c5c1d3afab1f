import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import type {
  BeginResult,
  BeginRequest,
  Checkpoint,
  Column,
  ColumnKind,
  Commit,
  CommitOutcome,
  CycleReport,
  Inflight,
  JsonObject,
  JsonValue,
  Landing,
  LandingCounts,
  Lease,
  LogEntry,
  Mode,
  StateTransition,
  QuarantinedRecord,
  StateText,
  Store,
  Sweep,
  SyncRef,
} from '../../contract/index.ts'
import { parseJson, stringifyJson } from '../../values/json.ts'
import { required } from '../../values/required.ts'

/** One requirement of a store: a title and its check. Independent of the test framework. */
export interface StoreCase {
  readonly name: string
  /** Required capabilities of the harness or the store; without them the case is skipped, with the reason. */
  readonly needs?: keyof StoreSupport | 'supportsSoftDeletes' | 'supportsScopedSweeps' | 'searchRows'
  /** `open` returns another, empty store, for the few cases that compare two. */
  run(harness: StoreHarness, open: () => Promise<StoreHarness>): Promise<void>
}

/** Defines a rule of the contract: its title and its check. */
export function rule(name: string, run: StoreCase['run'], needs: Pick<StoreCase, 'needs'> = {}): StoreCase {
  return { name, run, ...needs }
}

/** An empty store and the operations that cases need. */
export interface StoreHarness {
  readonly store: Store
  /** A second connection to the same data and tenant, as another process would have. The harness closes it. */
  reopen(): Promise<Store>
  close(): Promise<void>
  readonly supports?: StoreSupport
}

/** The optional abilities of a store. Cases that need one are skipped without it. */
export interface StoreSupport {
  /**
   * Leases expire by the store's own clock: the cases about expiry wait in real time instead of passing a later time.
   */
  readonly ownClock?: true
  /** It notifies listeners of changes; see `Store.listen`. */
  readonly notifies?: true
  /** All rows of the relation that `databases()` names as a view, as a user selects them. */
  select?(view: string): Promise<Array<Record<string, unknown>>>
  /**
   * Commits on a separate connection that is cut as in a killed process, just before its statement number `statement`
   * (from 0; beginning and ending the transaction count too). Returns the outcome when it had fewer statements than
   * that.
   */
  crashDuringCommit?(commit: Commit, statement: number): Promise<CommitOutcome | 'crashed'>
}

// ── landings ─────────────────────────────────────────────────────────────────────────────────────────────────────────

export const DATABASE = 'things'

export const START = Date.UTC(2026, 0, 1)

/** A source time in canonical form: this many seconds after the suite's start. */
export function instant(seconds: number): string {
  return `${new Date(START + seconds * 1000).toISOString().slice(0, 23)}000Z`
}

export interface LandingOptions {
  /** Seconds, see `instant`. */
  readonly at?: number
  readonly cursor?: string
  readonly database?: string
}

/** A record may be given as JSON text, where the text itself matters. */
export function upsert(
  key: string,
  record: JsonObject | string,
  { at, cursor, database = DATABASE }: LandingOptions = {},
): Landing {
  const text = typeof record === 'string' ? record : stringifyJson(record)
  return {
    type: 'upsert',
    database,
    key,
    text,
    hash: hash('sha1', text, 'hex'),
    cursor: cursor ?? null,
    upstreamAt: at === undefined ? null : instant(at),
  }
}

export function remove(key: string, { at, database = DATABASE }: LandingOptions = {}): Landing {
  return { type: 'delete', database, key, upstreamAt: at === undefined ? null : instant(at) }
}

export function makeQuarantined(key: string | null, overrides: Partial<QuarantinedRecord> = {}): QuarantinedRecord {
  return { database: DATABASE, key, code: 'RECORD_INVALID', message: 'not a record', text: '{', ...overrides }
}

export function counts(given: Partial<LandingCounts>): LandingCounts {
  return { created: 0, updated: 0, deleted: 0, swept: 0, unchanged: 0, stale: 0, missing: 0, quarantined: 0, ...given }
}

export function columnsOf(landings: readonly Landing[]): Record<string, Column[]> {
  const found = new Map<string, Map<string, Set<ColumnKind>>>()
  for (const landing of landings) {
    if (landing.type === 'delete') continue
    const members = found.get(landing.database) ?? new Map<string, Set<ColumnKind>>()
    found.set(landing.database, members)
    for (const [name, value] of Object.entries(parseJson(landing.text) as JsonObject)) {
      const kinds = members.get(name) ?? new Set()
      members.set(name, kinds)
      const kind = kindOf(value)
      if (kind !== null) kinds.add(kind)
    }
  }
  return Object.fromEntries(
    [...found].map(([database, members]) => [
      database,
      [...members].map(([name, kinds]) => ({ name, kinds: [...kinds].toSorted() })),
    ]),
  )
}

function kindOf(value: JsonValue | undefined): ColumnKind | null {
  if (value === null || value === undefined) return null
  if (typeof value === 'number') return Number.isSafeInteger(value) ? 'integer' : 'number'
  if (typeof value === 'bigint') return BigInt.asIntN(64, value) === value ? 'integer' : 'bigint'
  if (typeof value === 'object') return 'json'
  return typeof value === 'string' ? 'string' : 'boolean'
}

// ── a running sync ───────────────────────────────────────────────────────────────────────────────────────────────────

export interface DriverOptions {
  readonly worker?: string
  readonly sync?: string
  readonly mode?: Mode
  /** The sync's own name, unless it shares its rows with another. */
  readonly owner?: string
  readonly holder?: string
  readonly evict?: string
  readonly ttlMs?: number
}

export type CommitOverrides = Partial<Omit<Commit, 'transition'>> & {
  readonly state?: StateText
  readonly sweep?: Sweep | null
  readonly tidemark?: string | null
  readonly scope?: string | null
  readonly guardState?: string | null
  readonly endReason?: string
}

export type LandedOutcome = Extract<CommitOutcome, { kind: 'landed' }>

/** Sweeps every row that is not listed. */
/** The actor of cases that do not depend on it. */
export const OPERATOR = { actor: 'me', at: 0 }

export const SWEEP_ALL: Sweep = { maxShare: 1, allowEmpty: true }

/** Does the engine's work between two pages, so that a case contains only its subject. */
export class SyncDriver {
  readonly store: Store
  readonly ref: SyncRef
  readonly mode: Mode
  readonly owner: string
  readonly lease: Lease
  version: number
  inflight: Inflight | null
  #at = START

  private constructor(store: Store, options: DriverOptions, lease: Lease, checkpoint: Checkpoint) {
    this.store = store
    this.ref = lease.ref
    this.mode = options.mode ?? 'incremental'
    this.owner = options.owner ?? `${lease.ref.worker}/${lease.ref.sync}`
    this.lease = lease
    this.version = checkpoint.version
    this.inflight = checkpoint.inflight
  }

  /** Acquires the sync's lease. */
  static async acquire(store: Store, options: DriverOptions = {}): Promise<SyncDriver> {
    const ref = { worker: options.worker ?? 'crm', sync: options.sync ?? 'delta' }
    const acquired = await store.acquire(ref, {
      holder: options.holder ?? 'runner-1',
      ttlMs: options.ttlMs ?? 3_600_000,
      at: START,
      ...(options.evict === undefined ? {} : { evictHolder: options.evict }),
    })
    if (acquired.kind !== 'acquired') assert.fail(`${ref.worker}/${ref.sync} is held by ${acquired.holder}`)
    return new SyncDriver(store, options, acquired.lease, acquired.checkpoint)
  }

  async begin(request: Partial<BeginRequest> = {}): Promise<BeginResult> {
    const begun = await this.store.beginCycle(this.lease, {
      at: this.tick(),
      mode: this.mode,
      trigger: 'manual',
      fresh: false,
      databases: [DATABASE],
      ...request,
    })
    if (begun === null) assert.fail('begin was refused although the lease is the newest')
    this.inflight = begun.inflight
    return begun
  }

  /** A page inside the cycle. */
  async page(landings: readonly Landing[], overrides: CommitOverrides = {}): Promise<LandedOutcome> {
    return expectLanded(await this.send(await this.draft(this.nextPage(overrides), landings, overrides)))
  }

  /** The last page. */
  async complete(landings: readonly Landing[], overrides: CommitOverrides = {}): Promise<LandedOutcome> {
    return expectLanded(await this.send(await this.draft(this.lastPage(overrides), landings, overrides)))
  }

  /** A cycle of one page. */
  async cycle(landings: readonly Landing[], overrides: CommitOverrides = {}): Promise<LandedOutcome> {
    await this.begin()
    return await this.complete(landings, overrides)
  }

  async abandon(landings: readonly Landing[] = [], reason = 'given up'): Promise<LandedOutcome> {
    const { cycle, page } = required(this.inflight, 'inflight')
    return expectLanded(await this.send(await this.draft({ kind: 'abandon', cycle, page: page + 1, reason }, landings)))
  }

  async set(state: StateText, actor = 'operator', reason = 'by hand'): Promise<LandedOutcome> {
    return expectLanded(await this.send(await this.draft({ kind: 'set', state, actor, reason }, [])))
  }

  async release(report?: Partial<CycleReport>): Promise<void> {
    if (report === undefined) return await this.store.release(this.lease)
    await this.store.release(this.lease, {
      cycle: this.inflight?.cycle ?? 0,
      stopReason: 'complete',
      endedAt: this.tick(),
      pages: 1,
      counts: counts({}),
      retries: 0,
      waitedMs: 0,
      error: null,
      retryAt: null,
      ...report,
    })
  }

  nextPage(given: Pick<CommitOverrides, 'state' | 'tidemark' | 'scope' | 'guardState'> = {}): StateTransition {
    const { cycle, page } = required(this.inflight, 'inflight')
    const { state = `{"page":${page + 1}}`, tidemark = null, scope = null, guardState = null } = given
    return { kind: 'continue', cycle, page: page + 1, state, tidemark, scope, guardState }
  }

  lastPage(given: Pick<CommitOverrides, 'state' | 'sweep' | 'tidemark' | 'scope' | 'endReason'> = {}): StateTransition {
    const { cycle, page } = required(this.inflight, 'inflight')
    const { state = null, tidemark = null, scope = null, sweep = this.mode === 'replace' ? SWEEP_ALL : null } = given
    return {
      kind: 'complete',
      cycle,
      page: page + 1,
      state,
      tidemark,
      scope,
      sweep,
      ...(given.endReason !== undefined && { endReason: given.endReason }),
    }
  }

  /** The commit as the engine would send it: by default, read after everything that has landed. */
  async draft(move: StateTransition, landings: readonly Landing[], overrides: CommitOverrides = {}): Promise<Commit> {
    const { state: _, sweep: _s, tidemark: _t, scope: _c, guardState: _g, ...rest } = overrides
    return {
      lease: this.lease,
      version: this.version,
      at: this.tick(),
      transition: move,
      owner: this.owner,
      landings,
      quarantined: [],
      columns: columnsOf(landings),
      readAtSequence: await this.store.headSequence(),
      upstreamToleranceMs: 0,
      ...rest,
    }
  }

  /** Sends the commit and, when it landed, advances to the resulting checkpoint. */
  async send(commit: Commit): Promise<CommitOutcome> {
    const outcome = await this.store.commit(commit)
    if (outcome.kind !== 'landed') return outcome
    this.version = outcome.version
    const { transition: move } = commit
    if (move.kind === 'replay' || move.kind === 'repair' || move.kind === 'columns') return outcome
    this.inflight =
      move.kind === 'continue' ? { ...required(this.inflight, 'inflight'), page: move.page, state: move.state } : null
    return outcome
  }

  tick(): number {
    return ++this.#at
  }
}

export function expectLanded(outcome: CommitOutcome): LandedOutcome {
  if (outcome.kind !== 'landed')
    assert.fail(`the commit was expected to land; the store answered ${JSON.stringify(outcome)}`)
  return outcome
}

// ── observable state ─────────────────────────────────────────────────────────────────────────────────────────────────

const ALL = 1_000_000

export function readFeed(store: Store, after = 0): Promise<LogEntry[]> {
  return store.changes({ after, limit: ALL })
}

/** Live rows as [key, record], in the store's order. */
export async function readLiveRows(store: Store, database = DATABASE): Promise<Array<[string, JsonValue]>> {
  return (await store.rows({ database, limit: ALL })).map((row) => [row.key, parseJson(row.text)])
}

/** The log as [action, key], the form most cases use. */
export async function scenario(store: Store, after = 0): Promise<Array<[string, string]>> {
  return (await readFeed(store, after)).map((entry) => [entry.action, entry.key])
}

/** The whole observable state of a store. Two equal ones mean that nothing was written in between. */
export async function readSnapshot(store: Store): Promise<Record<string, unknown>> {
  const databases = await store.databases()
  const syncs = await store.syncs()
  return {
    position: await store.headSequence(),
    feed: await readFeed(store),
    databases,
    rows: await Promise.all(databases.map(({ name }) => store.rows({ database: name, limit: ALL }))),
    quarantined: await store.quarantineEntries(),
    checkpoints: await Promise.all(
      syncs.map(async (ref) => ({
        ref,
        checkpoint: await store.readCheckpoint(ref),
        audit: await store.audit(ref),
        partitions: await store.partitions(ref, { limit: ALL }),
      })),
    ),
    cycles: await store.cycles(null),
  }
}

/** Seeded randomness in [0, 1): a failing seed fails again. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
