import { SyncError, type Change, type JsonObject, type JsonValue, type Landing, type Lease, type LogEntry, type Ports, type QuarantinedRecord, type QuarantineEntry, type Store } from '../contract/index.ts'
import { canonicalizeInstant } from '../values/instant.ts'
import { parseJson } from '../values/json.ts'
import { PagePreparer, type PreparedPage } from './page-preparer.ts'
import { RetryingStore } from './retrying-store.ts'
import { buildCommitOwners, buildCommitSchemaModes, type SyncPlan } from './sync-plan.ts'
import { CycleCounters } from './cycle-counters.ts'

export interface ReplayOptions {
  readonly store: Store
  readonly ports: Ports
  readonly holder: string
  readonly isHolderGone?: (holder: string) => boolean
  readonly actor: string
  /** Only records of this one. */
  readonly database?: string | undefined
  /** Only looks what would become of them. */
  readonly dryRun?: boolean
}

/** landed: it passes now. refused: it still does not. superseded: something newer is there. lost: not enough of it was kept to be told again. */
export type ReplayOutcome = 'landed' | 'refused' | 'superseded' | 'lost'

export interface ReplayResult {
  readonly entry: QuarantineEntry
  readonly outcome: ReplayOutcome
  /** The reason as it is now; of what was lost or superseded, what keeps it from landing. */
  readonly message: string
}

export function countReplayOutcomes(replayed: readonly ReplayResult[]): Record<ReplayOutcome, number> {
  const counts = { landed: 0, refused: 0, superseded: 0, lost: 0 }
  for (const { outcome: fate } of replayed) counts[fate]++
  return counts
}

/** More are left for another time. */
const REPLAY_MAX = 10_000

/**
 * Puts the records that were set apart through the same checks and the same door again, page by page as they were read. Nothing
 * newer is overwritten: a record without a time of its source lands only where nobody wrote since it was read (invariant 6).
 */
export async function replayQuarantinedRecords(plan: SyncPlan, options: ReplayOptions): Promise<ReplayResult[]> {
  const { store, ports, holder, isHolderGone: isDead, database, dryRun: dry = false } = options
  const ref = { worker: plan.worker, sync: plan.sync }
  const door = new RetryingStore(store, ports, new CycleCounters())
  const entries = (await store.quarantineEntries({ ref, limit: REPLAY_MAX })).filter((entry) => database === undefined || entry.database === database)
  if (entries.length === 0) return []
  if (dry) return new QuarantineReplay(plan, options, door, null, 0, await findLastListing(plan, store)).run(entries)
  const request = { holder, ttlMs: plan.limits.leaseTtlMs, at: ports.clock.now() }
  let taken = await door.call(() => store.acquire(ref, request))
  if (taken.kind === 'held' && isDead?.(taken.holder) === true) taken = await door.call(() => store.acquire(ref, { ...request, evictHolder: (taken as { holder: string }).holder }))
  if (taken.kind === 'held') throw new SyncError('LEASE_HELD', `${plan.sync} is being run by ${taken.holder}; nothing was replayed.`)
  try {
    return await new QuarantineReplay(plan, options, door, taken.lease, taken.checkpoint.version, await findLastListing(plan, store)).run(entries)
  } finally {
    await store.release(taken.lease).catch(() => {})
  }
}

class QuarantineReplay {
  readonly #plan: SyncPlan
  readonly #options: ReplayOptions
  readonly #retryingStore: RetryingStore
  /** Null when it only looks. */
  readonly #lease: Lease | null
  readonly #version: number
  readonly #lastListing: number
  readonly #preparer: PagePreparer
  readonly #results: ReplayResult[] = []

  constructor(plan: SyncPlan, options: ReplayOptions, door: RetryingStore, lease: Lease | null, version: number, lastListing: number) {
    this.#plan = plan
    this.#options = options
    this.#retryingStore = door
    this.#lease = lease
    this.#version = version
    this.#lastListing = lastListing
    this.#preparer = new PagePreparer(plan.sync, plan.databases, plan.limits)
  }

  async run(entries: readonly QuarantineEntry[]): Promise<ReplayResult[]> {
    const { store, ports } = this.#options
    for (const page of groupByPage(entries)) {
      if (this.#lease !== null && !(await store.renew(this.#lease, { ttlMs: this.#plan.limits.leaseTtlMs, at: ports.clock.now() }))) throw new SyncError('LEASE_LOST', `${this.#plan.sync}: another runner took over.`)
      await this.#replayPage(page)
    }
    return this.#results
  }

  async #replayPage(entries: readonly QuarantineEntry[]): Promise<void> {
    const readFrom = await this.#options.store.sequenceBefore(entries[0]!.at)
    const known: ReplayItem[] = []
    const unknown: ReplayItem[] = []
    const superseded: number[] = []
    for (const entry of entries) {
      const change = restoreChange(entry)
      if (change === null) this.#report(entry, 'lost', 'not enough of it was kept; it comes again when the source tells it again')
      else if (!this.#plan.databases.some(({ name }) => name === entry.database)) this.#report(entry, 'lost', 'the sync no longer writes to this database')
      else {
        const newest = (await this.#options.store.history(entry.database, entry.key!)).at(-1)
        if (entry.cycle < this.#lastListing || (newest !== undefined && isNewer(newest, entry, change))) {
          superseded.push(entry.id)
          this.#report(entry, 'superseded', 'something newer has landed, or it is gone')
        } else (newest === undefined ? unknown : known).push({ entry, change })
      }
    }
    await this.#land(known, superseded, readFrom)
    // Without a row there may be the mark of a deletion, laid at the place that the log had then: at this very one it may be newer.
    await this.#land(unknown, [], readFrom - 1)
  }

  async #land(told: readonly ReplayItem[], superseded: readonly number[], readFrom: number): Promise<void> {
    if (told.length + superseded.length === 0) return
    const prepared = await this.#preparer.prepare(told.map(({ change }) => change))
    const entryOf = (item: { database: string; key: string | null }): QuarantineEntry => told.find(({ entry }) => entry.key === item.key && entry.database === item.database)!.entry
    for (const item of prepared.quarantined) this.#report(entryOf(item), 'refused', item.message)
    const { late, refused } = this.#lease === null
      ? { late: [], refused: [] }
      : await this.#commit(this.#lease, prepared, readFrom, (overlapping) => [...superseded, ...overlapping.map((landing) => entryOf(landing).id)])
    for (const landing of prepared.landings) {
      const refusal = refused.find(({ database, key }) => database === landing.database && key === landing.key)
      if (late.includes(landing)) this.#report(entryOf(landing), 'superseded', 'another sync wrote it since')
      else if (refusal !== undefined) this.#report(entryOf(landing), 'refused', refusal.message)
      else this.#report(entryOf(landing), 'landed', '')
    }
  }

  /** `late` are those that cannot be ordered against what others wrote since: they are taken for older. */
  async #commit(
    lease: Lease, { landings, quarantined, columns }: PreparedPage, readFrom: number, supersededBy: (late: readonly Landing[]) => number[],
  ): Promise<{ late: readonly Landing[]; refused: readonly QuarantinedRecord[] }> {
    const { ports, actor } = this.#options
    const late: Landing[] = []
    for (;;) {
      const rest = landings.filter((landing) => !late.includes(landing))
      const outcome = await this.#retryingStore.commit({
        lease, version: this.#version, at: ports.clock.now(), owner: this.#plan.owner, landings: rest, quarantined, columns, readAtSequence: readFrom,
        upstreamToleranceMs: this.#plan.upstreamToleranceMs, owners: buildCommitOwners(this.#plan), ...buildCommitSchemaModes(this.#plan),
        transition: { kind: 'replay', actor, reason: `${rest.length} out of quarantine`, superseded: supersededBy(late) },
      })
      if (outcome.kind === 'landed') return { late, refused: outcome.refused ?? [] }
      if (outcome.kind !== 'overlap') throw new SyncError('INTERNAL', `A replay was answered ${outcome.kind}.`)
      late.push(...rest.filter(({ key }) => outcome.keys.includes(key)))
    }
  }

  #report(entry: QuarantineEntry, fate: ReplayOutcome, message: string): void {
    this.#results.push({ entry, outcome: fate, message })
  }
}

interface ReplayItem {
  readonly entry: QuarantineEntry
  readonly change: Change
}

/**
 * Whether what the log holds is newer than what was set apart. A sync that lands a key takes it out of its own quarantine: of its own
 * entries only a sweep's can be. Of what others wrote a deletion wins, and of two facts without times the one that was read later.
 */
function isNewer(newest: LogEntry, entry: QuarantineEntry, change: Change): boolean {
  if (newest.worker === entry.worker && newest.sync === entry.sync) return newest.action === 'deleted' && newest.cycle > entry.cycle
  if (newest.committedAt < entry.at) return false
  const time = change.upstreamUpdatedAt === undefined ? null : canonicalizeInstant(change.upstreamUpdatedAt)
  return newest.action === 'deleted' || newest.upstreamAt === null || time === null
}

/** What a listing since then did not list again is not there any more. */
async function findLastListing({ worker, sync, mode }: SyncPlan, store: Store): Promise<number> {
  if (mode !== 'replace') return 0
  return (await store.cycles({ worker, sync }, { limit: 100 })).find(({ stopReason }) => stopReason === 'complete')?.cycle ?? 0
}

/** As they were read, the oldest first: what is on one page was read at one moment. */
function groupByPage(entries: readonly QuarantineEntry[]): QuarantineEntry[][] {
  const pages = new Map<string, QuarantineEntry[]>()
  for (const entry of entries.toSorted((a, b) => a.at - b.at || a.id - b.id)) {
    const place = `${entry.at} ${entry.cycle} ${entry.page}`
    pages.set(place, [...(pages.get(place) ?? []), entry])
  }
  return [...pages.values()]
}

/** In these the text says less than the record did. */
const LOSSY_CODES: ReadonlySet<string> = new Set(['RECORD_INVALID', 'TEXT_UNSTORABLE', 'KEY_INVALID'])

/** Null when it cannot be told again as it was. */
function restoreChange({ code, key, database, text }: QuarantineEntry): Change | null {
  if (key === null || LOSSY_CODES.has(code)) return null
  let told: JsonValue
  try {
    told = parseJson(text)
  } catch {
    return null
  }
  if (typeof told !== 'object' || told === null || Array.isArray(told)) return null
  const { record, cursor, upstreamUpdatedAt } = told
  if (typeof record !== 'object' || record === null || Array.isArray(record)) return null
  return {
    type: 'upsert', key, database, record: record as JsonObject,
    ...(typeof cursor === 'string' && { cursor }), ...(upstreamUpdatedAt !== undefined && { upstreamUpdatedAt: upstreamUpdatedAt as string }),
  }
}
