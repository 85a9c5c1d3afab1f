import { createServer as createHttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/platform/clock.ts'
import { addKey } from '../server/server-fixture.ts'
import {
  expectAccessible,
  launch,
  loaded,
  missing,
  NARROW,
  openPage,
  sideways,
  WIDE,
  type PageOptions,
} from './browser.ts'
import { ConsoleFixture } from './console-fixture.ts'

const PAGES = {
  overview: '/',
  sync: '/syncs/shop/customers',
  frontier: '/syncs/shop/stars',
  failover: '/syncs/shop/transfers',
  failing: '/syncs/shop/invoices',
  connections: '/connections',
  databases: '/databases',
  database: '/databases/customers',
  record: '/databases/customers/cus_1001',
  feed: '/feed',
  destinations: '/destinations',
  webhooks: '/webhooks',
  quarantine: '/quarantine',
  access: '/access',
  audit: '/audit',
  sources: '/sources',
}

if (missing !== null) console.info(`skipped: the console in a browser: ${missing}`)

describe.skipIf(missing !== null)('the console in a browser', () => {
  let browser: Browser
  let scene: ConsoleFixture
  let trouble: string[] = []

  beforeAll(async () => {
    browser = await launch()
    scene = await ConsoleFixture.open()
    await settled(scene)
  })
  afterAll(async () => {
    await browser?.close()
    await scene?.close()
  })
  afterEach(() => expect(trouble).toEqual([]))

  async function at(path: string, options: PageOptions = {}): Promise<Page> {
    const page = await openPage(browser, scene.url, options)
    trouble = page.trouble
    onTestFinished(() => page.context().close())
    await page.goto(`${scene.url}/console${path}`)
    return page
  }

  test('the overview shows every sync: health, mode, schedule, tidemark, lag, last and next cycle, and coverage', async () => {
    const page = await at('/')
    const row = (name: string) => page.getByRole('row', { name: new RegExp(`^\\S+ ${name} `) })
    await row('customers').waitFor()
    await expect.poll(() => page.getByRole('row').count()).toBe(8)
    await expect
      .poll(() => row('customers').innerText())
      .toMatch(/Healthy\s+customers\s+shop · incremental · continuous\s+\d+m?s?\s+\d\d:\d\d:\d\d\s+64\s/)
    await expect
      .poll(() => row('orders').innerText())
      .toMatch(/Healthy[\s\S]*replace · every 1h[\s\S]*12[\s\S]*complete[\s\S]*\+12[\s\S]*!1[\s\S]*in (1h|59m)/)
    await expect.poll(() => row('invoices').innerText()).toMatch(/Error[\s\S]*AUTH_REJECTED[\s\S]*stopped/)
    await expect.poll(() => row('refunds').innerText()).toMatch(/Paused[\s\S]*never ran[\s\S]*paused/)
    // The halves of a pair are adjacent, and the delta's bar shows both.
    const names = await page.getByRole('row').getByRole('link').allInnerTexts()
    expect(names.indexOf('customers-backfill')).toBe(names.indexOf('customers') + 1)
    await expect
      .poll(() => row('customers').getByRole('img').getAttribute('aria-label'))
      .toMatch(
        /Backfill: The list has been read completely\. Delta: The change history since has been read completely\. Changes of the last .+ may be missing\./,
      )
    await expect
      .poll(() => row('stars').getByRole('img').getAttribute('aria-label'))
      .toMatch(/The tail has not reached the end of the list\. The head is at the newest item/)
    await expect
      .poll(() => page.getByRole('figure').allInnerTexts())
      .toEqual([expect.stringMatching(/Throughput/), expect.stringMatching(/Failed cycles[\s\S]*2 failed/)])
  })

  test('the overview can be searched and filtered, also by keyboard', async () => {
    const page = await at('/')
    await page.getByRole('link', { name: 'orders' }).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('star')
    await expect.poll(() => page.getByRole('row').getByRole('link').allInnerTexts()).toEqual(['stars'])
    await page.getByRole('searchbox').fill('nothing like it')
    await page.getByText('No syncs match').waitFor()
    await page.getByRole('button', { name: 'Show all' }).click()
    await page.getByRole('button', { name: /Error/ }).click()
    await expect.poll(() => page.getByRole('row').getByRole('link').allInnerTexts()).toEqual(['invoices'])
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('3')
    await page.getByRole('heading', { name: /Feed/ }).waitFor()
    await page.keyboard.press('Tab')
    expect(await page.evaluate('document.activeElement.textContent')).toBeTruthy()
  })

  test('a sync can be triggered, paused and resumed, and its cycles show their counts', async () => {
    const page = await at('/syncs/shop/orders')
    const cycles = page.getByRole('table', { name: /Cycles/ })
    await cycles.getByRole('row').nth(1).waitFor()
    const before = await cycles.getByRole('row').count()
    await expect
      .poll(() => cycles.getByRole('row').last().innerText())
      .toMatch(/schedule\s+\d\d:\d\d:\d\d\s+(?:\d+ ms|\d+s)\s+1\s+12\s+0\s+0\s+1\s+0\s+–\s+complete/)
    // A row opens with the reason and the facts of its cycle.
    await cycles
      .getByRole('button', { name: /schedule/ })
      .last()
      .click()
    await cycles.getByText('The cycle read everything to its end.').waitFor()
    await cycles
      .getByRole('button', { name: /schedule/ })
      .last()
      .click()
    await page.getByRole('button', { name: 'Run now' }).click()
    await expect.poll(() => cycles.getByRole('row').count()).toBe(before + 1)
    await expect.poll(() => cycles.getByRole('row').nth(1).innerText()).toMatch(/trigger[\s\S]*\s12\s/)
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.getByRole('heading', { name: /orders Paused/ }).waitFor()
    expect((await scene.store.readCheckpoint({ worker: 'shop', sync: 'orders' })).paused).toBe(true)
    await page.getByRole('button', { name: 'Resume' }).click()
    await page.getByRole('heading', { name: /orders Healthy/ }).waitFor()
  })

  test('destinations show their lag and the rejected record, and are paused, resumed and loaded again', async () => {
    const page = await at('/destinations')
    const card = (name: string) => page.getByRole('region', { name: `Destination ${name}` })
    await expect.poll(() => card('lake').innerText()).toMatch(/lake\s+Healthy[\s\S]*following/)
    await expect
      .poll(() => card('finance').innerText())
      .toMatch(/finance\s+Error[\s\S]*DESTINATION_FAILED[\s\S]*key "ord_7"[\s\S]*failed[\s\S]*ord_7\s+sequence \d+/)
    const status = async () => (await scene.store.destinations()).find(({ name }) => name === 'lake')!
    await card('lake').getByRole('button', { name: 'Pause' }).click()
    await expect.poll(() => card('lake').innerText()).toMatch(/Paused/)
    expect((await status()).isPaused).toBe(true)
    await card('lake').getByRole('button', { name: 'Load again…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Load lake again' })
    await expect.poll(() => dialog.innerText()).toMatch(/The rows in Parquet in s3:\/\/lake\/shop are replaced/)
    await expectAccessible(page, 'the dialog of a load')
    await dialog.getByRole('checkbox', { name: 'customers' }).uncheck()
    expect(await dialog.getByRole('button', { name: 'Load again' }).isDisabled()).toBe(true)
    await dialog.getByRole('checkbox', { name: 'customers' }).check()
    await dialog.getByRole('button', { name: 'Load again' }).click()
    await dialog.waitFor({ state: 'detached' })
    expect((await status()).resync).toEqual(['customers'])
    await card('lake').getByRole('button', { name: 'Resume' }).click()
    await expect.poll(async () => (await status()).databases[0]!.loadReason).toBe('requested')
    await expect.poll(() => card('lake').innerText()).toMatch(/Healthy/)
  })

  test('failures are shown with their remedy', async () => {
    const page = await at('/syncs/shop/invoices')
    await page.getByText('https://billing.example answered 401: the token has ended.').first().waitFor()
    await expect
      .poll(() => page.getByRole('status').first().innerText())
      .toMatch(
        /AUTH_REJECTED once[\s\S]*Next step The source rejected[\s\S]*Renew them, then run tidemark resume invoices/,
      )
  })

  test('a reset shows its plan, requires a reason and the name, and is audited', async () => {
    const page = await at('/syncs/shop/customers')
    const { version } = await scene.store.readCheckpoint({ worker: 'shop', sync: 'customers-backfill' })
    await page.goto(`${scene.url}/console/syncs/shop/customers-backfill`)
    await page.getByRole('button', { name: 'Reset…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Reset customers-backfill' })
    await dialog.getByText('all rows and the whole log').waitFor()
    await expect
      .poll(() => dialog.innerText())
      .toMatch(/next cycle\s+reads everything from the start; unchanged rows are not written again/)
    const button = dialog.getByRole('button', { name: 'Reset sync' })
    expect(await button.isDisabled()).toBe(true)
    await dialog.getByLabel('Reason (for the audit log)').fill('a test of the console')
    expect(await button.isDisabled()).toBe(true)
    await dialog.getByLabel(/to confirm/).fill('customers-backfill')
    await button.click()
    await page.getByRole('dialog', { name: 'customers-backfill was reset' }).waitFor()
    expect(await scene.store.readCheckpoint({ worker: 'shop', sync: 'customers-backfill' })).toMatchObject({
      version: version + 1,
      committed: null,
    })
    await page.keyboard.press('Escape')
    await page
      .getByRole('table', { name: /Checkpoint history/ })
      .getByText('a test of the console')
      .waitFor()
    expect((await scene.store.audit({ worker: 'shop', sync: 'customers-backfill' }))[0]).toMatchObject({
      action: 'set',
      actor: 'console:local',
      reason: 'a test of the console',
    })
  })

  test('states are digests until a caller with a sufficient key reveals them', async () => {
    const page = await at('/syncs/shop/customers')
    const history = page.getByRole('table', { name: /Checkpoint history/ })
    await history
      .getByText(/^#[0-9a-f]{8}$/)
      .first()
      .waitFor()
    expect(await page.content()).not.toContain('"place"')
    // Local access is not sufficient to see states.
    await page.getByRole('button', { name: 'Reveal states' }).click()
    await page.getByLabel('API key').fill(await addKey(scene.store, ['admin']))
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('button', { name: 'Reveal states' }).click()
    await history.getByText('"place"').first().waitFor()
  })

  test('records can be searched and have typed columns; numbers are exact; a record shows its change history', async () => {
    const page = await at('/databases')
    await page.getByRole('link', { name: 'orders' }).click()
    await page.getByRole('cell', { name: '9007199254740993' }).first().waitFor()
    await expect
      .poll(async () =>
        (await page.getByRole('columnheader').allInnerTexts()).map((text) => text.replace(/[\s↑]+/g, ' ').trim()),
      )
      .toEqual(['key', 'total double', 'big bigint', 'lines json', 'changed'])
    expect(await page.getByRole('region', { name: 'Rows' }).innerText()).not.toContain('9007199254740992')
    await page.getByRole('button', { name: 'SQL' }).click()
    await page.getByText('This server cannot run SQL for the console.').waitFor()

    await page.goto(`${scene.url}/console/databases/customers`)
    await page.getByText('64 of 64 rows loaded').waitFor()
    await page.getByRole('searchbox').fill('GRACE9')
    await page.getByText(/1 match\. Searched the key and every column .* of all 64 rows/).waitFor()
    await page.getByRole('link', { name: 'cus_1009' }).click()
    await page.getByRole('heading', { name: 'cus_1009' }).waitFor()
    await expect
      .poll(() => page.getByRole('listitem').filter({ hasText: 'created' }).innerText())
      .toMatch(/created \d\d:\d\d:\d\d sequence \d+\s+by customers-backfill, cycle \d+, page 1/)
    await scene.edit('cus_1009', { name: 'Grace Brewster Hopper' })
    const entry = page.getByRole('listitem').filter({ hasText: 'updated' })
    await entry.waitFor({ timeout: 20_000 })
    await expect
      .poll(() => entry.innerText())
      .toMatch(
        /by customers, cycle \d+, page 1; changed in the source[\s\S]*name\s+Grace Hopper → Grace Brewster Hopper/,
      )
    await expect.poll(() => page.getByText('2 changes').count()).toBe(1)
  })

  test('the feed shows changes as they are committed, by database and action, and can be paused', async () => {
    const page = await at('/feed')
    await page.getByText('Live', { exact: true }).waitFor()
    const rows = page.getByRole('region', { name: /Changes/ }).getByRole('row')
    await rows.nth(1).waitFor()
    await scene.edit('cus_1010', { spent: 4_321 })
    await page.getByText('4321').waitFor({ timeout: 20_000 })
    await expect.poll(() => rows.nth(1).innerText()).toMatch(/updated\s+customers\s+cus_1010/)
    await page.getByRole('button', { name: 'created' }).click()
    await page.getByRole('button', { name: 'updated' }).click()
    await scene.remove('cus_1011')
    await rows.filter({ hasText: 'cus_1011' }).waitFor({ timeout: 20_000 })
    expect(
      new Set((await rows.allInnerTexts()).slice(1).map((text) => /created|updated|deleted/.exec(text)![0])),
    ).toEqual(new Set(['deleted']))
    await page.getByRole('button', { name: 'updated' }).click()
    await page.getByRole('button', { name: 'Pause' }).click()
    await scene.edit('cus_1012', { spent: 8_765 })
    await page.getByRole('button', { name: /Resume \(\d+ new\)/ }).waitFor({ timeout: 20_000 })
    expect(await page.getByText('8765').count()).toBe(0)
    await page.getByRole('button', { name: /Resume/ }).click()
    await page.getByText('8765').waitFor()
    await page.getByLabel('Database').selectOption('orders')
    await page.getByRole('button', { name: 'created' }).click()
    await rows.filter({ hasText: 'ord_1' }).first().waitFor()
    expect((await rows.allInnerTexts()).slice(1).every((text) => text.includes('orders'))).toBe(true)
  })

  test('webhooks show failures and can be tested, paused and replayed', async () => {
    const messages: string[] = []
    const receiver = createHttpServer((request, response) => {
      messages.push(String(request.headers['webhook-id']))
      request.resume().on('end', () => response.writeHead(200).end('thanks'))
    })
    await new Promise<void>((resolve) => void receiver.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void receiver.close())
    const id = 'wh_test'
    await scene.store.putWebhook(
      {
        id,
        url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`,
        databases: ['customers'],
        actions: null,
        allow: ['http', 'private', 'port'],
        secrets: '[["whsec_c2VjcmV0",null]]',
        createdAt: Date.now(),
      },
      { sequence: await scene.store.headSequence(), floor: 0 },
    )
    const claim = (await scene.store.claimWebhook(id, { holder: 'test', ttlMs: 10_000, at: Date.now() }))!
    await scene.store.recordDeliveries(claim, {
      progress: {
        sequence: await scene.store.headSequence(),
        floor: 0,
        failureStreak: 1,
        retryAt: null,
        succeededAt: null,
        failedAt: Date.now(),
        lastStatus: 500,
        lastResponse: 'no room',
        disabledReason: null,
      },
      delivered: [],
      undelivered: [
        {
          sequence: 1,
          messageId: 'msg_1',
          database: 'customers',
          key: 'cus_1000',
          body: '{}',
          attempts: 12,
          firstAt: Date.now(),
          nextAt: Date.now(),
          failed: true,
          lastStatus: 500,
          lastResponse: 'no room',
        },
      ],
    })
    await scene.store.releaseWebhook(claim)
    onTestFinished(async () => void (await scene.store.removeWebhook(id, { actor: 'test', at: 0 })))
    const page = await at('/webhooks')
    const card = page.getByRole('region', { name: /Webhook http/ })
    await card.getByText('failed', { exact: true }).first().waitFor()
    await expect
      .poll(() => card.innerText())
      .toMatch(
        /failing[\s\S]*customers · all changes[\s\S]*Failed\s+1[\s\S]*Last response\s+500\s+no room[\s\S]*cus_1000 customers[\s\S]*12/,
      )
    await card.getByRole('button', { name: 'Send test' }).click()
    await card.getByText('test delivered').waitFor()
    expect(messages).toHaveLength(1)
    await card.getByRole('button', { name: 'Replay' }).click()
    await expect.poll(async () => (await scene.store.webhooks())[0]!.failed).toBe(0)
    await card.getByRole('button', { name: 'Pause' }).click()
    await card.getByText('disabled', { exact: true }).waitFor()
    await card.getByRole('button', { name: 'Resume' }).waitFor()
  })

  test('a new webhook can be limited to some changes', async () => {
    const page = await at('/webhooks')
    await page.getByRole('button', { name: 'New webhook…' }).click()
    await page.getByLabel('URL').fill('https://hooks.example.com/orders')
    const databases = page.getByRole('group', { name: /^Databases/ })
    await page.getByRole('group', { name: /all databases, including future ones/ }).waitFor()
    await databases.getByLabel('orders').check()
    await page.getByRole('group', { name: 'Actions all changes' }).getByLabel('deleted').check()
    await page.getByRole('group', { name: 'Databases only orders' }).waitFor()
    await page.getByLabel('Start with the whole log').check()
    await expectAccessible(page, 'new webhook')
    await page.setViewportSize(NARROW)
    expect(await sideways(page)).toBe(0)
    await page.getByRole('button', { name: 'Create webhook' }).click()
    await page.getByLabel('Secret', { exact: true }).waitFor()
    const [added] = await scene.store.webhooks()
    onTestFinished(async () => void (await scene.store.removeWebhook(added!.id, { actor: 'test', at: 0 })))
    expect(added).toMatchObject({ databases: ['orders'], actions: ['deleted'], sequence: 0 })
    await page.keyboard.press('Escape')
    await page.getByText('orders · deleted').waitFor()
  })

  test('editing a webhook shows a plan: the first sequence it applies to, and its effect on existing changes', async () => {
    await scene.store.putWebhook(
      {
        id: 'wh_edit',
        url: 'https://hooks.example.com/x?token=sesame',
        databases: ['orders', 'yet_to_come'],
        actions: null,
        allow: [],
        secrets: '[["whsec_c2VjcmV0",null]]',
        createdAt: 1,
      },
      { sequence: 4, floor: 0 },
    )
    onTestFinished(async () => void (await scene.store.removeWebhook('wh_edit', { actor: 'test', at: 0 })))
    const page = await at('/webhooks')
    await page.getByRole('button', { name: 'Edit…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Edit webhook' })
    const save = dialog.getByRole('button', { name: 'Save' })
    await dialog.getByText('No changes yet. New settings apply from sequence 5.').waitFor()
    expect(await save.isDisabled()).toBe(true)
    expect(await dialog.getByLabel('yet_to_come').isChecked()).toBe(true)
    await dialog.getByLabel('New URL').fill('http://127.0.0.1:1/')
    await dialog.getByRole('alert').filter({ hasText: 'does not use https' }).waitFor()
    expect(await save.isDisabled()).toBe(true)
    await dialog.getByLabel('New URL').fill('')
    await dialog.getByLabel('customers').check()
    await dialog.getByLabel('yet_to_come').uncheck()
    const plan = dialog.getByRole('status')
    await plan.filter({ hasText: 'customers, orders' }).waitFor()
    expect(await plan.innerText()).toMatch(
      /databases\s+orders, yet_to_come → customers, orders[\s\S]*apply from sequence 5[\s\S]*also apply to \d+ pending log[\s\S]*did not match the old filter are not sent/,
    )
    await expectAccessible(page, 'edit webhook')
    await page.setViewportSize(NARROW)
    expect(await sideways(page)).toBe(0)
    await save.click()
    await dialog.waitFor({ state: 'detached' })
    await page.getByText('customers, orders · all changes').waitFor()
    expect((await scene.store.webhooks())[0]).toMatchObject({
      databases: ['customers', 'orders'],
      url: 'https://hooks.example.com/x?token=sesame',
      sequence: 4,
    })
    const { entries } = await scene.store.auditChain({ before: Number.MAX_SAFE_INTEGER, limit: 50 })
    expect(entries.find(({ action }) => action === 'edit-webhook')).toMatchObject({
      actor: 'api:local',
      reason: 'wh_edit: databases orders,yet_to_come → customers,orders',
    })
  })

  test('the form of a source follows its descriptor and shows the manifest, or the error of `tidemark run`', async () => {
    const page = await at('/sources')
    const manifest = page.getByLabel('Manifest', { exact: true })
    await manifest.filter({ hasText: 'api_key: ${STRIPE_API_KEY}' }).waitFor()
    expect(await page.getByLabel('Environment', { exact: true }).innerText()).toBe('STRIPE_API_KEY=')
    await page.getByLabel(/^api_key/).fill('')
    await page.getByText('config: api_key is missing').waitFor()
    await page.getByRole('combobox', { name: /^Source/ }).selectOption('SQL databases')
    await page.getByLabel(/^url/).fill('sqlite:shop.db')
    await page.getByText(/^Optional fields of stream /).click()
    await page.getByLabel(/^key/).fill('region, id')
    await page.getByLabel(/^cursor/).fill('updated_at')
    await page.getByLabel(/^mode/).selectOption('incremental')
    await page.getByText(/^Optional fields of stream\.options /).click()
    await page.getByLabel(/^page_size/).fill('500')
    await manifest.filter({ hasText: 'page_size: 500' }).waitFor()
    expect(await manifest.innerText()).toBe(
      [
        'connector: sql',
        'config:',
        '  url: sqlite:shop.db',
        'streams:',
        '  - id: customers',
        '    key:',
        '      - region',
        '      - id',
        '    cursor: updated_at',
        '    mode: incremental',
        '    options:',
        '      page_size: 500',
      ].join('\n'),
    )
    await expectAccessible(page, 'the form of a source')
    await page.setViewportSize(NARROW)
    expect(await sideways(page)).toBe(0)
  })

  test('a missing key: the reason, whether the source has it, and the next step', async () => {
    const page = await at('/databases/customers')
    await page.getByRole('searchbox').fill('cus_nobody')
    await page.getByText('No row contains “cus_nobody”').waitFor()
    await page.getByRole('button', { name: 'Why is “cus_nobody” missing?' }).click()
    const told = page.getByRole('region', { name: 'Why cus_nobody is missing from customers' })
    await told.waitFor()
    await expect
      .poll(() => told.innerText())
      .toMatch(
        /not in source The log has no entry for this key, and the source has no record with it\.[\s\S]*Next step Check the spelling[\s\S]*has no record with this key[\s\S]*customers-backfill[\s\S]*last complete cycle \d+[\s\S]*npx tidemark why-not customers "cus_nobody"/,
      )
    await expectAccessible(page, 'why not')
    await page.setViewportSize(NARROW)
    expect(await sideways(page)).toBe(0)
    // Another search starts a new lookup.
    await page.getByRole('searchbox').fill('cus_other')
    await page.getByRole('button', { name: 'Why is “cus_other” missing?' }).waitFor()
    await page.goto(`${scene.url}/console/databases/orders/ord_bad`)
    await page.getByText('No history for this key').waitFor()
    await page.getByRole('button', { name: /Why is “ord_bad”/ }).click()
    await page.getByText(/The record was quarantined on page 1 of cycle \d+ of orders: SCHEMA_MISMATCH/).waitFor()
  })

  test('a cycle that another provider took over is marked', async () => {
    const page = await at('/syncs/shop/transfers')
    const cycles = page.getByRole('table', { name: 'Cycles, newest first' })
    await cycles.getByText('switched to south').waitFor()
  })

  test('the tenants of the store are shown with counts only', async () => {
    await scene.store
      .forTenant('acme')
      .signalSync({ worker: 'secretly', sync: 'secret' }, { kind: 'pause', actor: 'ana', at: Date.now() })
    const page = await at('/access')
    const tenants = page.getByRole('table', { name: 'Tenants' })
    await tenants.getByText('acme').waitFor()
    await expect
      .poll(() => tenants.innerText())
      .toMatch(/acme\s+1\s+0\s+0\s+0\s+default current\s+7\s+[45]\s+\d+\s+\d+/)
    expect(await page.content()).not.toContain('secretly')
  })

  test('quarantined records are shown with the reason', async () => {
    const page = await at('/quarantine')
    await page.getByText('SCHEMA_MISMATCH').first().waitFor()
    await expect
      .poll(() => page.getByRole('table').innerText())
      .toMatch(/orders[\s\S]*ord_bad[\s\S]*total: must be number[\s\S]*a lot/)
    await page.getByRole('button', { name: 'Replay' }).click()
    await page.getByText('1 refused').waitFor()
  })

  test('keys are created, shown once and revoked; the audit log is verified', async () => {
    const page = await at('/access')
    await page.getByRole('button', { name: 'New key…' }).click()
    await page.getByLabel('Name', { exact: true }).fill('reports')
    await page.getByLabel('Scopes').fill('nonsense')
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByText('Unknown scope "nonsense".').waitFor()
    await page.getByLabel('Scopes').fill('changes:read')
    await page.getByRole('button', { name: 'Create key' }).click()
    const text = await page.getByLabel('Key', { exact: true }).innerText()
    expect(
      (await fetch(`${scene.url}/agents/v1/changes`, { headers: { authorization: `Bearer ${text}` } })).status,
    ).toBe(200)
    await page.keyboard.press('Escape')
    await expect.poll(() => page.content()).not.toContain(text)
    await expect
      .poll(() => page.getByRole('table', { name: 'Keys' }).innerText())
      .toMatch(/reports[\s\S]*changes:read[\s\S]*valid/)
    await page.getByRole('button', { name: 'Revoke reports' }).click()
    await page.getByRole('button', { name: 'Revoke key' }).click()
    await page.getByRole('table', { name: 'Keys' }).getByText('inactive').waitFor()
    await expect
      .poll(
        async () =>
          (await fetch(`${scene.url}/agents/v1/changes`, { headers: { authorization: `Bearer ${text}` } })).status,
      )
      .toBe(401)

    await page.goto(`${scene.url}/console/audit`)
    await page.getByText(/✓ Chain verified, \d+ entries/).waitFor()
    // Cycles of the fixture add entries meanwhile.
    const ended = page.getByRole('table', { name: /Audit/ }).getByRole('row').filter({ hasText: 'end-api-key' }).first()
    await expect.poll(() => ended.innerText()).toMatch(/\d+\s+\d\d:\d\d:\d\d\s+end-api-key\s/)
  })

  test('beyond this machine a key is required; it stays in the tab and allows only its scopes', async () => {
    const open = await ConsoleFixture.open({ host: '0.0.0.0' })
    onTestFinished(() => open.close())
    await settled(open)
    const reader = await addKey(open.store, ['sync:read'])
    const url = `http://127.0.0.1:${new URL(open.url).port}`
    const page = await openPage(browser, url)
    onTestFinished(() => page.context().close())
    await page.goto(`${url}/console/syncs/shop/customers`)
    await page.getByLabel('API key').fill('tmk_wrong')
    await expectAccessible(page, 'login')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('The key is invalid, expired or revoked.').waitFor()
    await page.getByLabel('API key').fill(reader)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page
      .getByRole('heading', { name: /customers/ })
      .first()
      .waitFor()
    expect(await page.getByRole('button', { name: 'Run now' }).isDisabled()).toBe(true)
    expect(await page.getByRole('button', { name: 'Reveal states' }).isDisabled()).toBe(true)
    expect(await page.evaluate('[sessionStorage.length, localStorage.length, document.cookie]')).toEqual([1, 0, ''])
    await page.goto(`${url}/console/audit`)
    await page.getByText('Not allowed for this key').waitFor()

    // Another tenant's key shows another tenant's console.
    const theirs = await addKey(open.store.forTenant('acme'), ['admin'])
    await page.evaluate(`sessionStorage.setItem('tidemark.key', '${theirs}')`)
    await page.goto(`${url}/console/databases/customers`)
    await page.getByText('Database customers not found').waitFor()
    await page.getByText('acme').waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('API key').waitFor()
    expect(page.trouble).toEqual([])
  })

  test('there is no layout shift while live data arrives', async () => {
    const page = await at('/')
    await loaded(page)
    const row = page.getByRole('row', { name: /^\S+ customers / })
    await page.evaluate(
      `void new PerformanceObserver((list) => { for (const { value } of list.getEntries()) window.shifted += value }).observe({ type: 'layout-shift' }), (window.shifted = 0)`,
    )
    const version = async (): Promise<string> => {
      // The list is drawn with the new version by now or soon.
      await row.getByText('customers', { exact: true }).waitFor()
      return String((await scene.store.readCheckpoint({ worker: 'shop', sync: 'customers' })).version)
    }
    for (let n = 0; n < 3; n++) {
      const before = await version()
      await scene.edit(`cus_10${20 + n}`, { spent: n })
      await expect.poll(version).not.toBe(before)
      await page.waitForResponse((response) => response.url().endsWith('/overview') && response.status() === 200)
    }
    expect(await page.evaluate<number>('window.shifted')).toBeLessThan(0.01)
  })

  // Colours are the same at every width, and the layout in every scheme, so three of the four combinations cover all.
  for (const [scheme, size] of [
    ['light', WIDE],
    ['dark', WIDE],
    ['light', NARROW],
  ] as const) {
    test(`every page is accessible and fits, ${scheme}, ${size.width} wide`, async () => {
      const page = await at('/', { size, scheme })
      for (const [name, path] of Object.entries(PAGES)) {
        await page.goto(`${scene.url}/console${path}`)
        await loaded(page)
        await expectAccessible(
          page,
          `${name} ${scheme} ${size.width}`,
          scheme === 'dark' ? 'colours' : size === NARROW ? 'all but colours' : 'all',
        )
        expect(await sideways(page), `${name} ${size.width}`).toBe(0)
      }
    })
  }
})

/** Waits until every sync has run as far as it can. */
async function settled({ store }: ConsoleFixture): Promise<void> {
  for (;;) {
    const { syncs } = await store.listSyncStatus({ at: Date.now(), recent: 1 })
    if (syncs.filter(({ recent }) => recent[0] !== undefined && recent[0].endedAt !== null).length >= 6) return
    await systemClock.sleep(50)
  }
}
