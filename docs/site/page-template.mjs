// One page of the site as HTML. Without scripts it is readable and its menu works.

import { relativeUrl } from './render-markdown.mjs'

/**
 * @typedef {import('./pages.mjs').Page} Page
 * @typedef {import('./pages.mjs').Group} Group
 * @typedef {import('./render-markdown.mjs').RenderedPage} RenderedPage
 */

/**
 * @param {Page} page
 * @param {RenderedPage} rendered
 * @param {readonly Group[]} groups
 */
export function renderPage(page, { html, sections }, groups) {
  const ordered = groups.flatMap(({ pages }) => pages)
  const at = ordered.indexOf(page)
  const link = (/** @type {string} */ to) => escapeHtml(relativeUrl(page.url, to))
  const step = (/** @type {Page | undefined} */ to, /** @type {string} */ label) =>
    to === undefined ? '' : `<a href="${link(to.url)}"><small>${label}</small>${escapeHtml(to.title)}</a>`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(page.url === 'index.html' ? 'Tidemark' : `${page.title} · Tidemark`)}</title>
<link rel="icon" href="${link('assets/icon.svg')}">
<link rel="stylesheet" href="${link('assets/site.css')}">
<script src="${link('assets/theme.js')}"></script>
<script type="module" src="${link('assets/site.js')}" data-root="${escapeHtml(relativeUrl(page.url, 'index.html').replace(/index\.html$/, ''))}"></script>
</head>
<body>
<a class="skip" href="#content">Skip to the text</a>
<header>
<a class="brand" href="${link('index.html')}">Tidemark</a>
<button type="button" class="search-button" hidden>Search <kbd>/</kbd></button>
<button type="button" class="theme-button" hidden aria-label="Change the theme">◐</button>
</header>
<div class="columns">
<details class="menu" open>
<summary>Pages</summary>
<nav aria-label="Pages">
${groups.map((group) => renderGroup(group, page)).join('\n')}
</nav>
</details>
<main id="content">
${html}
<nav class="steps" aria-label="Next and previous page">${step(ordered[at - 1], 'Previous')}${step(ordered[at + 1], 'Next')}</nav>
</main>
${renderContents(sections)}
</div>
<dialog class="search" aria-label="Search">
<input type="search" placeholder="Search the documentation" aria-label="Search the documentation">
<p role="status"></p>
<ol></ol>
</dialog>
</body>
</html>
`
}

/** A closed group is one link, except on its own pages. @param {Group} group @param {Page} page */
function renderGroup({ title, pages, isClosed }, page) {
  const [first] = pages
  if (first !== undefined && isClosed && !pages.includes(page))
    return `<a class="group" href="${escapeHtml(relativeUrl(page.url, first.url))}">${escapeHtml(title)}</a>`
  const items = pages.map((other) => {
    const current = other === page ? ' aria-current="page"' : ''
    return `<li><a href="${escapeHtml(relativeUrl(page.url, other.url))}"${current}>${escapeHtml(toMenuTitle(other))}</a></li>`
  })
  return `<details open><summary>${escapeHtml(title)}</summary><ul>${items.join('')}</ul></details>`
}

/** @param {Page} page */
function toMenuTitle({ url, title }) {
  return url === 'index.html' ? 'Overview' : title
}

/** @param {RenderedPage['sections']} sections */
function renderContents(sections) {
  const shown = sections.filter(({ level }) => level === 2)
  if (shown.length < 2) return ''
  const items = shown.map(({ id, title }) => `<li><a href="#${escapeHtml(id)}">${escapeHtml(title)}</a></li>`)
  return `<nav class="contents" aria-label="On this page"><h2>On this page</h2><ul>${items.join('')}</ul></nav>`
}

/** @param {string} text */
function escapeHtml(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
