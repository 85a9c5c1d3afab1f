import { existsSync } from 'node:fs'
import { join } from 'node:path'
import axe, { type AxeResults, type RunOptions } from 'axe-core'
import { chromium, type Browser, type Page } from 'playwright-core'
import { expect } from 'vitest'

const CHROMIUM = process.env['TIDEMARK_TEST_CHROMIUM'] ?? '/usr/bin/chromium'

/** Why the console tests cannot run here; null if they can. */
export const missing = !existsSync(CHROMIUM)
  ? `there is no browser at ${CHROMIUM}; \`apt-get install chromium\`, or name one in TIDEMARK_TEST_CHROMIUM`
  : !existsSync(join(import.meta.dirname, '../../dist/console/index.html'))
    ? 'the console is not built; `npm run build`'
    : null

export function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: CHROMIUM,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--no-first-run',
    ],
  })
}

export const WIDE = { width: 1280, height: 800 }
export const NARROW = { width: 390, height: 844 }

export interface PageOptions {
  readonly size?: { width: number; height: number }
  readonly scheme?: 'light' | 'dark'
}

/**
 * A page that fails its test on a request to another host, a violation of its content security policy, or an
 * exception.
 */
export async function openPage(
  browser: Browser,
  url: string,
  { size = WIDE, scheme = 'light' }: PageOptions = {},
): Promise<Page & { readonly trouble: string[] }> {
  const context = await browser.newContext({ viewport: size, colorScheme: scheme, reducedMotion: 'reduce' })
  const page = await context.newPage()
  const trouble: string[] = []
  page.on('pageerror', ({ message }) => void trouble.push(message))
  page.on('console', (message) => {
    // The browser logs rejected requests too; tests assert on the expected ones.
    if (message.type() === 'error' && !/status of 40[0134]/.test(message.text())) trouble.push(message.text())
  })
  page.on('request', (request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith('data:')) trouble.push(`asked ${request.url()}`)
  })
  return Object.assign(page, { trouble })
}

const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']
/** Contrast checks take as long as all the others. */
const RULES = {
  all: { runOnly: TAGS },
  colours: { runOnly: { type: 'rule', values: ['color-contrast'] } },
  'all but colours': { runOnly: TAGS, rules: { 'color-contrast': { enabled: false } } },
} satisfies Record<string, RunOptions>

/** No serious or critical accessibility violations. */
export async function expectAccessible(page: Page, where: string, rules: keyof typeof RULES = 'all'): Promise<void> {
  await page.evaluate(axe.source)
  const { violations } = (await page.evaluate(`axe.run(${JSON.stringify(RULES[rules])})`)) as AxeResults
  const grave = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
  expect(
    grave.map(
      ({ id, nodes }) =>
        `${id}: ${nodes
          .slice(0, 3)
          .map(({ html, failureSummary }) => `${html.slice(0, 160)} ${failureSummary ?? ''}`)
          .join(' | ')}`,
    ),
    where,
  ).toEqual([])
}

/** Waits until the page has content and no request is pending. */
export async function loaded(page: Page): Promise<void> {
  await page.locator('h1').first().waitFor({ state: 'attached' })
  await page.locator('.skeleton').first().waitFor({ state: 'detached' })
}

/** How far the page scrolls horizontally. */
export function sideways(page: Page): Promise<number> {
  return page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
}
