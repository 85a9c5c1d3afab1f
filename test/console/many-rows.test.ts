import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Store } from '../../src/contract/index.ts'
import { createServer } from '../../src/server/server.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { launch, missing, openPage, WIDE } from './browser.ts'
import { ports } from './console-fixture.ts'

const ROWS = 11_000

if (missing !== null) console.info(`skipped: the console with ${ROWS} rows: ${missing}`)

describe.skipIf(missing !== null)(`with ${ROWS} rows`, () => {
  let browser: Browser
  let store: Store
  beforeAll(async () => {
    browser = await launch()
    store = await openSqliteStore({ file: ':memory:' })
    const driver = await SyncDriver.acquire(store)
    await driver.cycle(
      Array.from({ length: ROWS }, (_, n) =>
        upsert(`k${String(n).padStart(5, '0')}`, { name: n === ROWS - 1 ? 'needle' : 'hay' }),
      ),
    )
  })
  afterAll(async () => {
    await browser?.close()
    await store?.close()
  })

  test('a search without a match in the first response continues to the match, and reports absence only after the last row', async () => {
    const server = createServer({ store, ports, version: '0.0.0' })
    onTestFinished(() => server.close())
    const url = await server.listen(0)
    const page = await openPage(browser, url, { size: WIDE })
    onTestFinished(() => page.context().close())
    const [database] = await store.databases()
    await page.goto(`${url}/console/databases/${database!.name}`)
    const answers: number[] = []
    page.on('response', (response) => {
      if (response.url().includes('search=')) answers.push(response.status())
    })
    await page.getByRole('searchbox').fill('needle')
    await page.getByText('1 match in 11,000 of 11,000 rows').waitFor()
    expect(answers).toEqual([200, 200, 200])
    await page.getByRole('searchbox').fill('nowhere')
    await page.getByText('No row contains “nowhere”').waitFor()
    expect(await page.getByText('Searched 11,000 of 11,000 rows').count()).toBe(1)
    expect(answers).toHaveLength(6)
  })
})
