import { SyncError } from '../../contract/index.ts'

/**
 * The origin and path prefix of a source. Every URL from a response or a stored state is checked against it before a request,
 * so that no response can redirect requests, or their credentials, to another host.
 */
export class Origin {
  readonly base: URL
  readonly #prefix: string

  constructor(baseUrl: string | URL) {
    const base = URL.canParse(String(baseUrl)) ? new URL(baseUrl) : null
    if (
      base === null ||
      (base.protocol !== 'http:' && base.protocol !== 'https:') ||
      base.username !== '' ||
      base.password !== ''
    ) {
      throw new SyncError(
        'CONNECTOR_FAILED',
        'The base URL is invalid. Write an http or https URL without credentials.',
      )
    }
    base.hash = ''
    base.search = ''
    this.base = base
    this.#prefix = base.pathname.endsWith('/') ? base.pathname : `${base.pathname}/`
  }

  /** Resolves a path of the connector below the base: `/customers` equals `customers`. */
  resolvePath(path: string): URL {
    const text = path.replace(/^\/+/, '')
    const url = URL.canParse(`${this.#prefix}${text}`, this.base.href)
      ? new URL(`${this.#prefix}${text}`, this.base)
      : null
    // A full URL is not a path; it needs `resolveLink`.
    if (url === null || /^[a-z][a-z\d+.-]*:/i.test(path) || !this.contains(url))
      throw new SyncError('CONNECTOR_FAILED', 'The connector requested a path outside its base URL.')
    return url
  }

  /** Resolves a link from a response, as a full URL or relative to the URL of the response. */
  resolveLink(link: string, foundAt: URL = this.base): URL {
    const url = link.length <= LINK_CHARS_MAX && URL.canParse(link, foundAt.href) ? new URL(link, foundAt) : null
    if (url === null || !this.contains(url))
      throw new SyncError(
        'SOURCE_INVALID',
        `A link from ${this.base.host} leaves ${this.base.origin}${this.base.pathname}. The link was not followed.`,
      )
    url.hash = ''
    return url
  }

  /** Same origin and below the same path, also for a server that decodes the path twice. */
  contains(url: URL): boolean {
    if (url.origin !== this.base.origin || url.username !== '' || url.password !== '') return false
    if (url.pathname !== this.base.pathname && !url.pathname.startsWith(this.#prefix)) return false
    return !/(?:^|\/|%2f|\\|%5c)(?:\.|%2e){1,2}(?:$|\/|%2f|\\|%5c)/i.test(url.pathname)
  }
}

const LINK_CHARS_MAX = 8_192

/** Builds a path from values: path`/customers/${id}/orders`. Each value is encoded as exactly one segment. */
export function path(texts: TemplateStringsArray, ...values: ReadonlyArray<string | number | bigint>): string {
  const parts = values.map((value, index) => `${texts[index] ?? ''}${encodePathSegment(value)}`)
  return [...parts, texts.at(-1) ?? ''].join('')
}

/** Encodes a value as one segment of a URL path. Throws on values that would change the path, such as `..`. */
export function encodePathSegment(value: string | number | bigint): string {
  const text = String(value)
  if (
    text === '' ||
    text === '.' ||
    text === '..' ||
    text.length > SEGMENT_CHARS_MAX ||
    /[\u0000-\u001f\u007f]/.test(text) ||
    !text.isWellFormed()
  ) {
    throw new SyncError(
      'CONNECTOR_FAILED',
      'A value cannot be a path segment: it is empty, only dots, too long, or contains control characters.',
    )
  }
  return encodeURIComponent(text)
}

const SEGMENT_CHARS_MAX = 1_024
