import type { JsonObject } from '../contract/index.ts'
import type { ColumnPlan, KnownRules } from './column-rules.ts'
import { isWithin, moveField, overlaps } from './field-paths.ts'

/** How stored records that follow other rules become records that follow the declared ones. */
export type Conversion =
  | { readonly kind: 'same' }
  | {
      readonly kind: 'convert'
      /** The renames to undo before the rules are applied, as [field of the source, stored name]. */
      readonly undo: ColumnPlan['rename']
      readonly plan: ColumnPlan
    }
  /** The stored records do not have what the new rules need: only the source has it. */
  | { readonly kind: 'lost'; readonly reasons: readonly string[] }

/**
 * Plans the conversion for any record of the source: what it makes of the stored record is what the new rules make of the
 * record itself. `to` is null for no rules. If that is not certain for every record, the plan is `lost`.
 */
export function planConversion(from: KnownRules, to: ColumnPlan | null): Conversion {
  const next: KnownRules = to === null ? NO_RULES : { ...to, map: to.map === null ? null : String(to.map.version) }
  const undo = from.rename.filter((rename) => !isStable(rename, from, next))
  const reasons = [
    ...findMapLoss(from, next),
    ...findSelectLoss(from, next),
    ...findDropLoss(from, next),
    ...findValueLoss(from, next),
    ...findRenameLoss(from, undo),
  ]
  if (reasons.length > 0) return { kind: 'lost', reasons }
  const stable = from.rename.filter((rename) => !undo.includes(rename))
  const isSameSelect = isSame(from.select, next.select)
  const plan: ColumnPlan = {
    select: isSameSelect ? null : next.select,
    // The same rule may not be applicable to fewer fields.
    drop: isSameSelect ? without(next.drop, from.drop) : next.drop,
    cast: without(next.cast, from.cast),
    protect: without(next.protect, from.protect),
    rename: without(next.rename, stable),
    map: from.map === next.map ? null : (to?.map ?? null),
    fingerprint: to?.fingerprint ?? '',
  }
  const isEmpty =
    plan.select === null &&
    plan.map === null &&
    [undo, plan.drop, plan.cast, plan.protect, plan.rename].every((list) => list.length === 0)
  return isEmpty ? { kind: 'same' } : { kind: 'convert', undo, plan }
}

/** The record as it was before it was renamed. */
export function undoRenames(record: JsonObject, renames: ColumnPlan['rename']): JsonObject {
  let result = record
  for (const [from, to] of renames) result = moveField(result, to, from)
  return result
}

const NO_RULES: KnownRules = { select: null, drop: [], cast: [], protect: [], rename: [], map: null }

/** Whether a renamed field can stay where it is: neither name is concerned by a rule that changed. */
function isStable(rename: ColumnPlan['rename'][number], from: KnownRules, next: KnownRules): boolean {
  if (!contains(next.rename, rename) || !isSame(from.select, next.select) || from.map !== next.map) return false
  const changed = [...listPathsWithout(next, from), ...listPathsWithout(from, next)]
  return !changed.some((path) => rename.some((name) => overlaps(path, name)))
}

/** The paths of the rules of one that the other does not have. */
function listPathsWithout(one: KnownRules, other: KnownRules): string[] {
  return [
    ...without(one.drop, other.drop),
    ...without(one.cast, other.cast).map(([path]) => path),
    ...without(one.protect, other.protect).map(({ path }) => path),
    ...without(one.rename, other.rename).flat(),
  ]
}

function findMapLoss(from: KnownRules, next: KnownRules): string[] {
  if (from.map === next.map) return []
  if (from.map !== null) return [`the rows were written by version ${from.map} of \`map\``]
  const removed = [...(from.select ?? []), ...from.drop, ...listChanged(from)]
  return removed.length === 0 ? [] : ['`map` needs records of the source, and the stored ones are changed']
}

function findSelectLoss({ select: kept }: KnownRules, { select }: KnownRules): string[] {
  if (kept === null || isSame(kept, select)) return []
  if (select === null) return ['`select` left other fields out']
  return select.filter((path) => !kept.includes(path)).map((path) => `${path} was left out by \`select\``)
}

function findDropLoss({ drop }: KnownRules, { drop: dropped, select }: KnownRules): string[] {
  return drop
    .filter((path) => !dropped.includes(path) && select?.some((kept) => overlaps(kept, path)) !== false)
    .map((path) => `${path} was removed by \`drop\``)
}

/** Cast, hashed, masked and encrypted values: they stay as they are, or go. */
function findValueLoss(from: KnownRules, next: KnownRules): string[] {
  const reasons: string[] = []
  const newSelect = isSame(from.select, next.select) ? null : next.select
  for (const path of new Set(listChanged(from))) {
    const isGone = next.drop.includes(path) || next.select?.some((kept) => overlaps(kept, path)) === false
    if (isGone) continue
    const isCut =
      without(next.drop, from.drop).some((dropped) => isWithin(dropped, path)) ||
      newSelect?.some((kept) => kept !== path && overlaps(kept, path)) === true
    if (isCut || !isSame(listRulesOf(path, from), listRulesOf(path, next)))
      reasons.push(`the original value of ${path} is not stored`)
  }
  return reasons
}

function listChanged({ cast, protect }: KnownRules): string[] {
  return [...cast.map(([path]) => path), ...protect.map(({ path }) => path)]
}

/** The rules that change the value at the path. A ciphertext also names the column that it is in. */
function listRulesOf(path: string, { cast, protect, rename }: KnownRules): unknown[] {
  return [
    ...cast.filter(([other]) => overlaps(other, path)),
    ...protect
      .filter((protection) => overlaps(protection.path, path))
      .map((protection) => [
        protection,
        protection.kind === 'encrypt' ? rename.find(([name]) => name === protection.path)?.[1] : null,
      ]),
  ]
}

/** A record without the renamed field may have a field of the new name, which then looks like it. */
function findRenameLoss({ select, drop }: KnownRules, undo: ColumnPlan['rename']): string[] {
  return undo
    .filter(([name, to]) => {
      const isUnambiguous = select?.some((kept) => overlaps(kept, to)) === false || drop.includes(to)
      return !isUnambiguous || name.includes('.') || to.includes('.')
    })
    .map(([name, to]) => `it is not certain that ${to} was ${name} in every record`)
}

function without<Item>(items: readonly Item[], others: readonly Item[]): Item[] {
  return items.filter((item) => !contains(others, item))
}

function contains<Item>(items: readonly Item[], item: Item): boolean {
  return items.some((other) => isSame(other, item))
}

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
