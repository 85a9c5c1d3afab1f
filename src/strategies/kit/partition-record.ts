import type { JsonValue, Mode } from '../../contract/index.ts'
import { stateRejectedError } from './strategy-errors.ts'

/** The stored row of a partition: its value in the list, and how far it was read. */
export interface PartitionRecord<Value, State> {
  readonly value: Value
  /** The cycle that listed it last. A partition that a complete list omits has an older one. */
  readonly listed: number
  /** The cycle that read it to its end last; absent if none has. */
  readonly done?: number
  /** The state to read it with; absent if it begins, or if the sync has a global cursor. */
  readonly state?: State
  /** `state` is between two pages; `start` is the state that the reading began with. */
  readonly isPartial?: true
  readonly start?: State
}

/** A replace cycle reads every partition from its start, so it keeps nothing of an earlier cycle. */
export function listPartition<Value, State>(
  record: PartitionRecord<Value, State> | undefined,
  { value, cycle, mode }: { readonly value: Value; readonly cycle: number; readonly mode: Mode },
): PartitionRecord<Value, State> {
  return record === undefined || (mode === 'replace' && record.listed !== cycle)
    ? { value, listed: cycle }
    : { ...record, value, listed: cycle }
}

/** After a page that is not the last of its partition. `start` is the state of the request. */
export function movePartition<Value, State>(
  { value, listed, done, isPartial, start }: PartitionRecord<Value, State>,
  requested: State | undefined,
  next: State,
): PartitionRecord<Value, State> {
  const from = isPartial === true ? start : requested
  return {
    value,
    listed,
    ...(done !== undefined && { done }),
    state: next,
    isPartial: true,
    ...(from !== undefined && { start: from }),
  }
}

/** After the last page of a partition. `state` is undefined if the partition keeps none of its own. */
export function completePartition<Value, State>(
  { value, listed }: PartitionRecord<Value, State>,
  state: State | undefined,
): PartitionRecord<Value, State> {
  return { value, listed, done: listed, ...(state !== undefined && { state }) }
}

/** The state with which the reading began: the source rejected a later one. */
export function restartPartition<Value, State>({
  value,
  listed,
  done,
  start,
}: PartitionRecord<Value, State>): PartitionRecord<Value, State> {
  return { value, listed, ...(done !== undefined && { done }), ...(start !== undefined && { state: start }) }
}

export function parsePartitionRecord<Value, State>(state: JsonValue): PartitionRecord<Value, State> {
  const record = state as unknown as Partial<PartitionRecord<Value, State>> | null
  if (typeof record !== 'object' || record === null || !Number.isSafeInteger(record.listed))
    throw stateRejectedError('partitioned', 'a partition has no `listed`')
  return record as PartitionRecord<Value, State>
}
