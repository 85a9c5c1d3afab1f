/**
 * The Link header of one page: `prev, next, last, first`, each only where such a page exists, and none for a single
 * page.
 */
export function formatPageLinks(
  url: URL,
  page: number,
  pages: number,
  lie: 'end' | 'more' | undefined,
): string | undefined {
  const more = lie === undefined ? page < pages : lie === 'more'
  const last = Math.max(pages, more ? page + 1 : 0)
  const links: string[] = []
  const add = (rel: string, to: number) => {
    const target = new URL(url)
    target.searchParams.set('page', String(to))
    links.push(`<${target.href}>; rel="${rel}"`)
  }
  if (page > 1) add('prev', Math.min(page - 1, Math.max(pages, 1)))
  if (more) add('next', page + 1)
  if (more) add('last', last)
  if (page > 1) add('first', 1)
  return links.length === 0 ? undefined : links.join(', ')
}
