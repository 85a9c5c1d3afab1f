import type { Change, Execute, JsonObject, Lookup } from '../../contract/index.ts'
import {
  isAfter,
  sendRequest,
  type SourceConnection,
  type KeysetCursor,
  type SourceRow,
  type SourceVersion,
} from './adversarial-source.ts'

/** Connectors that follow the source's contract, as a careful engineer would write them for the real API. */

interface ListingState {
  readonly token: string
  readonly after: string | null
  /** Consecutive empty pages met with this state. */
  readonly empty: number
}

/**
 * The full listing, by id. Only an empty page ends it, confirmed by a retry where the source is known to send empty
 * pages early.
 */
export function listing(line: SourceConnection, options: { listing: string; stamped: boolean }): Execute<ListingState> {
  const { source } = line
  return async (state, { cycle, signal }) => {
    const { token, after, empty } = state ?? { token: `${options.listing} ${cycle.id}`, after: null, empty: 0 }
    const { rows } = await sendRequest(line, 'list', signal, (fault) =>
      source.list({ listing: options.listing, token, after }, fault),
    )
    if (rows.length === 0) {
      if (isConfirmed(line, empty)) return { changes: [], hasMore: false }
      return { changes: [], hasMore: true, nextState: { token, after, empty: empty + 1 } }
    }
    const last = rows.reduce<string | null>((most, row) => (most === null || row.id > most ? row.id : most), after)
    return {
      changes: rows.map((row) => toChange(row, options.stamped)),
      hasMore: true,
      nextState: { token, after: last, empty: 0 },
    }
  }
}

/** One record, as the listing shows it. */
export function lookup(line: SourceConnection, options: { listing: string; stamped: boolean }): Lookup {
  return async (key, { signal }) => {
    const row = await sendRequest(line, 'lookup', signal, () => line.source.findRecord(key, options.listing))
    return row === null ? null : toChange(row, options.stamped)
  }
}

/** Between cycles only `since` and `deletedSince` count; inside one, the horizon and the cursor below it. */
export interface DeltaState {
  readonly since: number | null
  readonly deletedSince?: number | null
  readonly through?: number
  readonly phase?: 'changes' | 'deletions'
  readonly after?: KeysetCursor | null
  readonly empty?: number
}

export interface DeltaOptions {
  /** How far behind the clock every write is visible and no new one can appear. */
  readonly windowMs: number
  readonly deletions: 'none' | 'inline' | 'apart'
  /** Read the source's clock: our own may be wrong by more than the window allows. */
  readonly usesSourceTime: boolean
}

/**
 * Changes by (timestamp, id), starting at the last timestamp of the last cycle, inclusive. The horizon is fixed with
 * the cycle's first page and kept in state; the frontier moves only past rows that were read.
 */
export function delta(line: SourceConnection, options: DeltaOptions): Execute<DeltaState> {
  const { source } = line
  return async (state, { cycle, signal }) => {
    let through = state?.through
    if (through === undefined) {
      const now = options.usesSourceTime
        ? Math.min(cycle.startedAt, await sendRequest(line, 'time', signal, () => source.sourceTime()))
        : cycle.startedAt
      through = now - options.windowMs
    }
    const phase = state?.phase ?? 'changes'
    const after = state?.after ?? null
    const empty = state?.empty ?? 0
    let since = state?.since ?? null
    let deletedSince = state?.deletedSince ?? null
    const which = phase === 'deletions' ? 'deleted' : options.deletions === 'inline' ? 'both' : 'live'
    const from = phase === 'deletions' ? deletedSince : since
    const { rows } = await sendRequest(line, phase, signal, (fault) =>
      source.changes({ from, after, through, which }, fault),
    )

    if (rows.length === 0) {
      if (!isConfirmed(line, empty))
        return {
          changes: [],
          hasMore: true,
          nextState: { since, deletedSince, through, phase, after, empty: empty + 1 },
        }
      // The frontier moves on evidence only: to the last timestamp seen, never to the horizon itself.
      if (after !== null) {
        if (phase === 'deletions') deletedSince = Math.max(deletedSince ?? 0, after[0])
        else since = Math.max(since ?? 0, after[0])
      }
      if (phase === 'changes' && options.deletions === 'apart') {
        return {
          changes: [],
          hasMore: true,
          nextState: { since, deletedSince, through, phase: 'deletions', after: null, empty: 0 },
        }
      }
      return { changes: [], hasMore: false, nextState: { since, deletedSince } }
    }
    const last = rows.reduce<KeysetCursor | null>(
      (most, { id, version }) => (most === null || isAfter([version.stamp, id], most) ? [version.stamp, id] : most),
      after,
    )
    return {
      changes: rows.map((row) => toChange(row, true)),
      hasMore: true,
      nextState: { since, deletedSince, through, phase, after: last, empty: 0 },
    }
  }
}

function isConfirmed(line: SourceConnection, empty: number): boolean {
  return empty >= (line.source.contract.emptyPages ? 1 : 0)
}

function toChange({ id, version }: SourceRow, stamped: boolean): Change {
  const at = stamped ? { upstreamUpdatedAt: new Date(version.stamp).toISOString() } : {}
  if (version.deleted) return { type: 'delete', key: id, ...at }
  return { type: 'upsert', key: id, record: recordOf(id, version), ...at }
}

/** Plain records carry no version or timestamp: many are equal, and one may return to an earlier value. */
export function recordOf(id: string, { v, unstorable, plain }: SourceVersion): JsonObject {
  const record: JsonObject = plain ? { even: v % 2 === 0 } : { id, v }
  return unstorable ? { ...record, note: 'no\u0000where' } : record
}
