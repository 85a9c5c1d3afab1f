import type { Row, Store } from '../../contract/index.ts'
import { PAGE_BYTES_MAX } from '../../feed/read-feed-page.ts'
import { listChangedMembers } from '../../values/changed-members.ts'
import { HttpError } from '../http-error.ts'
import { formatPosition } from './explorer-requests.ts'
import { toIso } from './sync-documents.ts'

/** Rows scanned for one response; the client continues with `next`. */
const SCAN_MAX = 5_000
const SCAN_PAGE_SIZE = 1_000
const HISTORY_MAX = 200

/**
 * Reads a page of rows in key order as JSON text, from a store without searches. Records are copied without parsing, so
 * that no number changes.
 */
export async function readRowsJson(
  store: Store,
  database: string,
  { after, limit, search }: { after: string | undefined; limit: number; search: string | undefined },
): Promise<string> {
  const found: Row[] = []
  let [lastKey, scanned, ended] = [after, 0, false]
  const wanted = search?.toLowerCase()
  let bytes = 0
  while (found.length < limit && scanned < SCAN_MAX && bytes < PAGE_BYTES_MAX && !ended) {
    const batchSize = wanted === undefined ? limit + 1 : SCAN_PAGE_SIZE
    const page = await store.rows({
      database,
      limit: batchSize,
      bytesMax: PAGE_BYTES_MAX,
      ...(lastKey !== undefined && { after: lastKey }),
    })
    const pageBytes = page.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0)
    // A short page may also have reached the byte limit.
    ended = page.length < batchSize && pageBytes < PAGE_BYTES_MAX
    for (const row of page) {
      if (found.length === limit) {
        ended = false
        break
      }
      scanned++
      lastKey = row.key
      if (wanted !== undefined && !row.key.toLowerCase().includes(wanted) && !row.text.toLowerCase().includes(wanted))
        continue
      found.push(row)
      bytes += Buffer.byteLength(row.text)
    }
  }
  const next = ended || lastKey === undefined ? 'null' : JSON.stringify(formatPosition({ value: null, key: lastKey }))
  return `{"data":[${found.map(serializeRow).join(',')}],"next":${next},"scanned":${scanned},"scan":null}`
}

/** Reads the history of one key: every page, cycle and commit that changed it. */
export async function readRecordJson(store: Store, database: string, key: string): Promise<string> {
  const entries = await store.history(database, key)
  if (entries.length === 0) throw new HttpError('NOT_FOUND', 'The log has no entry for this key.')
  const history = entries.map((entry, at) => {
    const { sequence, action, worker, sync, cycle, page, committedAt, upstreamAt, text } = entry
    return `${JSON.stringify({ sequence, action, committedAt: toIso(committedAt), upstreamAt, worker, sync, cycle, page, changed: listChangedMembers(entries[at - 1], entry) }).slice(0, -1)},"record":${text ?? 'null'}}`
  })
  const shown = history.toReversed().slice(0, HISTORY_MAX)
  return `{"data":{"database":${JSON.stringify(database)},"key":${JSON.stringify(key)},"isLive":${entries.at(-1)?.action !== 'deleted'},"isCut":${history.length > shown.length},"history":[${shown.join(',')}]}}`
}

/** Copies the record without parsing it. */
export function serializeRow({ key, sequence, committedAt, upstreamAt, text }: Row): string {
  return `${JSON.stringify({ key, sequence, committedAt: toIso(committedAt), upstreamAt }).slice(0, -1)},"record":${text}}`
}
