import { hash } from 'node:crypto'
import {
  SyncError,
  type Change,
  type Column,
  type CommitShape,
  type ErrorCode,
  type JsonObject,
  type Landing,
  type QuarantinedRecord,
  type TableShape,
} from '../contract/index.ts'
import { maskSecrets } from '../redaction/known-secrets.ts'
import { canonicalizeInstant } from '../values/instant.ts'
import { stringifyJson } from '../values/json.ts'
import {
  getSerializedRecord,
  parseSerialized,
  type SerializedRecord,
  type SerializedShape,
} from '../values/serialized-upsert.ts'
import { findKeyFault, findRecordFault, findTextFault, serializeRecord } from './check-record.ts'
import { describeType } from './describe-type.ts'
import { hasColumns, RecordShapes } from './record-shapes.ts'
import type { DatabasePlan, SyncLimits } from './sync-plan.ts'
import { TableShapes } from './table-shapes.ts'
import { required } from '../values/required.ts'

/** A page ready to commit: every record serialized and hashed once, invalid ones quarantined with the reason. */
export interface PreparedPage {
  readonly landings: Landing[]
  readonly quarantined: QuarantinedRecord[]
  readonly columns: Record<string, Column[]>
  /** Shapes that are not committed yet. */
  readonly shapes: CommitShape[]
  /** The newest source time among the upserts on this page. */
  readonly newestUpstreamAt: string | null
  readonly lastCursor: string | null
}

/**
 * Prepares the pages of one cycle. Remembers the fields of committed records, so that a page reports only new ones.
 */
export class PagePreparer {
  readonly #sync: string
  readonly #databases: ReadonlyMap<string, DatabasePlan>
  readonly #defaultDatabase: string
  readonly #limits: SyncLimits
  readonly #landedShapes = new RecordShapes()
  readonly #tableShapes: TableShapes

  constructor(sync: string, databases: readonly DatabasePlan[], limits: SyncLimits) {
    this.#sync = sync
    this.#databases = new Map(databases.map((database) => [database.name, database]))
    this.#defaultDatabase = required(databases[0], 'database of the sync').name
    this.#limits = limits
    this.#tableShapes = new TableShapes(sync, databases)
  }

  async prepare(changes: readonly Change[], tables: readonly TableShape[] = []): Promise<PreparedPage> {
    const landings: Array<Landing | null> = []
    const quarantined: QuarantinedRecord[] = []
    const recordShapes = new RecordShapes()
    const fittingShapes = new Map<SerializedShape, boolean>()
    const indexesByDatabase = new Map<string, Map<string, number>>()
    let newest: string | null = null
    let lastCursor: string | null = null

    for (const item of changes) {
      const database = this.#findDatabase(item)
      const given = getSerializedRecord(item)
      const serialized = given !== null && this.#isFitting(given, fittingShapes) ? given : null
      const change = given === null || serialized !== null ? item : parseSerializedChange(item, given)
      let prepared = this.#prepareChange(change, serialized, database)
      if (database.validate !== undefined && change.type === 'upsert' && !('code' in prepared)) {
        const mismatch = await database.validate(change.record)
        if (mismatch !== null) prepared = quarantine(change, database, prepared.key, 'SCHEMA_MISMATCH', mismatch)
      }
      if ('code' in prepared) {
        quarantined.push(prepared)
        continue
      }
      if (change.type === 'upsert') {
        if (serialized === null) recordShapes.addRecord(database.name, change.record, this.#landedShapes)
        else recordShapes.addColumns(database.name, serialized.shape.columns, this.#landedShapes)
        if (change.cursor !== undefined) lastCursor = change.cursor
        if (prepared.upstreamAt !== null && (newest === null || prepared.upstreamAt > newest))
          newest = prepared.upstreamAt
      }

      // The same key twice on a page: the newer one wins, or the later one if the source's times do not order them.
      let indexByKey = indexesByDatabase.get(database.name)
      if (indexByKey === undefined) indexesByDatabase.set(database.name, (indexByKey = new Map()))
      const earlier = indexByKey.get(prepared.key)
      if (earlier !== undefined) {
        const first = landings[earlier]
        if (
          first !== undefined &&
          first !== null &&
          first.upstreamAt !== null &&
          prepared.upstreamAt !== null &&
          first.upstreamAt > prepared.upstreamAt
        )
          continue
        landings[earlier] = null
      }
      indexByKey.set(prepared.key, landings.push(prepared) - 1)
      // A valid change of the same key replaces the quarantined one.
      const bad = quarantined.findIndex((item) => item.key === prepared.key && item.database === prepared.database)
      if (bad !== -1) quarantined.splice(bad, 1)
    }
    const columns = recordShapes.columns()
    const shapes = this.#tableShapes.collectUncommitted(tables, columns)
    return {
      landings: landings.filter((landing) => landing !== null),
      quarantined,
      columns,
      shapes,
      newestUpstreamAt: newest,
      lastCursor,
    }
  }

  /** Legal only after the commit: a page that is read again reports its fields again. */
  recordLanded({ columns, shapes }: PreparedPage): void {
    this.#landedShapes.merge(columns)
    this.#tableShapes.markCommitted(shapes)
  }

  /**
   * Whether the text can be stored as it is. Every text is checked, but of a trusted shape only the first on the page.
   * After a text that its shape does not describe, the records of the shape are ordinary ones.
   */
  #isFitting(serialized: SerializedRecord, known: Map<SerializedShape, boolean>): boolean {
    const { shape } = serialized
    if (shape.columns.length > this.#limits.recordMembersMax) return false
    const isFitting = known.get(shape)
    if (isFitting === false || (isFitting === true && shape.isTrusted === true)) return isFitting
    if (isFitting === undefined && shape.isTrusted === true && known.size >= TRUSTED_SHAPES_CHECKED_MAX) return true
    const isDescribed = isDescribedByShape(serialized)
    known.set(shape, isDescribed)
    return isDescribed
  }

  #findDatabase(change: Change): DatabasePlan {
    if (typeof change !== 'object' || change === null || !CHANGE_TYPES.has(change.type)) {
      throw new SyncError(
        'PAGE_INVALID',
        `${this.#sync}: a change must have the type "upsert", "delete" or "invalid"; one has ${describeType((change as Change | null)?.type)}.`,
      )
    }
    if (change.type === 'invalid' && typeof change.reason !== 'string') {
      throw new SyncError(
        'PAGE_INVALID',
        `${this.#sync}: a change of the type "invalid" must have a \`reason\`; one has ${describeType(change.reason)}.`,
      )
    }
    const name = change.database ?? this.#defaultDatabase
    const database = this.#databases.get(name)
    if (database === undefined) {
      throw new SyncError(
        'DATABASE_UNKNOWN',
        `${this.#sync}: a change names the database ${JSON.stringify(name)}, which this sync does not write to.`,
      )
    }
    return database
  }

  /** Checks only the text of a record that arrived serialized. */
  #prepareChange(
    change: Change,
    serialized: SerializedRecord | null,
    database: DatabasePlan,
  ): Landing | QuarantinedRecord {
    const keyFault = findKeyFault(change.key)
    if (change.type === 'invalid')
      return quarantine(change, database, keyFault === null ? change.key : null, 'RECORD_INVALID', change.reason)
    if (keyFault !== null) return quarantine(change, database, null, 'KEY_INVALID', keyFault)
    const { key } = change
    let upstreamAt: string | null = null
    if (change.upstreamUpdatedAt !== undefined && change.upstreamUpdatedAt !== null) {
      upstreamAt = typeof change.upstreamUpdatedAt === 'string' ? canonicalizeInstant(change.upstreamUpdatedAt) : null
      if (upstreamAt === null)
        return quarantine(
          change,
          database,
          key,
          'TIMESTAMP_INVALID',
          '`upstreamUpdatedAt` is not an RFC 3339 time with a zone',
        )
    }
    if (change.type === 'delete') return { type: 'delete', database: database.name, key, upstreamAt }

    const fault = serialized === null ? findRecordFault(change.record, this.#limits) : null
    if (fault !== null) return quarantine(change, database, key, fault.code, fault.message)
    const text = serialized === null ? serializeRecord(change.record) : serialized.text
    if (text === null)
      return quarantine(change, database, key, 'RECORD_INVALID', 'the record cannot be serialized as a JSON object')
    const textFault = findTextFault(text)
    if (textFault !== null) return quarantine(change, database, key, 'TEXT_UNSTORABLE', textFault)
    if (text.length > this.#limits.recordBytesMax / 3) {
      const bytes = Buffer.byteLength(text)
      if (bytes > this.#limits.recordBytesMax) {
        return quarantine(
          change,
          database,
          key,
          'RECORD_TOO_LARGE',
          `the record has ${bytes} bytes; at most ${this.#limits.recordBytesMax} are allowed`,
        )
      }
    }
    const cursor = typeof change.cursor === 'string' ? change.cursor : null
    return {
      type: 'upsert',
      database: database.name,
      key,
      text,
      hash: hash('sha1', text, 'base64').slice(0, HASH_LENGTH),
      cursor,
      upstreamAt,
      ...(change.asOf !== undefined && { asOf: change.asOf }),
    }
  }
}

/** A table may have a shape per combination of nulls; checking each would cost as much as parsing every record. */
const TRUSTED_SHAPES_CHECKED_MAX = 32

const CHANGE_TYPES: ReadonlySet<unknown> = new Set(['upsert', 'delete', 'invalid'] satisfies Change['type'][])

/** 96 bits in base64: stored with every row, and compared only with the hash of the same key. */
const HASH_LENGTH = 16

const QUARANTINE_TEXT_MAX = 65_536

function isDescribedByShape(serialized: SerializedRecord): boolean {
  try {
    const record = parseSerialized(serialized)
    return hasColumns(record, serialized.shape.columns) && serializeRecord(record) === serialized.text
  } catch {
    return false
  }
}

/** An ordinary upsert; an invalid change if the text is not JSON. */
function parseSerializedChange(change: Change, { text }: SerializedRecord): Change {
  try {
    return { ...change }
  } catch {
    const { key, database } = change
    const reason = 'the text of the record is not valid JSON'
    return { type: 'invalid', key, reason, raw: text, ...(database !== undefined && { database }) }
  }
}

function quarantine(
  change: Change,
  { name: database, columns }: DatabasePlan,
  key: string | null,
  code: ErrorCode,
  message: string,
): QuarantinedRecord {
  // A record that only a schema rejects is kept whole, because another schema may accept it; its size is already
  // checked.
  const max = code === 'SCHEMA_MISMATCH' ? Number.POSITIVE_INFINITY : QUARANTINE_TEXT_MAX
  // The record is stored as it is; the message may quote secrets, so it is masked.
  return {
    database,
    key,
    code,
    message: toStorableText(maskSecrets(message), max),
    text: toStorableText(serializeChange(change, columns?.fingerprint), max),
  }
}

/** `columns` are the rules that the record already follows, for a replay. */
function serializeChange(change: Change, columns: string | undefined): string {
  const { type: _, database: __, ...rest } = change
  // The reason is stored as the message, where it is masked.
  const stored = change.type === 'invalid' ? { key: change.key, raw: change.raw } : rest
  try {
    return stringifyJson({ ...(stored as JsonObject), ...(columns !== undefined && { columns }) })
  } catch {
    return '(cannot be serialized as JSON)'
  }
}

/** As much of the text as any database can store. */
function toStorableText(text: string, max: number): string {
  return text.slice(0, max).toWellFormed().replaceAll('\0', '\u2400')
}
