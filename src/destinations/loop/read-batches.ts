import type {
  DestinationChange,
  DestinationMode,
  FeedPage,
  JsonObject,
  Row,
  RowsQuery,
  Store,
} from '../../contract/index.ts'
import { parseJson } from '../../values/json.ts'
import { compactChanges } from './compact-changes.ts'
import { RowChange } from './row-change.ts'

/** The bounds of a batch. One batch is applied while the next one is read, so memory holds two. */
export interface BatchLimits {
  readonly rowsMax: number
  readonly bytesMax: number
}

export const DEFAULT_LIMITS: BatchLimits = { rowsMax: 50_000, bytesMax: 4_000_000 }

const SCAN_MAX = 1_000_000
const PAGE_ROWS = 5_000

/** A part of a load: rows in order of key. */
export interface RowsPart {
  readonly changes: DestinationChange[]
  /** The fields of `DestinationChange.values`. */
  readonly members: readonly string[]
  /** The last key that was read; null if no rows are left. */
  readonly after: string | null
}

/**
 * Reads current rows above a key, up to the limits. Rows that changed after `sequence` are left out: the feed from
 * `sequence` on has them. `byValues`: the destination reads values, where the store has them.
 */
export async function readRows(
  store: Store,
  { database, byValues }: { readonly database: string; readonly byValues: boolean },
  sequence: number,
  from: string,
  { rowsMax, bytesMax }: BatchLimits,
): Promise<RowsPart> {
  const changes: DestinationChange[] = []
  let members: readonly string[] | null = null
  let bytes = 0
  let after = from
  let isByValues = byValues
  while (changes.length < rowsMax && bytes < bytesMax) {
    const query: RowsQuery = {
      database,
      limit: Math.min(PAGE_ROWS, rowsMax),
      bytesMax: Math.max(1, bytesMax - bytes),
      ...(after !== '' && { after }),
    }
    const page = isByValues && store.rowValues !== undefined ? await store.rowValues(query) : null
    if (page === null) {
      const rows: Row[] = await store.rows(query)
      const last = rows.at(-1)
      if (last === undefined) return { changes, members: members ?? [], after: null }
      after = last.key
      for (const row of rows) {
        bytes += row.text.length
        if (row.sequence <= sequence) changes.push(toChange(row))
      }
      continue
    }
    if (page.length === 0) return { changes, members: members ?? [], after: null }
    members ??= page.members
    // A field was added in the meantime. The values of a batch have one order, so this page begins the next one.
    if (!isSameList(members, page.members)) return { changes, members, after }
    after = page.key(page.length - 1)
    bytes += page.bytes
    let texts = 0
    for (let index = 0; index < page.length; index++) {
      const text = page.text(index)
      if (text !== null) texts++
      if (page.sequence(index) > sequence) continue
      changes.push(
        text === null
          ? new RowChange(page, index)
          : toChange({
              key: page.key(index),
              sequence: page.sequence(index),
              committedAt: page.committedAt(index),
              text,
            }),
      )
    }
    // Such rows are read twice by a store that reads values.
    if (texts * 2 > page.length) isByValues = false
  }
  return { changes, members: members ?? [], after }
}

function toChange({ key, sequence, committedAt, text }: Omit<Row, 'database' | 'upstreamAt'>): DestinationChange {
  return { key, action: 'created', sequence, committedAt, record: parseJson(text) as JsonObject, text }
}

function isSameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((name, at) => name === b[at])
}

/** A part of the feed of one database. */
export interface FeedPart {
  readonly changes: DestinationChange[]
  /** Every change up to this sequence is in `changes`, or before them. */
  readonly sequence: number
  readonly committedAt: number
  readonly headSequence: number
  readonly floor: number
}

/** Reads the changes of a database after a sequence, up to the limits, and compacts them. */
export async function readFeed(
  store: Store,
  { database, mode }: { readonly database: string; readonly mode: DestinationMode },
  from: number,
  { rowsMax, bytesMax }: BatchLimits,
): Promise<FeedPart> {
  const changes: DestinationChange[] = []
  let bytes = 0
  let after = from
  for (;;) {
    const page: FeedPage = await store.feed({
      after,
      limit: Math.min(PAGE_ROWS, rowsMax),
      databases: [database],
      scanMax: SCAN_MAX,
      bytesMax: Math.max(1, bytesMax - bytes),
    })
    for (const { key, action, sequence, committedAt, text } of page.entries) {
      bytes += text?.length ?? 0
      changes.push({
        key,
        action,
        sequence,
        committedAt,
        record: text === null ? null : (parseJson(text) as JsonObject),
        text,
      })
    }
    const isStuck = page.scannedSequence <= after
    after = Math.max(after, page.scannedSequence)
    if (after >= page.headSequence || changes.length >= rowsMax || bytes >= bytesMax || isStuck)
      return {
        changes: compactChanges(mode, changes),
        sequence: after,
        committedAt: isStuck ? 0 : page.scannedCommittedAt,
        headSequence: page.headSequence,
        floor: page.floor,
      }
  }
}
