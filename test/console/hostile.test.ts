import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { remove, SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { addKey, ServerFixture } from '../server/server-fixture.ts'
import { openHarness } from '../stores/sqlite-harness.ts'
import { expectAccessible, launch, loaded, missing, NARROW, openPage, sideways, type PageOptions } from './browser.ts'

if (missing !== null) console.info(`skipped: the console with hostile data: ${missing}`)

const WORKER = 'worker_with_a_long_name_'.padEnd(63, 'w')
const SYNC = 'sync_with_a_long_name_'.padEnd(63, 's')
const DATABASE = 'database_with_a_long_name_'.padEnd(63, 'd')
const LONG = `long-${'k'.repeat(1_000)}`
/** A message of a source: markup, a change of the text direction, and a host of its own choice. */
const HOSTILE_MESSAGE = `https://<b>evil</b> <img src=x onerror=alert(1)> \u202Ereversed ${'m'.repeat(4_000)}`
/** Characters with a meaning in URLs, some of them already encoded. */
const ODD = 'a/b?c=d&e#f%2Fg+h ü"<i>'

describe.skipIf(missing !== null)('the console with extremely long and unusual names, keys and values', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launch()
  })
  afterAll(() => browser?.close())

  async function open(
    options: PageOptions = {},
  ): Promise<{ stand: ServerFixture; page: Page & { readonly trouble: string[] } }> {
    const stand = await ServerFixture.open(openHarness)
    const driver = await SyncDriver.acquire(stand.store, { worker: WORKER, sync: SYNC })
    await driver.cycle(
      [LONG, ODD, '   '].map((key) =>
        upsert(
          key,
          { [`member_${'m'.repeat(200)}`]: 'v'.repeat(5_000), html: '<img src=x onerror=alert(1)>' },
          { database: DATABASE },
        ),
      ),
    )
    const failing = await SyncDriver.acquire(stand.store, { worker: WORKER, sync: 'failing' })
    const { inflight } = await failing.begin()
    await failing.abandon()
    await failing.release({
      cycle: inflight.cycle,
      stopReason: 'error',
      error: { code: 'AUTH_REJECTED', message: HOSTILE_MESSAGE },
    })
    await stand.store.putWebhook(
      {
        id: 'wh_long',
        url: `https://hooks.example.com/${'segment-'.repeat(100)}`,
        databases: Array.from({ length: 40 }, (_, n) => `database_${n}`),
        actions: null,
        allow: [],
        secrets: '[["whsec_c2VjcmV0",null]]',
        createdAt: 1,
      },
      { sequence: 0, floor: 0 },
    )
    const claim = (await stand.store.claimWebhook('wh_long', { holder: 'test', ttlMs: 60_000, at: Date.now() }))!
    await stand.store.recordDeliveries(claim, {
      progress: {
        ...claim.webhook,
        failureStreak: 1,
        lastStatus: 500,
        lastResponse: 'no-room-'.repeat(32),
        disabledReason: `Paused by ${'somebody-'.repeat(30)}.`,
      },
      delivered: [],
      undelivered: [
        {
          sequence: 1,
          messageId: 'msg_1',
          database: DATABASE,
          key: LONG,
          body: '{}',
          attempts: 10,
          firstAt: 1,
          nextAt: 1,
          failed: true,
          lastStatus: 500,
          lastResponse: 'no-room-'.repeat(32),
        },
      ],
    })
    await addKey(
      stand.store,
      Array.from({ length: 30 }, (_, n) => `database_${n}:read`),
    )
    const page = await openPage(browser, stand.url, options)
    onTestFinished(() => page.context().close())
    return { stand, page }
  }

  test('every page fits a narrow window and is accessible', async () => {
    const { stand, page } = await open({ size: NARROW, scheme: 'dark' })
    const paths = [
      '/',
      `/syncs/${WORKER}/${SYNC}`,
      `/syncs/${WORKER}/failing`,
      '/connections',
      '/databases',
      `/databases/${DATABASE}`,
      `/databases/${DATABASE}/${LONG}`,
      '/feed',
      '/webhooks',
      '/quarantine',
      '/access',
      '/audit',
      '/nowhere',
      '/syncs/no/such',
    ]
    for (const path of paths) {
      await page.goto(`${stand.url}/console${path}`)
      await loaded(page)
      expect(await sideways(page), path).toBe(0)
      await expectAccessible(page, path)
    }
    await page.goto(`${stand.url}/console/webhooks`)
    await page.getByRole('button', { name: 'Edit…' }).click()
    await page.getByText('No changes yet').waitFor()
    expect((await page.getByRole('dialog').boundingBox())!.height).toBeLessThan(NARROW.height)
    expect(await page.locator('nav [aria-current]').innerText()).toBe('Webhooks')
    await page.goto(`${stand.url}/console/nowhere`)
    await page.getByRole('heading', { name: 'Page not found', level: 2 }).waitFor()
    expect(await page.locator('nav [aria-current]').count()).toBe(0)
    expect(page.trouble).toEqual([])
  })

  test('a message of a source is text, and does not push the list away', async () => {
    const { stand, page } = await open()
    await page.goto(`${stand.url}/console/`)
    const attention = page.getByRole('region', { name: 'Needs attention' })
    await attention.getByText('<img src=x onerror=alert(1)>').first().waitFor()
    expect((await attention.boundingBox())!.height).toBeLessThan(200)
    expect(await page.locator('main img, main b img').count()).toBe(0)
    await page.goto(`${stand.url}/console/syncs/${WORKER}/failing`)
    await page.getByRole('button', { name: /manual|schedule/ }).click()
    await page.getByText('<img src=x onerror=alert(1)>').last().waitFor()
    expect(await page.locator('main img').count()).toBe(0)
    expect(page.trouble).toEqual([])
  })

  test('a record with any key is reachable by link and by URL, and long values are readable in full', async () => {
    const { stand, page } = await open()
    for (const key of [ODD, '   ']) {
      await page.goto(`${stand.url}/console/databases/${DATABASE}`)
      await page
        .getByRole('rowheader', { name: key.trim() === '' ? '"   "' : key, exact: true })
        .getByRole('link')
        .click()
      await page.getByRole('heading', { name: 'Change history' }).waitFor()
      await page.reload()
      await page.getByRole('heading', { name: 'Change history' }).waitFor()
    }
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('"   "')
    expect(await page.getByText('v'.repeat(5_000)).count()).toBe(1)
    // Nothing is interpreted as markup.
    expect(await page.locator('main img').count()).toBe(0)
    // All fields of a new record are new, so none is highlighted.
    expect(await page.locator('.is-changed').count()).toBe(0)
    expect(page.trouble).toEqual([])
  })

  test('history lost to compaction is not presented as if it had never existed', async () => {
    const { stand, page } = await open()
    const driver = await SyncDriver.acquire(stand.store, { sync: 'short' })
    await driver.cycle([upsert('kept', { n: 1 }), upsert('gone', { n: 1 })])
    await driver.cycle([upsert('kept', { n: 2 }), remove('gone')])
    await driver.release()
    await stand.store.compact({ before: Number.MAX_SAFE_INTEGER, scanMax: 1_000 })
    await page.goto(`${stand.url}/console/databases/things/kept`)
    await page.getByText('Older changes are no longer in the log.').waitFor()
    expect(await page.locator('.why-entry').count()).toBe(1)
    await page.goto(`${stand.url}/console/databases/things/gone`)
    await page.getByText('The record never existed, or it was deleted before the start of the log.').waitFor()
  })

  test('a key with few scopes sees a plain notice and no actions that it may not use', async () => {
    const { stand, page } = await open()
    const few = await addKey(stand.store, ['sync:read'])
    await page.addInitScript(`sessionStorage.setItem('tidemark.key', '${few}')`)
    for (const path of ['/webhooks', '/access', '/audit', '/feed']) {
      await page.goto(`${stand.url}/console${path}`)
      await page.getByRole('heading', { name: 'Not allowed for this key' }).first().waitFor()
      expect(await page.getByRole('alert').count(), path).toBe(0)
      expect(await page.getByRole('button', { name: /^New|Edit…|Revoke/ }).count(), path).toBe(0)
    }
    await page.getByText('Not allowed', { exact: true }).waitFor()
    expect(page.trouble).toEqual([])
  })
})
