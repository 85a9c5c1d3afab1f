import { SyncError, type SourceChecks } from '../contract/index.ts'
import { getLookupDatabase, type DatabasePlan, type SyncPlan } from '../engine/sync-plan.ts'
import { didYouMean } from '../values/did-you-mean.ts'
import { required } from '../values/required.ts'

/** How one source of a database can be compared with the copy. */
export interface VerifiedSource {
  /** The syncs that fill the database from this source: one, or the two halves of a pair. */
  readonly syncs: readonly SyncPlan[]
  /** The sync whose lease a repair takes. */
  readonly writer: SyncPlan
  /** Returns all records; null if the source cannot. */
  readonly listing: SyncPlan | null
  /** Whether an absent key of the listing is a deleted record. */
  readonly listsAll: boolean
  readonly lookup: SyncPlan | null
  readonly range: SyncPlan | null
  readonly checks: SourceChecks
  readonly lagMs: number
}

/** A database with everything that fills it. */
export interface VerificationPlan {
  readonly database: DatabasePlan
  readonly worker: string
  readonly sources: readonly VerifiedSource[]
}

/** The plan of a database. Throws if no sync of the worker writes it. */
export function planVerification(plans: readonly SyncPlan[], database: string): VerificationPlan {
  const writers = plans.filter(({ databases }) => databases.some(({ name }) => name === database))
  const first = writers[0]
  if (first === undefined) {
    const known = [...new Set(plans.flatMap(({ databases }) => databases.map(({ name }) => name)))]
    throw new SyncError(
      'ARGUMENT_INVALID',
      `No sync of the worker writes the database ${JSON.stringify(database)}.${didYouMean(database, known)}`,
    )
  }
  const sources = writers
    .filter(({ pair }) => pair?.role !== 'delta' || !writers.some(({ sync }) => sync === pair.backfill))
    .map((plan) => planSource(plan, writers, database))
  return {
    database: required(
      first.databases.find(({ name }) => name === database),
      'database',
    ),
    worker: first.worker,
    sources,
  }
}

function planSource(plan: SyncPlan, writers: readonly SyncPlan[], database: string): VerifiedSource {
  const { pair } = plan
  const delta = pair?.role === 'backfill' ? writers.find(({ sync }) => sync === pair.delta) : undefined
  const syncs = delta === undefined ? [plan] : [delta, plan]
  // Without a state, the first call of a delta returns every record, unless it starts at the end.
  const isListing = plan.mode === 'replace' || (pair === undefined && plan.execute.startsAtEnd !== true)
  return {
    syncs,
    writer: delta ?? plan,
    listing: isListing ? plan : null,
    listsAll: plan.mode === 'replace',
    lookup: syncs.find((one) => getLookupDatabase(one) === database) ?? null,
    range: syncs.find(({ execute }) => execute.range !== undefined) ?? null,
    checks: syncs.find(({ execute }) => execute.checks !== undefined)?.execute.checks ?? {},
    lagMs: Math.max(...syncs.map(({ lagMs = 0 }) => lagMs)),
  }
}
