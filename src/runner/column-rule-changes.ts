import type { Clock, Store } from '../contract/index.ts'
import type { SyncPlan } from '../engine/sync-plan.ts'

/** A database whose rows may follow other column rules than those that the worker declares. */
export interface ColumnRuleChange {
  readonly database: string
  /** The sync that reads every record of the database. */
  readonly sync: string
  /** The command that requests it. */
  readonly command: string
}

/** The databases of a worker whose rows do not follow their column rules yet. */
export async function findColumnRuleChanges(
  store: Store,
  plans: readonly SyncPlan[],
  clock: Clock,
): Promise<ColumnRuleChange[]> {
  const changes: ColumnRuleChange[] = []
  for (const worker of new Set(plans.map((plan) => plan.worker))) {
    const stored = await store.columnRules(worker)
    // The listing of its backfill covers the rows of a delta.
    for (const plan of plans.filter((one) => one.worker === worker && one.pair?.role !== 'delta')) {
      for (const { name: database, columns } of plan.databases) {
        const known = stored.find((rules) => rules.sync === plan.sync && rules.database === database)
        const declared = columns?.fingerprint ?? ''
        const applied = known?.fingerprint ?? ((await hasRun(store, plan, clock)) ? '' : declared)
        if (applied !== declared) changes.push({ database, sync: plan.sync, command: getCommand(plan) })
      }
    }
  }
  return changes
}

export function describeColumnRuleChange({ database, sync }: ColumnRuleChange): string {
  return `the column rules of ${database} have changed; its rows follow them after ${sync} has read every record again`
}

async function hasRun(store: Store, { worker, sync }: SyncPlan, clock: Clock): Promise<boolean> {
  const { syncs } = await store.listSyncStatus({ at: clock.now(), recent: 1, ref: { worker, sync } })
  return syncs.some(({ checkpoint, recent }) => checkpoint.version > 0 || recent.length > 0)
}

function getCommand({ sync, mode }: SyncPlan): string {
  return mode === 'replace' ? `npx tidemark trigger ${sync}` : `npx tidemark state reset ${sync}`
}
