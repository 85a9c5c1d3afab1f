import type { RowScope, Sweep, SweepScope } from '../contract/index.ts'
import type { ColumnPlan } from '../transforms/column-rules.ts'
import type { CycleContext } from './cycle-context.ts'
import type { OpenCycle } from './open-cycle.ts'
import { getLookupDatabase } from './sync-plan.ts'

/** Lookups of one sweep. A row that the lookup has is not deleted, so all of them must be asked for. */
export const MOVED_LOOKUPS_MAX = 1_000

/**
 * The sweep after single partitions were read: of the rows that the copy has of them. The rows of a partition are known by
 * the value of a field, so nothing is stored with a row for it. A row of another partition has another value and is not
 * considered. A row that moved to another partition, but has the old value in the copy, is found by the lookup.
 *
 * Null if the rows of a partition cannot be distinguished: nothing is deleted then.
 */
export function buildPartitionSweep(
  { plan, options }: CycleContext,
  { settledSequence }: OpenCycle,
  rows: RowScope | null,
): Sweep | null {
  const within = rows === null ? null : toSweepScope(rows, plan.databases[0]?.columns)
  if (rows === null || within === null || plan.partitions?.sweeps !== true) return null
  if (options.store.supportsScopedSweeps !== true) return null
  const lookedUp = getLookupDatabase(plan)
  if (rows.isFixed !== true && lookedUp === null) return null
  const { allowDeletes, actor, trigger } = options
  const { maxShare, allowEmpty } = plan.sweep
  return {
    ...(allowDeletes === true
      ? { maxShare: 1, allowEmpty: true, allowedBy: actor ?? trigger }
      : { maxShare, allowEmpty }),
    settledSequence,
    within,
    ...(lookedUp !== null && { confirmAbsent: { database: lookedUp, limit: MOVED_LOOKUPS_MAX } }),
  }
}

/** The column of the field under the column rules; null if they change its values. */
function toSweepScope({ field, values }: RowScope, columns: ColumnPlan | undefined): SweepScope | null {
  const texts = [...new Set(values.map(String))]
  if (columns === undefined) return { field, values: texts }
  const { select, drop, cast, protect, rename, map } = columns
  const isChanged =
    map !== null ||
    (select !== null && !select.includes(field)) ||
    drop.includes(field) ||
    cast.some(([path]) => path === field) ||
    protect.some(({ path }) => path === field)
  if (isChanged) return null
  return { field: rename.find(([from]) => from === field)?.[1] ?? field, values: texts }
}
