import { isSyncError, type Change, type Execute, type Lookup, type SyncContext } from '../contract/index.ts'
import { toRangePlan } from '../engine/range-plan.ts'
import type { SyncPlan } from '../engine/sync-plan.ts'
import { msToInstant } from '../values/instant.ts'
import { maskSecrets } from '../redaction/known-secrets.ts'
import { detectOrder } from './detect-order.ts'
import { detectIds } from './detect-pages.ts'
import { detectRateLimits } from './detect-rate-limits.ts'
import { detectClock, detectTimes } from './detect-times.ts'
import type { ProbePage, ProbeRow } from './endpoint.ts'
import { toEvidence, untestable, type Contradiction, type Fact } from './fact.ts'
import { choosePivot, inventKey, type Observations, type ProbeStep } from './observe.ts'
import { RequestJournal, type JournalEntry } from './request-journal.ts'
import { parseTime } from './time-text.ts'

/** The result of probing a sync through its source. */
export interface SyncReport {
  readonly facts: readonly Fact[]
  readonly contradictions: readonly Contradiction[]
  readonly requests: readonly JournalEntry[]
  readonly endedBy: string | null
}

/** One reading of the listing. */
interface Reading {
  readonly pages: readonly SyncPage[]
  readonly isComplete: boolean
  readonly startedAt: number
}

interface SyncPage extends ProbePage {
  readonly tidemark: string | null
}

const PAGES_MAX = 4

/** The steps of `probeSync`. A source may send several requests for one page. */
export function planSyncProbe({ sync, execute, lookup }: SyncPlan): ProbeStep[] {
  const pages = `${PAGES_MAX} pages of ${sync}`
  const steps = [
    ['listing', pages],
    ...(execute.range === undefined ? [] : [['range', `${pages}, from the time of a row on`] as const]),
    ...(lookup == null ? [] : [['lookup', 'one known and one invented key'] as const]),
    ['second listing', pages],
  ] as const
  return steps.map(([purpose, example]) => ({ purpose, requestsMax: null, example }))
}

/** Compares the contract of a sync with what its source returns. `plan` is the sync that lists all records. */
export async function probeSync(
  plan: SyncPlan,
  context: SyncContext,
  { requestsMax }: { readonly requestsMax: number },
): Promise<SyncReport> {
  const journal = new RequestJournal(requestsMax)
  const probe = new SyncProbe(
    plan,
    journal,
    journal.wrap(context, (method) => method === 'POST'),
  )
  let endedBy: string | null = null
  try {
    await probe.run()
  } catch (error) {
    context.signal.throwIfAborted()
    if (!isSyncError(error)) throw error
    endedBy = maskSecrets(error.message).replace(/\.$/, '')
  }
  return { ...probe.conclude(endedBy), requests: journal.entries, endedBy }
}

class SyncProbe {
  readonly #plan: SyncPlan
  readonly #journal: RequestJournal
  readonly #context: SyncContext
  #first: Reading | null = null
  #second: Reading | null = null
  #range: { readonly row: ProbeRow; readonly reading: Reading } | null = null
  #known: { readonly row: ProbeRow; readonly change: Change | null; readonly request: number } | null = null
  #unknown: { readonly key: string; readonly change: Change | null; readonly request: number } | null = null

  constructor(plan: SyncPlan, journal: RequestJournal, context: SyncContext) {
    this.#plan = plan
    this.#journal = journal
    this.#context = { ...context, cycle: { ...context.cycle, mode: plan.mode } }
  }

  async run(): Promise<void> {
    const { execute, lookup } = this.#plan
    const first = (this.#first = await this.#read('listing', execute))
    const rows = first.pages.flatMap((page) => page.rows)
    const [page] = first.pages
    const pivot = page === undefined ? null : choosePivot({ ...page, rows })
    if (execute.range !== undefined && pivot !== null) {
      const ms = Math.floor(pivot.time.micros / 1_000)
      const { execute: readRange } = toRangePlan(this.#plan, { from: msToInstant(ms), to: msToInstant(ms + 1) })
      this.#range = { row: pivot, reading: await this.#read('range', readRange) }
    }
    const known = rows.find(({ key }) => key !== '')
    if (lookup != null && known !== undefined) await this.#lookUp(lookup, known)
    this.#second = await this.#read('second listing', execute)
  }

  async #read(purpose: string, execute: Execute<any>): Promise<Reading> {
    const startedAt = this.#context.clock.now()
    const pages: SyncPage[] = []
    const known = new Set<string>()
    let state: unknown
    for (;;) {
      const before = this.#journal.last
      const page = await this.#journal.during(purpose, () => execute(state, this.#context))
      const rows = page.changes.flatMap(toRow)
      // A strategy reads the end of a list again to confirm it.
      const isConfirmation = rows.every((row) => known.has(toVersion(row)))
      for (const row of rows) known.add(toVersion(row))
      pages.push({
        request: Math.min(before + 1, Math.max(1, this.#journal.last)),
        rows: isConfirmation ? [] : rows,
        next: page.hasMore ? { token: '' } : null,
        total: null,
        asked: null,
        failure: null,
        tidemark: page.tidemark ?? null,
      })
      if (!page.hasMore || pages.length === PAGES_MAX) return { pages, isComplete: !page.hasMore, startedAt }
      state = page.nextState
    }
  }

  async #lookUp(lookup: Lookup, row: ProbeRow): Promise<void> {
    const find = (key: string): Promise<Change | null> =>
      this.#journal.during('lookup', () => lookup(key, this.#context))
    this.#known = { row, change: await find(row.key), request: this.#journal.last }
    const key = inventKey(row.key)
    try {
      this.#unknown = { key, change: await find(key), request: this.#journal.last }
    } catch (error) {
      // A vendor may refuse a key that it could not have assigned.
      if (!isSyncError(error) || error.code !== 'CONNECTOR_FAILED') throw error
    }
  }

  conclude(endedBy: string | null): { facts: Fact[]; contradictions: Contradiction[] } {
    const entries = this.#journal.entries
    const walk = this.#first?.pages ?? []
    const [first] = walk
    if (first === undefined) {
      const reason = endedBy ?? 'the source returned no page'
      return {
        facts: [untestable('records', 'The listing cannot be read.', reason), ...detectRateLimits(entries)],
        contradictions: [],
      }
    }
    const after = this.#second?.pages[0]
    const seen: Observations = {
      first,
      before: first,
      ...(after !== undefined && { after }),
      walk,
      walkSize: null,
      newest: [],
      filters: [],
      endedBy,
    }
    const count = walk.reduce((sum, { rows }) => sum + rows.length, 0)
    const records: Fact = {
      topic: 'records',
      value: String(count),
      text: `The source returned ${count} rows in ${walk.length} pages${this.#first?.isComplete ? ', all that there are' : ''}.`,
      certainty: 'shown',
      evidence: toEvidence(walk.map(({ request }) => request)),
    }
    return {
      facts: [
        records,
        ...detectTimes(seen),
        ...detectOrder(seen, {}),
        ...detectIds(seen, false),
        ...detectClock(seen, entries),
        ...detectRateLimits(entries),
      ],
      contradictions: [
        this.#checkRange(),
        this.#checkKnownKey(),
        this.#checkUnknownKey(),
        this.#checkTidemark(),
        this.#checkLag(),
      ].filter((found) => found !== null),
    }
  }

  /** A range includes its start. */
  #checkRange(): Contradiction | null {
    if (this.#range === null) return null
    const { row, reading } = this.#range
    const settled = this.#listSettled().filter(({ time }) => time?.micros === row.time?.micros)
    const found = new Set(reading.pages.flatMap(({ rows }) => rows.map(({ key }) => key)))
    const missing = settled.filter(({ key }) => !found.has(key))
    if (!reading.isComplete || missing.length === 0) return null
    return {
      declared: 'range',
      text: `A range that starts at the time of ${missing.length === 1 ? 'a row' : `${missing.length} rows`} does not return ${missing.length === 1 ? 'it' : 'them'}: the time filter is exclusive, or shifted.`,
      evidence: toEvidence(
        reading.pages.map(({ request }) => request),
        missing,
      ),
    }
  }

  #checkKnownKey(): Contradiction | null {
    if (this.#known === null || this.#known.change !== null) return null
    const { row, request } = this.#known
    if (!this.#listSettled().some(({ key }) => key === row.key)) return null
    return {
      declared: 'lookup',
      text: 'The lookup does not find a row that the listing returns: a sweep that confirms by lookup would delete it.',
      evidence: toEvidence([request], [row]),
    }
  }

  #checkUnknownKey(): Contradiction | null {
    if (this.#unknown === null || this.#unknown.change === null || this.#unknown.change.type === 'delete') return null
    const { key, request } = this.#unknown
    return {
      declared: 'lookup',
      text: 'The lookup finds a record for a key that no record has: no deletion would be confirmed.',
      evidence: toEvidence([request], [{ key, time: null }]),
    }
  }

  /** Invariant 12: after a page with a tidemark, no unread row may have a time at or before it. */
  #checkTidemark(): Contradiction | null {
    const pages = this.#first?.pages ?? []
    const known = new Set<string>()
    for (const [index, page] of pages.entries()) {
      for (const row of page.rows) known.add(toVersion(row))
      const isLast = index === pages.length - 1
      const tidemark = parseTime(page.tidemark ?? undefined)
      // In replace mode only the last page of the listing claims.
      if (tidemark === null || (this.#plan.mode === 'replace' && (!isLast || this.#first?.isComplete !== true)))
        continue
      const later = [...pages.slice(index + 1), ...(isLast ? (this.#second?.pages ?? []) : [])]
      for (const next of later) {
        const late = next.rows.find(
          (row) => row.time !== null && row.time.micros <= tidemark.micros && !known.has(toVersion(row)),
        )
        if (late !== undefined)
          return {
            declared: 'tidemark',
            text: `A page claims that all changes up to ${String(tidemark.raw)} are read, and an older one follows.`,
            evidence: toEvidence([page.request, next.request], [late]),
          }
      }
    }
    return null
  }

  /** A row that was written longer than the lag before the first listing must be in it. */
  #checkLag(): Contradiction | null {
    const { lagMs = 0 } = this.#plan
    const first = this.#first
    const second = this.#second
    if (first === null || second === null || !first.isComplete) return null
    const known = new Set(first.pages.flatMap(({ rows }) => rows.map(({ key }) => key)))
    const late = second.pages
      .flatMap(({ rows, request }) => rows.map((row) => ({ row, request })))
      .find(({ row }) => row.time !== null && !known.has(row.key) && row.time.micros / 1_000 + lagMs < first.startedAt)
    if (late === undefined) return null
    return {
      declared: 'lag',
      text: `A row became visible more than the declared lag of ${lagMs / 1_000} s after its time.`,
      evidence: toEvidence([first.pages[0]?.request, late.request], [late.row]),
    }
  }

  /** The rows that both listings returned with the same time. */
  #listSettled(): ProbeRow[] {
    const later = new Set(this.#second?.pages.flatMap(({ rows }) => rows.map(toVersion)))
    return (this.#first?.pages ?? []).flatMap(({ rows }) => rows).filter((row) => later.has(toVersion(row)))
  }
}

function toRow(change: Change): ProbeRow[] {
  if (change.type === 'invalid') return []
  const isDelete = change.type === 'delete'
  return [{ key: change.key, time: parseTime(change.upstreamUpdatedAt), flags: isDelete ? { deleted: true } : {} }]
}

function toVersion({ key, time }: ProbeRow): string {
  return `${key} ${time?.micros}`
}
