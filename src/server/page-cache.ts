import { compressBody, type Encoding } from './encoding.ts'

export interface CachedPage {
  readonly body: Buffer
  readonly compressed: ReadonlyMap<Encoding, Buffer>
}

/**
 * Full pages of changes as response bytes. Log entries before the end of a page never change, so readers of the same
 * range are served from memory. The TTL is short because pages contain cursors that age.
 */
export class PageCache {
  readonly #pages = new Map<string, { body: Buffer; compressed: Map<Encoding, Buffer>; until: number }>()
  readonly #bytesMax: number
  #bytes = 0

  constructor(bytesMax = 32 * 1024 * 1024) {
    this.#bytesMax = bytesMax
  }

  /** Keyed by tenant and exact URL. */
  get(tenant: string, url: string, now: number): CachedPage | null {
    const page = this.#pages.get(`${tenant} ${url}`)
    return page === undefined || page.until < now ? null : page
  }

  set(tenant: string, url: string, body: Buffer, now: number): void {
    const key = `${tenant} ${url}`
    this.#evict(key)
    this.#pages.set(key, { body, compressed: new Map(), until: now + TTL_MS })
    this.#grow(body.length)
  }

  /** Compresses a page once for all readers. */
  async compressed(tenant: string, url: string, body: Buffer, encoding: Encoding): Promise<Buffer> {
    const compressed = await compressBody(body, encoding)
    const page = this.#pages.get(`${tenant} ${url}`)
    // The page may have been evicted or replaced meanwhile.
    if (page?.body === body && !page.compressed.has(encoding)) {
      page.compressed.set(encoding, compressed)
      this.#grow(compressed.length)
    }
    return compressed
  }

  #grow(bytes: number): void {
    this.#bytes += bytes
    // Evicts the oldest first: a Map iterates in insertion order.
    for (const oldest of this.#pages.keys()) {
      if (this.#bytes <= this.#bytesMax) break
      this.#evict(oldest)
    }
  }

  #evict(key: string): void {
    const page = this.#pages.get(key)
    if (page === undefined) return
    this.#pages.delete(key)
    for (const { length } of [page.body, ...page.compressed.values()]) this.#bytes -= length
  }
}

const TTL_MS = 60_000
