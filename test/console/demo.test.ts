import { spawn, type ChildProcess } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { launch, loaded, missing, NARROW, openPage, sideways, WIDE } from './browser.ts'

const root = join(import.meta.dirname, '../..')
const images = join(root, 'docs/images')

interface Ready {
  readonly url: string
  readonly rows: Readonly<Record<string, number>>
}

if (missing !== null) console.info(`skipped: the console of the demo: ${missing}`)

describe.skipIf(missing !== null)('the console of a running demo', () => {
  let browser: Browser
  let demo: ChildProcess
  let ready: Ready

  beforeAll(async () => {
    browser = await launch()
    demo = spawn(process.execPath, [join(root, 'dist/cli/main.js'), 'demo', '--json', '--port', '0'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    ready = await new Promise<Ready>((resolve, reject) => {
      demo.once('exit', (code) => reject(new Error(`the demo ended with ${code}`)))
      createInterface({ input: demo.stdout! }).on('line', (line) => {
        const event = JSON.parse(line) as { event: string } & Ready
        if (event.event === 'ready') resolve(event)
      })
    })
  })
  afterAll(async () => {
    await browser?.close()
    if (demo === undefined || demo.exitCode !== null) return
    const ended = new Promise((resolve) => demo.once('exit', resolve))
    demo.kill('SIGINT')
    await ended
  })

  test('shows three accounts in sync on every page', async () => {
    const page = await openPage(browser, ready.url)
    onTestFinished(() => page.context().close())
    // The printed URL redirects to the console.
    await page.goto(`${ready.url}/`)
    await expect.poll(() => page.url()).toBe(`${ready.url}/console/`)
    const names = page.getByRole('row').getByRole('link')
    await names.first().waitFor()
    await expect
      .poll(() => names.allInnerTexts())
      .toEqual(
        expect.arrayContaining(['customers', 'customers-backfill', 'contacts', 'companies', 'issues', 'repositories']),
      )
    await page
      .getByRole('row', { name: /customers-backfill/ })
      .getByText(/\+\d+/)
      .waitFor()
    const coverage = page.getByRole('row', { name: /^\S+ customers / }).getByRole('img')
    await expect
      .poll(() => coverage.getAttribute('aria-label'))
      .toMatch(/Backfill: The list has been read completely\. Delta: The change history since has been read completely/)

    // Changes of the accounts arrive live.
    await page.getByRole('link', { name: 'Feed' }).click()
    const rows = page.getByRole('region', { name: /Changes/ }).getByRole('row')
    await rows.nth(1).waitFor()
    const newest = await rows.nth(1).innerText()
    await expect.poll(() => rows.nth(1).innerText()).not.toBe(newest)
    await page.getByRole('button', { name: 'Pause' }).click()
    await rows.nth(1).getByRole('link').last().click()
    await page.getByRole('heading', { name: 'Change history' }).waitFor()
    await expect
      .poll(() => page.getByRole('listitem').first().innerText())
      .toMatch(/(created|updated|deleted) [\s\S]*by [\w-]+, cycle \d+, page \d+/)

    await page.goto(`${ready.url}/console/syncs/demo/customers`)
    const cycles = page.getByRole('table', { name: /Cycles/ }).getByRole('row')
    await cycles
      .nth(1)
      .getByText(/complete|error/)
      .waitFor()
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.getByRole('button', { name: 'Resume' }).click()
    await page.getByRole('button', { name: 'Pause' }).waitFor()

    await page.goto(`${ready.url}/console/databases`)
    await page.getByRole('link', { name: 'customers' }).click()
    await page.getByText(/[\d,]+ of [\d,]+ rows loaded/).waitFor()
    await page.getByRole('columnheader', { name: /^email text/ }).waitFor()
    await page.getByRole('columnheader', { name: /^balance bigint/ }).waitFor()
    await page.goto(`${ready.url}/console/webhooks`)
    await page.getByRole('region', { name: /Webhook http:\/\/127/ }).waitFor()
    // Some records of the accounts do not match the worker's schema.
    await page.goto(`${ready.url}/console/quarantine`)
    const refused = page
      .getByRole('table', { name: /Quarantine/ })
      .getByRole('row')
      .filter({ hasText: 'SCHEMA_MISMATCH' })
    await expect.poll(() => refused.count()).toBeGreaterThan(0)
    await page.goto(`${ready.url}/console/access`)
    await page.getByText('local access without a key').waitFor()
    await page.getByRole('table', { name: 'Keys' }).getByText('valid').first().waitFor()
    await page.goto(`${ready.url}/console/audit`)
    await page.getByText(/✓ Chain verified, \d+ entries/).waitFor()
    expect(page.trouble).toEqual([])
  })

  test('fits a wide and a narrow window in both color schemes (TIDEMARK_UPDATE=1 saves the screenshots)', async () => {
    for (const [size, scheme] of [
      [WIDE, 'light'],
      [NARROW, 'light'],
      [WIDE, 'dark'],
    ] as const) {
      const page = await openPage(browser, ready.url, { size, scheme })
      const look = async (name: string, path: string): Promise<void> => {
        await page.goto(`${ready.url}/console${path}`)
        await loaded(page)
        expect(await sideways(page), `${name} ${size.width}`).toBe(0)
        if (process.env['TIDEMARK_UPDATE'] === '1') await picture(page, `console-${name}-${size.width}-${scheme}`)
      }
      await look('overview', '/')
      if (scheme === 'light') {
        await look('sync', '/syncs/demo/customers')
        await look('feed', '/feed')
        const updated = page
          .getByRole('region', { name: /Changes/ })
          .getByRole('row')
          .filter({ hasText: 'updated' })
          .last()
        await updated.waitFor({ timeout: 60_000 })
        await page.getByRole('button', { name: 'Pause' }).click()
        await updated.getByRole('link').last().click()
        await page.getByRole('heading', { name: 'Change history' }).waitFor()
        await look('record', new URL(page.url()).pathname.slice('/console'.length))
      }
      expect(page.trouble).toEqual([])
      await page.context().close()
    }
  })
})

async function picture(page: Page, name: string): Promise<void> {
  mkdirSync(images, { recursive: true })
  await page.waitForTimeout(800)
  await page.screenshot({ path: join(images, `${name}.png`) })
}
