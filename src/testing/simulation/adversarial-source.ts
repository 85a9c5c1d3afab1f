import { SyncError } from '../../contract/index.ts'
import type { AnnouncedPauses } from './announced-pauses.ts'
import type { Fault, FaultKind, FaultInjector } from './fault-injector.ts'
import type { RandomStream } from './random-stream.ts'
import type { SimulatedProcess } from './scheduler.ts'
import { required } from '../../values/required.ts'

/** The guarantees of a source; its connector is written for exactly these. */
export interface SourceContract {
  /** A write is visible to every reader at most this long after it was made. */
  readonly lagMs: number
  /** Maximum error of the source's own clock, also when it steps. */
  readonly skewMs: number
  /** Timestamps are truncated to this granularity. */
  readonly granularityMs: number
  readonly pageSize: number
  /** A page may be empty although more follow; a retry with the same state returns the rows. */
  readonly emptyPages: boolean
  /** The order inside a page is arbitrary. */
  readonly shuffled: boolean
  /**
   * A listing never shows less than an earlier one did. If false, it is behind by no more than the lag, and the
   * timestamps of a record differ.
   */
  readonly monotonic: boolean
  /** Records carry no version number. */
  readonly plain: boolean
}

export interface SourceVersion {
  /** Globally unique and increasing. */
  readonly v: number
  readonly stamp: number
  readonly deleted: boolean
  /** The listings that contain the record. */
  readonly listings: readonly string[]
  readonly writtenAt: number
  readonly visibleAt: number
  /** A record that no database can store. */
  readonly unstorable: boolean
  readonly plain: boolean
}

export interface SourceRow {
  readonly id: string
  readonly version: SourceVersion
}

export interface SourcePage {
  readonly rows: SourceRow[]
  /** The timestamp the source reports; nothing may rely on it. */
  readonly claimsMore: boolean
}

export type KeysetCursor = readonly [stamp: number, id: string]

/** A simulated third-party system: its true records, which of them are visible when, and how it misbehaves. */
export class AdversarialSource {
  readonly contract: SourceContract
  requests = 0
  clockErrorMs = 0
  /** Set when the source violates its guarantees: ids left out of a listing, decided when the listing starts. */
  omitFromListing: ((listing: string) => ReadonlySet<string> | null) | null = null
  readonly #records = new Map<string, SourceVersion[]>()
  #ids: string[] = []
  #version = 0
  readonly #now: () => number
  readonly #random: RandomStream
  readonly #faults: FaultInjector
  readonly #emptied = new Set<string>()
  readonly #listings = new Map<string, ReadonlySet<string>>()

  constructor(contract: SourceContract, options: { now: () => number; chance: RandomStream; faults: FaultInjector }) {
    this.contract = contract
    this.#now = options.now
    this.#random = options.chance
    this.#faults = options.faults
  }

  // ── true state ─────────────────────────────────────────────────────────────────────────────────────────────────────

  ids(): readonly string[] {
    return this.#ids
  }

  write(
    id: string,
    options: {
      deleted?: boolean
      listings?: readonly string[]
      unstorable?: boolean
      lagMs?: number
      stamp?: number
    } = {},
  ): void {
    const { granularityMs, monotonic } = this.contract
    const now = this.#now()
    const stamp = options.stamp ?? Math.floor((now + this.clockErrorMs) / granularityMs) * granularityMs
    let versions = this.#records.get(id)
    if (versions === undefined) {
      this.#records.set(id, (versions = []))
      this.#ids = [...this.#ids, id].toSorted()
    }
    versions.push({
      v: ++this.#version,
      stamp: monotonic ? stamp : Math.max(stamp, (versions.at(-1)?.stamp ?? 0) + granularityMs),
      deleted: options.deleted === true,
      listings: options.listings ?? versions.at(-1)?.listings ?? [],
      writtenAt: now,
      visibleAt: now + (monotonic ? (options.lagMs ?? 0) : 0),
      unstorable: options.unstorable === true,
      plain: this.contract.plain,
    })
  }

  versions(id: string): readonly SourceVersion[] {
    return this.#records.get(id) ?? []
  }

  latest(id: string): SourceVersion | undefined {
    return this.#records.get(id)?.at(-1)
  }

  /** The versions visible to a reader at a time. */
  versionAt(id: string, at: number): SourceVersion | undefined {
    return this.#records.get(id)?.findLast((version) => version.visibleAt <= at)
  }

  /** All versions a reader could have seen in an interval. */
  versionsDuring(id: string, from: number, to: number): Array<SourceVersion | undefined> {
    const seen = [this.versionAt(id, from)]
    for (const version of this.versions(id))
      if (version.visibleAt > from && version.visibleAt <= to && (seen[0]?.v ?? 0) < version.v) seen.push(version)
    return seen
  }

  // ── requests ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Live records of a listing by id, above `after`. */
  list(request: { listing: string; token: string; after: string | null }, fault: Fault | null): SourcePage {
    const { lagMs, monotonic } = this.contract
    const at = this.#now() - (monotonic ? 0 : this.#random.int(0, lagMs))
    const hidden = this.#omittedFrom(request.listing, request.token)
    const rows: SourceRow[] = []
    for (const id of this.#ids) {
      const version = this.versionAt(id, at)
      if (version === undefined || version.deleted || !version.listings.includes(request.listing) || hidden.has(id))
        continue
      rows.push({ id, version })
    }
    const start =
      request.after === null ? 0 : rows.findIndex((row) => row.id > required(request.after, 'request.after'))
    return this.#page(rows, start === -1 ? rows.length : start, `list ${request.listing} ${request.after}`, fault)
  }

  /** Records by (timestamp, id), from a timestamp or above a cursor, and never above `through`. */
  changes(
    request: { from: number | null; after: KeysetCursor | null; through: number; which: 'live' | 'deleted' | 'both' },
    fault: Fault | null,
  ): SourcePage {
    const now = this.#now()
    const rows: SourceRow[] = []
    for (const id of this.#ids) {
      const version = this.versionAt(id, now)
      if (version === undefined || version.stamp > request.through) continue
      if (request.which !== 'both' && version.deleted !== (request.which === 'deleted')) continue
      rows.push({ id, version })
    }
    rows.sort((a, b) => a.version.stamp - b.version.stamp || (a.id < b.id ? -1 : 1))
    const start = rows.findIndex(({ id, version }) =>
      request.after === null
        ? request.from === null || version.stamp >= request.from
        : isAfter([version.stamp, id], request.after),
    )
    return this.#page(
      rows,
      start === -1 ? rows.length : start,
      `changes ${request.which} ${request.from} ${String(request.after)} ${request.through}`,
      fault,
    )
  }

  /** One record, if the listing currently contains it. */
  findRecord(id: string, listing: string): SourceRow | null {
    const version = this.versionAt(id, this.#now())
    return version === undefined || version.deleted || !version.listings.includes(listing) ? null : { id, version }
  }

  /** The source's own clock. */
  sourceTime(): number {
    return this.#now() + this.clockErrorMs
  }

  #page(rows: SourceRow[], start: number, place: string, fault: Fault | null): SourcePage {
    const { pageSize, emptyPages, shuffled } = this.contract
    const honest = rows.slice(start, start + pageSize)
    const more = start + pageSize < rows.length
    const answer = (page: SourceRow[], claimsMore = more): SourcePage => ({
      rows: shuffled ? this.#random.shuffle([...page]) : page,
      claimsMore,
    })
    switch (fault?.kind) {
      case 'page-repeated':
        if (start > 0) return answer(rows.slice(Math.max(0, start - pageSize), start))
        break
      case 'rows-duplicated':
        if (honest.length > 0)
          return answer([...honest, ...honest.slice(0, 1 + Math.floor(fault.severity * honest.length))])
        break
      case 'short-page':
        if (honest.length > 1)
          return answer(honest.slice(0, 1 + Math.floor(fault.severity * (honest.length - 1))), true)
        break
      case 'empty-page':
        if (emptyPages && honest.length > 0 && !this.#emptied.has(place)) {
          this.#emptied.add(place)
          return answer([])
        }
        break
      case 'end-flag-early':
        if (more) return answer(honest, false)
        break
      case 'end-flag-never':
        if (!more) return answer(honest, true)
        break
      default:
        return answer(honest)
    }
    this.#faults.withdraw(fault)
    return answer(honest)
  }

  /** Applies to a whole listing: a record omitted on its first page stays omitted to its last. */
  #omittedFrom(listing: string, token: string): ReadonlySet<string> {
    const known = this.#listings.get(token)
    if (known !== undefined) return known
    const hidden = this.omitFromListing?.(listing) ?? new Set<string>()
    this.#listings.set(token, hidden)
    return hidden
  }
}

export interface SourceConnection {
  readonly process: SimulatedProcess
  readonly faults: FaultInjector
  readonly source: AdversarialSource
  readonly latencyMs: () => number
  /** Latency of a successful response; `latencyMs` when absent. */
  readonly responseLatencyMs?: () => number
  /** Time-out of one call in the engine; a response may arrive later than that. */
  readonly deadlineMs: number
  readonly pauses?: AnnouncedPauses
}

/** One request over an unreliable connection. */
export async function sendRequest<T>(
  line: SourceConnection,
  name: string,
  signal: AbortSignal,
  answer: (fault: Fault | null) => T,
): Promise<T> {
  const { process, faults, source, latencyMs, responseLatencyMs: answerMs = latencyMs, deadlineMs } = line
  const label = `source.${name}`
  source.requests++
  line.pauses?.onRequest(process)
  await process.wait(`${label}:before`, latencyMs(), signal)
  const fault = faults.draw(process.name, label, NETWORK_FAULTS)
  switch (fault?.kind) {
    case 'rate-limited':
      await process.wait(`${label}:after`, latencyMs(), signal)
      if (fault.severity < 0.2) throw new SyncError('RATE_LIMITED', 'Slow down.')
      line.pauses?.onPause(process, Math.round(fault.severity * 5_000))
      throw new SyncError('RATE_LIMITED', 'Slow down.', { retryAfterMs: Math.round(fault.severity * 5_000) })
    case 'server-error':
      await process.wait(`${label}:after`, latencyMs(), signal)
      throw new SyncError('SOURCE_UNAVAILABLE', 'The simulated source answered 503.')
    case 'timeout-before':
      await process.wait(`${label}:hangs`, NEVER_MS, signal)
      break
    case 'timeout-after':
      answer(null)
      await process.wait(`${label}:hangs`, NEVER_MS, signal)
      break
    case 'truncated':
      answer(null)
      await process.wait(`${label}:after`, latencyMs(), signal)
      throw new SyncError('SOURCE_INVALID', 'The simulated answer was cut off.')
    default:
  }
  const page = faults.draw(process.name, `${label} page`, PAGE_FAULTS)
  const answered = answer(page)
  // A response that ignores the abort signal and arrives after the caller gave up.
  if (fault?.kind === 'late-answer') await process.wait(`${label}:late`, deadlineMs * (1 + fault.severity))
  else await process.wait(`${label}:after`, answerMs(), signal)
  return answered
}

const NEVER_MS = 400 * 24 * 3_600_000
const NETWORK_FAULTS = [
  'rate-limited',
  'server-error',
  'timeout-before',
  'timeout-after',
  'truncated',
  'late-answer',
] as const satisfies readonly FaultKind[]
const PAGE_FAULTS = [
  'page-repeated',
  'rows-duplicated',
  'short-page',
  'empty-page',
  'end-flag-early',
  'end-flag-never',
] as const satisfies readonly FaultKind[]

export function isAfter([stamp, id]: KeysetCursor, [thanStamp, thanId]: KeysetCursor): boolean {
  return stamp > thanStamp || (stamp === thanStamp && id > thanId)
}
