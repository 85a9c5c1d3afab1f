import type { Store, Verification } from '../contract/index.ts'
import { toCertificateDocument } from '../verify/certificate-document.ts'
import type { ServerContext } from './route.ts'

/** Certificates change a few times a day, and lists of rows are read at any rate. */
const CACHE_MS = 10_000

interface CachedCertificates {
  readonly at: number
  readonly byDatabase: Promise<ReadonlyMap<string, Verification>>
}

const caches = new WeakMap<ServerContext, Map<string, CachedCertificates>>()

/** The certificate of a database for a response, at most ten seconds old; null without one. */
export async function readCertificate(context: ServerContext, store: Store, database: string) {
  const now = context.ports.clock.now()
  const cache = caches.get(context) ?? new Map<string, CachedCertificates>()
  caches.set(context, cache)
  let known = cache.get(store.tenant)
  if (known === undefined || now - known.at >= CACHE_MS || now < known.at) {
    const byDatabase = store
      .lastVerifications()
      .then((verifications) => new Map(verifications.map((one) => [one.database, one] as const)))
    // A failed read is repeated.
    byDatabase.catch(() => cache.delete(store.tenant))
    cache.set(store.tenant, (known = { at: now, byDatabase }))
  }
  return toCertificateDocument((await known.byDatabase).get(database))
}
