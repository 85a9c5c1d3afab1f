// Search, the theme and the copy buttons. Pages are complete without them.

import MiniSearch from './minisearch.js'
import { openIndex } from './search.js'

const root = new URL(document.querySelector('script[data-root]').dataset.root || './', location.href)
const menu = document.querySelector('.menu')
const searchButton = document.querySelector('.search-button')
const themeButton = document.querySelector('.theme-button')
const dialog = document.querySelector('dialog.search')
const input = dialog.querySelector('input')
const status = dialog.querySelector('[role=status]')
const list = dialog.querySelector('ol')

if (matchMedia('(max-width: 900px)').matches) menu.open = false
menu.querySelector('[aria-current]')?.scrollIntoView({ block: 'center' })

// ── search ─────────────────────────────────────────────────────────────────────────────────────────────────────────

let loading = null
const loadIndex = () =>
  (loading ??= fetch(new URL('search.json', root)).then(async (response) => {
    if (!response.ok) throw new Error(`search.json: ${response.status}`)
    return openIndex(MiniSearch, await response.text())
  }))

const openSearch = () => {
  dialog.showModal()
  input.select()
  loadIndex().then(showHits, () => {
    loading = null
    status.textContent = 'The search index could not be loaded.'
  })
}

const showHits = async () => {
  const search = await loadIndex()
  const hits = search(input.value)
  status.textContent = input.value.trim() === '' ? '' : hits.length === 0 ? 'No section contains these words.' : ''
  list.replaceChildren(...hits.map(renderHit))
}

const renderHit = ({ href, page, title, excerpt }) => {
  const link = Object.assign(document.createElement('a'), { href: new URL(href, root).href })
  const name = Object.assign(document.createElement('strong'), { textContent: title })
  const origin = Object.assign(document.createElement('small'), { textContent: title === page ? '' : page })
  link.append(name, ' ', origin, Object.assign(document.createElement('span'), { textContent: excerpt }))
  const item = document.createElement('li')
  item.append(link)
  return item
}

/** Moves the focus between the field and the hits. */
const moveFocus = (step) => {
  const stops = [input, ...list.querySelectorAll('a')]
  stops.at((stops.indexOf(document.activeElement) + step) % stops.length)?.focus()
}

searchButton.hidden = false
searchButton.addEventListener('click', openSearch)
input.addEventListener('input', showHits)
dialog.addEventListener('click', (event) => {
  if (event.target === dialog || event.target.closest('a') !== null) dialog.close()
})
dialog.addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && document.activeElement === input) list.querySelector('a')?.click()
  if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return
  event.preventDefault()
  moveFocus(event.key === 'ArrowDown' ? 1 : -1)
})
document.addEventListener('keydown', (event) => {
  const isShortcut =
    (event.key === '/' && !/^(input|textarea)$/i.test(event.target.tagName)) ||
    (event.key === 'k' && (event.ctrlKey || event.metaKey))
  if (!isShortcut || dialog.open) return
  event.preventDefault()
  openSearch()
})

// ── theme ──────────────────────────────────────────────────────────────────────────────────────────────────────────

themeButton.hidden = false
themeButton.addEventListener('click', () => {
  const { dataset } = document.documentElement
  const isDark = (dataset.theme ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark'
  dataset.theme = isDark ? 'light' : 'dark'
  localStorage.setItem('tidemark-docs-theme', dataset.theme)
})

// ── copy ───────────────────────────────────────────────────────────────────────────────────────────────────────────

for (const block of document.querySelectorAll('main pre')) {
  const button = Object.assign(document.createElement('button'), {
    type: 'button',
    className: 'copy',
    textContent: 'Copy',
  })
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(block.querySelector('code').textContent)
    button.textContent = 'Copied'
    setTimeout(() => (button.textContent = 'Copy'), 1500)
  })
  block.append(button)
}
