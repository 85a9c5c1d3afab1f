import type { Clock, Store, StoredColumnRules } from '../contract/index.ts'
import type { SyncPlan } from '../engine/sync-plan.ts'
import { parseFingerprint, type ColumnPlan } from '../transforms/column-rules.ts'
import { planConversion } from '../transforms/plan-conversion.ts'

/** A database whose rows may follow other column rules than those that the worker declares. */
export interface ColumnRuleChange {
  readonly database: string
  /** The sync that reads every record of the database. */
  readonly sync: string
  /** The command that requests it, or lists the quarantined records. */
  readonly command: string
  /** The command that rewrites the stored rows without the source; absent if they do not have what the rules need. */
  readonly rewrite?: string
  /** Only these rows do not follow the rules: their records are quarantined. Absent if any row may not. */
  readonly quarantinedRows?: number
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
        if (applied !== declared) {
          const used = known?.used ?? [{ rules: '' }]
          changes.push({
            database,
            sync: plan.sync,
            command: getCommand(plan),
            ...(used.length > 0 &&
              used.every(({ rules }) => isConvertible(rules, columns ?? null)) && {
                rewrite: `npx tidemark columns apply ${database}`,
              }),
          })
          continue
        }
        const quarantinedRows = known === undefined ? 0 : await countOlderRows(store, known)
        const command = 'npx tidemark quarantine list'
        if (quarantinedRows > 0) changes.push({ database, sync: plan.sync, command, quarantinedRows })
      }
    }
  }
  return changes
}

export function describeColumnRuleChange({ database, sync, quarantinedRows }: ColumnRuleChange): string {
  if (quarantinedRows !== undefined)
    return `rows of ${database} that do not follow its column rules, because their records are quarantined: ${quarantinedRows}`
  return `the column rules of ${database} have changed; its rows follow them after ${sync} has read every record again`
}

/** A quarantined record leaves its row as it is, also if the row was written before the rules. */
async function countOlderRows(store: Store, { worker, sync, database, since }: StoredColumnRules): Promise<number> {
  let rows = 0
  if (since === 0) return rows
  for (const entry of await store.quarantineEntries({ ref: { worker, sync }, limit: QUARANTINED_ROWS_MAX })) {
    if (entry.database !== database || entry.key === null) continue
    const row = await store.row(database, entry.key)
    if (row !== null && row.sequence <= since) rows++
  }
  return rows
}

/** Each is one read. */
const QUARANTINED_ROWS_MAX = 1_000

async function hasRun(store: Store, { worker, sync }: SyncPlan, clock: Clock): Promise<boolean> {
  const { syncs } = await store.listSyncStatus({ at: clock.now(), recent: 1, ref: { worker, sync } })
  return syncs.some(({ checkpoint, recent }) => checkpoint.version > 0 || recent.length > 0)
}

function isConvertible(rules: string, columns: ColumnPlan | null): boolean {
  const known = parseFingerprint(rules)
  return known !== null && planConversion(known, columns).kind !== 'lost'
}

function getCommand({ sync, mode }: SyncPlan): string {
  return mode === 'replace' ? `npx tidemark trigger ${sync}` : `npx tidemark state reset ${sync}`
}
