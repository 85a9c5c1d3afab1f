import type { Checkpoint, Inflight, Mode } from '../contract/index.ts'
import { canonicalizeInstant, instantToMs, msToInstant } from '../values/instant.ts'

/** The times a page shows. */
export interface PageTimes {
  /** Page.tidemark, canonical. */
  readonly stated: string | null | undefined
  /** Of its upserts. A deletion is often read from another list, which may be ahead of the changes. */
  readonly newest: string | null
  readonly lastCursor: string | null
}

export interface CycleStart {
  readonly mode: Mode
  /** By the clock of the runner that began the cycle, which may be ahead of the source's. */
  readonly startedAtMs: number
}

/** Limits of the tidemark, kept with every page: another runner may complete the cycle, by another clock. */
interface TidemarkBound {
  /** The earliest time of the source at which one of the answers so far was true; null while no answer had a time. */
  readonly readSinceMs: number | null
  /** A page contested rows that nobody could decide about: the stored versions stay, and the tidemark too. */
  readonly isHeld: boolean
}

/**
 * The tidemark of one cycle (invariant 12: no row of the source with a time at or before it is missing or older).
 *
 *   incremental   what the source states moves it page by page. Unstated, it moves when the cycle completes: to the newest
 *                 time among the upserts, and not beyond the cycle's start.
 *   replace       moves only when the cycle completes, and not beyond its start: a listing in any order can show a record
 *                 of this minute on its first page, and one that is an hour behind on its last.
 *
 * The start is that of the source's clock, as its answers tell it, where that is earlier than the runner's.
 */
export class CycleTidemark {
  readonly #committed: string | null
  /** What the cycle leads to if it completes; stored with the cycle under way. */
  readonly candidate: string | null
  /** What is true now. */
  readonly current: string | null
  readonly #bound: TidemarkBound

  private constructor(committed: string | null, candidate: string | null, shown: string | null, bound: TidemarkBound) {
    this.#committed = committed
    this.candidate = candidate
    this.current = shown
    this.#bound = bound
  }

  /** In milliseconds; null while there is none, or it is a cursor. */
  get completeSince(): number | null {
    return this.#committed === null || !isInstant(this.#committed) ? null : instantToMs(this.#committed)
  }

  static create(committed: string | null, inflight: Pick<Inflight, 'tidemark' | 'guardState'> | null): CycleTidemark {
    return new CycleTidemark(committed, inflight?.tidemark ?? null, committed, parseBound(inflight?.guardState ?? null))
  }

  /** `guard` with what the next runner has to know; see Inflight.guardState. */
  serializeWith(guard: object): string {
    return JSON.stringify({ ...guard, tidemark: this.#bound })
  }

  /** An answer was true at this time of the source, and perhaps no longer. */
  withReadTime(ms: number | null): CycleTidemark {
    const { readSinceMs, isHeld } = this.#bound
    if (ms === null || (readSinceMs !== null && readSinceMs <= ms)) return this
    return new CycleTidemark(this.#committed, this.candidate, this.current, { readSinceMs: ms, isHeld })
  }

  /** Whether all answers so far, or before the first one the last complete cycle, are known to be later than this time. */
  isReadAfter(ms: number): boolean {
    const since = this.#bound.readSinceMs ?? this.completeSince
    return since !== null && ms < since
  }

  /** What was complete before is all that the cycle can claim. */
  hold(): CycleTidemark {
    return new CycleTidemark(this.#committed, this.candidate, this.current, { ...this.#bound, isHeld: true })
  }

  /** After a page that is not the last. */
  withPage(mode: Mode, { stated, newest, lastCursor }: PageTimes): CycleTidemark {
    if (mode === 'replace') return this
    return new CycleTidemark(
      this.#committed,
      stated === null ? this.candidate : later(this.candidate, stated ?? newest ?? lastCursor),
      stated === null || stated === undefined ? this.current : later(this.current, stated),
      this.#bound,
    )
  }

  /** After the last page. A tidemark that the source states is taken as it is, also where an earlier claim went further. */
  computeFinal({ mode, startedAtMs }: CycleStart, page: PageTimes): string | null {
    if (page.stated === null) return null
    const sinceMs = Math.min(startedAtMs, this.#bound.readSinceMs ?? Infinity)
    const since = secondBefore(sinceMs)
    // A listing states its lag behind the runner's clock, which may be ahead.
    const aheadMs = startedAtMs - sinceMs
    const listed = page.stated === undefined ? since : earlier(msToInstant(instantToMs(page.stated) - aheadMs), since)
    if (mode !== 'incremental') return this.applyHold(listed)
    if (page.stated !== undefined) return page.stated
    const { candidate } = this.withPage(mode, page)
    return later(this.#committed, candidate === null || !isInstant(candidate) ? candidate : earlier(candidate, since))
  }

  /** Not beyond what was complete before, where it is held. */
  applyHold(tidemark: string | null): string | null {
    if (!this.#bound.isHeld) return tidemark
    return tidemark === null || this.#committed === null ? null : earlier(this.#committed, tidemark)
  }

  complete(tidemark: string | null): CycleTidemark {
    return new CycleTidemark(tidemark, null, tidemark, NO_BOUND)
  }
}

const NO_BOUND: TidemarkBound = { readSinceMs: null, isHeld: false }

function parseBound(guard: string | null): TidemarkBound {
  return guard === null ? NO_BOUND : ((JSON.parse(guard) as { tidemark?: TidemarkBound }).tidemark ?? NO_BOUND)
}

/**
 * Whether the delta of a pair can claim to be complete: only the backfill brings what lies before the delta's first
 * position. A delta without a tidemark has just been given a position, so a backfill that is ordered, under way or
 * failing has to complete first.
 */
export function isCoveredByBackfill(delta: Pick<Checkpoint, 'tidemark'>, backfill: Checkpoint): boolean {
  if (backfill.lastSuccessAt === null || backfill.backfillNeeded !== null) return false
  return delta.tidemark !== null || (backfill.triggeredAt === null && backfill.inflight === null && backfill.failures === 0)
}

/** A source may stamp in whole seconds: what it changes later in this one has a time before now. */
function secondBefore(ms: number): string {
  return msToInstant(Math.floor(ms / 1_000) * 1_000 - 1)
}

/** Canonical instants compare as text; of cursors the latest counts. */
function later(a: string | null, b: string | null): string | null {
  if (a === null || b === null) return b ?? a
  return a > b && isInstant(a) && isInstant(b) ? a : b
}

function earlier(a: string, b: string): string {
  return a < b ? a : b
}

function isInstant(text: string): boolean {
  return canonicalizeInstant(text) === text
}
