import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { ROOT } from '../cli/package.ts'
import { launch, missing } from '../console/browser.ts'
import { temporaryFolder } from '../connections/temporary-folder.ts'

if (missing !== null) console.warn(`skipped: ${missing}`)

/** Starts the example as its README says, and returns its address. */
async function startApp(): Promise<string> {
  const child = spawn(process.execPath, [join(ROOT, 'node_modules/.bin/jiti'), 'examples/saas-app/main.ts'], {
    cwd: ROOT,
    env: { ...process.env, PORT: '0', SAAS_APP_FOLDER: temporaryFolder() },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let errors = ''
  child.stderr.on('data', (text: Buffer) => (errors += text.toString()))
  for await (const line of createInterface({ input: child.stdout })) {
    const [, origin] = /Open (http:\S+) and sign in/.exec(line) ?? []
    if (origin !== undefined) return origin
  }
  throw new Error(`the app ended: ${errors}`)
}

describe.skipIf(missing !== null)('the SaaS app', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launch()
  })
  afterAll(() => browser.close())

  async function signIn(origin: string, customer: string): Promise<Page> {
    const context = await browser.newContext()
    onTestFinished(() => context.close())
    const page = await context.newPage()
    await page.goto(origin)
    await page.getByRole('button', { name: `Sign in as ${customer}` }).click()
    await page.getByRole('heading', { level: 1, name: customer }).waitFor()
    return page
  }

  async function connect(page: Page, vendor: string, account: string): Promise<void> {
    const opening = page.waitForEvent('popup')
    await page.getByRole('button', { name: `Connect ${vendor}` }).click()
    const popup = await opening
    await popup.getByRole('button', { name: `Continue to ${vendor}` }).click()
    await popup.getByRole('button', { name: `Sign in as ${account}` }).click()
    await page.getByText(`${vendor}: ${account}`).waitFor()
  }

  test(
    'two customers connect two vendors each, see their own rows live, and disconnect',
    { timeout: 180_000 },
    async () => {
      const origin = await startApp()
      const [northwind, contoso] = [await signIn(origin, 'Northwind Traders'), await signIn(origin, 'Contoso')]
      await connect(northwind, 'HubSpot', 'northwind.example')
      await connect(northwind, 'Linear', 'Northwind')
      await connect(contoso, 'HubSpot', 'contoso.example')
      await connect(contoso, 'Linear', 'Contoso')

      for (const [page, own, other] of [
        [northwind, 'northwind', 'contoso'],
        [contoso, 'contoso', 'northwind'],
      ] as const) {
        await page.getByText(`contact-5@${own}.example`).waitFor()
        await page.getByText(/^Changed \d+ times$/).waitFor()
        // Live: a contact that was created while the page is open.
        const seen = await page.getByText(/^new-\d+@live\.example$/).count()
        await expect
          .poll(() => page.getByText(/^new-\d+@live\.example$/).count(), { timeout: 60_000 })
          .toBeGreaterThan(seen)
        expect(await page.getByText(`@${other}.example`).count()).toBe(0)
      }

      await northwind.getByRole('button', { name: 'Disconnect HubSpot' }).click()
      await northwind.getByRole('button', { name: 'Connect HubSpot' }).waitFor()
      await northwind.getByText('Linear: Northwind').waitFor()
      await contoso.reload()
      await contoso.getByText('HubSpot: contoso.example').waitFor()
    },
  )
})
