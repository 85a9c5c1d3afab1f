import type { Store } from '../../contract/index.ts'
import { openSqliteStore } from '../../stores/sqlite/store.ts'
import type { Scheduler } from './scheduler.ts'

/** Opens the store of one world. */
export interface WorldStoreFactory {
  /** `now` is the world's virtual time, for a store that has a clock of its own. */
  open(now: () => number): Promise<Store>
  /** Leases expire by the store's clock. Without this they expire by the caller's clock. */
  readonly ownClock?: boolean
}

/** In-memory SQLite answers within the same step. */
export const SQLITE_IN_MEMORY: WorldStoreFactory = { open: () => openSqliteStore({ file: ':memory:' }) }

/** The same store, with virtual time stopped while it answers. */
export function holdVirtualTimeDuring(store: Store, scheduler: Pick<Scheduler, 'awaitReal'>): Store {
  return new Proxy(store, {
    get(target, name: keyof Store) {
      const member: unknown = target[name]
      if (typeof member !== 'function') return member
      if (name === 'forTenant') return (tenant: string) => holdVirtualTimeDuring(target.forTenant(tenant), scheduler)
      return (...args: unknown[]): unknown => {
        const answer: unknown = Reflect.apply(member, target, args)
        return answer instanceof Promise ? scheduler.awaitReal(answer) : answer
      }
    },
  })
}
