import type { ColumnType, JsonObject } from '../contract/index.ts'

/**
 * Changes the fields of the records of a database before anything is written. Every rule names fields as the source
 * returns them, or as `map` does. The order is fixed: map, select, drop, cast, then hash, mask and encrypt, then rename.
 */
export interface ColumnRules {
  /** The fields to keep. Default: all. */
  readonly select?: readonly string[]
  /** The fields to remove. */
  readonly drop?: readonly string[]
  /** Field → its new name. */
  readonly rename?: Readonly<Record<string, string>>
  /** Field → the column type to convert its values to. */
  readonly cast?: Readonly<Record<string, ColumnType>>
  /** The fields to replace by a hash that is salted per tenant: equal values stay equal within a tenant. */
  readonly hash?: readonly string[]
  /** Field → the number of last characters to keep, or a text to show instead. */
  readonly mask?: Readonly<Record<string, number | string>>
  /** The fields to encrypt with the tenant's key. `tidemark query --reveal` shows their values. */
  readonly encrypt?: readonly string[]
  /** A function that changes the whole record, before all other rules. */
  readonly map?: ColumnMap
}

/** A pure function of a record. */
export interface ColumnMap {
  /** Change it with every change of the function: the stored rows are then known to follow the old one. */
  readonly version: string | number
  /** Returns the new record. If it throws, the record is quarantined without its values. */
  readonly apply: (record: JsonObject, key: string) => JsonObject
}

/** How the value of a protected field is replaced. */
export type Protection =
  | { readonly kind: 'hash'; readonly path: string }
  | { readonly kind: 'mask'; readonly path: string; readonly mask: number | string }
  | { readonly kind: 'encrypt'; readonly path: string }

/** Checked rules of a database. */
export interface ColumnPlan {
  readonly select: readonly string[] | null
  readonly drop: readonly string[]
  readonly cast: ReadonlyArray<readonly [path: string, type: ColumnType]>
  readonly protect: readonly Protection[]
  readonly rename: ReadonlyArray<readonly [from: string, to: string]>
  readonly map: ColumnMap | null
  /** The rules as text: equal for rules with the same effect. `parseFingerprint` reads it. */
  readonly fingerprint: string
}

/** Whether the plan needs the tenant's column key. */
export function needsColumnKey({ protect }: ColumnPlan): boolean {
  return protect.some(({ kind }) => kind !== 'mask')
}

/** The rules as a plan; null if they change nothing. Legal for rules that `checkColumnRules` accepts. */
export function planColumns(rules: ColumnRules): ColumnPlan | null {
  const { select, drop = [], rename = {}, cast = {}, hash: hashed = [], mask = {}, encrypt = [], map } = rules
  const plan = {
    select: select === undefined ? null : select.toSorted(),
    drop: drop.toSorted(),
    cast: Object.entries(cast).toSorted(byName),
    protect: [
      ...hashed.map((path) => ({ kind: 'hash', path }) as const),
      ...Object.entries(mask).map(([path, kept]) => ({ kind: 'mask', path, mask: kept }) as const),
      ...encrypt.map((path) => ({ kind: 'encrypt', path }) as const),
    ].toSorted((a, b) => (a.path < b.path ? -1 : 1)),
    rename: Object.entries(rename).toSorted(byName),
  }
  const version = map === undefined ? null : String(map.version)
  const isEmpty = select === undefined && map === undefined
  if (isEmpty && [plan.drop, plan.cast, plan.protect, plan.rename].every((list) => list.length === 0)) return null
  return { ...plan, map: map ?? null, fingerprint: JSON.stringify({ ...plan, map: version }) }
}

/** Rules by which stored rows were written. Of `map`, only the version is known. */
export interface KnownRules extends Omit<ColumnPlan, 'map' | 'fingerprint'> {
  readonly map: string | null
}

/** The rules of a fingerprint, or of ''; null if it is of another form. */
export function parseFingerprint(fingerprint: string): KnownRules | null {
  if (fingerprint === '') return { select: null, drop: [], cast: [], protect: [], rename: [], map: null }
  try {
    return JSON.parse(fingerprint) as KnownRules
  } catch {
    return null
  }
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : a > b ? 1 : 0
}
