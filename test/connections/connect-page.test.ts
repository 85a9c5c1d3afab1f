import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { Browser, BrowserContext } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { expectAccessible, launch, missing, NARROW, openPage, sideways, WIDE } from '../console/browser.ts'
import { CONNECT_SCRIPT, DONE_SCRIPT } from '../../src/server/connect/scripts.ts'
import { hubspotOptions, openConnectFixture, startHubspot, type ConnectFixture } from './connect-fixture.ts'

if (missing !== null) console.warn(`skipped: ${missing}`)

/** A page of the program at an origin of its own. */
async function serveProgram(html: (origin: string) => string): Promise<string> {
  const server = createServer((_request, response) =>
    response
      .writeHead(200, { 'content-type': 'text/html; charset=utf-8' })
      .end(html(`http://localhost:${(server.address() as AddressInfo).port}`)),
  ).listen(0, '127.0.0.1')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  return `http://localhost:${(server.address() as AddressInfo).port}/`
}

test('the script of a pop-up has at most 2 kB', () => {
  expect(Buffer.byteLength(CONNECT_SCRIPT)).toBeLessThanOrEqual(2_048)
  expect(Buffer.byteLength(DONE_SCRIPT)).toBeLessThanOrEqual(1_024)
})

describe.skipIf(missing !== null)('the connect page in a browser', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launch()
  })
  afterAll(() => browser.close())

  async function setCookie(context: BrowserContext, fixture: ConnectFixture, cookie: string): Promise<void> {
    const [name = '', value = ''] = cookie.split(';')[0]!.split('=')
    await context.addCookies([{ name, value, url: fixture.base, httpOnly: true, sameSite: 'Lax' }])
  }

  test.each([
    ['light', WIDE],
    ['dark', WIDE],
    ['light', NARROW],
    ['dark', NARROW],
  ] as const)('is accessible and fits: %s, %o', async (scheme, size) => {
    const fixture = await openConnectFixture()
    fixture.configure({ providers: { hubspot: {}, servicenow: {} }, appName: 'Harbour' })
    const page = await openPage(browser, fixture.base, { scheme, size })
    onTestFinished(() => page.context().close())
    for (const [provider, method] of [
      ['hubspot', 'form'],
      ['servicenow', 'oauth'],
    ] as const) {
      const { url, cookie } = await fixture.flow.createSession({ tenant: 'acme', provider, method })
      await setCookie(page.context(), fixture, cookie)
      await page.goto(url)
      await expectAccessible(page, `${provider} ${method}`)
      expect(await sideways(page)).toBe(0)
    }
    // The browser checks required fields; the server's own check is shown in place as well.
    await page.evaluate("document.querySelector('form').noValidate = true")
    await page.getByLabel('Instance').fill('10.0.0.1')
    await page.getByRole('button', { name: 'Continue to ServiceNow' }).click()
    await page.getByText('It must end in .service-now.com').waitFor()
    await expectAccessible(page, 'errors')
    expect(await sideways(page)).toBe(0)
    await page.goto(`${fixture.base}/connect/${'x'.repeat(43)}`)
    await page.getByRole('heading', { name: 'This link has expired' }).waitFor()
    await expectAccessible(page, 'refused')
    expect(page.trouble.filter((line) => !line.includes('422') && !line.includes('403'))).toEqual([])
  })

  test('a pop-up connects an account and reports to the page that opened it', async () => {
    const fixture = await openConnectFixture()
    const vendor = await startHubspot(fixture.base)
    const links: { url: string }[] = []
    const program = await serveProgram(() =>
      `<!doctype html><title>App</title><button>Connect</button><output></output>
<script src="${fixture.base}/connect/connect.js"></script>
<script>document.querySelector('button').onclick = async () => {
  const result = await tidemarkConnect(${JSON.stringify('LINK')})
  document.querySelector('output').textContent = JSON.stringify(result)
}</script>`.replace('"LINK"', JSON.stringify(links[0]?.url ?? '')),
    )
    fixture.configure({ providers: hubspotOptions(vendor), returnTo: [program] })
    const { url, cookie } = await fixture.flow.createSession({ tenant: 'acme', provider: 'hubspot', returnTo: program })
    links.push({ url })
    const context = await browser.newContext()
    onTestFinished(() => context.close())
    await setCookie(context, fixture, cookie)
    const page = await context.newPage()
    await page.goto(program)
    const opening = page.waitForEvent('popup')
    await page.getByRole('button', { name: 'Connect' }).click()
    const popup = await opening
    const closed = popup.waitForEvent('close')
    // A message of another window is ignored.
    await page.evaluate(`window.postMessage({ type: 'tidemark-connect', status: 'forged' }, '*')`)
    await popup.getByRole('button', { name: 'Continue to HubSpot' }).click()
    await popup.getByRole('button', { name: 'Sign in as ada.example' }).click()
    await closed
    await page.getByText('connected').waitFor()
    expect(JSON.parse((await page.locator('output').textContent())!)).toEqual({
      status: 'connected',
      connection: 'hubspot',
      provider: 'hubspot',
    })
    expect((await fixture.store.forTenant('acme').connection('hubspot'))?.account?.id).toBe('1001')
  })

  test('the result of a pop-up is sent to no other origin', async () => {
    const fixture = await openConnectFixture()
    const vendor = await startHubspot(fixture.base)
    vendor.signIn = '1001'
    const other = await serveProgram(
      () => `<!doctype html><title>Other</title><script>
window.seen = []
addEventListener('message', ({ data }) => seen.push(data))
</script><button>Open</button>`,
    )
    fixture.configure({ providers: hubspotOptions(vendor), returnTo: ['https://app.example.com/'] })
    const { url, cookie } = await fixture.flow.createSession({
      tenant: 'acme',
      provider: 'hubspot',
      returnTo: 'https://app.example.com/',
    })
    const context = await browser.newContext()
    onTestFinished(() => context.close())
    await setCookie(context, fixture, cookie)
    const page = await context.newPage()
    await page.goto(other)
    await page.evaluate(
      `document.querySelector('button').onclick = () => open(${JSON.stringify(`${url}?popup=1`)}, '_blank', 'popup')`,
    )
    const opening = page.waitForEvent('popup')
    await page.getByRole('button').click()
    const popup = await opening
    const closed = popup.waitForEvent('close')
    await popup.getByRole('button', { name: 'Continue to HubSpot' }).click()
    await closed
    expect(await page.evaluate('seen')).toEqual([])
  })

  test('a link outside of the script is refused, and a blocked pop-up is reported', async () => {
    const fixture = await openConnectFixture()
    fixture.configure({ providers: { hubspot: {} } })
    const page = await (await browser.newContext()).newPage()
    onTestFinished(() => page.context().close())
    await page.goto(
      await serveProgram(
        () => `<!doctype html><title>App</title><script src="${fixture.base}/connect/connect.js"></script>`,
      ),
    )
    const failureOf = (link: string): Promise<unknown> =>
      page.evaluate(`tidemarkConnect(${JSON.stringify(link)}).then(() => '', (error) => error.message)`)
    expect(await failureOf('https://evil.example/connect/x')).toBe(`The link is not below ${fixture.base}/connect/`)
    expect(await failureOf(`${fixture.base}/console/`)).toBe(`The link is not below ${fixture.base}/connect/`)
    await page.evaluate('window.open = () => null')
    expect(await failureOf(`${fixture.base}/connect/x`)).toContain('The pop-up was blocked')
  })
})
