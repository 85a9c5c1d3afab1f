import { SyncError } from '../contract/index.ts'
import { createChildLog } from '../telemetry/child-log.ts'
import { acquireLease } from './acquire-lease.ts'
import { CycleActions } from './cycle-actions.ts'
import type { CycleContext } from './cycle-context.ts'
import { CycleCounters } from './cycle-counters.ts'
import { advance, FIRST_STEP, type CycleStep } from './cycle-machine.ts'
import type { CycleOptions, CycleResult } from './cycle-options.ts'
import { openCycleResources } from './cycle-resources.ts'
import { CycleTrace } from './cycle-trace.ts'
import { buildSkippedResult, endCycle } from './end-cycle.ts'
import { RetryingStore } from './retrying-store.ts'
import type { SyncPlan } from './sync-plan.ts'

/**
 * Runs one cycle: acquires the lease, loads the checkpoint, then executes, checks and commits page by page. While a
 * page commits, the next one is already being read; a failed commit discards it.
 */
export async function runCycle(plan: SyncPlan, options: CycleOptions): Promise<CycleResult> {
  const {
    ports,
    store: { tenant },
    trigger,
  } = options
  const trace = new CycleTrace({ plan, ports, tenant, trigger })
  const log = createChildLog(ports.log, { tenant, worker: plan.worker, sync: plan.sync })
  return trace.traceCycle(() => acquireAndRun(plan, { ...options, ports: { ...ports, log } }, trace))
}

async function acquireAndRun(plan: SyncPlan, options: CycleOptions, trace: CycleTrace): Promise<CycleResult> {
  const startedAt = options.ports.clock.now()
  const counters = new CycleCounters()
  const retryingStore = new RetryingStore(options.store, options.ports, counters)
  const result = await acquireLease(plan, options, retryingStore)
  if (result.kind === 'held') {
    const error = new SyncError('LEASE_HELD', `${plan.sync} is being run by ${result.holder}.`)
    return trace.endCycle(buildSkippedResult(plan, options, { stopReason: 'held', startedAt, error }), null)
  }
  const { lease, checkpoint } = result
  if (checkpoint.paused) {
    await options.store.release(lease)
    const error = new SyncError('PAUSED', `${plan.sync} is paused.`)
    return trace.endCycle(buildSkippedResult(plan, options, { stopReason: 'paused', startedAt, error }), null)
  }
  return driveCycle({ plan, options, retryingStore, counters, trace, lease, checkpoint, startedAt })
}

/** The caller may close the store next, and a renewal of tokens that was begun has to be stored. */
async function settleConnection({ plan, options }: CycleContext): Promise<void> {
  if (plan.connection != null) await options.ports.connections?.settle(options.store.tenant, plan.connection)
}

/** The loop: performs the action of each step, and the machine maps the resulting event to the next step. */
async function driveCycle(context: CycleContext): Promise<CycleResult> {
  const resources = openCycleResources(context)
  const actions = new CycleActions(context, resources)
  try {
    let step: CycleStep = FIRST_STEP
    while (step.state !== 'ending') {
      const { state, action } = step
      try {
        step = advance(state, await actions[action]())
      } catch (thrown) {
        step = advance(state, actions.recordFailure(thrown))
      }
    }
  } finally {
    resources.close()
    await settleConnection(context)
  }
  await resources.pauses.flush(context.options.ports.random)
  return endCycle(context, actions.open, actions.end)
}
