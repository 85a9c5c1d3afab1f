import type { JsonObject, Landing } from '../../contract/index.ts'
import { parseJson, equalsJson } from '../../values/json.ts'
import type { LandingFacts } from '../kit/plan-landing.ts'
import type { StoredRow } from '../kit/resolve-landing.ts'
import type { EncodedRecord } from '../kit/tables/encode-record.ts'
import type { TenantSession } from './connection.ts'
import { readRow } from './queries.ts'
import type { StoredValue, Table } from './table.ts'
import { required } from '../../values/required.ts'

type UpsertLanding = Extract<Landing, { type: 'upsert' }>

/** The records of a page encoded as columns, each once: to compare it with the stored one, and to write it. */
export class RecordEncodingCache {
  readonly #encodings = new Map<
    UpsertLanding,
    { readonly record: JsonObject; readonly encoded: EncodedRecord; readonly by: Table['encoder'] }
  >()
  readonly #landings: readonly Landing[]
  readonly #probes = new Map<string, ColumnProbe>()

  constructor(landings: readonly Landing[]) {
    this.#landings = landings
  }

  /** `isOnce` for a record that is not needed again. */
  encode(
    landing: UpsertLanding,
    { encoder }: Table,
    isOnce = false,
  ): { readonly record: JsonObject; readonly encoded: EncodedRecord } {
    const known = this.#encodings.get(landing)
    if (known?.by === encoder) return known
    const record = known?.record ?? (parseJson(landing.text) as JsonObject)
    const encoding = { record, encoded: encoder.encode(record), by: encoder }
    if (!isOnce) this.#encodings.set(landing, encoding)
    return encoding
  }

  /**
   * Records that differ only in the order of their fields are equal. Most different records differ in a column, and
   * need not be decoded; on one page most differ in the same column, which is then read for all of them at once.
   */
  isSameRecord(
    session: TenantSession,
    table: Table,
    landing: UpsertLanding,
    row: StoredRow,
    find: LandingFacts['find'],
  ): boolean {
    const { values, extra } = this.encode(landing, table).encoded
    if (extra === null && row.sequence >= table.since) {
      const probe = this.#probes.get(table.database)
      const probed = probe?.values.get(landing.key)
      if (probe !== undefined && probed !== undefined && table.differsAt(probe.column, values, probed)) return false
      const stored =
        session.connection.tuple<Array<string | number | null>>(
          `select _extra${table.selected} from ${table.name} where _key = ?`,
          landing.key,
        ) ?? []
      if (stored[0] === null) {
        const column = table.findDifference(values, stored, 1)
        if (column !== -1 && probe === undefined)
          this.#probes.set(table.database, { column, values: this.#readColumn(session, table, column, find) })
        return column === -1
      }
    }
    return equalsJson(required(readRow(session, table, landing.key), 'The stored row').text, landing.text)
  }

  /** Reads one column of the rows whose hash differs; rows with values outside their columns are left out. */
  #readColumn(
    { connection }: TenantSession,
    table: Table,
    column: number,
    find: LandingFacts['find'],
  ): Map<string, StoredValue> {
    const values = new Map<string, StoredValue>()
    const expression = table.selectedAt(column)
    if (expression === null) return values
    const keys = this.#landings.flatMap((landing) => {
      if (landing.type === 'delete' || landing.database !== table.database) return []
      const row = find(landing)
      return row?.status === 'live' && row.hash !== landing.hash ? [landing.key] : []
    })
    const sql = `select _key, ${expression} from (values ${Array.from({ length: KEYS_PER_READ }, () => '(?)').join(',')}) v
      cross join ${table.name} on _key = v.column1 where _extra is null`
    for (let at = 0; at < keys.length; at += KEYS_PER_READ) {
      const batch: Array<string | null> = keys.slice(at, at + KEYS_PER_READ)
      while (batch.length < KEYS_PER_READ) batch.push(null)
      for (const [key, value] of connection.tuples<[string, StoredValue]>(sql, ...batch)) values.set(key, value)
    }
    return values
  }
}

const KEYS_PER_READ = 20

/** A column in which a page differs from the stored rows, and its stored values by key. */
interface ColumnProbe {
  readonly column: number
  readonly values: ReadonlyMap<string, StoredValue>
}
