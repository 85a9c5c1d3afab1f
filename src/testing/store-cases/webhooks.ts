import assert from 'node:assert/strict'
import type { Delivery, Store, WebhookSettings, WebhookStanding } from '../../contract/index.ts'
import { verifyTrail } from '../../registry/trail.ts'
import { BY, rule, START, type StoreCase } from './harness.ts'

const PLACE = { position: 7, floor: 2 }
const TAKE = { holder: 'one', ttlMs: 60_000, at: START }

export const webhookCases: readonly StoreCase[] = [
  rule('a webhook keeps its settings, and where it stands when they change; another tenant has none of it', async ({ store, reopen }) => {
    const settings = webhookOf('b', { databases: ['things'], actions: ['deleted'], allow: ['private'] })
    await store.putWebhook(settings, PLACE)
    await store.putWebhook(webhookOf('a', { createdAt: START + 1 }), PLACE)
    assert.deepEqual((await (await reopen()).webhooks()).map(({ id }) => id), ['b', 'a'])
    assert.deepEqual((await store.webhooks())[0], { ...settings, ...FRESH, ...NOTHING })
    const claim = (await store.claimWebhook('b', TAKE))!
    await store.noteDeliveries(claim, { standing: { ...FRESH, position: 9 }, delivered: [], kept: [] })
    await store.putWebhook({ ...settings, url: 'https://example.com/new', secrets: '["other"]' }, { position: 0, floor: 0 })
    assert.deepEqual((await store.webhooks())[0], { ...settings, ...FRESH, url: 'https://example.com/new', secrets: '["other"]', position: 9, ...NOTHING, heldBy: 'one' })
    const other = store.forTenant('acme')
    assert.deepEqual(await other.webhooks(), [])
    assert.equal(await other.claimWebhook('b', TAKE), null)
    assert.equal(await other.restartWebhook('b', { actor: 'me', at: START }), null)
    assert.equal(await other.removeWebhook('b', BY), false)
    assert.equal(await store.removeWebhook('b', BY), true)
    assert.deepEqual((await store.webhooks()).map(({ id }) => id), ['a'])
  }),
  rule('an edit changes what is given and leaves the place; who delivers by the old settings is fenced; the trail tells who and what, without the path of a URL', async ({ store, reopen }) => {
    await store.putWebhook(webhookOf('a', { databases: ['things'], allow: ['port'] }), PLACE)
    const by = { actor: 'ana', at: START + 5 }
    const claim = (await store.claimWebhook('a', TAKE))!
    const kept = [deliveryOf(5, { dead: true }), deliveryOf(6, { attempts: 3 })]
    const failing = { ...FRESH, streak: 3, retryAt: START + 99, failedAt: START + 1, lastStatus: 500, lastAnswer: 'no' }
    await store.noteDeliveries(claim, { standing: failing, delivered: [], kept })
    assert.equal(await store.editWebhook('a', { databases: ['people', 'things'], actions: ['deleted'] }, by), true)
    assert.equal(await store.noteDeliveries(claim, { standing: { ...FRESH, position: 99 }, delivered: [], kept: [] }), false)
    const filtered = { ...webhookOf('a', { databases: ['people', 'things'], actions: ['deleted'], allow: ['port'] }), ...failing, waiting: 1, dead: 1, dueAt: kept[1]!.nextAt, heldBy: null }
    assert.deepEqual((await (await reopen()).webhooks())[0], filtered)
    // Failures are those of a URL.
    assert.equal(await store.editWebhook('a', { url: 'https://other.example.com/secret-path', allow: [], databases: null }, by), true)
    assert.deepEqual((await store.webhooks())[0], { ...filtered, url: 'https://other.example.com/secret-path', allow: [], databases: null, streak: 0, retryAt: null })
    // What is so already is no move.
    assert.equal(await store.editWebhook('a', { databases: null, actions: ['deleted'] }, by), true)
    assert.equal(await store.editWebhook('b', { databases: null }, by), false)
    assert.equal(await store.forTenant('acme').editWebhook('a', { databases: ['theirs'] }, by), false)
    const entries = (await store.trail({ after: 0, limit: 10 })).entries.filter(({ action }) => action === 'edit-webhook')
    assert.deepEqual(entries.map(({ worker, sync, actor, at, action, reason }) => [worker, sync, actor, at, action, reason]), [
      [null, null, 'ana', START + 5, 'edit-webhook', 'a: databases things → people,things; actions all → deleted'],
      [null, null, 'ana', START + 5, 'edit-webhook', 'a: url https://example.com → https://other.example.com; databases people,things → all; allow port → nothing'],
    ])
    assert.equal((await verifyTrail(store)).intact, true)
  }),
  rule('a rotation replaces the secrets alone, and only those it was based on; the claim goes on and reads the new ones', async ({ store }) => {
    const settings = webhookOf('a', { databases: ['things'] })
    await store.putWebhook(settings, PLACE)
    const claim = (await store.claimWebhook('a', TAKE))!
    assert.equal(await store.webhookSecrets(claim), settings.secrets)
    assert.equal(await store.rotateWebhook('a', '["next"]', { ...BY, replaces: '["another"]' }), false)
    assert.equal(await store.rotateWebhook('b', '["next"]', { ...BY, replaces: settings.secrets }), false)
    assert.equal(await store.forTenant('acme').rotateWebhook('a', '["next"]', { ...BY, replaces: settings.secrets }), false)
    assert.equal(await store.rotateWebhook('a', '["next"]', { ...BY, replaces: settings.secrets }), true)
    assert.equal(await store.webhookSecrets(claim), '["next"]')
    assert.deepEqual((await store.webhooks())[0], { ...settings, ...FRESH, ...NOTHING, secrets: '["next"]', heldBy: 'one' })
    assert.equal(await store.noteDeliveries(claim, { standing: FRESH, delivered: [], kept: [] }), true)
  }),
  rule('a claim has no secrets after an edit, a pause, a replay, a removal or a newer claim', async ({ store }) => {
    const ends: Array<[string, (id: string) => Promise<unknown>]> = [
      ['edit', (id) => store.editWebhook(id, { databases: ['people'] }, BY)],
      ['pause', (id) => store.switchWebhook(id, 'enough', BY)],
      ['replay', (id) => store.restartWebhook(id, BY)],
      ['removal', (id) => store.removeWebhook(id, BY)],
      ['claim', (id) => store.claimWebhook(id, { ...TAKE, holder: 'two', evict: 'one' })],
      ['release', async (id) => store.releaseWebhook({ id, epoch: (await claimOf(id)).epoch })],
    ]
    const claims = new Map<string, { id: string; epoch: number }>()
    const claimOf = async (id: string) => claims.get(id)!
    for (const [id, end] of ends) {
      await store.putWebhook(webhookOf(id), PLACE)
      claims.set(id, (await store.claimWebhook(id, TAKE))!)
      assert.notEqual(await store.webhookSecrets(claims.get(id)!), null)
      await end(id)
      assert.equal(await store.webhookSecrets(claims.get(id)!), null, id)
    }
  }),
  rule('rotations and edits of one webhook at the same moment all hold, on two connections', async ({ store, reopen }) => {
    const second = await reopen()
    await store.putWebhook(webhookOf('a'), PLACE)
    const rotate = async (on: Store, n: number): Promise<void> => {
      for (;;) {
        const { secrets } = (await on.webhooks())[0]!
        if (await on.rotateWebhook('a', JSON.stringify([...(JSON.parse(secrets) as unknown[]), n]), { ...BY, replaces: secrets })) return
      }
    }
    for (let n = 0; n < 10; n++) {
      await Promise.all([rotate(store, n), second.editWebhook('a', { databases: [`d${n}`] }, BY), rotate(second, n + 100), store.editWebhook('a', { url: `https://example.com/${n}` }, BY)])
      const [after] = await store.webhooks()
      assert.deepEqual([after!.databases, after!.url], [[`d${n}`], `https://example.com/${n}`])
    }
    const held = (JSON.parse((await store.webhooks())[0]!.secrets) as unknown[]).filter((value) => typeof value === 'number')
    assert.deepEqual(held.toSorted((a, b) => a - b), Array.from({ length: 10 }, (_, n) => n).concat(Array.from({ length: 10 }, (_, n) => n + 100)))
    assert.equal((await verifyTrail(store)).intact, true)
  }),
  rule('R51 every change of a webhook or an API key is a link of the audit log, with its actor and without secrets', async ({ store }) => {
    const by = { actor: 'ana', at: START + 3 }
    await store.putWebhook(webhookOf('a', { url: 'https://example.com/secret-path', secrets: '["hidden"]', databases: ['things'] }), PLACE, 'ana')
    await store.rotateWebhook('a', '["hidden too"]', { ...by, replaces: '["hidden"]' })
    await store.switchWebhook('a', 'Paused by ana.', by)
    await store.switchWebhook('a', null, by)
    await store.restartWebhook('a', { ...by, place: PLACE })
    await store.removeWebhook('a', by)
    const key = { id: 'k1', name: 'reports', hash: 'hidden', scopes: ['*:read'], rateLimit: 1, createdAt: START, endsAt: null }
    await store.addApiKey(key, 'ana')
    await store.endApiKey('k1', START + 9, { ...by, reason: 'left the team' })
    // A change that finds nothing to change leaves no entry.
    await store.endApiKey('k1', START + 9, by)
    await store.removeWebhook('a', by)
    await store.switchWebhook('a', null, by)
    await store.addApiKey({ ...key, id: 'k2' })
    const entries = (await store.trail({ after: 0, limit: 100 })).entries.filter(({ action }) => action !== 'new-key')
    assert.deepEqual(entries.map(({ actor, action, reason }) => [actor, action, reason]), [
      ['ana', 'add-webhook', 'a: url https://example.com; databases things; actions all; allow nothing'],
      ['ana', 'rotate-webhook', 'a: a new secret'],
      ['ana', 'pause-webhook', 'a: Paused by ana.'],
      ['ana', 'resume-webhook', 'a'],
      ['ana', 'replay-webhook', 'a: everything after sequence 7'],
      ['ana', 'remove-webhook', 'a'],
      ['ana', 'new-api-key', 'k1 (reports): *:read'],
      ['ana', 'end-api-key', `k1: ends ${new Date(START + 9).toISOString()}; left the team`],
      ['program', 'new-api-key', 'k2 (reports): *:read'],
    ])
    assert.equal((await verifyTrail(store)).intact, true)
  }),
  rule('invariant 3: only one delivers at a time, and what an older one notes changes nothing', async ({ store, reopen }) => {
    await store.putWebhook(webhookOf('a'), PLACE)
    const second = await reopen()
    const taken = await Promise.all([store.claimWebhook('a', TAKE), second.claimWebhook('a', { ...TAKE, holder: 'two' })])
    const winners = taken.filter((claim) => claim !== null)
    assert.equal(winners.length, 1)
    const old = winners[0]!
    assert.equal(await store.renewWebhook(old, { ttlMs: 60_000, at: START }), true)
    const evicted = taken[0] === null ? 'two' : 'one'
    const next = (await second.claimWebhook('a', { ...TAKE, holder: 'three', evict: evicted }))!
    assert.ok(next.epoch > old.epoch)
    assert.equal(await store.renewWebhook(old, { ttlMs: 60_000, at: START }), false)
    assert.equal(await store.noteDeliveries(old, { standing: { ...FRESH, position: 99 }, delivered: [], kept: [deliveryOf(8)] }), false)
    await store.releaseWebhook(old)
    assert.equal(await store.claimWebhook('a', TAKE), null)
    assert.deepEqual([(await store.webhooks())[0]!.position, (await store.webhooks())[0]!.waiting], [7, 0])
    await second.releaseWebhook(next)
    assert.equal(await second.noteDeliveries(next, { standing: { ...FRESH, position: 99 }, delivered: [], kept: [] }), false)
    assert.notEqual(await store.claimWebhook('a', TAKE), null)
  }),
  rule('XA6 the place and what waits move together', async ({ store, reopen }) => {
    await store.putWebhook(webhookOf('a'), PLACE)
    const claim = (await store.claimWebhook('a', TAKE))!
    const standing: WebhookStanding = { position: 12, floor: 3, streak: 2, retryAt: START + 5, succeededAt: START + 1, failedAt: START + 2, lastStatus: 500, lastAnswer: 'no', disabled: null }
    const [first, second] = [deliveryOf(9, { key: 'ключ' }), deliveryOf(8, { dead: true, lastStatus: null, nextAt: START })]
    assert.equal(await store.noteDeliveries(claim, { standing, delivered: [], kept: [first, second] }), true)
    const again = await reopen()
    assert.deepEqual((await again.webhooks())[0], { ...webhookOf('a'), ...standing, waiting: 1, dead: 1, dueAt: first.nextAt, heldBy: 'one' })
    assert.deepEqual(await again.deliveries({ webhook: 'a', dead: false, limit: 10 }), [first])
    assert.deepEqual(await again.deliveries({ webhook: 'a', dead: true, limit: 10 }), [second])
    const later = { ...first, attempts: 2, nextAt: START + 99, lastAnswer: 'still no' }
    await store.noteDeliveries(claim, { standing, delivered: [], kept: [later, deliveryOf(10)] })
    assert.deepEqual(await store.deliveries({ webhook: 'a', dead: false, limit: 1 }), [later])
    await store.noteDeliveries(claim, { standing, delivered: [9], kept: [] })
    assert.deepEqual((await store.deliveries({ webhook: 'a', dead: false, limit: 9 })).map(({ sequence }) => sequence), [10])
  }),
  rule('a webhook that was disabled cannot be claimed until it is started again; its dead are then alive', async ({ store }) => {
    await store.putWebhook(webhookOf('a'), PLACE)
    const claim = (await store.claimWebhook('a', TAKE))!
    await store.noteDeliveries(claim, { standing: { ...FRESH, streak: 9, retryAt: START + 9, disabled: 'gone' }, delivered: [], kept: [deliveryOf(5, { dead: true }), deliveryOf(6, { attempts: 3 })] })
    await store.releaseWebhook(claim)
    assert.equal(await store.claimWebhook('a', TAKE), null)
    assert.equal(await store.restartWebhook('a', { actor: 'me', at: START + 50 }), 1)
    assert.deepEqual((await store.deliveries({ webhook: 'a', dead: false, limit: 9 })).map(({ sequence, attempts, nextAt, firstAt }) => [sequence, attempts, nextAt, firstAt]), [[5, 0, START + 50, null], [6, 0, START + 50, null]])
    const { webhook, ...now } = (await store.claimWebhook('a', TAKE))!
    assert.deepEqual([webhook.disabled, webhook.streak, webhook.retryAt, webhook.position], [null, 0, null, 7])
    assert.equal(await store.restartWebhook('a', { actor: 'me', at: START, place: { position: 5, floor: 1 } }), 0)
    assert.equal(await store.noteDeliveries(now, { standing: FRESH, delivered: [], kept: [] }), false)
    assert.deepEqual((await store.deliveries({ webhook: 'a', dead: false, limit: 9 })).map(({ sequence }) => sequence), [5])
    assert.deepEqual([(await store.webhooks())[0]!.position, (await store.webhooks())[0]!.floor], [5, 1])
  }),
  rule('a webhook can be stopped and let go on: who delivers is fenced, and nothing that is kept is touched', async ({ store }) => {
    await store.putWebhook(webhookOf('a'), PLACE)
    const claim = (await store.claimWebhook('a', TAKE))!
    const kept = [deliveryOf(5, { dead: true }), deliveryOf(6, { attempts: 3 })]
    await store.noteDeliveries(claim, { standing: { ...FRESH, streak: 9, retryAt: START + 9 }, delivered: [], kept })
    assert.equal(await store.switchWebhook('a', 'enough', BY), true)
    assert.equal((await store.webhooks())[0]!.disabled, 'enough')
    assert.equal(await store.noteDeliveries(claim, { standing: { ...FRESH, position: 99 }, delivered: [6], kept: [] }), false)
    assert.equal(await store.claimWebhook('a', TAKE), null)
    assert.equal(await store.switchWebhook('a', null, BY), true)
    const { webhook } = (await store.claimWebhook('a', TAKE))!
    assert.deepEqual([webhook.disabled, webhook.streak, webhook.retryAt, webhook.position], [null, 0, null, 7])
    assert.deepEqual([await store.deliveries({ webhook: 'a', dead: true, limit: 9 }), await store.deliveries({ webhook: 'a', dead: false, limit: 9 })], [[kept[0]], [kept[1]]])
    assert.equal(await store.forTenant('acme').switchWebhook('a', 'not theirs', BY), false)
    assert.equal(await store.switchWebhook('b', null, BY), false)
    assert.equal((await store.webhooks())[0]!.disabled, null)
  }),
  rule('Z32 of many that bring one message at once, one has it', async ({ store, reopen }) => {
    const message = { source: 'office/stripe', id: 'evt_1' }
    const claim = { at: START, busyMs: 30_000, forgetBefore: START - 1_000 }
    const stores: Store[] = [store, await reopen()]
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => stores[n % 2]!.claimInbound(message, claim)))
    assert.deepEqual(answers.toSorted(), [...Array<string>(19).fill('busy'), 'new'])
    assert.equal(await store.forTenant('acme').claimInbound(message, claim), 'new')
    assert.equal(await store.claimInbound({ ...message, source: 'office/github' }, claim), 'new')
    // Whoever took it died, or said that it failed: it is anybody's again.
    assert.equal(await store.claimInbound(message, { ...claim, at: START + 30_000 }), 'new')
    await store.settleInbound(message, { done: false, at: START + 30_000 })
    assert.equal(await store.claimInbound(message, { ...claim, at: START + 30_001 }), 'new')
    await store.settleInbound(message, { done: true, at: START + 30_002 })
    await store.settleInbound(message, { done: false, at: START + 30_003 })
    assert.equal(await store.claimInbound(message, { ...claim, at: START + 999_999 }), 'done')
    assert.equal(await store.claimInbound(message, { ...claim, at: START + 999_999, forgetBefore: START + 30_003 }), 'new')
  }),
  rule('a message that was kept is there until it is done, for whoever comes after its claim is over', async ({ store, reopen }) => {
    const claim = { at: START, busyMs: 30_000, forgetBefore: START - 1_000 }
    const message = (id: string) => ({ source: 'office/stripe', id })
    await store.claimInbound(message('b'), { ...claim, payload: '{"text":"ü"}' })
    await store.claimInbound(message('a'), { ...claim, at: START + 5, payload: 'second' })
    await store.claimInbound(message('c'), claim)
    const kept = (before: number, limit = 9) => store.keptInbound({ source: 'office/stripe', before, limit })
    assert.deepEqual(await (await reopen()).keptInbound({ source: 'office/stripe', before: START + 5, limit: 9 }), [{ id: 'b', payload: '{"text":"ü"}' }, { id: 'a', payload: 'second' }])
    assert.deepEqual((await kept(START + 4)).map(({ id }) => id), ['b'])
    assert.deepEqual((await kept(START + 5, 1)).map(({ id }) => id), ['b'])
    assert.deepEqual(await store.keptInbound({ source: 'office/github', before: START + 5, limit: 9 }), [])
    assert.deepEqual(await store.forTenant('acme').keptInbound({ source: 'office/stripe', before: START + 5, limit: 9 }), [])
    // Claimed anew it is somebody's again, and keeps what it brought.
    assert.equal(await store.claimInbound(message('b'), { ...claim, at: START + 40_000 }), 'new')
    assert.deepEqual((await kept(START + 39_999)).map(({ id }) => id), ['a'])
    assert.deepEqual((await kept(START + 40_000)).map(({ payload }) => payload), ['second', '{"text":"ü"}'])
    await store.settleInbound(message('b'), { done: true, at: START + 40_001 })
    assert.deepEqual((await kept(START + 99_999)).map(({ id }) => id), ['a'])
    assert.equal(await store.claimInbound(message('b'), { ...claim, at: START + 99_999 }), 'done')
  }),
]

const FRESH: WebhookStanding = { ...PLACE, streak: 0, retryAt: null, succeededAt: null, failedAt: null, lastStatus: null, lastAnswer: null, disabled: null }

const NOTHING = { waiting: 0, dead: 0, dueAt: null, heldBy: null }

function webhookOf(id: string, overrides: Partial<WebhookSettings> = {}): WebhookSettings {
  return { id, url: 'https://example.com/hook', databases: null, actions: null, allow: [], secrets: '["secret"]', createdAt: START, ...overrides }
}

function deliveryOf(sequence: number, overrides: Partial<Delivery> = {}): Delivery {
  return {
    sequence, messageId: `msg_${sequence}`, database: 'things', key: `k${sequence}`, body: '{"a":"ü"}', attempts: 1, firstAt: START, nextAt: START + 5, dead: false,
    lastStatus: 500, lastAnswer: 'no', ...overrides,
  }
}
