const HEADER_CHARS_MAX = 16_384

/** Parses the next link of `Link: <https://…?page=2>; rel="next"`; null if there is none. Check it against the origin before use. */
export function parseNextLink(headers: Headers): string | null {
  const text = headers.get('link') ?? ''
  if (text.length > HEADER_CHARS_MAX) return null
  for (const [, link = '', parameters = ''] of text.matchAll(/<([^<>]*)>([^<]*)/g)) {
    const relations = /;\s*rel\s*=\s*"?([^";,]*)/i.exec(parameters)?.[1] ?? ''
    if (relations.toLowerCase().split(' ').includes('next')) return link.trim()
  }
  return null
}
