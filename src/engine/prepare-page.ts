import { hash } from 'node:crypto'
import { SyncError, type Change, type Column, type ColumnKind, type ErrorCode, type JsonObject, type Landing, type Quarantined } from '../contract/index.ts'
import { canonicalInstant } from '../values/instant.ts'
import { stringifyJson } from '../values/json.ts'
import { nameOf } from './check-page.ts'
import type { DatabasePlan, Limits } from './sync-plan.ts'

/** A page ready for the door: every record serialised and hashed once, what cannot be landed set apart with the reason. */
export interface PreparedPage {
  readonly landings: Landing[]
  readonly quarantined: Quarantined[]
  readonly columns: Record<string, Column[]>
  /** The newest time of the source on this page, or its last cursor. */
  readonly tidemark: string | null
}

/** Members of records and the kinds met of each, as bits of KINDS, by database. */
type Shapes = Map<string, Map<string, number>>

/** Prepares the pages of one cycle; remembers the members that have landed, so that a page reports only new ones. */
export class PagePreparer {
  readonly #sync: string
  readonly #databases: ReadonlyMap<string, DatabasePlan>
  readonly #home: string
  readonly #limits: Limits
  readonly #landed: Shapes = new Map()

  constructor(sync: string, databases: readonly DatabasePlan[], limits: Limits) {
    this.#sync = sync
    this.#databases = new Map(databases.map((database) => [database.name, database]))
    this.#home = databases[0]!.name
    this.#limits = limits
  }

  async prepare(changes: readonly Change[]): Promise<PreparedPage> {
    const landings: Array<Landing | null> = []
    const quarantined: Quarantined[] = []
    const met: Shapes = new Map()
    const places = new Map<string, Map<string, number>>()
    let newest: string | null = null
    let lastCursor: string | null = null

    for (const change of changes) {
      const database = this.#databaseOf(change)
      let prepared = this.#prepare(change, database)
      if (database.validate !== undefined && 'hash' in prepared) {
        const mismatch = await database.validate((change as Extract<Change, { type: 'upsert' }>).record)
        if (mismatch !== null) prepared = quarantine(change, database.name, prepared.key, 'SCHEMA_MISMATCH', mismatch)
      }
      if ('code' in prepared) {
        quarantined.push(prepared)
        continue
      }
      if (change.type === 'upsert') {
        this.#noteShape(database.name, change.record, met)
        if (change.cursor !== undefined) lastCursor = change.cursor
      }
      if (prepared.upstreamAt !== null && (newest === null || prepared.upstreamAt > newest)) newest = prepared.upstreamAt

      // The same key twice on a page: the newer wins, or the later when the source's times do not tell.
      let placeOf = places.get(database.name)
      if (placeOf === undefined) places.set(database.name, (placeOf = new Map()))
      const earlier = placeOf.get(prepared.key)
      if (earlier !== undefined) {
        const first = landings[earlier]!
        if (first.upstreamAt !== null && prepared.upstreamAt !== null && first.upstreamAt > prepared.upstreamAt) continue
        landings[earlier] = null
      }
      placeOf.set(prepared.key, landings.push(prepared) - 1)
    }
    return { landings: landings.filter((landing) => landing !== null), quarantined, columns: columnsOf(met), tidemark: newest ?? lastCursor }
  }

  /** Only now: a page that is read again reports its members again. */
  landed({ columns }: PreparedPage): void {
    for (const [database, seen] of Object.entries(columns)) {
      const known = shapeOf(this.#landed, database)
      for (const { name, kinds } of seen) known.set(name, (known.get(name) ?? 0) | bitsOf(kinds))
    }
  }

  #databaseOf(change: Change): DatabasePlan {
    if (typeof change !== 'object' || change === null || (change.type !== 'upsert' && change.type !== 'delete')) {
      throw new SyncError('PAGE_INVALID', `${this.#sync}: a change must have the type "upsert" or "delete"; one has ${nameOf((change as Change | null)?.type)}.`)
    }
    const name = change.database ?? this.#home
    const database = this.#databases.get(name)
    if (database === undefined) {
      throw new SyncError('DATABASE_UNKNOWN', `${this.#sync}: a change names the database ${JSON.stringify(name)}, which this sync does not write to.`)
    }
    return database
  }

  #prepare(change: Change, database: DatabasePlan): Landing | Quarantined {
    const keyFault = findKeyFault(change.key)
    if (keyFault !== null) return quarantine(change, database.name, null, 'KEY_INVALID', keyFault)
    const { key } = change
    let upstreamAt: string | null = null
    if (change.upstreamUpdatedAt !== undefined && change.upstreamUpdatedAt !== null) {
      upstreamAt = typeof change.upstreamUpdatedAt === 'string' ? canonicalInstant(change.upstreamUpdatedAt) : null
      if (upstreamAt === null) return quarantine(change, database.name, key, 'TIMESTAMP_INVALID', '`upstreamUpdatedAt` is not an RFC 3339 instant with a zone')
    }
    if (change.type === 'delete') return { type: 'delete', database: database.name, key, upstreamAt }

    const fault = findRecordFault(change.record, this.#limits)
    if (fault !== null) return quarantine(change, database.name, key, fault.code, fault.message)
    const text = writeRecord(change.record)
    if (text === null) return quarantine(change, database.name, key, 'RECORD_INVALID', 'the record cannot be written as a JSON object')
    const unstorable = findTextFault(text)
    if (unstorable !== null) return quarantine(change, database.name, key, 'TEXT_UNSTORABLE', unstorable)
    if (text.length > this.#limits.recordBytesMax / 3) {
      const bytes = Buffer.byteLength(text)
      if (bytes > this.#limits.recordBytesMax) {
        return quarantine(change, database.name, key, 'RECORD_TOO_LARGE', `the record has ${bytes} bytes; at most ${this.#limits.recordBytesMax} are landed`)
      }
    }
    const cursor = typeof change.cursor === 'string' ? change.cursor : null
    return { type: 'upsert', database: database.name, key, text, hash: hash('sha1', text, 'hex').slice(0, HASH_LENGTH), cursor, upstreamAt }
  }

  #noteShape(database: string, record: JsonObject, met: Shapes): void {
    const landed = shapeOf(this.#landed, database)
    for (const name of Object.keys(record)) {
      const value = record[name]
      if (value === undefined) continue
      const bit = kindBit(value)
      const known = landed.get(name)
      if (known !== undefined && (known | bit) === known) continue
      const shape = shapeOf(met, database)
      shape.set(name, (shape.get(name) ?? known ?? 0) | bit)
    }
  }
}

function shapeOf(shapes: Shapes, database: string): Map<string, number> {
  let shape = shapes.get(database)
  if (shape === undefined) shapes.set(database, (shape = new Map()))
  return shape
}

function columnsOf(shapes: Shapes): Record<string, Column[]> {
  return Object.fromEntries([...shapes].map(([database, shape]) => [
    database, [...shape].map(([name, bits]) => ({ name, kinds: KINDS.filter((_, bit) => (bits & (1 << bit)) !== 0) })),
  ]))
}

function bitsOf(kinds: readonly ColumnKind[]): number {
  return kinds.reduce((bits, kind) => bits | (1 << KINDS.indexOf(kind)), 0)
}

const KINDS: readonly ColumnKind[] = ['bigint', 'boolean', 'integer', 'json', 'number', 'string']
const INT64_MAX = 2n ** 63n

/** A bit of KINDS; 0 for null. */
function kindBit(value: unknown): number {
  switch (typeof value) {
    case 'string':
      return 1 << 5
    case 'number':
      return Number.isInteger(value) ? (Number.isSafeInteger(value) ? 1 << 2 : 1 << 4) : 1 << 4
    case 'boolean':
      return 1 << 1
    case 'bigint':
      return value < INT64_MAX && value >= -INT64_MAX ? 1 << 2 : 1 << 0
    default:
      if (value === null) return 0
      // A Date is written as text.
      return typeof (value as { toJSON?: unknown }).toJSON === 'function' ? 1 << 5 : 1 << 3
  }
}

/** 96 bits: kept with every row, and compared only with the hash of the same key. */
const HASH_LENGTH = 24

const KEY_BYTES_MAX = 1_024

function findKeyFault(key: unknown): string | null {
  if (typeof key !== 'string') return `the key is ${nameOf(key)}, not a string`
  if (key === '') return 'the key is empty'
  if (key.includes('\0')) return 'the key contains NUL'
  if (!key.isWellFormed()) return 'the key has a lone surrogate'
  if (key.length > KEY_BYTES_MAX / 3 && Buffer.byteLength(key) > KEY_BYTES_MAX) return `the key has ${Buffer.byteLength(key)} bytes; at most ${KEY_BYTES_MAX} are allowed`
  return null
}

interface Fault {
  readonly code: ErrorCode
  readonly message: string
}

function findRecordFault(record: unknown, limits: Limits): Fault | null {
  if (typeof record !== 'object' || record === null || Array.isArray(record)) return { code: 'RECORD_INVALID', message: `the record is ${nameOf(record)}, not an object` }
  let members = 0
  const visit = (value: unknown, depth: number): Fault | null => {
    switch (typeof value) {
      case 'number':
        return Number.isFinite(value) ? null : { code: 'RECORD_INVALID', message: `the record contains ${value}` }
      case 'function':
      case 'symbol':
        return { code: 'RECORD_INVALID', message: `the record contains a ${typeof value}` }
      case 'object': {
        if (value === null) return null
        if (depth > limits.recordDepthMax) return { code: 'RECORD_TOO_DEEP', message: `the record is nested more than ${limits.recordDepthMax} deep, or contains itself` }
        if (typeof (value as { toJSON?: unknown }).toJSON === 'function') {
          return value instanceof Date && Number.isNaN(value.getTime()) ? { code: 'RECORD_INVALID', message: 'the record contains an invalid Date' } : null
        }
        if (value instanceof Map || value instanceof Set || ArrayBuffer.isView(value)) return { code: 'RECORD_INVALID', message: `the record contains a ${nameOf(value)}` }
        const names = Array.isArray(value) ? null : Object.keys(value)
        members += names?.length ?? 0
        if (members > limits.recordMembersMax) return { code: 'RECORD_TOO_WIDE', message: `the record has more than ${limits.recordMembersMax} members` }
        if (names === null) {
          for (const item of value as unknown[]) {
            const fault = visit(item, depth + 1)
            if (fault !== null) return fault
          }
          return null
        }
        for (const name of names) {
          const fault = visit((value as Record<string, unknown>)[name], depth + 1)
          if (fault !== null) return fault
        }
        return null
      }
      default:
        return null
    }
  }
  return visit(record, 1)
}

/** Null when a `toJSON` inside throws, or makes something else than an object of it. */
function writeRecord(record: JsonObject): string | null {
  try {
    const text = stringifyJson(record) as string | undefined
    return text !== undefined && text.startsWith('{') ? text : null
  } catch {
    return null
  }
}

/**
 * NUL and lone surrogates are where databases differ: one cuts the text, one refuses it, one replaces it. In JSON text
 * both can only stand as \u escapes, and those are rare, so one search clears nearly every record.
 */
function findTextFault(text: string): string | null {
  if (!text.includes('\\u')) return null
  for (const [, backslashes, code] of text.matchAll(/(\\+)u([0-9a-f]{4})/gi)) {
    if (backslashes!.length % 2 === 0) continue
    if (code === '0000') return 'the record contains NUL'
    if (/^d[89a-f]/i.test(code!)) return 'the record has a lone surrogate'
  }
  return null
}

const QUARANTINE_TEXT_MAX = 65_536

function quarantine(change: Change, database: string, key: string | null, code: ErrorCode, message: string): Quarantined {
  return { database, key, code, message, text: printable(change.type === 'upsert' ? { key: change.key, record: change.record } : { key: change.key }) }
}

/** As much of a record as any database can keep. */
function printable(value: unknown): string {
  let text: string
  try {
    text = JSON.stringify(value, (_, member: unknown) => (typeof member === 'bigint' ? member.toString() : member)) ?? 'undefined'
  } catch {
    text = '(cannot be written as JSON)'
  }
  return text.slice(0, QUARANTINE_TEXT_MAX).toWellFormed().replaceAll('\0', '\u2400')
}
