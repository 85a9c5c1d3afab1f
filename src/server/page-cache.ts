import { compressBody, type Encoding } from './encoding.ts'

/** The bytes of a page, as they are or packed. */
export interface CachedPage {
  readonly body: Buffer
  readonly compressed: ReadonlyMap<Encoding, Buffer>
}

/**
 * Full pages of the changes as the bytes they were sent as. The log below a page's end does not change any more, so that
 * whoever follows the feed is served from memory after the first. Not for long: a cursor in it would grow old.
 */
export class PageCache {
  readonly #pages = new Map<string, { body: Buffer; compressed: Map<Encoding, Buffer>; until: number }>()
  readonly #bytesMax: number
  #bytes = 0

  constructor(bytesMax = 32 * 1024 * 1024) {
    this.#bytesMax = bytesMax
  }

  /** By tenant and by what was asked, to the letter. */
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

  /** Packed once for all who ask for it so. */
  async compress(tenant: string, url: string, body: Buffer, encoding: Encoding): Promise<Buffer> {
    const packed = await compressBody(body, encoding)
    const page = this.#pages.get(`${tenant} ${url}`)
    // Meanwhile it may have gone, or come anew.
    if (page?.body === body && !page.compressed.has(encoding)) {
      page.compressed.set(encoding, packed)
      this.#grow(packed.length)
    }
    return packed
  }

  #grow(bytes: number): void {
    this.#bytes += bytes
    // The oldest go first: a Map keeps the order in which they came.
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
