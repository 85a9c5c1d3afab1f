import { Webhook as Official } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import { upsert } from '../../src/testing/store-cases/harness.ts'
import { openHarness } from '../stores/sqlite-harness.ts'
import { Receiver } from '../webhooks/receiver.ts'
import { addKey, ServerFixture, type Answer, type Body } from './server-fixture.ts'

const ALLOW = ['http', 'private', 'port']

/** Requests like those of the console: local, without a key. */
class Desk {
  readonly stand: ServerFixture
  private constructor(stand: ServerFixture) {
    this.stand = stand
  }

  static async open(): Promise<Desk> {
    const stand = await ServerFixture.open(openHarness)
    await (await stand.driver()).cycle([upsert('a', { n: 1 }), upsert('b', { n: 2 })])
    return new Desk(stand)
  }

  get(path: string): Promise<Answer> {
    return this.stand.get(`/api/webhooks${path}`, { key: null })
  }

  post(
    path: string,
    body?: Body,
    { key = null, method = 'POST' }: { key?: string | null; method?: string } = {},
  ): Promise<Answer> {
    return this.stand.get(`/api/webhooks${path}`, {
      key,
      method,
      ...(body !== undefined && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    })
  }
}

describe('AX8 webhooks over HTTP', () => {
  test('Z29 Z37 a webhook is added, tested, listed, rotated and removed; its secrets are shown once each, and its query never', async () => {
    const desk = await Desk.open()
    const receiver = await Receiver.open((_, response) => void response.writeHead(202).end('thank\u001b[31m you'))
    const {
      status,
      body: {
        data: { secret, ...added },
      },
    } = await desk.post('', {
      url: `${receiver.url}?token=sesame`,
      databases: ['things'],
      actions: ['deleted'],
      allow: ALLOW,
    })
    expect([status, added]).toEqual([
      200,
      {
        id: expect.stringMatching(/^wh_[0-9a-f]{16}$/),
        url: `${receiver.url}?…`,
        databases: ['things'],
        actions: ['deleted'],
        allow: ALLOW,
        createdAt: expect.any(String),
        enabled: true,
        disabled: null,
        state: 'enabled',
        sequence: 2,
        behind: 0,
        waiting: 0,
        failed: 0,
        failureStreak: 0,
        retryAt: null,
        succeededAt: null,
        failedAt: null,
        lastStatus: null,
        lastResponse: null,
      },
    ])
    expect((await desk.post(`/${added.id}/test`)).body.data).toEqual({
      messageId: expect.stringMatching(/^msg_test_/),
      delivered: true,
      status: 202,
      response: 'thank [31m you',
    })
    const [probe] = receiver.received
    expect(new Official(secret).verify(probe!.body, probe!.headers as Record<string, string>)).toMatchObject({
      resourceType: 'tidemark.test',
    })

    const {
      body: { data: rotated },
    } = await desk.post(`/${added.id}/rotate`, { overlapHours: 1 })
    expect(rotated.secret).not.toBe(secret)
    await desk.post(`/${added.id}/test`)
    for (const known of [secret, rotated.secret])
      expect(
        new Official(known).verify(receiver.received[1]!.body, receiver.received[1]!.headers as Record<string, string>),
      ).toBeDefined()
    for (const { text } of [await desk.get(''), await desk.get(`/${added.id}`)])
      expect(text).not.toMatch(/whsec_|sesame|secret/)
    expect((await desk.get('')).body.data).toEqual([added])

    expect((await desk.post(`/${added.id}`, undefined, { method: 'DELETE' })).body.data.id).toBe(added.id)
    expect((await desk.get(`/${added.id}`)).body).toMatchObject({
      error: 'NOT_FOUND',
      message: 'Webhook not found. GET /api/webhooks lists them.',
    })
    expect((await desk.get('')).body.data).toEqual([])
  })

  test('a paused webhook shows its actor, and resumes at its position', async () => {
    const desk = await Desk.open()
    const {
      body: {
        data: { id },
      },
    } = await desk.post('', { url: 'https://hooks.example.com/x', all: true })
    const {
      body: { data: paused },
    } = await desk.post(`/${id}/pause`)
    expect(paused).toMatchObject({
      enabled: false,
      state: 'disabled',
      disabled: 'Paused by api:local.',
      sequence: 0,
      behind: 2,
    })
    expect((await desk.post(`/${id}/resume`)).body.data).toMatchObject({ enabled: true, disabled: null, sequence: 0 })
    expect((await desk.post('/wh_none/pause')).status).toBe(404)
  })

  test('waiting and failed deliveries are listed without records; a replay retries them, or starts earlier', async () => {
    const desk = await Desk.open()
    const { store } = desk.stand
    const {
      body: {
        data: { id },
      },
    } = await desk.post('', { url: 'https://hooks.example.com/x' })
    const claim = (await store.claimWebhook(id, { holder: 'h', ttlMs: 60_000, at: Date.now() }))!
    const delivery = {
      messageId: 'msg_1',
      database: 'things',
      key: 'a',
      body: '{"canary":1}',
      attempts: 3,
      firstAt: 1_000,
      nextAt: 2_000,
      lastStatus: 500,
      lastResponse: 'no',
    }
    const kept = [
      { ...delivery, sequence: 1, failed: true },
      { ...delivery, sequence: 2, failed: false, nextAt: Number.MAX_SAFE_INTEGER },
    ]
    await store.recordDeliveries(claim, {
      progress: { ...claim.webhook, failureStreak: 2, disabledReason: 'gone' },
      delivered: [],
      undelivered: kept,
    })
    expect((await desk.get(`/${id}`)).body.data).toMatchObject({
      waiting: 1,
      failed: 1,
      state: 'disabled',
      failureStreak: 2,
    })
    const shown = {
      messageId: 'msg_1',
      database: 'things',
      key: 'a',
      attempts: 3,
      firstAt: '1970-01-01T00:00:01.000Z',
      nextAt: null,
      lastStatus: 500,
      lastResponse: 'no',
    }
    expect((await desk.get(`/${id}/failed`)).body.data).toEqual([{ ...shown, sequence: 1, failed: true }])
    expect((await desk.get(`/${id}/deliveries`)).body.data).toEqual([{ ...shown, sequence: 2, failed: false }])
    expect((await desk.post(`/${id}/replay`)).body.data).toMatchObject({
      enabled: true,
      waiting: 2,
      failed: 0,
      sequence: 2,
    })
    expect((await desk.post(`/${id}/replay`, { all: true })).body.data).toMatchObject({ sequence: 0, waiting: 0 })
    const [, newest] = await store.changes({ after: 0, limit: 9 })
    expect(
      (await desk.post(`/${id}/replay`, { since: new Date(newest!.committedAt + 1).toISOString() })).body.data,
    ).toMatchObject({ sequence: 2 })
    expect((await desk.post(`/${id}/replay`, { since: 'yesterday' })).body).toMatchObject({
      status: 400,
      message: expect.stringContaining('`since` is not an RFC 3339 time'),
      details: { reason: 'time_invalid' },
    })
  })

  test('the filter can be edited: the plan is shown first, the position stays, and the audit log names the actor', async () => {
    const desk = await Desk.open()
    const {
      body: {
        data: { id, secret: _, ...added },
      },
    } = await desk.post('', { url: 'https://hooks.example.com/x?token=sesame', databases: ['things'] })
    await (await desk.stand.driver('other')).cycle([upsert('c', { n: 3 })])
    const edit = { databases: ['people', 'things'], actions: ['deleted'] }
    const plan = {
      changes: [
        { what: 'databases', from: 'things', to: 'people, things' },
        { what: 'actions', from: 'all', to: 'deleted' },
      ],
      from: 3,
      notes: [
        expect.stringContaining('apply from sequence 3'),
        expect.stringContaining('also apply to 1 pending log entry'),
        expect.stringContaining(`replay ${id} --since`),
      ],
    }
    const {
      body: { data: planned },
    } = await desk.post(`/${id}`, { ...edit, dryRun: true }, { method: 'PATCH' })
    expect(planned).toEqual({ ...added, id, behind: 1, plan })
    const {
      status,
      body: { data: done },
    } = await desk.post(`/${id}`, edit, { method: 'PATCH' })
    expect([status, done]).toEqual([200, { ...added, id, ...edit, behind: 1, plan }])
    // Back to all; settings that were not given stay.
    const {
      body: { data: widened },
    } = await desk.post(`/${id}`, { databases: null, url: 'https://hooks.example.com/y' }, { method: 'PATCH' })
    expect(widened).toMatchObject({
      databases: null,
      actions: ['deleted'],
      url: 'https://hooks.example.com/y',
      sequence: 2,
    })
    expect(widened.plan.changes).toEqual([
      { what: 'url', from: 'https://hooks.example.com/x?…', to: 'https://hooks.example.com/y' },
      { what: 'databases', from: 'people, things', to: 'all' },
    ])
    expect((await desk.post(`/${id}`, { actions: ['deleted'] }, { method: 'PATCH' })).body.data.plan).toEqual({
      changes: [],
      from: 3,
      notes: [],
    })
    const { entries } = await desk.stand.store.auditChain({ before: Number.MAX_SAFE_INTEGER, limit: 9 })
    expect(
      entries.filter(({ action }) => action === 'edit-webhook').map(({ actor, reason }) => [actor, reason]),
    ).toEqual([
      ['api:local', `${id}: url https://hooks.example.com → https://hooks.example.com; databases people,things → all`],
      ['api:local', `${id}: databases things → people,things; actions all → deleted`],
    ])
    expect((await desk.post('/wh_none', edit, { method: 'PATCH' })).status).toBe(404)
    for (const wrong of [
      { datbases: ['x'] },
      { actions: ['erased'] },
      { databases: [] },
      { url: '' },
      { secrets: 'x' },
    ])
      expect((await desk.post(`/${id}`, wrong, { method: 'PATCH' })).status).toBe(400)
  })

  test('XF13 a key cannot point a webhook at a private address, not even one that was allowed before', async () => {
    const desk = await Desk.open()
    const admin = await addKey(desk.stand.store, ['admin'])
    const {
      body: {
        data: { id },
      },
    } = await desk.post('', { url: 'http://127.0.0.1:1/', allow: ALLOW })
    const edit = (body: Body) => desk.post(`/${id}`, body, { method: 'PATCH', key: admin })
    expect((await edit({ url: 'http://127.0.0.1:2/' })).body).toMatchObject({
      status: 400,
      details: { reason: 'webhook_url_refused' },
    })
    expect((await edit({ url: 'http://127.0.0.1:2/', allow: ALLOW })).status).toBe(403)
    expect((await edit({ actions: ['created'] })).body.data).toMatchObject({
      url: 'http://127.0.0.1:1/',
      allow: ALLOW,
      actions: ['created'],
    })
    // A name may resolve to a private address: allowances do not outlive the URL they were given for.
    expect((await edit({ url: 'https://hooks.example.com/' })).body.data).toMatchObject({ allow: [] })
  })

  test('XF13 with a key no private address is reachable, whatever its scope; a misspelt name does not widen the filter', async () => {
    const desk = await Desk.open()
    const admin = await addKey(desk.stand.store, ['admin'])
    expect((await desk.post('', { url: 'http://127.0.0.1:1/', allow: ALLOW }, { key: admin })).status).toBe(403)
    for (const url of [
      'http://hooks.example.com/',
      'https://127.0.0.1/',
      'https://169.254.169.254/',
      'https://[::1]/',
      'https://2130706433/',
      'https://localhost./',
      'https://a:b@hooks.example.com/',
      'https://hooks.example.com:22/',
      'file:///etc/passwd',
      'x',
    ]) {
      const { status, body } = await desk.post('', { url }, { key: admin })
      expect([url, status, body.details?.reason]).toEqual([url, 400, 'webhook_url_refused'])
    }
    for (const wrong of [
      {},
      { url: 'https://hooks.example.com/', datbases: ['x'] },
      { url: 'https://hooks.example.com/', actions: ['erased'] },
      { url: 'https://hooks.example.com/', databases: [] },
    ])
      expect((await desk.post('', wrong, { key: admin })).status).toBe(400)
    expect(
      (
        await desk.post(
          '',
          { url: 'https://hooks.example.com/' },
          { key: await addKey(desk.stand.store, ['sync:write', '*:read']) },
        )
      ).status,
    ).toBe(403)
    expect((await desk.get('')).body.data).toEqual([])
    expect((await desk.post('', { url: 'https://hooks.example.com/' }, { key: admin })).status).toBe(200)
  })
})
