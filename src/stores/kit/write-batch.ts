import type { JsonObject, Landing } from '../../contract/index.ts'
import { parseJson } from '../../values/json.ts'
import { required } from '../../values/required.ts'
import type { RowWrite } from './plan-landing.ts'
import type { EncodedRecord } from './tables/encode-record.ts'
import type { DriftCollector, TableWithDrift } from './tables/schema-drift.ts'

export type UpsertLanding = Extract<Landing, { type: 'upsert' }>

/** A write of a record, and its values by column. */
export interface UpsertWrite {
  readonly write: RowWrite
  readonly landing: UpsertLanding
  readonly encoded: EncodedRecord
}

/** Consecutive writes of one table, without the new rows, which were handed on already. */
export interface WriteBatch {
  /** Upserts of keys that have a row or a tombstone. */
  readonly upserts: readonly UpsertWrite[]
  readonly deletes: readonly RowWrite[]
  /** Keys whose contests are resolved. */
  readonly contested: readonly string[]
  /** The index of the next write. */
  readonly end: number
  /** The next write needs a column that may be added. */
  readonly needsColumns: boolean
}

/** Encodes records and takes new rows. */
export interface BatchEncoder {
  /** Takes a new row by the text of its record; false if the record must be parsed. */
  takeText?(write: RowWrite, landing: UpsertLanding): boolean
  encode(landing: UpsertLanding, isNew: boolean): { readonly record: JsonObject; readonly encoded: EncodedRecord }
  takeRow(row: UpsertWrite): void
}

/** Rows per batch: the next one is encoded while a server writes the previous one. */
const ROWS_PER_BATCH = 250

/**
 * Collects a batch of writes in the order of their sequences. A new row is encoded only when it is its turn and handed
 * on at once, so that no record outlives it.
 */
export function collectBatch(
  table: TableWithDrift,
  writes: readonly RowWrite[],
  { from, hasGrown }: { from: number; hasGrown: boolean },
  driftCollector: DriftCollector,
  encoder: BatchEncoder,
): WriteBatch {
  const mayAddColumns = !hasGrown && driftCollector.mayAddColumns(table)
  const upserts: UpsertWrite[] = []
  const deletes: RowWrite[] = []
  const contested: string[] = []
  let [end, needsColumns] = [from, false]
  for (; end < writes.length && upserts.length + deletes.length < ROWS_PER_BATCH; end++) {
    const write = required(writes[end], 'A write')
    const { landing, row } = write
    if (landing.database !== table.database) break
    if (landing.type === 'upsert') {
      if (row === undefined && encoder.takeText?.(write, landing) === true) continue
      const { record, encoded } = encoder.encode(landing, row === undefined)
      needsColumns = encoded.needsColumns && mayAddColumns
      if (needsColumns) break
      if (encoded.needsColumns || encoded.misfits !== null)
        driftCollector.recordDrift(table, record, encoded, write.sequence)
      if (row === undefined) encoder.takeRow({ write, landing, encoded })
      else upserts.push({ write, landing, encoded })
    } else deletes.push(write)
    if (row != null && row.contestedBy !== null) contested.push(landing.key)
  }
  return { upserts, deletes, contested, end, needsColumns }
}

/** All records of one database among these writes: new fields of one page get their columns at once. */
export function recordsFrom(writes: readonly RowWrite[], database: string): JsonObject[] {
  return writes.flatMap(({ landing }) =>
    landing.type === 'upsert' && landing.database === database ? [parseJson(landing.text) as JsonObject] : [],
  )
}

/** A change without a time keeps the row's time: older versions stay older, and a deleted version stays deleted. */
export function upstreamAtOf({ landing, row }: Pick<RowWrite, 'landing' | 'row'>): string | null {
  return landing.upstreamAt ?? row?.upstreamAt ?? null
}
