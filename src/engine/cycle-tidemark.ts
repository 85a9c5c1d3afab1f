import type { Checkpoint, Inflight, Mode } from '../contract/index.ts'
import { canonicalizeInstant, instantToMs, msToInstant } from '../values/instant.ts'

/** The times in a page. */
export interface PageTimes {
  /** Page.tidemark, canonical. */
  readonly stated: string | null | undefined
  /** The newest time of the upserts. Deletions are excluded: they often come from another list, which may be ahead. */
  readonly newest: string | null
  readonly lastCursor: string | null
}

export interface CycleStart {
  readonly mode: Mode
  /** By the clock of the runner that began the cycle, which may be ahead of the source's clock. */
  readonly startedAtMs: number
}

/** Bounds of the tidemark, stored with every page: another runner, with another clock, may complete the cycle. */
interface TidemarkBound {
  /** The earliest source time at which one of the responses was current; null while no response had a time. */
  readonly readSinceMs: number | null
  /** A page contested rows that could not be resolved: the stored versions and the tidemark stay. */
  readonly isHeld: boolean
  /** A page lacked data that the source has; see Page.isIncomplete. */
  readonly isIncomplete?: true
}

/**
 * The tidemark of one cycle (invariant 12: no row of the source with a time at or before it is missing or older).
 *
 *   incremental   the source's stated tidemark advances it page by page. If none is stated, it advances when the cycle
 *                 completes: to the newest time among the upserts, and not beyond the cycle's start.
 *   replace       advances only when the cycle completes, and not beyond its start: a listing in any order can return
 *                 a record of this minute on its first page, and one that is an hour behind on its last.
 *
 * The start is taken from the source's clock, as seen in its responses, if that is earlier than the runner's.
 */
export class CycleTidemark {
  readonly #committed: string | null
  /** The tidemark if the cycle completes; stored with the unfinished cycle. */
  readonly candidate: string | null
  /** The tidemark that holds now. */
  readonly current: string | null
  readonly #bound: TidemarkBound

  private constructor(
    committed: string | null,
    candidate: string | null,
    current: string | null,
    bound: TidemarkBound,
  ) {
    this.#committed = committed
    this.candidate = candidate
    this.current = current
    this.#bound = bound
  }

  /** In milliseconds; null if there is no tidemark, or if it is a cursor. */
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

  /** Records that a response was current at this source time, and possibly not later. */
  withReadTime(ms: number | null): CycleTidemark {
    const { readSinceMs } = this.#bound
    if (ms === null || (readSinceMs !== null && readSinceMs <= ms)) return this
    return new CycleTidemark(this.#committed, this.candidate, this.current, { ...this.#bound, readSinceMs: ms })
  }

  /** True if all responses so far, or else the last complete cycle, are known to be later than this time. */
  isReadAfter(ms: number): boolean {
    const since = this.#bound.readSinceMs ?? this.completeSince
    return since !== null && ms < since
  }

  /** The cycle cannot claim more than the committed tidemark. */
  hold(): CycleTidemark {
    return new CycleTidemark(this.#committed, this.candidate, this.current, { ...this.#bound, isHeld: true })
  }

  /** Invariant 12: the rows that the source did not show may have any time. */
  markIncomplete(): CycleTidemark {
    const bound = { ...this.#bound, isHeld: true, isIncomplete: true } as const
    return new CycleTidemark(this.#committed, this.candidate, this.#committed, bound)
  }

  get isIncomplete(): boolean {
    return this.#bound.isIncomplete === true
  }

  /** After a page that is not the last. */
  withPage(mode: Mode, { stated, newest, lastCursor }: PageTimes): CycleTidemark {
    if (mode === 'replace' || this.isIncomplete) return this
    return new CycleTidemark(
      this.#committed,
      stated === null ? this.candidate : later(this.candidate, stated ?? newest ?? lastCursor),
      stated === null || stated === undefined ? this.current : later(this.current, stated),
      this.#bound,
    )
  }

  /** After the last page. A tidemark stated by the source is used as it is, even if an earlier one was later. */
  computeFinal({ mode, startedAtMs }: CycleStart, page: PageTimes): string | null {
    if (this.isIncomplete) return this.#committed
    if (page.stated === null) return null
    const sinceMs = Math.min(startedAtMs, this.#bound.readSinceMs ?? Infinity)
    const since = secondBefore(sinceMs)
    // A listing states its lag relative to the runner's clock, which may be ahead.
    const aheadMs = startedAtMs - sinceMs
    const listed = page.stated === undefined ? since : earlier(msToInstant(instantToMs(page.stated) - aheadMs), since)
    if (mode !== 'incremental') return this.applyHold(listed)
    if (page.stated !== undefined) return page.stated
    const { candidate } = this.withPage(mode, page)
    return later(this.#committed, candidate === null || !isInstant(candidate) ? candidate : earlier(candidate, since))
  }

  /** Limits the tidemark to the committed one while it is held. */
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
 * Returns whether the delta of a pair can claim completeness: only the backfill brings records from before the delta's
 * first state. A delta without a tidemark has just received its state, so a backfill that is requested, running or
 * failing has to complete first.
 */
export function isCoveredByBackfill(delta: Pick<Checkpoint, 'tidemark'>, backfill: Checkpoint): boolean {
  if (backfill.lastSuccessAt === null || backfill.backfillNeeded !== null) return false
  return (
    delta.tidemark !== null || (backfill.triggeredAt === null && backfill.inflight === null && backfill.failures === 0)
  )
}

/** A source may use whole seconds: a change later in the current second then has a time before now. */
function secondBefore(ms: number): string {
  return msToInstant(Math.floor(ms / 1_000) * 1_000 - 1)
}

/** Canonical times compare as text; for cursors the last one wins. */
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
