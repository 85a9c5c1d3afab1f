import {
  SyncError,
  type Change,
  type JsonObject,
  type JsonValue,
  type Landing,
  type Lease,
  type LogEntry,
  type Ports,
  type QuarantinedRecord,
  type QuarantineEntry,
  type Store,
} from '../contract/index.ts'
import { canonicalizeInstant } from '../values/instant.ts'
import { parseJson } from '../values/json.ts'
import { PagePreparer, type PreparedPage } from './page-preparer.ts'
import { PageTransformer } from './page-transformer.ts'
import { RetryingStore } from './retrying-store.ts'
import { buildCommitColumnRules, buildCommitOwners, buildCommitSchemaModes, type SyncPlan } from './sync-plan.ts'
import { CycleCounters } from './cycle-counters.ts'
import { required } from '../values/required.ts'

export interface ReplayOptions {
  readonly store: Store
  readonly ports: Ports
  readonly holder: string
  readonly isHolderGone?: (holder: string) => boolean
  readonly actor: string
  /** Replay only records of this database. */
  readonly database?: string | undefined
  /** Report the outcomes without writing. */
  readonly dryRun?: boolean
}

/**
 * landed: it passes now. refused: it still fails. superseded: a newer version exists. lost: too little of it was stored
 * to replay it.
 */
export type ReplayOutcome = 'landed' | 'refused' | 'superseded' | 'lost'

export interface ReplayResult {
  readonly entry: QuarantineEntry
  readonly outcome: ReplayOutcome
  /** The current reason of a refusal; for a lost or superseded record, why it was not committed. */
  readonly message: string
}

export function countReplayOutcomes(replayed: readonly ReplayResult[]): Record<ReplayOutcome, number> {
  const counts = { landed: 0, refused: 0, superseded: 0, lost: 0 }
  for (const { outcome } of replayed) counts[outcome]++
  return counts
}

/** More records are left for another replay. */
const REPLAY_MAX = 10_000

/**
 * Replays quarantined records through the same checks and the same write path, page by page as they were read.
 * Invariant 6: nothing newer is overwritten, so a record without a source time is committed only if no sync wrote its
 * key since it was read.
 */
export async function replayQuarantinedRecords(plan: SyncPlan, options: ReplayOptions): Promise<ReplayResult[]> {
  const { store, ports, holder, isHolderGone, database, dryRun = false } = options
  const ref = { worker: plan.worker, sync: plan.sync }
  const retryingStore = new RetryingStore(store, ports, new CycleCounters())
  const entries = (await store.quarantineEntries({ ref, limit: REPLAY_MAX })).filter(
    (entry) => database === undefined || entry.database === database,
  )
  if (entries.length === 0) return []
  if (dryRun)
    return new QuarantineReplay({
      plan,
      options,
      retryingStore,
      lease: null,
      version: 0,
      lastListing: await findLastListing(plan, store),
    }).run(entries)
  const request = { holder, ttlMs: plan.limits.leaseTtlMs, at: ports.clock.now() }
  let result = await retryingStore.call(() => store.acquire(ref, request))
  if (result.kind === 'held' && isHolderGone?.(result.holder) === true)
    result = await retryingStore.call(() =>
      store.acquire(ref, { ...request, evictHolder: (result as { holder: string }).holder }),
    )
  if (result.kind === 'held')
    throw new SyncError('LEASE_HELD', `${plan.sync} is being run by ${result.holder}; nothing was replayed.`)
  try {
    return await new QuarantineReplay({
      plan,
      options,
      retryingStore,
      lease: result.lease,
      version: result.checkpoint.version,
      lastListing: await findLastListing(plan, store),
    }).run(entries)
  } finally {
    await store.release(result.lease).catch(() => {})
  }
}

interface QuarantineReplayOptions {
  readonly plan: SyncPlan
  readonly options: ReplayOptions
  readonly retryingStore: RetryingStore
  /** Null in a dry run. */
  readonly lease: Lease | null
  readonly version: number
  readonly lastListing: number
}

class QuarantineReplay {
  readonly #plan: SyncPlan
  readonly #options: ReplayOptions
  readonly #retryingStore: RetryingStore
  readonly #lease: Lease | null
  readonly #version: number
  readonly #lastListing: number
  readonly #transformer: PageTransformer
  readonly #preparer: PagePreparer
  readonly #results: ReplayResult[] = []

  constructor({ plan, options, retryingStore, lease, version, lastListing }: QuarantineReplayOptions) {
    this.#plan = plan
    this.#options = options
    this.#retryingStore = retryingStore
    this.#lease = lease
    this.#version = version
    this.#lastListing = lastListing
    this.#transformer = PageTransformer.create(plan, options.store, () => options.ports.clock.now())
    this.#preparer = new PagePreparer(plan.sync, plan.databases, plan.limits)
  }

  async run(entries: readonly QuarantineEntry[]): Promise<ReplayResult[]> {
    const { store, ports } = this.#options
    for (const page of groupByPage(entries)) {
      if (
        this.#lease !== null &&
        !(await store.renew(this.#lease, { ttlMs: this.#plan.limits.leaseTtlMs, at: ports.clock.now() }))
      )
        throw new SyncError('LEASE_LOST', `${this.#plan.sync}: another runner took over.`)
      await this.#replayPage(page)
    }
    return this.#results
  }

  async #replayPage(entries: readonly QuarantineEntry[]): Promise<void> {
    const readAtSequence = await this.#options.store.sequenceBefore(required(entries[0], 'first entry of the page').at)
    const known: ReplayItem[] = []
    const unknown: ReplayItem[] = []
    const superseded: number[] = []
    for (const entry of entries) {
      const change = restoreChange(entry)
      const database = this.#plan.databases.find(({ name }) => name === entry.database)
      if (change === null)
        this.#report(entry, 'lost', 'too little of the record was stored; it lands when the source returns it again')
      else if (database === undefined) this.#report(entry, 'lost', 'the sync no longer writes to this database')
      else if (change.columns !== null && change.columns !== database.columns?.fingerprint)
        this.#report(entry, 'lost', 'the column rules have changed; it lands when the source returns it again')
      else {
        const newest = (await this.#options.store.history(entry.database, change.upsert.key)).at(-1)
        if (entry.cycle < this.#lastListing || (newest !== undefined && isNewer(newest, entry, change.upsert))) {
          superseded.push(entry.id)
          this.#report(entry, 'superseded', 'a newer version was committed, or the record was deleted')
        } else (newest === undefined ? unknown : known).push({ entry, ...change })
      }
    }
    await this.#land(known, superseded, readAtSequence)
    // Without a row there may be a tombstone at the log's sequence of that time, which may be newer than an entry at
    // the same sequence.
    await this.#land(unknown, [], readAtSequence - 1)
  }

  async #land(items: readonly ReplayItem[], superseded: readonly number[], readAtSequence: number): Promise<void> {
    if (items.length + superseded.length === 0) return
    const prepared = await this.#preparer.prepare(await this.#transformItems(items))
    const entryOf = (item: { database: string; key: string | null }): QuarantineEntry =>
      required(
        items.find(({ entry }) => entry.key === item.key && entry.database === item.database),
        'quarantine entry',
      ).entry
    for (const item of prepared.quarantined) this.#report(entryOf(item), 'refused', item.message)
    const { late, refused } =
      this.#lease === null
        ? { late: [], refused: [] }
        : await this.#commit(this.#lease, prepared, readAtSequence, (overlapping) => [
            ...superseded,
            ...overlapping.map((landing) => entryOf(landing).id),
          ])
    for (const landing of prepared.landings) {
      const refusal = refused.find(({ database, key }) => database === landing.database && key === landing.key)
      if (late.includes(landing)) this.#report(entryOf(landing), 'superseded', 'another sync has written it since')
      else if (refusal !== undefined) this.#report(entryOf(landing), 'refused', refusal.message)
      else this.#report(entryOf(landing), 'landed', '')
    }
  }

  /** A record that was quarantined before the database had column rules does not follow them yet. */
  async #transformItems(items: readonly ReplayItem[]): Promise<Change[]> {
    const raw = items.filter(({ columns }) => columns === null).map(({ upsert }) => upsert)
    const transformed = new Map<Change, Change | undefined>(
      (await this.#transformer.transformChanges(raw)).map((change, index) => [raw[index] as Change, change]),
    )
    return items.map(({ upsert }) => transformed.get(upsert) ?? upsert)
  }

  /** `late` records cannot be ordered against later writes of other syncs: they count as older. */
  async #commit(
    lease: Lease,
    { landings, quarantined, columns }: PreparedPage,
    readAtSequence: number,
    supersededBy: (late: readonly Landing[]) => number[],
  ): Promise<{ late: readonly Landing[]; refused: readonly QuarantinedRecord[] }> {
    const { ports, actor } = this.#options
    const late: Landing[] = []
    for (;;) {
      const rest = landings.filter((landing) => !late.includes(landing))
      const outcome = await this.#retryingStore.commit({
        lease,
        version: this.#version,
        at: ports.clock.now(),
        owner: this.#plan.owner,
        landings: rest,
        quarantined,
        columns,
        readAtSequence,
        upstreamToleranceMs: this.#plan.upstreamToleranceMs,
        owners: buildCommitOwners(this.#plan),
        ...buildCommitSchemaModes(this.#plan),
        ...buildCommitColumnRules(this.#plan),
        transition: {
          kind: 'replay',
          actor,
          reason: `${rest.length} replayed from quarantine`,
          superseded: supersededBy(late),
        },
      })
      if (outcome.kind === 'landed') return { late, refused: outcome.refused ?? [] }
      if (outcome.kind !== 'overlap')
        throw new SyncError('INTERNAL', `A replay had the unexpected outcome ${outcome.kind}.`)
      late.push(...rest.filter(({ key }) => outcome.keys.includes(key)))
    }
  }

  #report(entry: QuarantineEntry, outcome: ReplayOutcome, message: string): void {
    this.#results.push({ entry, outcome, message })
  }
}

interface ReplayItem extends RestoredChange {
  readonly entry: QuarantineEntry
}

interface RestoredChange {
  readonly upsert: Upsert
  /** The fingerprint of the column rules that it follows; null if none. */
  readonly columns: string | null
}

type Upsert = Extract<Change, { type: 'upsert' }>

/**
 * Returns whether the log entry is newer than the quarantined record. A sync that commits a key removes it from its own
 * quarantine, so of its own entries only a sweep's can be newer. Among entries of others a deletion wins, and of two
 * versions without times the one that was read later.
 */
function isNewer(newest: LogEntry, entry: QuarantineEntry, change: Upsert): boolean {
  if (newest.worker === entry.worker && newest.sync === entry.sync)
    return newest.action === 'deleted' && newest.cycle > entry.cycle
  if (newest.committedAt < entry.at) return false
  const time = change.upstreamUpdatedAt === undefined ? null : canonicalizeInstant(change.upstreamUpdatedAt)
  return newest.action === 'deleted' || newest.upstreamAt === null || time === null
}

/** The last complete listing. A record that a later listing did not contain is deleted in the source. */
async function findLastListing({ worker, sync, mode }: SyncPlan, store: Store): Promise<number> {
  if (mode !== 'replace') return 0
  return (
    (await store.cycles({ worker, sync }, { limit: 100 })).find(({ stopReason }) => stopReason === 'complete')?.cycle ??
    0
  )
}

/** Groups entries by the page they were read on, oldest first: a page was read at one time. */
function groupByPage(entries: readonly QuarantineEntry[]): QuarantineEntry[][] {
  const pages = new Map<string, QuarantineEntry[]>()
  for (const entry of entries.toSorted((a, b) => a.at - b.at || a.id - b.id)) {
    const pageId = `${entry.at} ${entry.cycle} ${entry.page}`
    pages.set(pageId, [...(pages.get(pageId) ?? []), entry])
  }
  return [...pages.values()]
}

/** With these codes the stored text is incomplete. */
const LOSSY_CODES: ReadonlySet<string> = new Set(['RECORD_INVALID', 'TEXT_UNSTORABLE', 'KEY_INVALID'])

/** Null if the original change cannot be restored. */
function restoreChange({ code, key, database, text }: QuarantineEntry): RestoredChange | null {
  if (key === null || LOSSY_CODES.has(code)) return null
  let stored: JsonValue
  try {
    stored = parseJson(text)
  } catch {
    return null
  }
  if (typeof stored !== 'object' || stored === null || Array.isArray(stored)) return null
  const { record, cursor, upstreamUpdatedAt, columns } = stored
  if (typeof record !== 'object' || record === null || Array.isArray(record)) return null
  const upsert: Upsert = {
    type: 'upsert',
    key,
    database,
    record: record as JsonObject,
    ...(typeof cursor === 'string' && { cursor }),
    ...(upstreamUpdatedAt !== undefined && { upstreamUpdatedAt: upstreamUpdatedAt as string }),
  }
  return { upsert, columns: typeof columns === 'string' ? columns : null }
}
