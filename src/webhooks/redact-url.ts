/** The query often contains a token. */
export function redactUrl(text: string): string {
  const { origin, pathname, search } = new URL(text)
  return `${origin}${pathname}${search === '' ? '' : '?…'}`
}
