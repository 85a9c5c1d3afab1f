import type { Store } from '../../contract/index.ts'
import type { Cli } from '../cli.ts'
import { openExistingStoreOfAnyTenant, openExistingStore } from './open-existing-store.ts'
import { printTarget, openTargetStore, resolveStoreTarget, type Target, type TargetFlags } from './target.ts'

/** Runs `body` with the store that the flags select, or null if it does not exist, and always closes it. */
export function withExistingStore<T>(
  cli: Cli,
  flags: TargetFlags,
  body: (target: Target, store: Store | null) => Promise<T>,
): Promise<T> {
  return withOpenedStore(cli, flags, openExistingStore, body)
}

/** The same for verbs about all tenants: bound to any existing tenant. */
export function withExistingStoreOfAnyTenant<T>(
  cli: Cli,
  flags: TargetFlags,
  body: (target: Target, store: Store | null) => Promise<T>,
): Promise<T> {
  return withOpenedStore(cli, flags, openExistingStoreOfAnyTenant, body)
}

export function withStore<T>(
  cli: Cli,
  flags: TargetFlags,
  body: (target: Target, store: Store) => Promise<T>,
): Promise<T> {
  return withOpenedStore(cli, flags, openTargetStore, body)
}

async function withOpenedStore<S extends Store | null, T>(
  cli: Cli,
  flags: TargetFlags,
  open: (target: Target) => Promise<S>,
  body: (target: Target, store: S) => Promise<T>,
): Promise<T> {
  const target = resolveStoreTarget(cli, flags)
  printTarget(cli, target)
  const store = await open(target)
  try {
    return await body(target, store)
  } finally {
    await store?.close()
  }
}
