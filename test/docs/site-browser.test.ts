import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startDocsServer, type DocsServer } from '../../src/server/docs-server.ts'
import { expectAccessible, launch, missing, NARROW, openPage, sideways, WIDE } from '../console/browser.ts'

describe.skipIf(missing !== null)(`the documentation in a browser${missing === null ? '' : ` (${missing})`}`, () => {
  let browser: Browser
  let server: DocsServer
  beforeAll(async () => {
    ;[browser, server] = await Promise.all([launch(), startDocsServer(0)])
  })
  afterAll(async () => {
    await browser?.close()
    await server?.close()
  })

  test.each([
    ['light', WIDE, 'all'],
    ['dark', WIDE, 'colours'],
    ['light', NARROW, 'all but colours'],
  ] as const)('pages are accessible (%s, %o, %s)', async (scheme, size, rules) => {
    const page = await openPage(browser, server.url, { scheme, size })
    for (const path of ['', 'guides/tables.html']) {
      await page.goto(server.url + path)
      await expectAccessible(page, `${path} ${scheme}`, rules)
      expect(await sideways(page), path).toBe(0)
    }
    expect(page.trouble).toEqual([])
  })

  test('the search opens with a key, finds a section and leads to it', async () => {
    const page = await openPage(browser, server.url)
    await page.goto(server.url)
    await page.keyboard.press('/')
    await page.getByRole('searchbox').fill('exactly once')
    const hit = page.getByRole('dialog').getByRole('link', { name: /Guarantees Destinations/ })
    await hit.waitFor()
    await expectAccessible(page, 'the search', 'all but colours')
    await page.keyboard.press('ArrowDown')
    await hit.click()
    await page.waitForURL('**/guides/destinations.html#guarantees')
    await page.keyboard.press('/')
    await page.getByRole('searchbox').fill('xylophone')
    await page.getByText('No section contains these words.').waitFor()
    expect(page.trouble).toEqual([])
  })

  test('the theme is kept across pages', async () => {
    const page = await openPage(browser, server.url)
    await page.goto(server.url)
    await page.getByRole('button', { name: 'Change the theme' }).click()
    await page.goto(`${server.url}guides/tables.html`)
    expect(await page.locator('html').getAttribute('data-theme')).toBe('dark')
  })

  test('on a narrow screen the menu is closed until it is opened', async () => {
    const page = await openPage(browser, server.url, { size: NARROW })
    await page.goto(server.url)
    const link = page.getByRole('link', { name: 'Use the tables' })
    expect(await link.isVisible()).toBe(false)
    await page.getByText('Pages', { exact: true }).click()
    await link.click()
    await page.getByRole('heading', { level: 1, name: 'Use the tables' }).waitFor()
  })

  test('a text is readable and its menu works without scripts', async () => {
    const context = await browser.newContext({ javaScriptEnabled: false })
    const page = await context.newPage()
    await page.goto(server.url)
    await page.getByRole('link', { name: 'Use the tables' }).click()
    await page.getByRole('heading', { level: 1, name: 'Use the tables' }).waitFor()
    expect(await page.getByRole('button', { name: /Search/ }).isVisible()).toBe(false)
  })
})
