import type { Change, Execute, JsonValue } from '../../contract/index.ts'
import type { AnchoredExecute } from '../../strategies/kit/anchored-execute.ts'
import { getAtPath, type FieldPath } from './field-path.ts'

/** Selects records. All filters of a stream must match. */
export interface RecordFilter {
  readonly at: FieldPath
  /** The value is one of these. */
  readonly are?: readonly (string | number | boolean | null)[]
  /** The value is none of these. A missing field matches. */
  readonly not?: readonly (string | number | boolean | null)[]
}

/** Leaves out the other records of a list. The strategy below has counted them. */
export function filterListing<State>(execute: Execute<State>, filters: readonly RecordFilter[] = []): Execute<State> {
  if (filters.length === 0) return execute
  const filtered: Execute<State> = async (state, context) => {
    const page = await execute(state, context)
    return { ...page, changes: page.changes.filter((change) => isSelected(change, filters)) }
  }
  return Object.assign(filtered, execute)
}

/** A changed record that no filter selects may have been in the stream before, so it is deleted. */
export function filterChanges<State>(
  execute: AnchoredExecute<State>,
  filters: readonly RecordFilter[] = [],
): AnchoredExecute<State> {
  if (filters.length === 0) return execute
  const filtered: Execute<State> = async (state, context) => {
    const page = await execute(state, context)
    return {
      ...page,
      changes: page.changes.map((change) => (isSelected(change, filters) ? change : toDeletion(change))),
    }
  }
  return Object.assign(filtered, execute)
}

function isSelected(change: Change, filters: readonly RecordFilter[]): boolean {
  return change.type !== 'upsert' || matchesFilters(change.record, filters)
}

function toDeletion(change: Change): Change {
  if (change.type !== 'upsert') return change
  const { key, upstreamUpdatedAt, database } = change
  return {
    type: 'delete',
    key,
    ...(upstreamUpdatedAt !== undefined && { upstreamUpdatedAt }),
    ...(database !== undefined && { database }),
  }
}

export function matchesFilters(record: JsonValue, filters: readonly RecordFilter[]): boolean {
  return filters.every(({ at, are, not }) => {
    const value = getAtPath(record, at) ?? null
    const isOneOf = (values: readonly unknown[]): boolean => values.some((expected) => equals(value, expected))
    return (are === undefined || isOneOf(are)) && (not === undefined || !isOneOf(not))
  })
}

function equals(value: JsonValue, expected: unknown): boolean {
  return value === expected || (typeof value === 'bigint' && Number(value) === expected)
}
