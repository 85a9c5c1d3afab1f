const HEADER_CHARS_MAX = 16_384

/** Of `Link: <https://…?page=2>; rel="next"`; null when there is none. As it stands there: hold it against the origin before use. */
export function parseNextLink(headers: Headers): string | null {
  const text = headers.get('link') ?? ''
  if (text.length > HEADER_CHARS_MAX) return null
  for (const [, link, parameters] of text.matchAll(/<([^<>]*)>([^<]*)/g)) {
    const relations = /;\s*rel\s*=\s*"?([^";,]*)/i.exec(parameters!)?.[1] ?? ''
    if (relations.toLowerCase().split(' ').includes('next')) return link!.trim()
  }
  return null
}
