import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { SyncError, type StoreDriver } from '../contract/index.ts'
import { registerStore } from './drivers.ts'
import type { Environment } from '../config/settings.ts'

/**
 * Registers the store driver that the module in TIDEMARK_STORE_MODULE exports as default: a path relative to `folder`, or
 * a package installed there. Needed for commands that load no worker file.
 */
export async function loadStoreModule(environment: Environment, folder: string): Promise<void> {
  const name = environment['TIDEMARK_STORE_MODULE']
  if (name === undefined || name === '') return
  let module: { readonly default?: unknown }
  try {
    const path = /^[./]/.test(name)
      ? resolve(folder, name)
      : createRequire(resolve(folder, 'package.json')).resolve(name)
    module = await importModule(path)
  } catch (cause) {
    throw new SyncError(
      'PACKAGE_UNFIT',
      `TIDEMARK_STORE_MODULE names ${name}, which cannot be loaded: ${cause instanceof Error ? cause.message : String(cause)}.`,
      { cause },
    )
  }
  if (!isStoreDriver(module.default)) {
    throw new SyncError(
      'PACKAGE_UNFIT',
      `TIDEMARK_STORE_MODULE names ${name}, whose default export is not a store driver: it needs \`schemes\` and \`locate\`.`,
    )
  }
  registerStore(module.default)
}

async function importModule(path: string): Promise<{ readonly default?: unknown }> {
  const url = pathToFileURL(path).href
  if (!/\.m?ts$/.test(path)) return (await import(url)) as { readonly default?: unknown }
  const [{ createJiti }, store] = await Promise.all([import('jiti'), import('../stores/index.ts')])
  // As for a worker file: no cache is written, and imports of tidemark resolve to the running package.
  return createJiti(url, { fsCache: false, virtualModules: { 'tidemark/store': store } }).import(path)
}

function isStoreDriver(value: unknown): value is StoreDriver {
  const { schemes, locate } = (value ?? {}) as Partial<StoreDriver>
  return Array.isArray(schemes) && schemes.every((scheme) => typeof scheme === 'string') && typeof locate === 'function'
}
