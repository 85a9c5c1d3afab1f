import type { Schedule } from '../../config/schedule.ts'
import type { DestinationProgress, DestinationStatus, Store } from '../../contract/index.ts'
import { computeHealth, type Health } from '../../runner/health.ts'
import { computeDestinationDue, type DestinationDue } from './destination-due.ts'
import type { DestinationPlan } from './run-destination.ts'

export type ScheduledDestination = DestinationPlan & { readonly schedule: Schedule }

/** A destination as operators see it: its declaration, its stored status, and its distance from the head of the log. */
export interface DestinationOverview {
  readonly name: string
  /** Null if only the store knows it. */
  readonly plan: ScheduledDestination | null
  /** Undefined before the first run or request. */
  readonly status: DestinationStatus | undefined
  readonly health: Health
  /** The age of the oldest change that is not applied; 0 if it is current, null until every database is loaded. */
  readonly lagMs: number | null
  /** Entries of the log that the slowest database has not read; null before the first run. */
  readonly behind: number | null
  readonly due: DestinationDue | null
  readonly databases: readonly (DestinationProgress | NewDatabase)[]
}

/** A declared database that no run has begun. */
export interface NewDatabase {
  readonly database: string
  readonly state: 'new'
}

/** Lists declared destinations in their order, then those that only the store knows. `store` is null if it does not exist yet. */
export async function readDestinationOverviews(
  store: Store | null,
  declared: readonly ScheduledDestination[],
  now: number,
): Promise<DestinationOverview[]> {
  const stored = new Map(((await store?.destinations()) ?? []).map((status) => [status.name, status]))
  const names = new Set([...declared.map(({ name }) => name), ...stored.keys()])
  const headSequence = (await store?.headSequence()) ?? 0
  const overviews: DestinationOverview[] = []
  for (const name of names) {
    const plan = declared.find((one) => one.name === name) ?? null
    const status = stored.get(name)
    const databases = listDatabases(plan, status)
    overviews.push({
      name,
      plan,
      status,
      health: computeDestinationHealth(status, databases),
      lagMs: store === null ? null : await readLagMs(store, databases, headSequence, now),
      behind: countBehind(databases, headSequence),
      due: plan === null ? null : computeDestinationDue(plan, plan.schedule, status, { now, since: now, headSequence }),
      databases,
    })
  }
  return overviews
}

function listDatabases(
  plan: ScheduledDestination | null,
  status: DestinationStatus | undefined,
): DestinationOverview['databases'] {
  const progress = new Map(status?.databases.map((one) => [one.database, one]))
  const names = plan?.databases ?? [...progress.keys()]
  return names.map((database) => progress.get(database) ?? { database, state: 'new' })
}

/** A database that failed needs a person at once. While one is loading, the copy is not complete. */
function computeDestinationHealth(
  status: DestinationStatus | undefined,
  databases: DestinationOverview['databases'],
): Health {
  if (status === undefined) return 'INITIALIZING'
  const { isPaused: paused, failures, error, endedAt } = status
  if (!paused && databases.some(({ state }) => state === 'failed')) return 'ERROR'
  const lastError = error === null ? null : { ...error, at: endedAt ?? 0 }
  const isLoaded = databases.every(({ state }) => state !== 'new' && state !== 'loading')
  return computeHealth({ paused, failures, lastError, lastSuccessAt: isLoaded ? endedAt : null }, null)
}

function countBehind(databases: DestinationOverview['databases'], headSequence: number): number | null {
  if (databases.every(({ state }) => state === 'new')) return null
  const read = databases.map((one) => (one.state === 'new' ? 0 : one.readSequence))
  return Math.max(0, headSequence - Math.min(headSequence, ...read))
}

const SCAN_MAX = 100_000

/** Databases that were read up to the same sequence are asked for together. */
async function readLagMs(
  store: Store,
  databases: DestinationOverview['databases'],
  headSequence: number,
  now: number,
): Promise<number | null> {
  const groups = new Map<number, string[]>()
  for (const one of databases) {
    if (one.state === 'new' || one.state === 'loading' || one.readSequence === 0) return null
    if (one.readSequence < headSequence)
      groups.set(one.readSequence, [...(groups.get(one.readSequence) ?? []), one.database])
  }
  let lagMs = 0
  for (const [after, names] of groups) {
    const page = await store.feed({ after, limit: 1, databases: names, scanMax: SCAN_MAX, bytesMax: 1 })
    const [oldest] = page.entries
    const isScanned = page.scannedSequence >= page.headSequence
    const since = oldest?.committedAt ?? (isScanned ? null : page.scannedCommittedAt)
    if (since !== null) lagMs = Math.max(lagMs, now - since)
  }
  return databases.length === 0 ? null : Math.max(0, lagMs)
}
