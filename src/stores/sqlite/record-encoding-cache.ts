import type { JsonObject, Landing } from '../../contract/index.ts'
import { parseJson, equalsJson } from '../../values/json.ts'
import type { StoredRow } from '../kit/resolve-landing.ts'
import type { EncodedRecord } from '../kit/tables/encode-record.ts'
import type { TenantSession } from './connection.ts'
import { readRow } from './queries.ts'
import type { Table } from './table.ts'
import { required } from '../../values/required.ts'

type UpsertLanding = Extract<Landing, { type: 'upsert' }>

/** The records of a page encoded as columns, each once: to compare it with the stored one, and to write it. */
export class RecordEncodingCache {
  readonly #encodings = new Map<
    UpsertLanding,
    { readonly record: JsonObject; readonly encoded: EncodedRecord; readonly by: Table['encoder'] }
  >()

  encode(landing: UpsertLanding, { encoder }: Table): EncodedRecord {
    const known = this.#encodings.get(landing)
    if (known?.by === encoder) return known.encoded
    const record = known?.record ?? (parseJson(landing.text) as JsonObject)
    const encoded = encoder.encode(record)
    this.#encodings.set(landing, { record, encoded, by: encoder })
    return encoded
  }

  recordOf(landing: UpsertLanding): JsonObject {
    return required(this.#encodings.get(landing), 'The encoded record').record
  }

  /**
   * Records that differ only in the order of their fields are equal. Most different records differ in a column, and
   * need not be decoded.
   */
  isSameRecord(session: TenantSession, table: Table, landing: UpsertLanding, row: StoredRow): boolean {
    const { values, extra } = this.encode(landing, table)
    if (extra === null && row.sequence >= table.since) {
      const stored =
        session.connection.tuple<Array<string | number | null>>(
          `select _extra${table.selected} from ${table.name} where _key = ?`,
          landing.key,
        ) ?? []
      if (stored[0] === null) return table.holds(values, stored, 1)
    }
    return equalsJson(required(readRow(session, table, landing.key), 'The stored row').text, landing.text)
  }
}
