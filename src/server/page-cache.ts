/**
 * Full pages of the changes as the bytes they were sent as. The log below a page's end does not change any more, so that
 * whoever follows the feed is served from memory after the first. Not for long: a cursor in it would grow old.
 */
export class PageCache {
  readonly #pages = new Map<string, { body: Buffer; until: number }>()
  readonly #bytesMax: number
  #bytes = 0

  constructor(bytesMax = 32 * 1024 * 1024) {
    this.#bytesMax = bytesMax
  }

  /** By tenant and by what was asked, to the letter. */
  get(tenant: string, url: string, now: number): Buffer | null {
    const page = this.#pages.get(`${tenant} ${url}`)
    return page === undefined || page.until < now ? null : page.body
  }

  set(tenant: string, url: string, body: Buffer, now: number): void {
    const key = `${tenant} ${url}`
    this.#forget(key)
    this.#pages.set(key, { body, until: now + LIFE_MS })
    this.#bytes += body.length
    // The oldest go first: a Map keeps the order in which they came.
    for (const oldest of this.#pages.keys()) {
      if (this.#bytes <= this.#bytesMax) break
      this.#forget(oldest)
    }
  }

  #forget(key: string): void {
    this.#bytes -= this.#pages.get(key)?.body.length ?? 0
    this.#pages.delete(key)
  }
}

const LIFE_MS = 60_000
