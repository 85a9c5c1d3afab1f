import type { StoreDriver, StoreLocation } from '../contract/index.ts'
import { maskUrl } from '../redaction/mask-url.ts'
import { createStoreUrlInvalidError } from './kit/store-url-invalid-error.ts'
import { postgresDriver } from './postgres/driver.ts'
import { sqliteDriver } from './sqlite/driver.ts'

/** One table per process: a worker file may load its own copy of this module. */
const DRIVERS_SYMBOL = Symbol.for('tidemark.stores')
const drivers = ((globalThis as { [DRIVERS_SYMBOL]?: Map<string, StoreDriver> })[DRIVERS_SYMBOL] ??= new Map())
for (const driver of [sqliteDriver, postgresDriver])
  for (const scheme of driver.schemes) if (!drivers.has(scheme)) drivers.set(scheme, driver)

/** Adds a kind of store, or replaces the one with the same scheme. */
export function registerStore(driver: StoreDriver): void {
  for (const scheme of driver.schemes) drivers.set(scheme, driver)
}

/**
 * Selects the driver by the URL's scheme. Throws STORE_URL_INVALID. A relative file path is resolved against `folder`.
 */
export function locateStore(url: string, folder: string): StoreLocation {
  const trimmed = url.trim()
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(trimmed)?.[1]?.toLowerCase()
  if (scheme === undefined)
    throw createStoreUrlInvalidError(
      url,
      `has no scheme${trimmed === '' ? '' : `; for a file write sqlite:${maskUrl(trimmed)}`}`,
    )
  const driver = drivers.get(scheme)
  if (driver === undefined)
    throw createStoreUrlInvalidError(
      url,
      `has the unsupported store type "${scheme}"; use one of ${[...drivers.keys()].join(', ')}`,
    )
  return driver.locate(trimmed, folder)
}
