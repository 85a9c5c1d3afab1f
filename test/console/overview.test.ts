import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createServer, type Server } from '../../src/server/server.ts'
import { expectAccessible, launch, loaded, missing, NARROW, openPage, sideways, type PageOptions } from './browser.ts'
import { ports } from './console-fixture.ts'
import { nameOf, openManySyncs, type ManySyncs } from './many-syncs-fixture.ts'

const SYNCS = 80
const MIDDLE = { width: 1024, height: 768 }
const LARGE = { width: 1440, height: 900 }

if (missing !== null) console.info(`skipped: the overview in a browser: ${missing}`)

describe.skipIf(missing !== null)('the overview in a browser', () => {
  let browser: Browser
  let many: ManySyncs
  let server: Server
  let url: string
  let trouble: string[] = []

  beforeAll(async () => {
    browser = await launch()
    many = await openManySyncs(SYNCS, Date.now())
    // Another tenant of the same worker: one of its syncs fails with a message of its own source.
    await many.addTenant('acme')
    server = createServer({ ...many, ports, version: '0.0.0', isServedTenant: () => true })
    url = await server.listen(0)
  })
  afterAll(async () => {
    await browser?.close()
    await server?.close()
    await many?.store.close()
  })
  afterEach(() => expect(trouble).toEqual([]))

  async function at(path: string, options: PageOptions = { size: LARGE }): Promise<Page> {
    const page = await openPage(browser, url, options)
    trouble = page.trouble
    onTestFinished(() => page.context().close())
    await page.goto(`${url}/console${path}`)
    await loaded(page)
    return page
  }
  const names = (page: Page) => page.getByRole('row').getByRole('link').allInnerTexts()

  test('the first sentence counts what is broken, and the causes say the next step', async () => {
    const page = await at('/')
    expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe(
      '8 of 80 syncs are failing, 4 are late and 4 have a warning',
    )
    const attention = page.getByRole('region', { name: 'Needs attention' })
    const causes = attention.getByRole('heading', { level: 2 })
    await expect
      .poll(() => causes.allInnerTexts())
      .toEqual([
        expect.stringMatching(/^AUTH_REJECTED · billing\.example\s+8 syncs · last/),
        expect.stringMatching(/^Late: no process runs the sync\s+4 syncs · late since/),
        expect.stringMatching(/^SOURCE_UNAVAILABLE · crm\.example\s+4 syncs · last/),
      ])
    expect(await attention.innerText()).toContain('Renew them, then run tidemark resume <sync>.')
    // Failing syncs come first in the list too.
    await expect.poll(async () => (await names(page))[0]).toMatch(/^sync-00[0-9]+$/)
    expect(await page.getByRole('row').nth(1).innerText()).toMatch(/^Error/)
    await attention.getByRole('button', { name: 'Show all 8' }).click()
    await page.getByRole('status').filter({ hasText: '8 of 80 syncs' }).waitFor()
    expect(new Set(await names(page))).toEqual(
      new Set(
        Array.from({ length: SYNCS }, (_, n) => n)
          .filter((n) => [3, 7].includes(n % 20))
          .map(nameOf),
      ),
    )
    await page.getByRole('button', { name: /remove this filter/ }).click()
    await expect.poll(() => page.getByRole('status').filter({ hasText: '8 of 80 syncs' }).count()).toBe(0)
    await page
      .getByRole('figure', { name: /Failed cycles/ })
      .or(page.getByText('12 failed'))
      .first()
      .waitFor()
  })

  test('the list is sorted by every column in both directions, and its state is in the URL', async () => {
    const page = await at('/')
    const headers = page.getByRole('columnheader')
    const titles = ['Status', 'Sync', 'Coverage', 'Lag', 'Rows', 'Last cycle', 'Last error', 'Next']
    expect(await headers.allTextContents()).toEqual(titles.map((title, index) => (index === 0 ? 'Status↑' : title)))
    for (const title of titles.slice(1)) {
      const header = headers.filter({ hasText: new RegExp(`^${title}`) })
      await header.getByRole('button').click()
      expect(await header.getAttribute('aria-sort'), title).toBe('ascending')
      await header.getByRole('button').click()
      expect(await header.getAttribute('aria-sort'), title).toBe('descending')
    }
    await page.getByRole('button', { name: 'Sync' }).first().click()
    await expect.poll(async () => (await names(page)).slice(0, 3)).toEqual([nameOf(0), nameOf(1), nameOf(2)])
    await page.getByRole('button', { name: 'Sync' }).first().click()
    await expect.poll(async () => (await names(page))[0]).toBe(nameOf(79))
    await page.getByRole('button', { name: /^Lag/ }).click()
    await page.getByRole('button', { name: /^Lag/ }).click()
    // The longest lag: a late sync.
    await expect.poll(async () => Number((await names(page))[0]!.slice(5)) % 20).toBe(15)
    await page.getByRole('button', { name: /^Last error/ }).click()
    await expect.poll(async () => page.getByRole('row').nth(1).innerText()).toMatch(/AUTH_REJECTED/)
    await page.getByRole('combobox', { name: /^Worker/ }).selectOption('crm')
    await page.getByRole('combobox', { name: /^Group by/ }).selectOption('status')
    await expect.poll(() => page.url()).toMatch(/\?sort=error&worker=crm&group=status$/)
    await page.reload()
    await loaded(page)
    expect(await page.getByRole('combobox', { name: /^Worker/ }).inputValue()).toBe('crm')
    await expect.poll(() => page.getByRole('row').nth(1).innerText()).toMatch(/^error\s+3 syncs\s+3 failing/)
  })

  test('text, status and worker filter together, and groups count their failing syncs', async () => {
    const page = await at('/')
    await page.keyboard.press('/')
    await page.keyboard.type('billing.example')
    await page.getByRole('status').filter({ hasText: '8 of 80 syncs' }).waitFor()
    await page.getByRole('group', { name: 'Filter by status' }).getByRole('button', { name: /Late/ }).click()
    await page.getByText('No syncs match').waitFor()
    await page.getByRole('button', { name: 'Show all', exact: true }).first().click()
    await page.getByRole('combobox', { name: /^Group by/ }).selectOption('worker')
    await expect.poll(() => page.getByRole('row').nth(1).innerText()).toMatch(/^\w+\s+2[67] syncs\s+\d failing/)
  })

  test('a row opens by click and by keyboard, and arrow keys move through rows that are not drawn yet', async () => {
    const page = await at('/?sort=sync')
    await page.getByRole('link', { name: nameOf(0) }).focus()
    for (let n = 0; n < SYNCS - 1; n++) {
      await page.keyboard.press('ArrowDown')
      await expect.poll(() => page.evaluate('document.activeElement.textContent')).toBe(nameOf(n + 1))
    }
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: new RegExp(nameOf(SYNCS - 1)) }).waitFor()
    await page.goto(`${url}/console/?sort=sync`)
    await loaded(page)
    await page
      .getByRole('row')
      .filter({ hasText: nameOf(1) })
      .locator('.cell-last')
      .click()
    await page.getByRole('heading', { level: 1, name: new RegExp(nameOf(1)) }).waitFor()
  })

  test('charts show their values under the pointer and by the arrow keys', async () => {
    const page = await at('/')
    const chart = page.getByRole('slider', { name: /Throughput/ })
    const caption = page.getByRole('figure').first().locator('.chart-last')
    await expect.poll(() => caption.innerText()).toMatch(/rows$/)
    await chart.focus()
    await page.keyboard.press('ArrowLeft')
    await expect.poll(() => caption.innerText()).toMatch(/^(?:\d{4}-\d\d-\d\d )?\d\d:\d\d–\d\d:\d\d: [\d.]+$/)
    const [first, text] = [await caption.innerText(), await chart.getAttribute('aria-valuetext')]
    expect(text).toBe(first)
    // The other chart shows the same step.
    const timeOf = (shown: string): string => shown.slice(0, shown.lastIndexOf(':'))
    expect(timeOf(await page.getByRole('figure').last().locator('.chart-last').innerText())).toBe(timeOf(first))
    await page.keyboard.press('Home')
    await expect.poll(() => chart.getAttribute('aria-valuenow')).toBe('0')
    await page.keyboard.press('Escape')
    await expect.poll(() => caption.innerText()).toMatch(/rows$/)
    const box = (await chart.boundingBox())!
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2)
    await expect.poll(() => caption.innerText()).toMatch(/^(?:\d{4}-\d\d-\d\d )?\d\d:\d\d–/)
    await page.mouse.move(0, 0)
    await expect.poll(() => caption.innerText()).toMatch(/rows$/)
    await page.getByRole('button', { name: '24 h' }).click()
    await expect.poll(() => chart.getAttribute('aria-valuemax')).toBe('95')
  })

  test('the operator sees the syncs of every tenant, without messages of their sources', async () => {
    const page = await at('/?tenants=all&group=tenant')
    await expect
      .poll(() => page.getByRole('heading', { level: 1 }).innerText())
      .toBe('9 of 160 syncs are failing, 4 are late and 4 have a warning')
    await page.getByRole('combobox', { name: /^Tenant/ }).selectOption('acme')
    await expect.poll(() => page.getByRole('row').nth(1).innerText()).toMatch(/^acme\s+80 syncs\s+1 failing/)
    await expect.poll(() => page.getByRole('row').nth(2).innerText()).toMatch(/AUTH_REJECTED/)
    expect(await page.content()).not.toContain('secret-of-acme')
    expect(await names(page)).toEqual([])
  })

  for (const scheme of ['light', 'dark'] as const)
    for (const size of [LARGE, MIDDLE, NARROW])
      test(`fits and is accessible with failing and grouped syncs, ${scheme}, ${size.width} wide`, async () => {
        const page = await at('/?group=worker', { scheme, size })
        for (const path of [
          '/?group=worker',
          '/?cause=AUTH_REJECTED+billing.example&sort=lag',
          `/syncs/billing/${nameOf(3)}?range=7d`,
        ]) {
          await page.goto(`${url}/console${path}`)
          await loaded(page)
          expect(await sideways(page), path).toBe(0)
          await expectAccessible(page, `${path} ${scheme} ${size.width}`)
        }
      })
})
