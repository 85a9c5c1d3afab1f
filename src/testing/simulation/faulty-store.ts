import { SyncError, type Store } from '../../contract/index.ts'
import type { FaultInjector } from './fault-injector.ts'
import type { SimulatedProcess } from './scheduler.ts'

/** Options of `createFaultyStore`. */
export interface FaultyStoreOptions {
  readonly process: SimulatedProcess
  readonly faults: FaultInjector
  readonly latencyMs: () => number
  /** Observes every call when it reaches the store. */
  readonly observe?: (method: StoreMethod, args: readonly unknown[], answer: unknown) => Promise<void>
  /** Runs a call whose caller received an ambiguous error, on a process that outlives the caller. */
  readonly runLater: (ms: number, call: () => Promise<unknown>) => void
}

export type StoreMethod = Exclude<keyof Store, 'tenant' | 'forTenant' | 'close'>

const WRITE_METHODS: ReadonlySet<StoreMethod> = new Set([
  'acquire',
  'renew',
  'release',
  'beginCycle',
  'commit',
  'signalSync',
  'compact',
  'cursorSecrets',
  'addApiKey',
  'revokeApiKey',
])

/**
 * Any store behind an unreliable connection. Every call has latency before and after; it may be refused without effect,
 * take effect and return an error, take effect later, or never return because the caller crashed.
 */
export function createFaultyStore(inner: Store, options: FaultyStoreOptions): Store {
  const wrapped: Partial<Record<keyof Store, unknown>> = {
    tenant: inner.tenant,
    supportsSoftDeletes: inner.supportsSoftDeletes,
    supportsScopedSweeps: inner.supportsScopedSweeps,
    close: () => inner.close(),
  }
  wrapped.forTenant = (tenant: string) => createFaultyStore(inner.forTenant(tenant), options)
  for (const method of FAULTY_METHODS) {
    wrapped[method] = (...args: unknown[]) => callWithFaults(inner, options, method, args)
  }
  return wrapped as Store
}

async function callWithFaults(
  inner: Store,
  options: FaultyStoreOptions,
  method: StoreMethod,
  args: unknown[],
): Promise<unknown> {
  const { process, faults, latencyMs, observe, runLater: later } = options
  const label = `store.${method}`
  const apply = async (): Promise<unknown> => {
    const answer = await (inner[method] as (...args: unknown[]) => Promise<unknown>)(...args)
    await observe?.(method, args, answer)
    return answer
  }
  await process.wait(`${label}:before`, latencyMs())
  const fault = faults.draw(process.name, label, WRITE_METHODS.has(method) ? WRITE_FAULTS : READ_FAULTS)
  switch (fault?.kind) {
    case 'store-busy':
      throw new SyncError('STORE_BUSY', 'The simulated database is locked.')
    case 'store-unavailable':
      throw new SyncError('STORE_UNAVAILABLE', 'The simulated database cannot be reached.')
    case 'lost-unknown':
      await process.wait(`${label}:after`, latencyMs())
      throw new SyncError('COMMIT_UNKNOWN', 'The simulated connection broke before the call arrived.')
    case 'applied-late':
      later(1 + fault.severity * 10_000, apply)
      await process.wait(`${label}:after`, latencyMs())
      throw new SyncError('COMMIT_UNKNOWN', 'The simulated connection broke; the call is still on its way.')
    case 'applied-unknown':
      await apply()
      await process.wait(`${label}:after`, latencyMs())
      throw new SyncError('COMMIT_UNKNOWN', 'The simulated connection broke after the call.')
    default: {
      const answer = await apply()
      await process.wait(`${label}:after`, latencyMs())
      return answer
    }
  }
}

const WRITE_FAULTS = ['store-busy', 'store-unavailable', 'applied-unknown', 'applied-late', 'lost-unknown'] as const
const READ_FAULTS = ['store-busy', 'store-unavailable'] as const

const FAULTY_METHODS: readonly StoreMethod[] = [
  'acquire',
  'renew',
  'release',
  'beginCycle',
  'commit',
  'readCheckpoint',
  'syncs',
  'signalSync',
  'audit',
  'cycles',
  'takeSlots',
  'lastSlotTimes',
  'recordPause',
  'pauses',
  'headSequence',
  'changes',
  'rows',
  'row',
  'history',
  'databases',
  'databaseNames',
  'quarantineEntries',
  'feed',
  'sequenceBefore',
  'compact',
  'cursorSecrets',
  'apiKey',
  'apiKeys',
  'addApiKey',
  'revokeApiKey',
]
