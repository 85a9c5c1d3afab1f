// The pages of the site: every Markdown file of docs/, and four of the root folder.

import { readdirSync, readFileSync } from 'node:fs'
import { join, posix, resolve } from 'node:path'
import { NAVIGATION } from './navigation.mjs'

export const ROOT = resolve(import.meta.dirname, '../..')

const ROOT_PAGES = ['README.md', 'ARCHITECTURE.md', 'CHANGELOG.md', 'CONTRIBUTING.md']

/**
 * @typedef {{ path: string, url: string, text: string, title: string }} Page
 * `path` is relative to the repository, `url` to the site.
 * @typedef {{ title: string, pages: Page[], isClosed: boolean }} Group
 */

/** @returns {Page[]} */
export function readPages() {
  const inDocs = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .map((name) => posix.join('docs', name.replaceAll('\\', '/')))
    .filter((path) => path.endsWith('.md') && !path.includes('node_modules/'))
    .toSorted()
  return [...ROOT_PAGES, ...inDocs].map((path) => {
    const text = readFileSync(join(ROOT, path), 'utf8')
    return { path, url: toUrl(path), text, title: readTitle(text, path) }
  })
}

/** @param {string} path */
function toUrl(path) {
  if (path === 'README.md') return 'index.html'
  return path.replace(/^docs\//, '').replace(/\.md$/, '.html')
}

/** @param {string} text @param {string} path */
function readTitle(text, path) {
  const [, title] = /^# (.+)$/m.exec(text) ?? []
  if (title === undefined) throw new Error(`${path} has no title. Begin it with \`# Title\`.`)
  return title.replaceAll('`', '').replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
}

/**
 * The pages as groups of the menu. Pages that the navigation does not name are in a last group.
 *
 * @param {readonly Page[]} pages
 * @returns {Group[]}
 */
export function groupPages(pages) {
  const remaining = new Map(pages.map((page) => [page.path, page]))
  const named = new Set(NAVIGATION.flatMap(({ pages: patterns }) => patterns))
  const take = (/** @type {string} */ pattern) => {
    const found = [...remaining.values()].filter(
      ({ path }) => path === pattern || (pattern.endsWith('*') && !named.has(path) && isMatch(path, pattern)),
    )
    for (const { path } of found) remaining.delete(path)
    return found
  }
  const groups = NAVIGATION.map(({ title, pages: patterns, isClosed = false }) => ({
    title,
    pages: patterns.flatMap(take),
    isClosed,
  }))
  return remaining.size === 0 ? groups : [...groups, { title: 'More', pages: [...remaining.values()], isClosed: false }]
}

/** @param {string} path @param {string} pattern */
function isMatch(path, pattern) {
  const start = pattern.slice(0, -1)
  return path.startsWith(start) && !path.slice(start.length).includes('/')
}
