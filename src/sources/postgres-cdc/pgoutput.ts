import type { Lsn } from './lsn.ts'

/** An unchanged large value that is not sent again. Only the row itself has it. */
export const UNCHANGED_TOAST = Symbol('unchanged')

/** Values in PostgreSQL's text format. */
export type Tuple = (string | null | typeof UNCHANGED_TOAST)[]

export interface Relation {
  readonly oid: number
  readonly schema: string
  readonly name: string
  readonly columns: readonly { readonly name: string; readonly typeOid: number }[]
}

/** A message of the plugin `pgoutput`, protocol version 1: complete transactions in commit order. */
export type PgoutputMessage =
  | { readonly kind: 'begin'; readonly commitLsn: Lsn }
  | { readonly kind: 'commit'; readonly endLsn: Lsn }
  | { readonly kind: 'relation'; readonly relation: Relation }
  | { readonly kind: 'insert'; readonly relationOid: number; readonly row: Tuple }
  /** `oldKey` is set when the key changed; its other columns are null. `oldRow` is set for REPLICA IDENTITY FULL. */
  | {
      readonly kind: 'update'
      readonly relationOid: number
      readonly oldKey: Tuple | null
      readonly oldRow: Tuple | null
      readonly row: Tuple
    }
  | { readonly kind: 'delete'; readonly relationOid: number; readonly old: Tuple }
  | { readonly kind: 'truncate'; readonly relationOids: readonly number[] }
  /** Types and origins, which are ignored. */
  | { readonly kind: 'other' }

export function parseMessage(bytes: Buffer): PgoutputMessage {
  const reader = new PgoutputReader(bytes)
  const tag = reader.char()
  switch (tag) {
    case 'B':
      return { kind: 'begin', commitLsn: reader.lsn() }
    case 'C':
      reader.skip(1 + 8)
      return { kind: 'commit', endLsn: reader.lsn() }
    case 'R':
      return { kind: 'relation', relation: reader.relation() }
    case 'I': {
      const relationOid = reader.uint32()
      reader.skip(1)
      return { kind: 'insert', relationOid, row: reader.tuple() }
    }
    case 'U': {
      const relationOid = reader.uint32()
      const part = reader.char()
      const old = part === 'N' ? null : reader.tuple()
      if (old !== null) reader.skip(1)
      return {
        kind: 'update',
        relationOid,
        oldKey: part === 'K' ? old : null,
        oldRow: part === 'O' ? old : null,
        row: reader.tuple(),
      }
    }
    case 'D': {
      const relationOid = reader.uint32()
      reader.skip(1)
      return { kind: 'delete', relationOid, old: reader.tuple() }
    }
    case 'T': {
      const count = reader.uint32()
      reader.skip(1)
      return { kind: 'truncate', relationOids: Array.from({ length: count }, () => reader.uint32()) }
    }
    case 'Y':
    case 'O':
    case 'M':
      return { kind: 'other' }
    default:
      // Skipping an unknown message could skip data.
      throw new Error(`PostgreSQL sent the message type ${JSON.stringify(tag)}, which is unknown in protocol version 1`)
  }
}

class PgoutputReader {
  readonly #bytes: Buffer
  #offset = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  char(): string {
    return String.fromCharCode(this.#bytes.readUInt8(this.#offset++))
  }

  skip(count: number): void {
    this.#offset += count
  }

  uint32(): number {
    this.#offset += 4
    return this.#bytes.readUInt32BE(this.#offset - 4)
  }

  lsn(): Lsn {
    this.#offset += 8
    return this.#bytes.readBigUInt64BE(this.#offset - 8)
  }

  relation(): Relation {
    const oid = this.uint32()
    // An empty name means pg_catalog.
    const schema = this.#name() || 'pg_catalog'
    const name = this.#name()
    this.skip(1)
    const columns = Array.from({ length: this.#uint16() }, () => {
      this.skip(1)
      const column = { name: this.#name(), typeOid: this.uint32() }
      this.skip(4)
      return column
    })
    return { oid, schema, name, columns }
  }

  tuple(): Tuple {
    const tuple: Tuple = Array.from({ length: this.#uint16() })
    for (let index = 0; index < tuple.length; index++) {
      const kind = this.char()
      if (kind === 't') {
        const length = this.uint32()
        tuple[index] = this.#bytes.toString('utf8', this.#offset, this.#offset + length)
        this.#offset += length
      } else if (kind === 'n') tuple[index] = null
      else if (kind === 'u') tuple[index] = UNCHANGED_TOAST
      else throw new Error(`PostgreSQL sent the value type ${JSON.stringify(kind)}, which was not requested`)
    }
    return tuple
  }

  #uint16(): number {
    this.#offset += 2
    return this.#bytes.readUInt16BE(this.#offset - 2)
  }

  #name(): string {
    const end = this.#bytes.indexOf(0, this.#offset)
    const name = this.#bytes.toString('utf8', this.#offset, end)
    this.#offset = end + 1
    return name
  }
}
