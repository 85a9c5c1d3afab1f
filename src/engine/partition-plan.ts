import { SyncError } from '../contract/index.ts'
import { toRangeName } from './range-plan.ts'
import type { SyncPlan } from './sync-plan.ts'

/** A command line and a scope have limits. Above this number, a complete cycle is cheaper. */
const PARTITIONS_MAX = 100

/**
 * Reads single partitions of a sync again through the ordinary commit, each from its start, with a checkpoint of its own:
 * the states of the sync, of its backfill and of its partitions stay. If cycles of the sync delete rows that they do not
 * return, so does this read, limited to the rows of these partitions (see partition-sweep.ts).
 */
export function toPartitionPlan(plan: SyncPlan, given: readonly string[]): SyncPlan {
  const { sync, execute, mode, pair, scope } = plan
  const keys = [...new Set(given)].toSorted()
  if (execute.selectPartitions === undefined)
    throw new SyncError(
      'RANGE_UNSUPPORTED',
      `${sync}: its source has no partitions. Leave out the partitions to read everything.`,
    )
  if (keys.length === 0 || keys.length > PARTITIONS_MAX || keys.includes(''))
    throw new SyncError(
      'ARGUMENT_INVALID',
      `${sync}: give 1 to ${PARTITIONS_MAX} keys of partitions. \`tidemark state get ${sync} --partitions 100\` lists them.`,
    )
  const { pair: _, listings: __, retentionMs: ___, ...shared } = plan
  const described = describePartitions(keys)
  return {
    ...shared,
    sync: toRangeName(pair?.role === 'backfill' ? pair.delta : sync),
    mode: 'replace',
    execute: execute.selectPartitions(keys, mode),
    partitions: { keys, sweeps: mode === 'replace' },
    scope: scope === null ? described : `${described} ${scope}`,
  }
}

/** The partitions as the scope of their checkpoint. */
function describePartitions(keys: readonly string[]): string {
  return `partitions ${JSON.stringify(keys)}`
}
