import { createHmac } from 'node:crypto'
import { Stripe } from 'stripe'
import { describe, expect, test } from 'vitest'
import type { WebhookOptions } from '../../src/worker/webhook-options.ts'
import { Worker } from '../../src/worker/worker.ts'
import { SyncError, type JsonObject, type Secrets, type Store } from '../../src/contract/index.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { readLiveRows } from '../../src/testing/store-cases/harness.ts'
import type { ExecuteWebhook } from '../../src/webhooks/inbound-webhooks.ts'
import { TenantInboundWebhooks } from '../../src/webhooks/tenant-inbound-webhooks.ts'
import { githubSignature } from '../../src/webhooks/verify/github.ts'
import { stripeSignature } from '../../src/webhooks/verify/stripe.ts'
import type { WebhookVerifier } from '../../src/webhooks/verify/verify.ts'
import { ServerFixture, type Answer } from '../server/server-fixture.ts'
import type { OpenHarness } from './delivery-fixture.ts'

const SECRET = 'whsec_test_secret'
const PATH = '/webhooks/shop/stripe'

/** Stripe's charge events become rows; other events are ignored. */
const chargesOf: ExecuteWebhook = ({ body }) => {
  const { type, data, created } = body as unknown as {
    type: string
    created: number
    data: { object: JsonObject & { id: string } }
  }
  if (!type.startsWith('charge.')) return
  const upstreamUpdatedAt = new Date(created * 1_000).toISOString()
  const { id: key } = data.object
  return {
    changes: [
      type === 'charge.deleted'
        ? { type: 'delete', key, upstreamUpdatedAt }
        : { type: 'upsert', key, record: data.object, upstreamUpdatedAt },
    ],
  }
}

export function describeInbound(name: string, open: OpenHarness): void {
  describe(`webhooks of vendors on ${name}`, () => {
    test('Z32 a signed message commits its changes through the same commit path, as a cycle of a sync of its own', async () => {
      const { stand, store } = await openInboundFixture(open)
      expect(await post(stand, event('evt_1', 10, { id: 'ch_1', amount: 5 }))).toMatchObject({
        status: 200,
        body: { status: 'accepted' },
      })
      expect(await post(stand, event('evt_2', 20, { id: 'ch_1', amount: 7 }))).toMatchObject({ status: 200 })
      // Late and older than the stored row: the source's order decides.
      expect(await post(stand, event('evt_3', 15, { id: 'ch_1', amount: 6 }))).toMatchObject({ status: 200 })
      expect(await readLiveRows(store, 'charges')).toEqual([['ch_1', { id: 'ch_1', amount: 7 }]])
      expect(
        (await store.cycles({ worker: 'shop', sync: 'stripe' })).map(({ trigger, stopReason, counts }) => [
          trigger,
          stopReason,
          counts.created + counts.updated,
        ]),
      ).toEqual([
        ['webhook', 'complete', 0],
        ['webhook', 'complete', 1],
        ['webhook', 'complete', 1],
      ])
      expect(await post(stand, event('evt_4', 30, { id: 'ch_1' }, 'charge.deleted'))).toMatchObject({ status: 200 })
      expect(await readLiveRows(store, 'charges')).toEqual([])
      expect(await post(stand, event('evt_5', 40, { id: 'cus_1' }, 'customer.created'))).toMatchObject({ status: 200 })
      expect(await store.headSequence()).toBe(3)
    })

    test('Z14 a message for an erased tenant is rejected, and leaves no data', async () => {
      for (const later of [false, true]) {
        const { stand, store } = await openInboundFixture(open, { later })
        await post(stand, event('evt_1', 10, { id: 'ch_1', amount: 5 }))
        await expect.poll(() => readLiveRows(store, 'charges')).toHaveLength(1)
        await expect.poll(async () => (await store.eraseTenant({ actor: 'ana', at: Date.now() })).kind).toBe('erased')
        expect(await post(stand, event('evt_2', 20, { id: 'ch_1', amount: 7 }))).toMatchObject({ status: 404 })
        expect([await store.syncs(), await readLiveRows(store, 'charges')]).toEqual([[], []])
      }
    })

    test('XF11 Z32 of a hundred concurrent replays of one message over two servers, one has an effect; later ones are duplicates', async () => {
      let effects = 0
      const execute: ExecuteWebhook = async (message, context) => {
        effects++
        // Long enough for all of them to arrive meanwhile.
        await context.clock.sleep(300)
        return chargesOf(message, context)
      }
      const first = await openInboundFixture(open, { execute })
      const { stand: second } = await openInboundFixture(
        async () => ({ ...first.stand.harness, store: await first.stand.harness.reopen(), close: async () => {} }),
        { execute },
      )
      const message = event('evt_1', 10, { id: 'ch_1', amount: 5 })
      const headers = signed(message)
      const answers = await Promise.all(
        Array.from({ length: 100 }, (_, n) => post(n % 2 === 0 ? first.stand : second, message, headers)),
      )
      expect(effects).toBe(1)
      expect(answers.filter(({ body }) => body['status'] === 'accepted')).toHaveLength(1)
      expect(
        answers.every(
          ({ status, body }) =>
            (status === 200 && ['accepted', 'duplicate'].includes(body['status'])) || status === 503,
        ),
      ).toBe(true)
      expect(await post(second, message, headers)).toMatchObject({ status: 200, body: { status: 'duplicate' } })
      // Signed again by the vendor, as for a resend: still the same event.
      expect(await post(first.stand, message)).toMatchObject({ body: { status: 'duplicate' } })
      expect([effects, await first.store.headSequence()]).toEqual([1, 1])
    })

    test('NX15 XF11 A28 forged, modified or old messages are rejected, without an effect and without a reason', async () => {
      const { stand, store } = await openInboundFixture(open)
      const message = event('evt_1', 10, { id: 'ch_1', amount: 5 })
      const refused = [
        await post(stand, message, {}),
        await post(stand, message, { 'stripe-signature': 't=1,v1=00' }),
        await post(stand, `${message} `, signed(message)),
        await post(stand, message, signed(message, Date.now() - 301_000)),
        await post(stand, message, signed(message, Date.now() + 600_000)),
      ]
      expect(refused.map(({ status, body }) => [status, body['message']])).toEqual(
        refused.map(() => [401, 'The signature is invalid, or the message is too old.']),
      )
      expect(stand.lines.join()).toContain('webhook refused')
      expect(stand.lines.join()).not.toContain(SECRET)
      expect([await store.headSequence(), await store.syncs()]).toEqual([0, []])
      expect(await post(stand, message)).toMatchObject({ status: 200 })
    })

    test('a failed message is forgotten, so that the vendor can send it again', async () => {
      let fails = true
      const { stand, store } = await openInboundFixture(open, {
        execute: (message, context) => {
          if (fails) throw new Error('not now')
          return chargesOf(message, context)
        },
      })
      const message = event('evt_1', 10, { id: 'ch_1', amount: 5 })
      expect(await post(stand, message)).toMatchObject({ status: 503 })
      fails = false
      await store.signalSync({ worker: 'shop', sync: 'stripe' }, { kind: 'pause', actor: 'test', at: 1 })
      expect(await post(stand, message)).toMatchObject({ status: 503 })
      await store.signalSync({ worker: 'shop', sync: 'stripe' }, { kind: 'resume', actor: 'test', at: 2 })
      expect(await post(stand, message)).toMatchObject({ status: 200, body: { status: 'accepted' } })
      expect(await store.headSequence()).toBe(1)
    })

    test('irrelevant messages are acknowledged and dropped; forged ones are still rejected', async () => {
      let executed = 0
      const { stand, store } = await openInboundFixture(open, {
        execute: () => void executed++,
        wants: ({ body }) => {
          const { type } = body as unknown as { type?: string }
          if (type === 'odd') throw new Error('no idea')
          return type?.startsWith('charge.') === true
        },
      })
      const claims: unknown[] = []
      const { claimInbound } = store
      Object.assign(store, {
        claimInbound: (...given: Parameters<Store['claimInbound']>) => (claims.push(given), claimInbound(...given)),
      })
      const other = event('evt_1', 10, { id: 'cus_1' }, 'customer.created')
      for (let n = 0; n < 2; n++)
        expect(await post(stand, other)).toMatchObject({ status: 200, body: { status: 'ignored' } })
      expect(await post(stand, other, {})).toMatchObject({ status: 401 })
      expect(await post(stand, event('evt_2', 10, { id: 'x' }, 'odd'))).toMatchObject({ status: 503 })
      expect([executed, claims]).toEqual([0, []])
      expect(await post(stand, event('evt_3', 10, { id: 'ch_1' }))).toMatchObject({
        status: 200,
        body: { status: 'accepted' },
      })
      expect(executed).toBe(1)
    })

    test('a deferred webhook responds once the message is stored, and processes it once', async () => {
      let letGo = (): void => {}
      const gate = new Promise<void>((resolve) => (letGo = resolve))
      let executed = 0
      const { stand, store, inbound } = await openInboundFixture(open, {
        later: true,
        execute: async (message, context) => {
          executed++
          await gate
          return chargesOf(message, context)
        },
      })
      const message = event('evt_1', 10, { id: 'ch_1', amount: 5 })
      expect(await post(stand, message)).toMatchObject({ status: 202, body: { status: 'kept' } })
      expect(await store.headSequence()).toBe(0)
      expect(await post(stand, message)).toMatchObject({ status: 200, body: { status: 'duplicate' } })
      letGo()
      await inbound.stop()
      expect([executed, await readLiveRows(store, 'charges')]).toEqual([1, [['ch_1', { id: 'ch_1', amount: 5 }]]])
      expect(await store.pendingInbound({ source: 'shop/stripe', before: Number.MAX_SAFE_INTEGER, limit: 9 })).toEqual(
        [],
      )
      expect(await post(stand, message)).toMatchObject({ status: 200, body: { status: 'duplicate' } })
    })

    test('XF16 authentication headers of a message are not stored', async () => {
      const first = await openInboundFixture(open, { later: true, execute: () => new Promise(() => {}) })
      const message = event('evt_1', 10, { id: 'ch_1', amount: 5 })
      const headers = {
        ...signed(message),
        authorization: 'Basic c2VjcmV0',
        cookie: 'session=secret',
        'x-topic': 'charges',
      }
      expect(await post(first.stand, message, headers)).toMatchObject({ status: 202 })
      const [kept] = await first.store.pendingInbound({
        source: 'shop/stripe',
        before: Number.MAX_SAFE_INTEGER,
        limit: 9,
      })
      const names = (JSON.parse(kept!.payload) as { headers: Array<[string, string]> }).headers.map(([name]) => name)
      expect(names).toEqual(expect.arrayContaining(['x-topic', 'stripe-signature']))
      expect(names.filter((name) => name === 'authorization' || name === 'cookie')).toEqual([])
    })

    test('XA6 stored messages of a crashed or failed process are retried by the next; after three days they are discarded', async () => {
      // Never settled, as when the process is killed.
      const first = await openInboundFixture(open, { later: true, execute: () => new Promise(() => {}) })
      expect(await post(first.stand, event('evt_1', 10, { id: 'ch_1', amount: 5 }))).toMatchObject({ status: 202 })
      const seen: string[] = []
      const next = await openInboundFixture(
        async () => ({ ...first.stand.harness, store: await first.stand.harness.reopen(), close: async () => {} }),
        {
          later: true,
          shiftMs: 61_000,
          execute: (message, context) => {
            seen.push(`${message.id} ${message.headers['stripe-signature'] === undefined}`)
            if (seen.length === 1) throw new Error('not now')
            return chargesOf(message, context)
          },
        },
      )
      next.inbound.start()
      while (seen.length < 1) await systemClock.sleep(10)
      await next.inbound.stop()
      expect([seen, await next.store.headSequence()]).toEqual([['evt_1 false'], 0])
      const last = await openInboundFixture(
        async () => ({ ...first.stand.harness, store: await first.stand.harness.reopen(), close: async () => {} }),
        { later: true, shiftMs: 122_000 },
      )
      last.inbound.start()
      while ((await last.store.headSequence()) === 0) await systemClock.sleep(10)
      await last.inbound.stop()
      expect(await readLiveRows(last.store, 'charges')).toEqual([['ch_1', { id: 'ch_1', amount: 5 }]])

      expect(await post(first.stand, event('evt_2', 10, { id: 'ch_2', amount: 5 }))).toMatchObject({ status: 202 })
      const late = await openInboundFixture(
        async () => ({ ...first.stand.harness, store: await first.stand.harness.reopen(), close: async () => {} }),
        { later: true, shiftMs: 3 * 86_400_000 + 60_000 },
      )
      late.inbound.start()
      const isKept = async (): Promise<boolean> =>
        (await late.store.pendingInbound({ source: 'shop/stripe', before: Number.MAX_SAFE_INTEGER, limit: 9 })).length >
        0
      while (await isKept()) await systemClock.sleep(10)
      await late.inbound.stop()
      expect([await late.store.headSequence(), late.stand.lines.join()]).toEqual([
        1,
        expect.stringContaining('stored webhook discarded after too many retries'),
      ])
    })

    test('Z32 each tenant has its own address, and only messages signed with its own secret are committed for it', async () => {
      const { stand, store, inbound } = await openInboundFixture(open)
      inbound.add('acme')
      inbound.add('umbrella')
      const message = event('evt_1', 10, { id: 'ch_1', amount: 5 })
      const send = (tenant: string, secret: string): Promise<Answer> =>
        stand.post(`/webhooks/${tenant}/shop/stripe`, {
          key: null,
          body: message,
          headers: { 'content-type': 'application/json', ...signed(message, Date.now(), secret) },
        })
      // Neither the shared secret nor another tenant's is accepted, and a missing tenant responds like an existing
      // one.
      for (const [tenant, secret] of [
        ['acme', SECRET],
        ['acme', `${SECRET}-umbrella`],
        ['nobody', SECRET],
        ['nobody', `${SECRET}-nobody`],
      ] as const) {
        expect(await send(tenant, secret)).toMatchObject({ status: 401 })
      }
      expect(await store.tenants()).not.toContain('nobody')
      expect(await send('acme', `${SECRET}-acme`)).toMatchObject({ status: 200, body: { status: 'accepted' } })
      expect(await send('acme', `${SECRET}-acme`)).toMatchObject({ status: 200, body: { status: 'duplicate' } })
      // The same id is a different message for another tenant.
      expect(await send('umbrella', `${SECRET}-umbrella`)).toMatchObject({ status: 200, body: { status: 'accepted' } })
      expect(
        await Promise.all(['acme', 'umbrella'].map((tenant) => readLiveRows(store.forTenant(tenant), 'charges'))),
      ).toEqual([[['ch_1', { id: 'ch_1', amount: 5 }]], [['ch_1', { id: 'ch_1', amount: 5 }]]])
      expect(await store.headSequence()).toBe(0)
      expect(await stand.post('/webhooks/acme/shop/nobody', { key: null, body: '{}' })).toMatchObject({ status: 404 })
      expect(await stand.post('/webhooks/nobody/shop/nobody', { key: null, body: '{}' })).toMatchObject({ status: 404 })
    })

    test('Z43 an address with a tenant responds the same whether the tenant exists, has a secret, or neither; with the same work', async () => {
      const checked: string[] = []
      const { stand, inbound } = await openInboundFixture(open, {
        verify: (delivery, context) => {
          checked.push(delivery.path)
          return stripeSignature({ secret: 'STRIPE_SECRET' })(delivery, context)
        },
        ownSecretsOf: (tenant) => ({
          get(name) {
            if (tenant === 'bare') throw new SyncError('SECRET_MISSING', `The secret ${name} is not set.`)
            return `${SECRET}-${tenant}`
          },
        }),
      })
      for (const tenant of ['acme', 'bare']) inbound.add(tenant)
      const message = event('evt_1', 10, { id: 'ch_1', amount: 5 })
      const forged = [
        signed(message, Date.now(), 'whsec_other'),
        signed(message, Date.now() - 3_600_000),
        { 'stripe-signature': 'v1=nonsense' },
        {},
      ]
      for (const webhook of ['stripe', 'none']) {
        for (const headers of forged) {
          const answers: string[] = []
          for (const tenant of ['acme', 'bare', 'nobody', stand.store.tenant]) {
            const before = checked.length
            const answer = await stand.post(`/webhooks/${tenant}/shop/${webhook}`, {
              key: null,
              body: message,
              headers: { 'content-type': 'application/json', ...headers },
            })
            const { requestId: _, ...body } = answer.body
            const names = [...answer.headers.keys()].toSorted()
            answers.push(JSON.stringify([answer.status, body, names, checked.length - before]))
          }
          expect(new Set(answers).size, answers.join('\n')).toBe(1)
        }
      }
    })

    test('Z43 a verification that fails for a missing secret responds like an invalid signature', async () => {
      const { stand, inbound } = await openInboundFixture(open, {
        verify: (delivery, context) => {
          if (!context.secrets.get('STRIPE_SECRET').startsWith(SECRET))
            throw new TypeError('This is no secret of the shop.')
          return stripeSignature({ secret: 'STRIPE_SECRET' })(delivery, context)
        },
        ownSecretsOf: (tenant) => ({
          get(name) {
            if (tenant === 'bare') throw new SyncError('SECRET_MISSING', `The secret ${name} is not set.`)
            return `${SECRET}-${tenant}`
          },
        }),
      })
      for (const tenant of ['acme', 'bare']) inbound.add(tenant)
      const message = event('evt_1', 10, { id: 'ch_1', amount: 5 })
      const headers = { 'content-type': 'application/json', ...signed(message, Date.now(), 'whsec_other') }
      for (const tenant of ['acme', 'bare', 'nobody']) {
        expect(
          await stand.post(`/webhooks/${tenant}/shop/stripe`, { key: null, body: message, headers }),
          tenant,
        ).toMatchObject({ status: 401 })
      }
    })

    test('XA6 stored messages of another tenant are retried too', async () => {
      const first = await openInboundFixture(open, { later: true, execute: () => new Promise(() => {}) })
      first.inbound.add('acme')
      const message = event('evt_1', 10, { id: 'ch_1', amount: 5 })
      expect(
        await first.stand.post('/webhooks/acme/shop/stripe', {
          key: null,
          body: message,
          headers: signed(message, Date.now(), `${SECRET}-acme`),
        }),
      ).toMatchObject({ status: 202 })
      const next = await openInboundFixture(
        async () => ({ ...first.stand.harness, store: await first.stand.harness.reopen(), close: async () => {} }),
        { later: true, shiftMs: 61_000 },
      )
      next.inbound.start()
      next.inbound.add('acme')
      await expect
        .poll(() => readLiveRows(next.store.forTenant('acme'), 'charges'))
        .toEqual([['ch_1', { id: 'ch_1', amount: 5 }]])
      await next.inbound.stop()
      expect(await next.store.headSequence()).toBe(0)
    })

    test('a trigger-only webhook runs the sync it names, and no other', async () => {
      const { stand, store } = await openInboundFixture(open)
      const body = JSON.stringify({ action: 'opened' })
      const headers = {
        'x-hub-signature-256': `sha256=${createHmac('sha256', SECRET).update(body).digest('hex')}`,
        'content-type': 'application/x-www-form-urlencoded',
      }
      expect(await stand.post('/webhooks/shop/github', { key: null, body, headers })).toMatchObject({ status: 200 })
      expect((await store.readCheckpoint({ worker: 'shop', sync: 'orders' })).triggeredAt).not.toBe(null)
      const wrong = JSON.stringify({ action: 'closed' })
      expect(
        await stand.post('/webhooks/shop/github', {
          key: null,
          body: wrong,
          headers: { 'x-hub-signature-256': `sha256=${createHmac('sha256', SECRET).update(wrong).digest('hex')}` },
        }),
      ).toMatchObject({ status: 503 })
      expect((await store.syncs()).map(({ sync }) => sync)).toEqual(['orders'])
    })

    test('an unknown webhook returns 404, a body beyond a megabyte is rejected, and other methods are not allowed', async () => {
      const { stand } = await openInboundFixture(open)
      for (const path of ['/webhooks/shop/nobody', '/webhooks/other/stripe'])
        expect(await stand.post(path, { key: null, body: '{}' })).toMatchObject({ status: 404 })
      expect(await post(stand, 'x'.repeat(1_100_000))).toMatchObject({ status: 413 })
      expect(await stand.get(PATH)).toMatchObject({ status: 405 })
    })
  })
}

interface InboundFixtureOptions extends Partial<Pick<WebhookOptions, 'execute' | 'wants' | 'later'>> {
  readonly shiftMs?: number
  readonly verify?: WebhookVerifier
  readonly ownSecretsOf?: (tenant: string) => Secrets
}

async function openInboundFixture(
  open: OpenHarness,
  {
    execute = chargesOf,
    shiftMs = 0,
    ownSecretsOf = (tenant) => ({ get: () => `${SECRET}-${tenant}` }),
    ...more
  }: InboundFixtureOptions = {},
): Promise<{ stand: ServerFixture; store: Store; inbound: TenantInboundWebhooks }> {
  const worker = new Worker({ name: 'shop' })
  const charges = worker.database('charges')
  worker.sync('orders', {
    database: worker.database('orders'),
    mode: 'incremental',
    execute: async () => ({ changes: [], hasMore: false }),
  })
  worker.webhook('stripe', {
    database: charges,
    verify: stripeSignature({ secret: 'STRIPE_SECRET' }),
    execute,
    ...more,
  })
  worker.webhook('github', {
    verify: githubSignature({ secret: 'GITHUB_SECRET' }),
    execute: ({ body }) => ({ trigger: (body as { action: string }).action === 'opened' ? 'orders' : 'nobody' }),
  })
  const harness = await open()
  const lines: string[] = []
  const note = (message: string, fields?: object): void => void lines.push(JSON.stringify({ message, ...fields }))
  const ports = {
    clock: { ...systemClock, now: () => systemClock.now() + shiftMs },
    random: systemRandom,
    log: { debug: note, info: note, warn: note, error: note },
  }
  const inbound = new TenantInboundWebhooks({
    store: harness.store,
    ports,
    secretsOf: () => ({ get: () => SECRET }),
    ownSecretsOf,
    holder: `webhook:test-${++stands}`,
    webhooks: worker.webhooks(),
    fetch: () => Promise.reject(new Error('nobody asks')),
  })
  const stand = await ServerFixture.open(async () => harness, { inbound })
  // The fixture's own lines belong to the server; these belong to the webhooks.
  Object.assign(stand, { lines })
  return { stand, store: harness.store, inbound }
}

let stands = 0

function event(id: string, created: number, object: JsonObject, type = 'charge.updated'): string {
  return JSON.stringify({ id, object: 'event', type, created, data: { object } })
}

function signed(payload: string, at = Date.now(), secret = SECRET): Record<string, string> {
  return {
    'stripe-signature': new Stripe('sk_test_x').webhooks.generateTestHeaderString({
      payload,
      secret,
      timestamp: Math.floor(at / 1_000),
    }),
  }
}

function post(stand: ServerFixture, body: string, headers = signed(body)): Promise<Answer> {
  return stand.post(PATH, { key: null, body, headers: { 'content-type': 'application/json', ...headers } })
}
