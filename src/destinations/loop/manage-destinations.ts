import { SyncError, type Store } from '../../contract/index.ts'
import { didYouMean } from '../../values/did-you-mean.ts'
import type { DestinationPlan } from './run-destination.ts'

/** Operations on destinations, shared by the CLI and programs. */

/** The actor and time for the audit log. */
export interface DestinationActor {
  readonly actor: string
  readonly at: number
}

/** Throws DESTINATION_UNKNOWN, with the closest name. */
export function findDeclaredDestination<Plan extends DestinationPlan>(declared: readonly Plan[], name: string): Plan {
  const found = declared.find((one) => one.name === name)
  if (found === undefined) throw createUnknownError(declared, name)
  return found
}

/** Throws DESTINATION_UNKNOWN, unless the destination is declared or the store knows it. */
export async function checkDestinationName(
  store: Store,
  declared: readonly DestinationPlan[],
  name: string,
): Promise<void> {
  if ((await store.destinations()).some((one) => one.name === name)) return
  findDeclaredDestination(declared, name)
}

/** The databases to load again: all of them if none are named. */
export function listResyncDatabases({ name, databases }: DestinationPlan, named: readonly string[]): readonly string[] {
  const unknown = named.find((database) => !databases.includes(database))
  if (unknown !== undefined)
    throw new SyncError(
      'DATABASE_UNKNOWN',
      `Destination ${name} has no database ${JSON.stringify(unknown)}.${didYouMean(unknown, databases)}`,
    )
  return named.length === 0 ? databases : named
}

/** Deletes the rows of a destination and their tokens. */
export async function dropDestinationRows(
  store: Store,
  { destination, databases }: DestinationPlan,
  signal: AbortSignal,
): Promise<void> {
  const session = await destination.open({ tenant: store.tenant, signal })
  try {
    for (const database of databases) await session.remove(database)
  } finally {
    await session.close()
  }
}

function createUnknownError(declared: readonly DestinationPlan[], name: string): SyncError {
  const hint = didYouMean(
    name,
    declared.map((one) => one.name),
  )
  return new SyncError('DESTINATION_UNKNOWN', `There is no destination ${JSON.stringify(name)}.${hint}`)
}
