// Markdown to HTML, with the anchors that GitHub gives to headings, and links between pages of the site.

import { existsSync } from 'node:fs'
import { join, posix } from 'node:path'
import MarkdownIt from 'markdown-it'
import Prism from 'prismjs'
import loadLanguages from 'prismjs/components/index.js'
import { ROOT } from './pages.mjs'

loadLanguages(['bash', 'ini', 'json', 'sql', 'typescript', 'yaml'])

/**
 * @typedef {import('./pages.mjs').Page} Page
 * @typedef {{ level: number, id: string, title: string, text: string }} Section A heading and the text below it.
 * @typedef {{ html: string, sections: Section[], files: string[] }} RenderedPage `files` are linked files to copy.
 */

/**
 * @param {Page} page
 * @param {ReadonlyMap<string, Page>} pages By path.
 * @returns {RenderedPage}
 */
export function renderMarkdown(page, pages) {
  const markdown = new MarkdownIt({ html: false, linkify: false, highlight })
  /** @type {string[]} */
  const files = []
  const tokens = markdown.parse(page.text, {})
  const sections = nameHeadings(tokens)
  for (const token of tokens.flatMap(({ children }) => children ?? [])) {
    const name = token.type === 'image' ? 'src' : token.type === 'link_open' ? 'href' : null
    const target = name === null ? null : token.attrGet(name)
    if (name === null || target === null) continue
    const link = resolveLink(target, page, pages)
    if (link.file !== undefined) files.push(link.file)
    // A file of the repository that is no page: its path is the text.
    if (link.url === null) token.attrs = [['class', 'repository-file']]
    else token.attrSet(name, link.url)
  }
  markdown.renderer.rules.link_open = (all, index, options, _, renderer) =>
    all[index]?.attrGet('href') === null ? '<span>' : renderer.renderToken(all, index, options)
  markdown.renderer.rules.link_close = (all, index, options, _, renderer) =>
    isInSpan(all, index) ? '</span>' : renderer.renderToken(all, index, options)
  markdown.renderer.rules.table_open = () => '<div class="table" tabindex="0"><table>\n'
  markdown.renderer.rules.table_close = () => '</table></div>\n'
  return { html: markdown.renderer.render(tokens, markdown.options, {}), sections, files }
}

/** @param {import('markdown-it').Token[]} tokens @param {number} index */
function isInSpan(tokens, index) {
  const open = tokens.slice(0, index).findLast(({ type }) => type === 'link_open')
  return open !== undefined && open.attrGet('href') === null
}

/** '' for a language without a grammar: the text as it is. @param {string} code @param {string} language */
function highlight(code, language) {
  const grammar = Prism.languages[language === 'sh' ? 'bash' : language]
  return grammar === undefined ? '' : Prism.highlight(code, grammar, language)
}

/**
 * Gives an id to every heading, and collects the text between them for the search.
 *
 * @param {import('markdown-it').Token[]} tokens
 */
function nameHeadings(tokens) {
  /** @type {Section[]} */
  const sections = []
  /** @type {Map<string, number>} */
  const used = new Map()
  for (const [index, token] of tokens.entries()) {
    const current = sections.at(-1)
    if (token.type === 'heading_open') {
      const title = readText(tokens[index + 1])
      const slug = toSlug(title)
      const count = used.get(slug) ?? 0
      used.set(slug, count + 1)
      const id = count === 0 ? slug : `${slug}-${count}`
      token.attrSet('id', id)
      sections.push({ level: Number(token.tag.slice(1)), id, title, text: '' })
    } else if (current !== undefined && tokens[index - 1]?.type !== 'heading_open') {
      if (token.type === 'inline') current.text += ` ${readText(token)}`
      else if (token.type === 'fence') current.text += ` ${token.content}`
    }
  }
  return sections.map((section) => ({ ...section, text: section.text.replaceAll(/\s+/g, ' ').trim() }))
}

/** @param {import('markdown-it').Token | undefined} token */
function readText(token) {
  return (token?.children ?? [])
    .map(({ type, content }) => (type === 'text' || type === 'code_inline' ? content : type === 'softbreak' ? ' ' : ''))
    .join('')
}

/** As GitHub does, so that links work in both places. @param {string} title */
function toSlug(title) {
  return title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}\p{Pc}\- ]/gu, '')
    .replaceAll(' ', '-')
}

/**
 * @param {string} target
 * @param {Page} page
 * @param {ReadonlyMap<string, Page>} pages
 * @returns {{ url: string | null, file?: string }}
 */
function resolveLink(target, page, pages) {
  if (/^[a-z]+:/.test(target) || target.startsWith('#')) return { url: target }
  const [name = '', hash] = target.split('#')
  const path = posix.join(posix.dirname(page.path), name).replace(/\/$/, '')
  const suffix = hash === undefined ? '' : `#${hash}`
  const linked = pages.get(path)
  if (linked !== undefined) return { url: relativeUrl(page.url, linked.url) + suffix }
  if (!existsSync(join(ROOT, path))) throw new Error(`${page.path} links to ${target}, but ${path} does not exist.`)
  // The first page of a folder.
  const first = [...pages.values()].find((other) => other.path.startsWith(`${path}/`))
  if (first !== undefined) return { url: relativeUrl(page.url, first.url) }
  if (!path.startsWith('docs/')) return { url: null }
  return { url: relativeUrl(page.url, path.slice('docs/'.length)), file: path.slice('docs/'.length) }
}

/** @param {string} from @param {string} to */
export function relativeUrl(from, to) {
  return posix.relative(posix.dirname(from), to) || posix.basename(to)
}
