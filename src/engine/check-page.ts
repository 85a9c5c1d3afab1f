import {
  SyncError,
  type Change,
  type JsonValue,
  type Page,
  type RowScope,
  type PartitionChange,
  type PartitionWrite,
  type StateText,
  type TableShape,
} from '../contract/index.ts'
import { canonicalizeInstant } from '../values/instant.ts'
import { findKeyFault } from './check-record.ts'
import { describeType } from './describe-type.ts'
import { findShapeFault } from './table-shapes.ts'

/** A page with a valid structure; its records are checked later, one by one. */
export interface CheckedPage {
  readonly changes: readonly Change[]
  readonly hasMore: boolean
  /** Null if the page has no state. */
  readonly state: StateText
  readonly scope: string | null
  readonly endReason: string | null
  readonly isLog: boolean
  readonly isIncomplete: boolean
  /** Canonical; see Page.tidemark. */
  readonly tidemark: string | null | undefined
  /** Null if the source does not count. */
  readonly left: number | null
  readonly tables: readonly TableShape[]
  readonly partitions: readonly PartitionChange[]
  /** See Page.rows. */
  readonly rows: RowScope | null
}

export function checkPage(sync: string, page: Page, stateBytesMax: number): CheckedPage {
  if (typeof page !== 'object' || page === null)
    throw pageInvalidError(sync, `returned ${describeType(page)} instead of a page`)
  if (!Array.isArray(page.changes))
    throw pageInvalidError(
      sync,
      `returned a page whose \`changes\` is ${describeType(page.changes)} instead of an array`,
    )
  if (typeof page.hasMore !== 'boolean')
    throw pageInvalidError(
      sync,
      `returned a page whose \`hasMore\` is ${describeType(page.hasMore)} instead of true or false`,
    )
  if (page.scope !== undefined && typeof page.scope !== 'string')
    throw pageInvalidError(sync, `returned a page whose \`scope\` is ${describeType(page.scope)} instead of a string`)
  if (
    page.endReason !== undefined &&
    !(typeof page.endReason === 'string' && END_REASON_PATTERN.test(page.endReason))
  ) {
    throw pageInvalidError(
      sync,
      'returned a page whose `endReason` is not a word of lower-case letters, digits and `_`',
    )
  }
  if (page.left !== undefined && !(Number.isSafeInteger(page.left) && page.left >= 0))
    throw pageInvalidError(sync, `returned a page whose \`left\` is not an integer of at least 0`)
  const shapeFault = page.tables === undefined ? null : findShapeFault(page.tables)
  if (shapeFault !== null) throw pageInvalidError(sync, `returned a page whose \`tables\` ${shapeFault}`)
  const tidemark =
    page.tidemark === undefined || page.tidemark === null ? page.tidemark : parseTidemark(sync, page.tidemark)
  if (page.hasMore && page.nextState === undefined) {
    throw new SyncError(
      'STATE_MISSING',
      `${sync}: the page has \`hasMore: true\` but no \`nextState\` for the next page.`,
    )
  }
  const state = page.nextState === undefined ? null : serializeState(sync, page.nextState, stateBytesMax)
  return {
    changes: page.changes,
    hasMore: page.hasMore,
    state,
    scope: page.scope ?? null,
    tidemark,
    endReason: page.hasMore ? null : (page.endReason ?? null),
    isLog: page.isLog === true,
    isIncomplete: page.isIncomplete === true,
    left: page.left ?? null,
    tables: page.tables ?? [],
    partitions: page.partitions === undefined ? [] : checkPartitions(sync, page.partitions, stateBytesMax),
    rows: page.rows === undefined ? null : checkRowScope(sync, page.rows),
  }
}

function checkRowScope(sync: string, rows: RowScope): RowScope {
  const isValid =
    typeof rows?.field === 'string' &&
    Array.isArray(rows.values) &&
    rows.values.every((value: unknown) => typeof value === 'string' || Number.isSafeInteger(value))
  if (isValid) return rows
  throw pageInvalidError(sync, 'returned a page whose `rows` is not a field with texts or whole numbers as its values')
}

function checkPartitions(
  sync: string,
  partitions: readonly PartitionWrite[],
  stateBytesMax: number,
): PartitionChange[] {
  if (!Array.isArray(partitions))
    throw pageInvalidError(
      sync,
      `returned a page whose \`partitions\` is ${describeType(partitions)} instead of an array`,
    )
  const keys = new Set<unknown>()
  return partitions.map(({ key, state }: PartitionWrite, index) => {
    const fault = findKeyFault(key) ?? (keys.has(key) ? 'the key occurs twice' : null)
    if (fault !== null)
      throw pageInvalidError(sync, `returned a page whose \`partitions[${index}]\` is invalid: ${fault}`)
    keys.add(key)
    return { key, state: state === null ? null : serializeState(sync, state, stateBytesMax, `partitions[${index}]`) }
  })
}

function parseTidemark(sync: string, tidemark: unknown): string {
  const instant = typeof tidemark === 'string' ? canonicalizeInstant(tidemark) : null
  if (instant === null)
    throw pageInvalidError(sync, 'returned a page whose `tidemark` is not an RFC 3339 time with a zone')
  return instant
}

/**
 * Serializes state as JSON text, or throws if it would not survive the round trip. The message names the path, never
 * the value.
 */
export function serializeState(sync: string, state: unknown, bytesMax: number, name = 'nextState'): string {
  const fault = findStateFault(state, name, 0)
  if (fault !== null) throw new SyncError('STATE_INVALID', `${sync}: ${fault}.`)
  const text = JSON.stringify(state)
  const bytes = Buffer.byteLength(text)
  if (bytes > bytesMax)
    throw new SyncError(
      'STATE_TOO_LARGE',
      `${sync}: ${name === 'nextState' ? 'the state' : `the state of ${name}`} has ${bytes} bytes; at most ${bytesMax} are allowed.`,
    )
  return text
}

/** Unreadable state is an error, never "no state": that would silently start over or skip ahead. */
export function parseState(sync: string, state: StateText): JsonValue | undefined {
  if (state === null) return undefined
  try {
    return JSON.parse(state) as JsonValue
  } catch (error) {
    throw new SyncError(
      'STATE_UNREADABLE',
      `${sync}: the stored state is not valid JSON (${state.length} characters).`,
      { cause: new Error((error as Error).name) },
    )
  }
}

const STATE_DEPTH_MAX = 64

/** Restricted because it is shown wherever cycles are listed, so no data may leak through it. */
const END_REASON_PATTERN = /^[a-z][a-z0-9_]{0,31}$/

/** A name that a developer would choose. Any other name may be data: a map key, an address, a token. */
const FIELD_NAME_PATTERN = /^[A-Za-z_$]{1,32}$/

function findStateFault(value: unknown, path: string, depth: number): string | null {
  if (depth > STATE_DEPTH_MAX)
    return `${/^\w+/.exec(path)?.[0] ?? 'it'} is nested more than ${STATE_DEPTH_MAX} deep, or contains itself`
  switch (typeof value) {
    case 'string':
      return value.isWellFormed() ? null : `${path} has a lone surrogate`
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0)
        ? null
        : `${path} is ${Object.is(value, -0) ? '-0' : String(value)}`
    case 'boolean':
      return null
    case 'object': {
      if (value === null) return null
      if (Array.isArray(value))
        return findFirstFault(value, (item, index) => findStateFault(item, `${path}[${index}]`, depth + 1))
      const prototype: unknown = Object.getPrototypeOf(value)
      if (prototype !== Object.prototype && prototype !== null)
        return `${path} is ${describeType(value)}, not a plain object`
      return findFirstFault(Object.entries(value), ([name, member]) =>
        findStateFault(member, `${path}.${FIELD_NAME_PATTERN.test(name) ? name : '…'}`, depth + 1),
      )
    }
    default:
      return `${path} is ${describeType(value)}`
  }
}

function findFirstFault<T>(items: readonly T[], check: (item: T, index: number) => string | null): string | null {
  // `entries()` visits the holes of an array, which must be checked as undefined.
  for (const [index, item] of items.entries()) {
    const fault = check(item, index)
    if (fault !== null) return fault
  }
  return null
}

function pageInvalidError(sync: string, what: string): SyncError {
  return new SyncError('PAGE_INVALID', `${sync}: \`execute\` ${what}.`)
}
