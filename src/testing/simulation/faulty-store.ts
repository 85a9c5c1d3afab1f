import { SyncError, type Store } from '../../contract/index.ts'
import type { Faults } from './faults.ts'
import type { Process } from './scheduler.ts'

export interface FaultyStoreOptions {
  readonly process: Process
  readonly faults: Faults
  readonly latencyMs: () => number
  /** Sees every call at the moment it reaches the store. */
  readonly observe?: (method: StoreMethod, args: readonly unknown[], answer: unknown) => Promise<void>
  /** Runs a call whose caller was told that nobody knows; on a process that outlives the caller. */
  readonly later: (ms: number, call: () => Promise<unknown>) => void
}

export type StoreMethod = Exclude<keyof Store, 'tenant' | 'forTenant' | 'close'>

const WRITES: ReadonlySet<StoreMethod> = new Set(['acquire', 'renew', 'release', 'begin', 'commit', 'signal', 'compact', 'cursorSecrets', 'addApiKey', 'endApiKey'])

/**
 * Any store, reached over a bad line. Every call takes its time before and after; it may be refused without effect,
 * take effect and be answered with an error, take effect later, or never be answered because the caller is dead.
 */
export function faultyStore(inner: Store, options: FaultyStoreOptions): Store {
  const wrapped: Partial<Record<keyof Store, unknown>> = { tenant: inner.tenant, keepsDeleted: inner.keepsDeleted, close: () => inner.close() }
  wrapped.forTenant = (tenant: string) => faultyStore(inner.forTenant(tenant), options)
  for (const method of METHODS) {
    wrapped[method] = (...args: unknown[]) => call(inner, options, method, args)
  }
  return wrapped as unknown as Store
}

async function call(inner: Store, options: FaultyStoreOptions, method: StoreMethod, args: unknown[]): Promise<unknown> {
  const { process, faults, latencyMs, observe, later } = options
  const label = `store.${method}`
  const apply = async (): Promise<unknown> => {
    const answer = await (inner[method] as (...args: unknown[]) => Promise<unknown>)(...args)
    await observe?.(method, args, answer)
    return answer
  }
  await process.wait(`${label}:before`, latencyMs())
  const fault = faults.draw(process.name, label, WRITES.has(method) ? WRITE_FAULTS : READ_FAULTS)
  switch (fault?.kind) {
    case 'store-busy':
      throw new SyncError('STORE_BUSY', 'The simulated database is locked.')
    case 'store-unavailable':
      throw new SyncError('STORE_UNAVAILABLE', 'The simulated database cannot be reached.')
    case 'lost-unknown':
      await process.wait(`${label}:after`, latencyMs())
      throw new SyncError('COMMIT_UNKNOWN', 'The simulated connection broke before the call arrived.')
    case 'applied-late':
      later(1 + fault.amount * 10_000, apply)
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

const METHODS: readonly StoreMethod[] = [
  'acquire', 'renew', 'release', 'begin', 'commit', 'read', 'syncs', 'signal', 'audit', 'cycles', 'takeSlots', 'pacers', 'notePause', 'pauses', 'position',
  'changes', 'rows', 'row', 'history', 'databases', 'databaseNames', 'quarantined', 'feed', 'sequenceBefore', 'compact', 'cursorSecrets',
  'apiKey', 'apiKeys', 'addApiKey', 'endApiKey',
]
