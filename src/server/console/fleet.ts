import type { Caller } from '../authenticator.ts'
import { allowsScope } from '../api-key.ts'
import type { ServerContext } from '../route.ts'
import type { CycleDocument, FleetDocument, SyncDocument } from './documents.ts'
import { listSyncDocuments } from './sync-documents.ts'

const TENANTS_MAX = 500
/** Concurrent reads, so that one request does not use all connections of the store. */
const READS_MAX = 4

/**
 * Lists the syncs of every tenant that the worker runs for, for its operator; other callers get their own. Of other
 * tenants only declared syncs: their names are those of the worker.
 */
export async function listFleet(context: ServerContext, caller: Caller): Promise<FleetDocument> {
  const { store } = caller
  const served = isOperator(context, caller)
    ? (await store.tenants()).filter((tenant) => tenant !== store.tenant && context.isServedTenant(tenant))
    : []
  const names = served.slice(0, TENANTS_MAX - 1)
  const syncs = [...(await listSyncDocuments(context, store))]
  for (let at = 0; at < names.length; at += READS_MAX) {
    const lists = await Promise.all(
      names
        .slice(at, at + READS_MAX)
        .map((name) => listSyncDocuments(context, store.forTenant(name), { withoutStates: true })),
    )
    for (const list of lists) syncs.push(...list.filter(({ isDeclared }) => isDeclared).map(withoutContent))
  }
  return { syncs, isCut: names.length < served.length }
}

/** An admin of the tenant whose worker runs here operates the worker for all of its tenants. */
export function isOperator({ tenant }: Pick<ServerContext, 'tenant'>, { store, scopes }: Caller): boolean {
  return store.tenant === tenant && allowsScope(scopes, 'admin')
}

/** Invariant 10: messages, reasons and states come from the source of another tenant. Codes and times do not. */
function withoutContent(document: SyncDocument): SyncDocument {
  const { lastError, lastCycle, connection, backfillNeeded } = document
  return {
    ...document,
    heldBy: null,
    tidemark: null,
    connection: connection === null ? null : { ...connection, statusReason: null },
    backfillNeeded: backfillNeeded === null ? null : { ...backfillNeeded, reason: WITHHELD },
    lastError: lastError === null ? null : { ...lastError, message: WITHHELD },
    lastCycle: lastCycle === null ? null : withoutCycleContent(lastCycle),
  }
}

const WITHHELD = 'Only a key of this tenant may see the message.'

function withoutCycleContent(cycle: CycleDocument): CycleDocument {
  const { error } = cycle
  return { ...cycle, endReason: null, error: error === null ? null : { ...error, message: WITHHELD } }
}
