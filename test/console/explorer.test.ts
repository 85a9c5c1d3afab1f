import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { JsonObject, Store } from '../../src/contract/index.ts'
import { createServer, type Server } from '../../src/server/server.ts'
import { confinedSelectOf } from '../../src/stores/run-select.ts'
import { sqliteDriver } from '../../src/stores/sqlite/driver.ts'
import { selectFromSqlite } from '../../src/stores/sqlite/select.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { START, SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { expectAccessible, launch, missing, openPage, sideways } from './browser.ts'
import { ports } from './console-fixture.ts'

const ROWS = 60_000
const CITIES = ['Berlin', 'Lima', 'Osaka', null]
const SIZES = {
  1440: { width: 1440, height: 900 },
  1024: { width: 1024, height: 768 },
  390: { width: 390, height: 844 },
}

if (missing !== null) console.info(`skipped: the data explorer in a browser: ${missing}`)

describe.skipIf(missing !== null)(`the data explorer with ${ROWS} rows`, () => {
  let browser: Browser
  let store: Store
  let server: Server
  let url: string
  let folder: string
  let trouble: string[] = []

  beforeAll(async () => {
    browser = await launch()
    folder = await mkdtemp(join(tmpdir(), 'tidemark-explorer-'))
    const file = join(folder, 'store.db')
    store = await openSqliteStore({ file, synchronous: 'off' })
    await fill(store)
    server = createServer({
      store,
      ports,
      version: '0.0.0',
      select: confinedSelectOf({
        ...sqliteDriver.locate(`sqlite:${file}`, '/'),
        select: async (sql, options) => selectFromSqlite(file, sql, options),
      }),
    })
    url = await server.listen(0)
  }, 120_000)
  afterAll(async () => {
    await browser?.close()
    await server?.close()
    await store?.close()
    if (folder !== undefined) await rm(folder, { recursive: true, force: true })
  })
  afterEach(() => expect(trouble).toEqual([]))

  async function at(
    query: string,
    width: keyof typeof SIZES = 1440,
    scheme: 'light' | 'dark' = 'light',
  ): Promise<Page> {
    const page = await openPage(browser, url, { size: SIZES[width], scheme })
    trouble = page.trouble
    onTestFinished(() => page.context().close())
    await page.goto(`${url}/console/databases/people${query}`)
    await page.getByRole('heading', { name: 'people' }).waitFor()
    await page.locator('.skeleton').first().waitFor({ state: 'detached' })
    return page
  }

  const keys = (page: Page) => page.getByRole('rowheader').allInnerTexts()

  for (const width of [1440, 1024, 390] as const) {
    test(`at ${width} px rows are sorted and filtered on the server, and the URL keeps the view`, async () => {
      const page = await at('', width)
      await expect.poll(async () => (await keys(page))[0]).toBe('p00000')
      await page.getByRole('button', { name: /^spent double/ }).click()
      await expect.poll(async () => (await keys(page))[0]).toBe('p00000')
      await page.getByRole('button', { name: /^spent double/ }).click()
      await expect.poll(async () => (await keys(page))[0]).toBe(topSpender())
      await page.getByRole('columnheader', { name: /spent/ }).and(page.locator('[aria-sort=descending]')).waitFor()
      await page.getByRole('button', { name: 'Filter and statistics of city' }).click()
      const panel = page.getByRole('dialog', { name: 'city' })
      await expect
        .poll(() => panel.innerText())
        .toMatch(/Of all 60,000 rows of this view[\s\S]*25 % 15,000[\s\S]*distinct\s+3/)
      await expectAccessible(page, `the panel of a column at ${width}`)
      await panel.getByRole('combobox', { name: 'Condition' }).selectOption('equals')
      await panel.getByRole('textbox', { name: 'Value' }).fill('Lima')
      await panel.getByRole('button', { name: 'Add filter' }).click()
      await page.getByText('city = Lima').waitFor()
      await expect
        .poll(async () => new Set((await keys(page)).map((key) => Number(key.slice(1)) % 4)))
        .toEqual(new Set([1]))
      const shown = await keys(page)
      await page.reload()
      await expect.poll(() => keys(page)).toEqual(shown)
      expect(await sideways(page)).toBe(0)
      await expectAccessible(page, `sorted and filtered rows at ${width}`)
      await page.getByRole('button', { name: 'Remove the filter city = Lima' }).click()
      await expect.poll(async () => (await keys(page))[0]).toBe(topSpender())
    })

    test(`at ${width} px a search finds a row beyond the first page, and claims absence only after the last row`, async () => {
      const page = await at('', width)
      await page.getByRole('searchbox').fill('User59999@')
      await page
        .getByText(
          /1 match so far\. Searched the key and every column except booleans and bytes of the newest 50,000 of 60,000 rows/,
        )
        .waitFor()
      expect(await keys(page)).toEqual(['p59999'])
      expect(await page.getByText('No row contains').count()).toBe(0)
      await page.getByRole('button', { name: 'Search further' }).click()
      await page.getByText(/1 match\. Searched .* of all 60,000 rows/).waitFor()
      await page.getByRole('searchbox').fill('user1234@')
      await page.getByText('No match for “user1234@” in 50,000 rows yet').waitFor()
      await expectAccessible(page, `an unfinished search at ${width}`)
      expect(await page.getByText('No row contains').count()).toBe(0)
      await page.getByRole('button', { name: 'Search further' }).click()
      await expect.poll(() => keys(page)).toEqual(['p01234'])
      await page.getByRole('searchbox').fill('absent@nowhere')
      await page.getByText('in 50,000 rows yet').waitFor()
      await page.getByRole('button', { name: 'Search further' }).click()
      await page.getByRole('heading', { name: 'No row contains “absent@nowhere”' }).waitFor()
      await page
        .getByText(/of all 60,000 rows/)
        .first()
        .waitFor()
    })

    test(`at ${width} px SQL runs read-only with its plan, and its errors are shown`, async () => {
      const page = await at('?tab=sql', width)
      const sql = page.getByRole('textbox', { name: 'SQL statement' })
      await sql.fill('select city, count(*) as rows from people group by city order by city')
      await page.getByRole('button', { name: 'Run', exact: true }).click()
      const result = page.getByRole('region', { name: 'Result' })
      await expect
        .poll(() => result.getByRole('row').allInnerTexts())
        .toEqual(['city\trows', 'null\t15000', 'Berlin\t15000', 'Lima\t15000', 'Osaka\t15000'])
      expect(page.url()).toContain('count%28*%29')
      await expectAccessible(page, `SQL at ${width}`)
      await page.getByRole('button', { name: 'Show plan' }).click()
      await expect.poll(() => page.getByLabel('Plan', { exact: true }).innerText()).toMatch(/SCAN people/)
      await sql.fill("delete from people where city = 'Lima'")
      await sql.press('Control+Enter')
      await page.getByText(/must start with select/).waitFor()
      await sql.fill('select * from tidemark_tenants')
      await sql.press('Control+Enter')
      await page.getByText(/cannot use the relation tidemark_tenants/).waitFor()
      expect(await sideways(page)).toBe(0)
    })

    test(`at ${width} px a table is shown as of a time, with the history of a cell`, async () => {
      const page = await at(`?asOf=${new Date(START + 1_000).toISOString()}`, width)
      await page.getByText('As of 2026-01-01').waitFor()
      await page.getByRole('cell', { name: 'Ada before' }).waitFor()
      await page.getByRole('button', { name: 'Now' }).click()
      const cell = page.getByRole('cell', { name: 'Ada after' })
      await cell.click()
      const panel = page.getByRole('dialog', { name: 'name of p00000' })
      await expect
        .poll(() => panel.getByRole('listitem').allInnerTexts())
        .toEqual([expect.stringMatching(/^updated\s+Ada after/), expect.stringMatching(/^created\s+Ada before/)])
      await expectAccessible(page, `the panel of a cell at ${width}`)
      await panel.getByRole('button', { name: 'Filter by this value' }).click()
      await expect.poll(() => keys(page)).toEqual(['p00000'])
    })

    test(`at ${width} px an export has the rows of the view, in its order`, async () => {
      const filter = encodeURIComponent(JSON.stringify(['spent', 'to', '12']))
      const page = await at(`?order=-field%3Aspent&filter=${filter}`, width)
      await page.getByRole('rowheader').first().waitFor()
      const shown = await keys(page)
      for (const [format, name] of [
        ['csv', 'CSV'],
        ['ndjson', 'NDJSON'],
      ] as const) {
        const download = page.waitForEvent('download')
        await page.getByText('Export', { exact: true }).click()
        if (format === 'csv') await expectAccessible(page, `the export menu at ${width}`, 'all but colours')
        await page.getByRole('button', { name, exact: true }).click()
        const text = await readFile(await (await download).path(), 'utf8')
        const exported = text.split('\n').flatMap((line) => /^(?:\{"_key":)?"(p\d+)"/.exec(line)?.[1] ?? [])
        expect(exported.slice(0, shown.length)).toEqual(shown)
        expect(exported).toEqual(expectedKeys())
      }
    })
  }

  test('scrolling reads page after page and renders only the rows in view', async () => {
    const page = await at('?order=changed')
    let last = 0
    for (let n = 0; n < 60 && last < 2_000; n++) {
      await page.evaluate("document.querySelector('.grid-scroll').scrollTo(0, 1e8)")
      await expect
        .poll(async () =>
          Number(/^([\d,]+) of/.exec(await page.getByRole('status').last().innerText())?.[1]?.replaceAll(',', '') ?? 0),
        )
        .toBeGreaterThan(last)
      last = Number(
        /^([\d,]+) of/.exec(await page.getByRole('status').last().innerText())?.[1]?.replaceAll(',', '') ?? last,
      )
      expect(await page.getByRole('row').count()).toBeLessThan(90)
    }
    expect(last).toBeGreaterThan(1_900)
    // The first rows were dropped from memory, and are read again.
    await page.evaluate("document.querySelector('.grid-scroll').scrollTo(0, 0)")
    await expect.poll(async () => (await keys(page))[0]).toBe('p00001')
  }, 120_000)

  test('the explorer is accessible in dark colours, and a wrong view shows the reason', async () => {
    const page = await at('?search=user1', 390, 'dark')
    await page.getByRole('rowheader').first().waitFor()
    await expectAccessible(page, 'dark')
    const wrong = await at(`?filter=${encodeURIComponent('["spent","equals","much"]')}`)
    await wrong.getByText('"much" is no value of the field "spent" (double).').waitFor()
  })
})

const spentOf = (n: number): number => ((n * 7_919) % 100_003) / 100
const all = Array.from({ length: ROWS }, (_, n) => n)
const keyOf = (n: number): string => `p${String(n).padStart(5, '0')}`

function topSpender(): string {
  return keyOf(all.reduce((best, n) => (spentOf(n) > spentOf(best) ? n : best)))
}

function expectedKeys(): string[] {
  return all
    .filter((n) => spentOf(n) <= 12)
    .toSorted((a, b) => spentOf(b) - spentOf(a))
    .map(keyOf)
}

async function fill(store: Store): Promise<void> {
  const driver = await SyncDriver.acquire(store)
  const record = (n: number): JsonObject => ({
    name: n === 0 ? 'Ada before' : `Person ${n}`,
    email: `user${n}@example.com`,
    city: CITIES[n % 4] ?? null,
    spent: spentOf(n),
    vip: n % 7 === 0,
    seen_at: new Date(START + n * 60_000).toISOString(),
  })
  for (let from = 0; from < ROWS; from += 5_000)
    await driver.cycle(all.slice(from, from + 5_000).map((n) => upsert(keyOf(n), record(n), { database: 'people' })))
  await driver.cycle([upsert(keyOf(0), { ...record(0), name: 'Ada after' }, { database: 'people' })], {
    at: START + 3_600_000,
  })
}
