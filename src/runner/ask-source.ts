import { SyncError, type Ports, type Secrets, type SyncContext } from '../contract/index.ts'
import { childLog } from '../engine/child-log.ts'
import { classify } from '../engine/classify.ts'
import { Pacer, type TakeSlots } from '../engine/pacer.ts'
import type { SyncPlan } from '../engine/sync-plan.ts'
import { abortable, rejectAfter } from '../engine/waiting.ts'
import type { Fetch } from '../platform/fetch.ts'

/** What a source is asked with. */
export interface Outside {
  readonly ports: Ports
  readonly fetch: Fetch
  readonly secrets: Secrets
}

/** Asks a source outside of any cycle, as the engine would: paced, bounded in time, and once. Nothing is written. */
export async function askSource<Answer>(
  { ports, secrets, ...outside }: Outside, stopping: AbortSignal, { tenant, plan, pacers }: { readonly tenant: string; readonly plan: SyncPlan; readonly pacers: Readonly<Record<string, number>> }, ask: (context: SyncContext) => Promise<Answer>,
): Promise<Answer> {
  const ending = new AbortController()
  const signal = AbortSignal.any([stopping, ending.signal])
  const pacer = new Pacer(ports, signal, plan.pacers, takeAside(pacers))
  const late = rejectAfter(ports.clock, plan.limits.deadlineMs, signal, () =>
    new SyncError('SOURCE_TIMEOUT', `${plan.sync}: the source took longer than ${plan.limits.deadlineMs} ms.`))
  try {
    const asking = Promise.resolve().then(() => ask({
      clock: ports.clock, random: ports.random, signal, secrets, pacer,
      log: childLog(ports.log, { tenant, worker: plan.worker, sync: plan.sync }),
      fetch: async (input, init = {}) => {
        await pacer.wait()
        return outside.fetch(input, { ...init, signal: init.signal ? AbortSignal.any([signal, init.signal]) : signal })
      },
      cycle: { id: 0, mode: plan.mode, startedAt: ports.clock.now(), page: 1 },
    }))
    return await Promise.race([abortable(asking, signal), late.promise])
  } catch (error) {
    throw stopping.aborted ? new SyncError('CANCELLED', `${plan.sync}: the asking was stopped.`) : classify(error)
  } finally {
    late.cancel()
    ending.abort(new SyncError('CANCELLED', 'The asking is over.'))
  }
}

/** After the last slot given to anybody; what is taken here nobody else knows of. */
function takeAside(given: Readonly<Record<string, number>>): TakeSlots {
  const last = new Map(Object.entries(given))
  return async ({ pacer, count, paceMs, at: now }) => {
    const first = Math.max((last.get(pacer) ?? -Infinity) + paceMs, now)
    last.set(pacer, first + (count - 1) * paceMs)
    return { now, first }
  }
}
