import type { Column, ColumnKind, JsonObject } from '../contract/index.ts'

/** The fields of records and the kinds of each, as bits of KINDS, by database. */
export class RecordShapes {
  readonly #shapes: KindBitsByDatabase = new Map()
  readonly #addedColumnLists = new Map<string, Set<readonly Column[]>>()

  /** Adds the fields of a record that `known` does not have with these kinds. */
  addRecord(database: string, record: JsonObject, known: RecordShapes): void {
    const landed = getOrCreateShape(known.#shapes, database)
    for (const name of Object.keys(record)) {
      const value = record[name]
      if (value !== undefined) this.#addMember(database, name, toKindBit(value), landed)
    }
  }

  /** The same for a record with known columns. Records of the same shape share one list. */
  addColumns(database: string, columns: readonly Column[], known: RecordShapes): void {
    let noted = this.#addedColumnLists.get(database)
    if (noted === undefined) this.#addedColumnLists.set(database, (noted = new Set()))
    if (noted.has(columns)) return
    noted.add(columns)
    const landed = getOrCreateShape(known.#shapes, database)
    for (const { name, kinds } of columns) this.#addMember(database, name, toKindBits(kinds), landed)
  }

  #addMember(database: string, name: string, bits: number, landed: ReadonlyMap<string, number>): void {
    const before = landed.get(name)
    if (before !== undefined && (before | bits) === before) return
    const shape = getOrCreateShape(this.#shapes, database)
    shape.set(name, (shape.get(name) ?? before ?? 0) | bits)
  }

  merge(columns: Readonly<Record<string, readonly Column[]>>): void {
    for (const [database, seen] of Object.entries(columns)) {
      const shape = getOrCreateShape(this.#shapes, database)
      for (const { name, kinds } of seen) shape.set(name, (shape.get(name) ?? 0) | toKindBits(kinds))
    }
  }

  columns(): Record<string, Column[]> {
    return Object.fromEntries(
      [...this.#shapes].map(([database, shape]) => [
        database,
        [...shape].map(([name, bits]) => ({ name, kinds: KINDS.filter((_, bit) => (bits & (1 << bit)) !== 0) })),
      ]),
    )
  }
}

/** Whether the record has exactly these fields in this order, each of one of its kinds, and no nested value. */
export function hasColumns(record: JsonObject, columns: readonly Column[]): boolean {
  const names = Object.keys(record)
  return (
    names.length === columns.length &&
    columns.every(({ name, kinds }, index) => {
      const bit = toKindBit(record[name])
      return name === names[index] && bit !== NESTED_BIT && (toKindBits(kinds) & bit) === bit
    })
  )
}

type KindBitsByDatabase = Map<string, Map<string, number>>

function getOrCreateShape(shapes: KindBitsByDatabase, database: string): Map<string, number> {
  let shape = shapes.get(database)
  if (shape === undefined) shapes.set(database, (shape = new Map()))
  return shape
}

function toKindBits(kinds: readonly ColumnKind[]): number {
  return kinds.reduce((bits, kind) => bits | (1 << KINDS.indexOf(kind)), 0)
}

const KINDS: readonly ColumnKind[] = ['bigint', 'boolean', 'integer', 'json', 'number', 'string']
const NESTED_BIT = 1 << 3
const INT64_MAX = 2n ** 63n

/** A bit of KINDS; 0 for null. */
function toKindBit(value: unknown): number {
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
      // A Date is serialized as text.
      return typeof (value as { toJSON?: unknown }).toJSON === 'function' ? 1 << 5 : NESTED_BIT
  }
}
