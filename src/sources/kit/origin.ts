import { SyncError } from '../../contract/index.ts'

/**
 * Where a source lives: an origin and a path below which everything of it lies. Whatever a source or a stored state
 * names is held against it before it is asked, so that no answer can send us, or our credentials, somewhere else.
 */
export class Origin {
  readonly base: URL
  readonly #prefix: string

  constructor(baseUrl: string | URL) {
    const base = URL.canParse(String(baseUrl)) ? new URL(baseUrl) : null
    if (base === null || (base.protocol !== 'http:' && base.protocol !== 'https:') || base.username !== '' || base.password !== '') {
      throw new SyncError('CONNECTOR_FAILED', 'A base URL is an http or https URL without credentials.')
    }
    base.hash = ''
    base.search = ''
    this.base = base
    this.#prefix = base.pathname.endsWith('/') ? base.pathname : `${base.pathname}/`
  }

  /** A path of ours below the base: `/customers` and `customers` are the same. */
  resolvePath(path: string): URL {
    const text = path.replace(/^\/+/, '')
    const url = URL.canParse(`${this.#prefix}${text}`, this.base.href) ? new URL(`${this.#prefix}${text}`, this.base) : null
    // A full URL is a link, and a link is not taken for a path.
    if (url === null || /^[a-z][a-z\d+.-]*:/i.test(path) || !this.contains(url)) throw new SyncError('CONNECTOR_FAILED', 'A request was made to a path that leaves its base URL.')
    return url
  }

  /** A link the source gave, as a full URL or relative to where it was found. */
  resolveLink(link: string, foundAt: URL = this.base): URL {
    const url = link.length <= LINK_CHARS_MAX && URL.canParse(link, foundAt.href) ? new URL(link, foundAt) : null
    if (url === null || !this.contains(url)) throw new SyncError('SOURCE_INVALID', `A link given by ${this.base.host} leads away from ${this.base.origin}${this.base.pathname}. It was not followed.`)
    url.hash = ''
    return url
  }

  /** The same origin, and below the same path also for a server that decodes once more. */
  contains(url: URL): boolean {
    if (url.origin !== this.base.origin || url.username !== '' || url.password !== '') return false
    if (url.pathname !== this.base.pathname && !url.pathname.startsWith(this.#prefix)) return false
    return !/(?:^|\/|%2f|\\|%5c)(?:\.|%2e){1,2}(?:$|\/|%2f|\\|%5c)/i.test(url.pathname)
  }
}

const LINK_CHARS_MAX = 8_192

/** A path written with values: path`/customers/${id}/orders`. Each value is one segment and cannot become two. */
export function path(texts: TemplateStringsArray, ...values: ReadonlyArray<string | number | bigint>): string {
  return texts.map((text, index) => (index < values.length ? `${text}${encodePathSegment(values[index]!)}` : text)).join('')
}

export function encodePathSegment(value: string | number | bigint): string {
  const text = String(value)
  if (text === '' || text === '.' || text === '..' || text.length > SEGMENT_CHARS_MAX || /[\u0000-\u001f\u007f]/.test(text) || !text.isWellFormed()) {
    throw new SyncError('CONNECTOR_FAILED', 'A value cannot be part of a path: it is empty, only dots, too long, or holds control characters.')
  }
  return encodeURIComponent(text)
}

const SEGMENT_CHARS_MAX = 1_024
