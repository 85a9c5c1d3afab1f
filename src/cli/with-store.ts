import type { Store } from '../contract/index.ts'
import type { Cli } from './cli.ts'
import { openForEveryTenant, openForReading } from './open-for-reading.ts'
import { announce, openTargetStore, storeTarget, type Target, type TargetFlags } from './target.ts'

/** For verbs that need no worker file: the store that the flags name, closed whatever happens. Null where nothing was ever kept. */
export function reading<T>(cli: Cli, flags: TargetFlags, body: (target: Target, store: Store | null) => Promise<T>): Promise<T> {
  return within(cli, flags, openForReading, body)
}

/** The same for verbs about all tenants: bound to whichever is there. */
export function readingEveryTenant<T>(cli: Cli, flags: TargetFlags, body: (target: Target, store: Store | null) => Promise<T>): Promise<T> {
  return within(cli, flags, openForEveryTenant, body)
}

export function writing<T>(cli: Cli, flags: TargetFlags, body: (target: Target, store: Store) => Promise<T>): Promise<T> {
  return within(cli, flags, openTargetStore, body)
}

async function within<S extends Store | null, T>(cli: Cli, flags: TargetFlags, open: (target: Target) => Promise<S>, body: (target: Target, store: S) => Promise<T>): Promise<T> {
  const target = storeTarget(cli, flags)
  announce(cli, target)
  const store = await open(target)
  try {
    return await body(target, store)
  } finally {
    await store?.close()
  }
}
