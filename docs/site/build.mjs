// Builds the documentation site: node site/build.mjs [folder]. The default is dist/docs of the package.

import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import MiniSearch from 'minisearch'
import { serializeIndex } from './assets/search.js'
import { groupPages, readPages, ROOT } from './pages.mjs'
import { renderPage } from './page-template.mjs'
import { renderMarkdown } from './render-markdown.mjs'

const output = resolve(process.argv[2] ?? join(ROOT, 'dist/docs'))
const pages = readPages()
const groups = groupPages(pages)
const byPath = new Map(pages.map((page) => [page.path, page]))

rmSync(output, { recursive: true, force: true })
const write = (/** @type {string} */ name, /** @type {string} */ text) => {
  mkdirSync(dirname(join(output, name)), { recursive: true })
  writeFileSync(join(output, name), text)
}

/** @type {import('./assets/search.js').SearchDocument[]} */
const documents = []
for (const page of pages) {
  const rendered = renderMarkdown(page, byPath)
  write(page.url, renderPage(page, rendered, groups))
  for (const file of rendered.files) cpSync(join(ROOT, 'docs', file), join(output, file))
  const weight = weighPage(page)
  for (const { level, id, title, text } of rendered.sections)
    documents.push({ href: level === 1 ? page.url : `${page.url}#${id}`, page: page.title, title, text, weight })
}
cpSync(join(import.meta.dirname, 'assets'), join(output, 'assets'), { recursive: true })
// Without the reference to a source map, which is not part of the site.
const miniSearch = readFileSync(fileURLToPath(import.meta.resolve('minisearch')), 'utf8')
write('assets/minisearch.js', miniSearch.replace(/\n\/\/# sourceMappingURL=.*\s*$/, '\n'))
write('search.json', serializeIndex(MiniSearch, documents))

/** Guides come before the reference, and both before the pages about the project. @param {import('./pages.mjs').Page} page */
function weighPage({ url }) {
  if (/^(?:decisions|reference\/api)\/|^reference\/rules|^[A-Z]/.test(url)) return 0.3
  return url.startsWith('reference/') ? 0.7 : 1
}
