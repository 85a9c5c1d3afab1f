import { SyncError, type Checkpoint, type SourceConnection } from '../contract/index.ts'
import type { CycleOptions } from './cycle-options.ts'
import type { SyncPlan } from './sync-plan.ts'

/** Opens the connection that a sync names, for the tenant of the store. */
export function openConnection(
  { store, ports }: Pick<CycleOptions, 'ports'> & { readonly store: CycleOptions['store'] | null },
  name: string,
): Promise<SourceConnection> {
  if (ports.connections === undefined || store === null)
    throw new SyncError('CONNECTION_INVALID', `The connection ${name} cannot be opened without a store.`)
  return ports.connections.open(store, name)
}

/**
 * The scope of a cycle: that of its plan, with the account and the scopes of the connection. A listing of another
 * account, or with other permissions, omits rows, so its sweep stops and asks (invariant 11).
 */
export async function readDeclaredScope(plan: SyncPlan, options: CycleOptions): Promise<string | null> {
  if (plan.connection == null) return plan.scope
  const { provider, account, scopes } = await openConnection(options, plan.connection)
  const parts = [provider, account?.id ?? '', ...scopes].map(encodeURIComponent)
  return [...(plan.scope === null ? [] : [plan.scope]), `connection:${parts.join('/')}`].join(' ')
}

/**
 * Throws SCOPE_CHANGED before anything is read if the sync last completed with another account: records of two accounts
 * must not be mixed, and a cursor of one account means nothing to the other.
 */
export function assertSameAccount(
  { sync, connection }: SyncPlan,
  scope: string | null,
  checkpoint: Checkpoint,
  { allowDeletes }: Pick<CycleOptions, 'allowDeletes'>,
): void {
  if (connection == null || allowDeletes === true) return
  const known = readAccount(checkpoint.scope ?? checkpoint.inflight?.scope ?? null)
  const current = readAccount(scope)
  if (known === '' || current === '' || known === current) return
  throw new SyncError(
    'SCOPE_CHANGED',
    `${sync}: the connection ${connection} now belongs to another account at the vendor. Nothing was read.`,
  )
}

/** Empty if the scope names no account. */
function readAccount(scope: string | null): string {
  return /(?:^| )connection:[^/ ]*\/([^/ ]*)/.exec(scope ?? '')?.[1] ?? ''
}
