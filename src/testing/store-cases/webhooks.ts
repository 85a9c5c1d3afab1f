import assert from 'node:assert/strict'
import type { Delivery, Store, WebhookSettings, WebhookProgress } from '../../contract/index.ts'
import { verifyAuditChain } from '../../registry/verify-audit-chain.ts'
import { OPERATOR, rule, START, type StoreCase } from './harness.ts'
import { required } from '../../values/required.ts'

const START_PROGRESS = { sequence: 7, floor: 2 }
const CLAIM = { holder: 'one', ttlMs: 60_000, at: START }

export const webhookCases: readonly StoreCase[] = [
  rule(
    'a webhook keeps its settings, and its progress when they change; another tenant sees none of it',
    async ({ store, reopen }) => {
      const settings = createWebhook('b', { databases: ['things'], actions: ['deleted'], allow: ['private'] })
      await store.putWebhook(settings, START_PROGRESS)
      await store.putWebhook(createWebhook('a', { createdAt: START + 1 }), START_PROGRESS)
      assert.deepEqual(
        (await (await reopen()).webhooks()).map(({ id }) => id),
        ['b', 'a'],
      )
      assert.deepEqual((await store.webhooks())[0], { ...settings, ...FRESH_PROGRESS, ...EMPTY_QUEUE })
      const claim = required(await store.claimWebhook('b', CLAIM), 'the result of claimWebhook')
      await store.recordDeliveries(claim, {
        progress: { ...FRESH_PROGRESS, sequence: 9 },
        delivered: [],
        undelivered: [],
      })
      await store.putWebhook(
        { ...settings, url: 'https://example.com/new', secrets: '["other"]' },
        { sequence: 0, floor: 0 },
      )
      assert.deepEqual((await store.webhooks())[0], {
        ...settings,
        ...FRESH_PROGRESS,
        url: 'https://example.com/new',
        secrets: '["other"]',
        sequence: 9,
        ...EMPTY_QUEUE,
        heldBy: 'one',
      })
      const other = store.forTenant('acme')
      assert.deepEqual(await other.webhooks(), [])
      assert.equal(await other.claimWebhook('b', CLAIM), null)
      assert.equal(await other.restartWebhook('b', { actor: 'me', at: START }), null)
      assert.equal(await other.removeWebhook('b', OPERATOR), false)
      assert.equal(await store.removeWebhook('b', OPERATOR), true)
      assert.deepEqual(
        (await store.webhooks()).map(({ id }) => id),
        ['a'],
      )
    },
  ),
  rule(
    'an edit changes the given settings and keeps the progress; a delivery under the old settings is fenced; the audit log records actor and change, without the path of a URL',
    async ({ store, reopen }) => {
      await store.putWebhook(createWebhook('a', { databases: ['things'], allow: ['port'] }), START_PROGRESS)
      const by = { actor: 'ana', at: START + 5 }
      const claim = required(await store.claimWebhook('a', CLAIM), 'the result of claimWebhook')
      const kept = [createDelivery(5, { failed: true }), createDelivery(6, { attempts: 3 })]
      const failing = {
        ...FRESH_PROGRESS,
        failureStreak: 3,
        retryAt: START + 99,
        failedAt: START + 1,
        lastStatus: 500,
        lastResponse: 'no',
      }
      await store.recordDeliveries(claim, { progress: failing, delivered: [], undelivered: kept })
      assert.equal(await store.editWebhook('a', { databases: ['people', 'things'], actions: ['deleted'] }, by), true)
      assert.equal(
        await store.recordDeliveries(claim, {
          progress: { ...FRESH_PROGRESS, sequence: 99 },
          delivered: [],
          undelivered: [],
        }),
        false,
      )
      const filtered = {
        ...createWebhook('a', { databases: ['people', 'things'], actions: ['deleted'], allow: ['port'] }),
        ...failing,
        waiting: 1,
        failed: 1,
        dueAt: required(kept[1], 'kept[1]').nextAt,
        heldBy: null,
      }
      assert.deepEqual((await (await reopen()).webhooks())[0], filtered)
      // Failures belong to a URL.
      assert.equal(
        await store.editWebhook('a', { url: 'https://other.example.com/secret-path', allow: [], databases: null }, by),
        true,
      )
      assert.deepEqual((await store.webhooks())[0], {
        ...filtered,
        url: 'https://other.example.com/secret-path',
        allow: [],
        databases: null,
        failureStreak: 0,
        retryAt: null,
      })
      // An edit without a difference changes nothing.
      assert.equal(await store.editWebhook('a', { databases: null, actions: ['deleted'] }, by), true)
      assert.equal(await store.editWebhook('b', { databases: null }, by), false)
      assert.equal(await store.forTenant('acme').editWebhook('a', { databases: ['theirs'] }, by), false)
      const entries = (await store.auditChain({ after: 0, limit: 10 })).entries.filter(
        ({ action }) => action === 'edit-webhook',
      )
      assert.deepEqual(
        entries.map(({ worker, sync, actor, at, action, reason }) => [worker, sync, actor, at, action, reason]),
        [
          [null, null, 'ana', START + 5, 'edit-webhook', 'a: databases things → people,things; actions all → deleted'],
          [
            null,
            null,
            'ana',
            START + 5,
            'edit-webhook',
            'a: url https://example.com → https://other.example.com; databases people,things → all; allow port → nothing',
          ],
        ],
      )
      assert.equal((await verifyAuditChain(store)).intact, true)
    },
  ),
  rule(
    'a rotation replaces the secrets alone, and only those it was based on; the claim continues and reads the new ones',
    async ({ store }) => {
      const settings = createWebhook('a', { databases: ['things'] })
      await store.putWebhook(settings, START_PROGRESS)
      const claim = required(await store.claimWebhook('a', CLAIM), 'the result of claimWebhook')
      assert.equal(await store.webhookSecrets(claim), settings.secrets)
      assert.equal(await store.rotateWebhook('a', '["next"]', { ...OPERATOR, replaces: '["another"]' }), false)
      assert.equal(await store.rotateWebhook('b', '["next"]', { ...OPERATOR, replaces: settings.secrets }), false)
      assert.equal(
        await store.forTenant('acme').rotateWebhook('a', '["next"]', { ...OPERATOR, replaces: settings.secrets }),
        false,
      )
      assert.equal(await store.rotateWebhook('a', '["next"]', { ...OPERATOR, replaces: settings.secrets }), true)
      assert.equal(await store.webhookSecrets(claim), '["next"]')
      assert.deepEqual((await store.webhooks())[0], {
        ...settings,
        ...FRESH_PROGRESS,
        ...EMPTY_QUEUE,
        secrets: '["next"]',
        heldBy: 'one',
      })
      assert.equal(
        await store.recordDeliveries(claim, { progress: FRESH_PROGRESS, delivered: [], undelivered: [] }),
        true,
      )
    },
  ),
  rule('a claim has no secrets after an edit, a pause, a replay, a removal or a newer claim', async ({ store }) => {
    const ends: Array<[string, (id: string) => Promise<unknown>]> = [
      ['edit', (id) => store.editWebhook(id, { databases: ['people'] }, OPERATOR)],
      ['pause', (id) => store.setWebhookDisabled(id, 'enough', OPERATOR)],
      ['replay', (id) => store.restartWebhook(id, OPERATOR)],
      ['removal', (id) => store.removeWebhook(id, OPERATOR)],
      ['claim', (id) => store.claimWebhook(id, { ...CLAIM, holder: 'two', evictHolder: 'one' })],
      ['release', async (id) => store.releaseWebhook({ id, epoch: (await claimOf(id)).epoch })],
    ]
    const claims = new Map<string, { id: string; epoch: number }>()
    const claimOf = async (id: string) => required(claims.get(id), 'an entry of claims')
    for (const [id, end] of ends) {
      await store.putWebhook(createWebhook(id), START_PROGRESS)
      claims.set(id, required(await store.claimWebhook(id, CLAIM), 'the result of claimWebhook'))
      assert.notEqual(await store.webhookSecrets(required(claims.get(id), 'an entry of claims')), null)
      await end(id)
      assert.equal(await store.webhookSecrets(required(claims.get(id), 'an entry of claims')), null, id)
    }
  }),
  rule(
    'concurrent rotations and edits of one webhook all take effect, on two connections',
    async ({ store, reopen }) => {
      const second = await reopen()
      await store.putWebhook(createWebhook('a'), START_PROGRESS)
      const rotate = async (on: Store, n: number): Promise<void> => {
        for (;;) {
          const { secrets } = required((await on.webhooks())[0], 'the result of webhooks[0]')
          if (
            await on.rotateWebhook('a', JSON.stringify([...(JSON.parse(secrets) as unknown[]), n]), {
              ...OPERATOR,
              replaces: secrets,
            })
          )
            return
        }
      }
      for (let n = 0; n < 10; n++) {
        await Promise.all([
          rotate(store, n),
          second.editWebhook('a', { databases: [`d${n}`] }, OPERATOR),
          rotate(second, n + 100),
          store.editWebhook('a', { url: `https://example.com/${n}` }, OPERATOR),
        ])
        const [after] = await store.webhooks()
        assert.deepEqual(
          [required(after, 'after').databases, required(after, 'after').url],
          [[`d${n}`], `https://example.com/${n}`],
        )
      }
      const held = (
        JSON.parse(required((await store.webhooks())[0], 'the result of webhooks[0]').secrets) as unknown[]
      ).filter((value) => typeof value === 'number')
      assert.deepEqual(
        held.toSorted((a, b) => a - b),
        Array.from({ length: 10 }, (_, n) => n).concat(Array.from({ length: 10 }, (_, n) => n + 100)),
      )
      assert.equal((await verifyAuditChain(store)).intact, true)
    },
  ),
  rule(
    'R51 every change of a webhook or an API key is a link of the audit log, with its actor and without secrets',
    async ({ store }) => {
      const by = { actor: 'ana', at: START + 3 }
      await store.putWebhook(
        createWebhook('a', { url: 'https://example.com/secret-path', secrets: '["hidden"]', databases: ['things'] }),
        START_PROGRESS,
        'ana',
      )
      await store.rotateWebhook('a', '["hidden too"]', { ...by, replaces: '["hidden"]' })
      await store.setWebhookDisabled('a', 'Paused by ana.', by)
      await store.setWebhookDisabled('a', null, by)
      await store.restartWebhook('a', { ...by, cursor: START_PROGRESS })
      await store.removeWebhook('a', by)
      const key = {
        id: 'k1',
        name: 'reports',
        hash: 'hidden',
        scopes: ['*:read'],
        rateLimit: 1,
        createdAt: START,
        endsAt: null,
      }
      await store.addApiKey(key, 'ana')
      await store.revokeApiKey('k1', START + 9, { ...by, reason: 'left the team' })
      // A change without a difference leaves no entry.
      await store.revokeApiKey('k1', START + 9, by)
      await store.removeWebhook('a', by)
      await store.setWebhookDisabled('a', null, by)
      await store.addApiKey({ ...key, id: 'k2' })
      const entries = (await store.auditChain({ after: 0, limit: 100 })).entries.filter(
        ({ action }) => action !== 'new-key',
      )
      assert.deepEqual(
        entries.map(({ actor, action, reason }) => [actor, action, reason]),
        [
          ['ana', 'add-webhook', 'a: url https://example.com; databases things; actions all; allow nothing'],
          ['ana', 'rotate-webhook', 'a: a new secret'],
          ['ana', 'pause-webhook', 'a: Paused by ana.'],
          ['ana', 'resume-webhook', 'a'],
          ['ana', 'replay-webhook', 'a: everything after sequence 7'],
          ['ana', 'remove-webhook', 'a'],
          ['ana', 'new-api-key', 'k1 (reports): *:read'],
          ['ana', 'end-api-key', `k1: ends ${new Date(START + 9).toISOString()}; left the team`],
          ['program', 'new-api-key', 'k2 (reports): *:read'],
        ],
      )
      assert.equal((await verifyAuditChain(store)).intact, true)
    },
  ),
  rule(
    'invariant 3: only one process delivers at a time, and the progress noted by an older claim is ignored',
    async ({ store, reopen }) => {
      await store.putWebhook(createWebhook('a'), START_PROGRESS)
      const second = await reopen()
      const taken = await Promise.all([
        store.claimWebhook('a', CLAIM),
        second.claimWebhook('a', { ...CLAIM, holder: 'two' }),
      ])
      const winners = taken.filter((claim) => claim !== null)
      assert.equal(winners.length, 1)
      const old = required(winners[0], 'winners[0]')
      assert.equal(await store.renewWebhook(old, { ttlMs: 60_000, at: START }), true)
      const evicted = taken[0] === null ? 'two' : 'one'
      const next = required(
        await second.claimWebhook('a', { ...CLAIM, holder: 'three', evictHolder: evicted }),
        'the result of claimWebhook',
      )
      assert.ok(next.epoch > old.epoch)
      assert.equal(await store.renewWebhook(old, { ttlMs: 60_000, at: START }), false)
      assert.equal(
        await store.recordDeliveries(old, {
          progress: { ...FRESH_PROGRESS, sequence: 99 },
          delivered: [],
          undelivered: [createDelivery(8)],
        }),
        false,
      )
      await store.releaseWebhook(old)
      assert.equal(await store.claimWebhook('a', CLAIM), null)
      assert.deepEqual(
        [
          required((await store.webhooks())[0], 'the result of webhooks[0]').sequence,
          required((await store.webhooks())[0], 'the result of webhooks[0]').waiting,
        ],
        [7, 0],
      )
      await second.releaseWebhook(next)
      assert.equal(
        await second.recordDeliveries(next, {
          progress: { ...FRESH_PROGRESS, sequence: 99 },
          delivered: [],
          undelivered: [],
        }),
        false,
      )
      assert.notEqual(await store.claimWebhook('a', CLAIM), null)
    },
  ),
  rule('XA6 the delivered sequence and the pending retries are updated together', async ({ store, reopen }) => {
    await store.putWebhook(createWebhook('a'), START_PROGRESS)
    const claim = required(await store.claimWebhook('a', CLAIM), 'the result of claimWebhook')
    const status: WebhookProgress = {
      sequence: 12,
      floor: 3,
      failureStreak: 2,
      retryAt: START + 5,
      succeededAt: START + 1,
      failedAt: START + 2,
      lastStatus: 500,
      lastResponse: 'no',
      disabledReason: null,
    }
    const [first, second] = [
      createDelivery(9, { key: 'ключ' }),
      createDelivery(8, { failed: true, lastStatus: null, nextAt: START }),
    ]
    assert.equal(
      await store.recordDeliveries(claim, { progress: status, delivered: [], undelivered: [first, second] }),
      true,
    )
    const again = await reopen()
    assert.deepEqual((await again.webhooks())[0], {
      ...createWebhook('a'),
      ...status,
      waiting: 1,
      failed: 1,
      dueAt: first.nextAt,
      heldBy: 'one',
    })
    assert.deepEqual(await again.deliveries({ webhook: 'a', failed: false, limit: 10 }), [first])
    assert.deepEqual(await again.deliveries({ webhook: 'a', failed: true, limit: 10 }), [second])
    const later = { ...first, attempts: 2, nextAt: START + 99, lastResponse: 'still no' }
    await store.recordDeliveries(claim, { progress: status, delivered: [], undelivered: [later, createDelivery(10)] })
    assert.deepEqual(await store.deliveries({ webhook: 'a', failed: false, limit: 1 }), [later])
    await store.recordDeliveries(claim, { progress: status, delivered: [9], undelivered: [] })
    assert.deepEqual(
      (await store.deliveries({ webhook: 'a', failed: false, limit: 9 })).map(({ sequence }) => sequence),
      [10],
    )
  }),
  rule(
    'a disabled webhook cannot be claimed until it is started again; its failed deliveries are then retried',
    async ({ store }) => {
      await store.putWebhook(createWebhook('a'), START_PROGRESS)
      const claim = required(await store.claimWebhook('a', CLAIM), 'the result of claimWebhook')
      await store.recordDeliveries(claim, {
        progress: { ...FRESH_PROGRESS, failureStreak: 9, retryAt: START + 9, disabledReason: 'gone' },
        delivered: [],
        undelivered: [createDelivery(5, { failed: true }), createDelivery(6, { attempts: 3 })],
      })
      await store.releaseWebhook(claim)
      assert.equal(await store.claimWebhook('a', CLAIM), null)
      assert.equal(await store.restartWebhook('a', { actor: 'me', at: START + 50 }), 1)
      assert.deepEqual(
        (await store.deliveries({ webhook: 'a', failed: false, limit: 9 })).map(
          ({ sequence, attempts, nextAt, firstAt }) => [sequence, attempts, nextAt, firstAt],
        ),
        [
          [5, 0, START + 50, null],
          [6, 0, START + 50, null],
        ],
      )
      const { webhook, ...now } = required(await store.claimWebhook('a', CLAIM), 'the result of claimWebhook')
      assert.deepEqual(
        [webhook.disabledReason, webhook.failureStreak, webhook.retryAt, webhook.sequence],
        [null, 0, null, 7],
      )
      assert.equal(await store.restartWebhook('a', { actor: 'me', at: START, cursor: { sequence: 5, floor: 1 } }), 0)
      assert.equal(
        await store.recordDeliveries(now, { progress: FRESH_PROGRESS, delivered: [], undelivered: [] }),
        false,
      )
      assert.deepEqual(
        (await store.deliveries({ webhook: 'a', failed: false, limit: 9 })).map(({ sequence }) => sequence),
        [5],
      )
      assert.deepEqual(
        [
          required((await store.webhooks())[0], 'the result of webhooks[0]').sequence,
          required((await store.webhooks())[0], 'the result of webhooks[0]').floor,
        ],
        [5, 1],
      )
    },
  ),
  rule(
    'a webhook can be stopped and resumed: the current delivery is fenced, and stored data is kept',
    async ({ store }) => {
      await store.putWebhook(createWebhook('a'), START_PROGRESS)
      const claim = required(await store.claimWebhook('a', CLAIM), 'the result of claimWebhook')
      const kept = [createDelivery(5, { failed: true }), createDelivery(6, { attempts: 3 })]
      await store.recordDeliveries(claim, {
        progress: { ...FRESH_PROGRESS, failureStreak: 9, retryAt: START + 9 },
        delivered: [],
        undelivered: kept,
      })
      assert.equal(await store.setWebhookDisabled('a', 'enough', OPERATOR), true)
      assert.equal(required((await store.webhooks())[0], 'the result of webhooks[0]').disabledReason, 'enough')
      assert.equal(
        await store.recordDeliveries(claim, {
          progress: { ...FRESH_PROGRESS, sequence: 99 },
          delivered: [6],
          undelivered: [],
        }),
        false,
      )
      assert.equal(await store.claimWebhook('a', CLAIM), null)
      assert.equal(await store.setWebhookDisabled('a', null, OPERATOR), true)
      const { webhook } = required(await store.claimWebhook('a', CLAIM), 'the result of claimWebhook')
      assert.deepEqual(
        [webhook.disabledReason, webhook.failureStreak, webhook.retryAt, webhook.sequence],
        [null, 0, null, 7],
      )
      assert.deepEqual(
        [
          await store.deliveries({ webhook: 'a', failed: true, limit: 9 }),
          await store.deliveries({ webhook: 'a', failed: false, limit: 9 }),
        ],
        [[kept[0]], [kept[1]]],
      )
      assert.equal(await store.forTenant('acme').setWebhookDisabled('a', 'not theirs', OPERATOR), false)
      assert.equal(await store.setWebhookDisabled('b', null, OPERATOR), false)
      assert.equal(required((await store.webhooks())[0], 'the result of webhooks[0]').disabledReason, null)
    },
  ),
  rule('Z32 of many concurrent deliveries of one message, exactly one is accepted', async ({ store, reopen }) => {
    const message = { source: 'office/stripe', id: 'evt_1' }
    const claim = { at: START, claimTtlMs: 30_000, purgeBefore: START - 1_000 }
    const stores: Store[] = [store, await reopen()]
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => required(stores[n % 2], 'stores[n % 2]').claimInbound(message, claim)),
    )
    assert.deepEqual(answers.toSorted(), [...Array<string>(19).fill('busy'), 'new'])
    assert.equal(await store.forTenant('acme').claimInbound(message, claim), 'new')
    assert.equal(await store.claimInbound({ ...message, source: 'office/github' }, claim), 'new')
    // Its claimant crashed or reported a failure: it can be claimed again.
    assert.equal(await store.claimInbound(message, { ...claim, at: START + 30_000 }), 'new')
    await store.settleInbound(message, { done: false, at: START + 30_000 })
    assert.equal(await store.claimInbound(message, { ...claim, at: START + 30_001 }), 'new')
    await store.settleInbound(message, { done: true, at: START + 30_002 })
    await store.settleInbound(message, { done: false, at: START + 30_003 })
    assert.equal(await store.claimInbound(message, { ...claim, at: START + 999_999 }), 'done')
    assert.equal(
      await store.claimInbound(message, { ...claim, at: START + 999_999, purgeBefore: START + 30_003 }),
      'new',
    )
  }),
  rule(
    'a stored message remains until it is done, for the next claimant after its claim expires',
    async ({ store, reopen }) => {
      const claim = { at: START, claimTtlMs: 30_000, purgeBefore: START - 1_000 }
      const message = (id: string) => ({ source: 'office/stripe', id })
      await store.claimInbound(message('b'), { ...claim, payload: '{"text":"ü"}' })
      await store.claimInbound(message('a'), { ...claim, at: START + 5, payload: 'second' })
      await store.claimInbound(message('c'), claim)
      const kept = (before: number, limit = 9) => store.pendingInbound({ source: 'office/stripe', before, limit })
      assert.deepEqual(
        await (await reopen()).pendingInbound({ source: 'office/stripe', before: START + 5, limit: 9 }),
        [
          { id: 'b', payload: '{"text":"ü"}' },
          { id: 'a', payload: 'second' },
        ],
      )
      assert.deepEqual(
        (await kept(START + 4)).map(({ id }) => id),
        ['b'],
      )
      assert.deepEqual(
        (await kept(START + 5, 1)).map(({ id }) => id),
        ['b'],
      )
      assert.deepEqual(await store.pendingInbound({ source: 'office/github', before: START + 5, limit: 9 }), [])
      assert.deepEqual(
        await store.forTenant('acme').pendingInbound({ source: 'office/stripe', before: START + 5, limit: 9 }),
        [],
      )
      // Claimed again, it is held and keeps its content.
      assert.equal(await store.claimInbound(message('b'), { ...claim, at: START + 40_000 }), 'new')
      assert.deepEqual(
        (await kept(START + 39_999)).map(({ id }) => id),
        ['a'],
      )
      assert.deepEqual(
        (await kept(START + 40_000)).map(({ payload }) => payload),
        ['second', '{"text":"ü"}'],
      )
      await store.settleInbound(message('b'), { done: true, at: START + 40_001 })
      assert.deepEqual(
        (await kept(START + 99_999)).map(({ id }) => id),
        ['a'],
      )
      assert.equal(await store.claimInbound(message('b'), { ...claim, at: START + 99_999 }), 'done')
    },
  ),
]

const FRESH_PROGRESS: WebhookProgress = {
  ...START_PROGRESS,
  failureStreak: 0,
  retryAt: null,
  succeededAt: null,
  failedAt: null,
  lastStatus: null,
  lastResponse: null,
  disabledReason: null,
}

const EMPTY_QUEUE = { waiting: 0, failed: 0, dueAt: null, heldBy: null }

export function createWebhook(id: string, overrides: Partial<WebhookSettings> = {}): WebhookSettings {
  return {
    id,
    url: 'https://example.com/hook',
    databases: null,
    actions: null,
    allow: [],
    secrets: '["secret"]',
    createdAt: START,
    ...overrides,
  }
}

function createDelivery(sequence: number, overrides: Partial<Delivery> = {}): Delivery {
  return {
    sequence,
    messageId: `msg_${sequence}`,
    database: 'things',
    key: `k${sequence}`,
    body: '{"a":"ü"}',
    attempts: 1,
    firstAt: START,
    nextAt: START + 5,
    failed: false,
    lastStatus: 500,
    lastResponse: 'no',
    ...overrides,
  }
}
