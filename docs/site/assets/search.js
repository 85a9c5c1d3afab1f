// The index of the documentation: written by the build, read by the pages and by `tidemark docs`.

/** @typedef {{ href: string, page: string, title: string, text: string, weight: number }} SearchDocument A section. */
/** @typedef {{ href: string, page: string, title: string, excerpt: string }} SearchHit */

const OPTIONS = { idField: 'href', fields: ['title', 'page', 'text'], storeFields: ['page', 'title', 'text', 'weight'] }
const HITS_MAX = 30
const EXCERPT_LENGTH = 160

/** @param {typeof import('minisearch').default} MiniSearch @param {readonly SearchDocument[]} documents */
export function serializeIndex(MiniSearch, documents) {
  const index = new MiniSearch(OPTIONS)
  index.addAll(documents)
  return JSON.stringify(index)
}

/**
 * Returns the function that searches. All words must occur; sections with the words as a phrase come first.
 *
 * @param {typeof import('minisearch').default} MiniSearch
 * @param {string} serialized
 * @returns {(query: string) => SearchHit[]}
 */
export function openIndex(MiniSearch, serialized) {
  const index = MiniSearch.loadJSON(serialized, OPTIONS)
  return (query) => {
    const phrase = query.trim().toLowerCase()
    if (phrase === '') return []
    const hits = index.search(phrase, {
      combineWith: 'AND',
      prefix: (term) => term.length > 2,
      fuzzy: (term) => (term.length > 5 ? 0.15 : false),
      boost: { title: 4, page: 2 },
      boostDocument: (_, __, stored) => {
        const { title, text, weight } = /** @type {SearchDocument} */ (stored)
        if (title.toLowerCase().includes(phrase)) return 4 * weight
        return (text.toLowerCase().includes(phrase) ? 2 : 1) * weight
      },
    })
    return hits.slice(0, HITS_MAX).map(({ id, page, title, text, terms }) => ({
      href: id,
      page,
      title,
      excerpt: cutExcerpt(text, [phrase, ...terms]),
    }))
  }
}

/** The part of a text around the first of these words that it contains. @param {string} text @param {string[]} words */
function cutExcerpt(text, words) {
  const lower = text.toLowerCase()
  const at = words.map((word) => lower.indexOf(word)).find((found) => found >= 0) ?? 0
  const start = at < EXCERPT_LENGTH / 2 ? 0 : lower.indexOf(' ', at - EXCERPT_LENGTH / 2) + 1
  const end = start + EXCERPT_LENGTH
  return `${start > 0 ? '… ' : ''}${text.slice(start, end)}${text.length > end ? ' …' : ''}`
}
