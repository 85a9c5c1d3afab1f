import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Store } from '../../src/contract/index.ts'
import { createServer } from '../../src/server/server.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { launch, missing, NARROW, openPage, WIDE } from './browser.ts'
import { ports } from './console-fixture.ts'

const SYNCS = 2_000
/** The syncs whose name contains sync-00. */
const FEW = 100

if (missing !== null) console.info(`skipped: the console with ${SYNCS} syncs: ${missing}`)

describe.skipIf(missing !== null)(`with ${SYNCS} syncs`, () => {
  let browser: Browser
  let store: Store
  beforeAll(async () => {
    browser = await launch()
    store = await openSqliteStore({ file: ':memory:' })
    for (let n = 0; n < SYNCS; n++)
      await (
        await SyncDriver.acquire(store, { worker: 'many', sync: `sync-${String(n).padStart(4, '0')}` })
      ).cycle([upsert(`k${n}`, { n })], { state: `{"n":${n}}` })
  })
  afterAll(async () => {
    await browser?.close()
    await store?.close()
  })

  test.each([
    ['wide', WIDE],
    ['narrow', NARROW],
  ] as const)(
    'the overview keeps few of them in the page, and draws nothing while nothing moves: %s',
    async (_, size) => {
      const asked = { standings: 0, read: 0 }
      const server = createServer({
        store: {
          ...store,
          listSyncStatus: (query) => (asked.standings++, store.listSyncStatus(query)),
          readCheckpoint: (ref) => (asked.read++, store.readCheckpoint(ref)),
        },
        ports,
        version: '0.0.0',
      })
      onTestFinished(() => server.close())
      const url = await server.listen(0)
      const page = await openPage(browser, url, { size })
      onTestFinished(() => page.context().close())
      await page.goto(`${url}/console/`)
      await page.getByRole('link', { name: 'sync-0000' }).waitFor()
      await expect
        .poll(() => page.getByRole('table', { name: 'Syncs' }).getAttribute('aria-rowcount'))
        .toBe(String(SYNCS + 1))
      const nodes = (): Promise<number> => page.evaluate<number>('document.querySelectorAll("*").length')
      expect(await nodes()).toBeLessThan(2_500)

      // While nothing changes the response is 304 and no state is read again.
      const answers: number[] = []
      page.on('response', (response) => {
        if (response.url().endsWith('/console/api/overview')) answers.push(response.status())
      })
      const before = { ...asked }
      await expect.poll(() => answers.length).toBeGreaterThanOrEqual(3)
      expect([new Set(answers), asked.read - before.read]).toEqual([new Set([304]), 0])

      // Scrolls down and up without a long task.
      const long = await page.evaluate<number>(`new Promise(async (resolve) => {
      let longest = 0
      new PerformanceObserver((list) => { for (const { duration } of list.getEntries()) longest = Math.max(longest, duration) }).observe({ type: 'longtask' })
      for (let at = 0; at <= 20; at++) {
        scrollTo(0, (document.documentElement.scrollHeight * at) / 20)
        await new Promise((frame) => requestAnimationFrame(() => requestAnimationFrame(frame)))
      }
      setTimeout(() => resolve(longest), 200)
    })`)
      await page.getByRole('link', { name: 'sync-1999' }).waitFor()
      expect(await nodes()).toBeLessThan(2_500)
      console.info(
        `${SYNCS} syncs, ${size.width} wide: ${await nodes()} nodes, longest task while scrolling ${Math.round(long)} ms`,
      )
      // Sorting and searching draw as much as for a twentieth of the syncs. The times are printed, and not asserted.
      const few = await page.evaluate<{ ms: number; nodes: number }>(measureInteractions(FEW))
      const all = await page.evaluate<{ ms: number; nodes: number }>(measureInteractions(SYNCS))
      expect(all.nodes / few.nodes).toBeLessThan(1.2)
      console.info(
        `${SYNCS} syncs, ${size.width} wide: six interactions take ${(all.ms / few.ms).toFixed(1)} times as long as with ${FEW}`,
      )
      await page.getByRole('searchbox').fill('sync-0250')
      await page.getByRole('link', { name: 'sync-0250' }).waitFor()
      await expect.poll(() => page.getByRole('row').count()).toBe(2)
      expect(page.trouble).toEqual([])
    },
  )
})

/** Sorts a list of so many syncs by each of six columns, and waits for the frame of each. */
function measureInteractions(count: number): string {
  return `(async () => {
    const frame = () => new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)))
    const search = document.querySelector('input[type=search]')
    const setter = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set
    setter.call(search, ${count === SYNCS ? "''" : "'sync-00'"})
    search.dispatchEvent(new Event('input', { bubbles: true }))
    scrollTo(0, 0)
    await frame()
    const buttons = [...document.querySelectorAll('.sort-button')].slice(0, 6)
    let ms = 0
    for (const button of buttons) {
      const begun = performance.now()
      button.click()
      document.body.offsetHeight
      ms += performance.now() - begun
      await frame()
    }
    return { ms: Math.max(0.1, ms), nodes: document.querySelectorAll('*').length }
  })()`
}
