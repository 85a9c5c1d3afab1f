import assert from 'node:assert/strict'
import type { DestinationReport, DestinationStatus, Store, WebhookMessage } from '../../contract/index.ts'
import { required } from '../../values/required.ts'
import { OPERATOR, rule, START, type StoreCase } from './harness.ts'
import { createWebhook } from './webhooks.ts'

const CLAIM = { holder: 'one', ttlMs: 60_000, at: START }

export const destinationCases: readonly StoreCase[] = [
  rule('the identity of a store is chosen once, and differs between tenants', async ({ store, reopen }) => {
    assert.equal(await store.storeId('first'), 'first')
    assert.equal(await (await reopen()).storeId('second'), 'first')
    assert.equal(await store.forTenant('acme').storeId('other'), 'other')
  }),
  rule('a destination has one holder at a time, and every claim has a higher epoch', async ({ store }) => {
    const first = await claim(store)
    assert.equal(await store.claimDestination('a', { ...CLAIM, holder: 'two' }), null)
    assert.equal(await store.renewDestination(first, { ttlMs: 60_000, at: START }), true)
    const second = required(
      await store.claimDestination('a', { ...CLAIM, holder: 'two', evictHolder: 'one' }),
      'the claim of another holder',
    )
    assert.ok(second.epoch > first.epoch)
    assert.equal(await store.renewDestination(first, { ttlMs: 60_000, at: START }), false)
    assert.equal(await store.recordDestination(first, REPORT), false)
    await store.releaseDestination(first)
    assert.equal((await status(store)).heldBy, 'two')
    await store.releaseDestination(second)
    const raised = required(await store.claimDestination('a', { ...CLAIM, epochMin: 40 }), 'a claim above 40')
    assert.equal(raised.epoch, 41)
    assert.equal(await store.forTenant('acme').renewDestination(raised, { ttlMs: 60_000, at: START }), false)
  }),
  rule('a destination keeps its last report, and another tenant sees none of it', async ({ store, reopen }) => {
    assert.equal(await store.recordDestination(await claim(store), REPORT), true)
    const { resynced: _, ...reported } = REPORT
    assert.deepEqual(await status(await reopen()), {
      name: 'a',
      isPaused: false,
      heldBy: 'one',
      triggeredAt: null,
      resync: [],
      ...reported,
    })
    assert.deepEqual(await store.forTenant('acme').destinations(), [])
  }),
  rule('a paused destination is not claimed, and its holder stops at the next renewal', async ({ store }) => {
    const held = await claim(store)
    await store.signalDestination('a', { kind: 'pause' }, OPERATOR)
    assert.equal(await store.renewDestination(held, { ttlMs: 60_000, at: START }), false)
    await store.releaseDestination(held)
    assert.equal(await store.claimDestination('a', CLAIM), null)
    await store.signalDestination('a', { kind: 'resume' }, OPERATOR)
    assert.notEqual(await store.claimDestination('a', CLAIM), null)
  }),
  rule('requests to load databases again add up, and end when their load begins', async ({ store }) => {
    await store.signalDestination('a', { kind: 'resync', databases: ['x', 'y'] }, OPERATOR)
    await store.signalDestination('a', { kind: 'resync', databases: ['z'] }, OPERATOR)
    assert.equal((await status(store)).triggeredAt, OPERATOR.at)
    const held = await claim(store)
    assert.deepEqual(held.status.resync, ['x', 'y', 'z'])
    assert.equal((await status(store)).triggeredAt, null)
    assert.equal(await store.recordDestination(held, { ...REPORT, resynced: ['x', 'z'] }), true)
    assert.deepEqual((await status(store)).resync, ['y'])
  }),
  rule('a message is queued with the report for each webhook that names its event, in order', async ({ store }) => {
    const cursor = { sequence: 0, floor: 0 }
    await store.putWebhook(createWebhook('all', { actions: null }), cursor)
    await store.putWebhook(createWebhook('changes', { actions: ['created', 'destination.recovered'] }), cursor)
    await store.putWebhook(createWebhook('events', { actions: [MESSAGE.action], databases: ['other'] }), cursor)
    await store.forTenant('acme').putWebhook(createWebhook('events', { actions: [MESSAGE.action] }), cursor)
    const first = await claim(store)
    assert.equal(
      await store.recordDestination(first, { ...REPORT, messages: [MESSAGE, { ...MESSAGE, messageId: 'msg_2' }] }),
      true,
    )
    await store.recordDestination(first, { ...REPORT, messages: [{ ...MESSAGE, messageId: 'msg_3' }] })
    const read = (webhook: string, from = store) => from.deliveries({ webhook, failed: false, limit: 10 })
    const queued = await read('events')
    assert.deepEqual(
      queued.map(({ messageId }) => messageId),
      ['msg_1', 'msg_2', 'msg_3'],
    )
    assert.ok(
      queued.every(({ sequence }) => sequence < 0),
      'the number of a message is not one of the log',
    )
    const { sequence: _, ...delivery } = required(queued[0], 'the first message')
    assert.deepEqual(delivery, {
      messageId: 'msg_1',
      database: MESSAGE.resourceType,
      key: 'a',
      body: '{"a":"ü"}',
      attempts: 0,
      firstAt: null,
      nextAt: START,
      failed: false,
      lastStatus: null,
      lastResponse: null,
    })
    assert.deepEqual(await read('all'), [])
    assert.deepEqual(await read('changes'), [])
    assert.deepEqual(await read('events', store.forTenant('acme')), [])
    // Delivered numbers may be used again; those that are pending are not.
    const held = required(
      await store.claimWebhook('events', { holder: 'one', ttlMs: 60_000, at: START }),
      'the claim of the webhook',
    )
    await store.recordDeliveries(held, {
      progress: held.webhook,
      delivered: queued.slice(0, 2).map(({ sequence }) => sequence),
      undelivered: [],
    })
    await store.recordDestination(first, { ...REPORT, messages: [{ ...MESSAGE, messageId: 'msg_4' }] })
    assert.deepEqual(
      (await read('events')).map(({ messageId }) => messageId),
      ['msg_3', 'msg_4'],
    )
    required(await store.claimDestination('a', { ...CLAIM, holder: 'two', evictHolder: 'one' }), 'another holder')
    assert.equal(await store.recordDestination(first, { ...REPORT, messages: [MESSAGE] }), false)
    assert.equal((await read('events')).length, 2)
  }),
  rule('invariant 3: a destination that is added again continues with higher epochs', async ({ store }) => {
    const held = await claim(store)
    assert.equal(await store.removeDestination('a', OPERATOR), true)
    assert.equal(await store.removeDestination('a', OPERATOR), false)
    assert.equal(await store.recordDestination(held, REPORT), false)
    assert.ok((await claim(store)).epoch > held.epoch)
  }),
]

const REPORT: DestinationReport = {
  kind: 'memory',
  location: 'memory ü',
  mode: 'mirror',
  startedAt: START,
  endedAt: START + 5,
  failures: 2,
  retryAt: START + 9,
  error: { code: 'DESTINATION_UNAVAILABLE', message: 'it is down' },
  databases: [
    {
      database: 'things',
      state: 'following',
      sequence: 4,
      readSequence: 7,
      committedAt: START,
      changes: 3,
      loadReason: null,
    },
  ],
  resynced: [],
}

const MESSAGE: WebhookMessage = {
  messageId: 'msg_1',
  action: 'destination.failing',
  resourceType: 'tidemark.destination',
  key: 'a',
  body: '{"a":"ü"}',
  at: START,
}

async function claim(store: Store) {
  return required(await store.claimDestination('a', CLAIM), 'the result of claimDestination')
}

async function status(store: Store): Promise<DestinationStatus> {
  return required((await store.destinations())[0], 'the destination')
}
