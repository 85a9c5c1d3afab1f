import { isSyncError, SyncError } from '../../contract/index.ts'
import { holderName, isHolderGone } from '../../platform/lease-holder.ts'
import { redactState } from '../../redaction/redact-state.ts'
import { applyStateTransition, planReset } from '../../runner/state-transition.ts'
import { HttpError } from '../http-error.ts'
import type { RouteRequest } from '../route.ts'
import type { ResetDocument } from './documents.ts'

/** Resets the state of a sync if it is still at the given version. Without a version, only returns the plan. */
export async function resetSync({
  caller: { store, name },
  context: { ports, syncs },
  params,
  request,
}: RouteRequest): Promise<ResetDocument> {
  const { worker, sync } = params as { worker: string; sync: string }
  const before = await store.readCheckpoint({ worker, sync }, { forRepair: true })
  const { version: expectedVersion, reason = '' } = request.body as { version?: number; reason?: string }
  const declared = syncs.find(({ plan }) => plan.worker === worker && plan.sync === sync)?.plan ?? null
  const { nextCycle, needsBackfill } = planReset(declared, reason)
  const plan = {
    forgets: redactState(before.committed),
    givesUp: before.inflight === null ? null : { cycle: before.inflight.cycle, pages: before.inflight.page },
    nextCycle,
    needsBackfill: needsBackfill?.sync ?? null,
    heldBy: before.heldBy,
  }
  if (expectedVersion === undefined) return { isDone: false, version: before.version, ...plan }
  if (reason.trim() === '')
    throw new HttpError('INVALID_REQUEST', '`reason` is empty. It is required for the audit log.', {
      details: { reason: 'parameter_invalid' },
    })
  const owner = declared?.owner ?? `${worker}/${sync}`
  try {
    const transition = {
      clock: ports.clock,
      actor: `console:${name}`,
      holder: `console:${holderName()}`,
      isDead: isHolderGone,
    }
    const { version } = await applyStateTransition(
      store,
      { worker, sync },
      { state: null, reason, owner, version: expectedVersion, needsBackfill },
      transition,
    )
    return { isDone: true, version, ...plan }
  } catch (error) {
    throw isSyncError(error) && CONFLICT_CODES.has(error.code) ? new HttpError('CONFLICT', error.message) : error
  }
}

const CONFLICT_CODES = new Set<SyncError['code']>(['LEASE_HELD', 'LEASE_LOST', 'VERSION_CONFLICT'])
