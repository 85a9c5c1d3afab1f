import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, posix } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { searchDocs } from '../../src/cli/kit/search-docs.ts'
import { startDocsServer } from '../../src/server/docs-server.ts'
import { ROOT } from '../cli/package.ts'

/** Built here, so that the pages are those of the documents; search and server use the built package. */
const folder = mkdtempSync(join(tmpdir(), 'tidemark-site-'))
const built = spawnSync('node', [join(ROOT, 'docs/site/build.mjs'), folder], { encoding: 'utf8' })
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => name.replaceAll('\\', '/'))
const pages = new Map(
  files.filter((name) => name.endsWith('.html')).map((name) => [name, readFileSync(join(folder, name), 'utf8')]),
)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('the site builds without a network and has a page for every document', () => {
  expect(built.stderr).toBe('')
  const documents = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.md') && !name.includes('node_modules'),
  )
  expect(documents.length).toBeGreaterThan(80)
  for (const document of documents) expect(pages.has(document.replace(/\.md$/, '.html')), document).toBe(true)
})

test('every page is in the menu, in a named group', () => {
  for (const [name, html] of pages) {
    expect(html, name).toContain('aria-current="page"')
    expect(html.includes('<summary>More</summary>'), `${name}: add it to docs/site/navigation.mjs`).toBe(false)
  }
})

test('every link leads to a page or a file of the site, and to a heading that exists', () => {
  const broken: string[] = []
  let checked = 0
  for (const [name, html] of pages) {
    for (const [, target] of html.matchAll(/(?:href|src)="([^"]+)"/g)) {
      if (/^https?:/.test(target!)) continue
      checked++
      const [path = '', hash] = target!.split('#')
      const file = path === '' ? name : posix.join(posix.dirname(name), path)
      if (!files.includes(file)) broken.push(`${name}: ${target}`)
      else if (hash !== undefined && !pages.get(file)!.includes(`id="${hash}"`)) broken.push(`${name}: ${target}`)
    }
  }
  expect(checked).toBeGreaterThan(5_000)
  expect(broken).toEqual([])
})

test('a page loads nothing from elsewhere and has no inline script or style', () => {
  for (const [name, html] of pages) {
    expect(html.match(/<(?:script|link|img)[^>]+(?:src|href)="(?:https?:)?\/\/[^"]*"/), name).toBe(null)
    expect(html.match(/<script(?![^>]*\bsrc=)|<style|\son\w+="|\sstyle="/), name).toBe(null)
  }
})

test.each([
  ['exactly once', 'guides/destinations.html#guarantees'],
  ['rate limit', 'guides/write-a-connector.html#3-deletions-and-rate-limits'],
  ['backfill', 'reference/cli.html#tidemark-backfill'],
  ['MASS_DELETE', 'reference/errors.html'],
])('the search finds %s', async (query, href) => {
  const hits = await searchDocs(query)
  expect(hits.slice(0, 8).map((hit) => hit.href)).toContain(href)
})

test('the search requires every word', async () => {
  expect(await searchDocs('backfill xylophone')).toEqual([])
  expect(await searchDocs('  ')).toEqual([])
})

test('`tidemark docs <words>` prints the sections, also as JSON', () => {
  const run = (...words: string[]): string =>
    spawnSync(process.execPath, [join(ROOT, 'dist/cli/main.js'), 'docs', ...words], { encoding: 'utf8' }).stdout
  expect(run('exactly', 'once')).toContain('guides/destinations.html#guarantees')
  const { query, hits } = JSON.parse(run('exactly', 'once', '--json')) as { query: string; hits: { title: string }[] }
  expect(query).toBe('exactly once')
  expect(hits[0]?.title).toBe('Is it exactly once?')
  expect(run('xylophone')).toBe('No section contains all of these words: xylophone.\n')
})

test('the server of the documentation serves pages and answers 404 for others', async () => {
  const server = await startDocsServer(0)
  try {
    const page = await fetch(`${server.url}guides/tables.html`)
    expect(page.status).toBe(200)
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(await page.text()).toContain('Use the tables')
    expect((await fetch(`${server.url}guides/nothing.html`)).status).toBe(404)
    expect((await fetch(new URL('/package.json', server.url))).status).toBe(404)
    expect((await fetch(`${server.url}..%2f..%2fpackage.json`)).status).toBe(404)
    expect((await fetch(new URL('/', server.url))).url).toBe(server.url)
  } finally {
    await server.close()
  }
})

test('a port that is taken is an error that names it, and without a port another is used', async () => {
  const first = await startDocsServer(0)
  const port = Number(new URL(first.url).port)
  try {
    await expect(startDocsServer(port)).rejects.toMatchObject({
      code: 'PORT_TAKEN',
      message: expect.stringContaining(`127.0.0.1:${port}`),
    })
    const [a, b] = [await startDocsServer(undefined), await startDocsServer(undefined)]
    expect(a.url).not.toBe(b.url)
    await Promise.all([a.close(), b.close()])
  } finally {
    await first.close()
  }
})
