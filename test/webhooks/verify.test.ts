import { createHmac } from 'node:crypto'
import { Signature as HubspotSignature } from '@hubspot/api-client'
import { Webhook as Official } from 'standardwebhooks'
import { Stripe } from 'stripe'
import { describe, expect, test } from 'vitest'
import { generateSecret } from '../../src/webhooks/secrets.ts'
import { computeSignature, createSignatureHeaders } from '../../src/webhooks/sign.ts'
import { githubSignature } from '../../src/webhooks/verify/github.ts'
import { hubspotSignature } from '../../src/webhooks/verify/hubspot.ts'
import { standardSignature, verifyStandardWebhook } from '../../src/webhooks/verify/standard.ts'
import { stripeSignature } from '../../src/webhooks/verify/stripe.ts'
import {
  timingSafeTextEqual,
  WebhookRefused,
  type InboundDelivery,
  type WebhookVerifier,
} from '../../src/webhooks/verify/verify.ts'

const NOW = Date.UTC(2026, 0, 1)
const BODY = '{"id":"evt_1","name":"Zoë"}'
const SECRET = generateSecret()
const URL_CALLED = 'https://hooks.example.com/webhooks/crm/hubspot?a=1'
const secrets = { get: (name: string) => ({ OLD: generateSecret(), NEW: SECRET })[name]! }

/** Every vendor: its verifier and a message signed now. */
const VENDORS: ReadonlyArray<{
  name: string
  timed: boolean
  verify: WebhookVerifier
  headers(body: string, at: number): Record<string, string>
}> = [
  {
    name: 'Standard Webhooks',
    timed: true,
    verify: standardSignature({ secret: ['OLD', 'NEW'] }),
    headers: (body, at) => createSignatureHeaders([generateSecret(), SECRET], 'msg_1', at, body),
  },
  {
    name: 'Stripe',
    timed: true,
    verify: stripeSignature({ secret: ['OLD', 'NEW'] }),
    headers: (payload, at) => ({
      'stripe-signature': new Stripe('sk_test_x').webhooks.generateTestHeaderString({
        payload,
        secret: SECRET,
        timestamp: Math.floor(at / 1_000),
      }),
    }),
  },
  {
    name: 'GitHub',
    timed: false,
    verify: githubSignature({ secret: ['OLD', 'NEW'] }),
    headers: (body) => ({ 'x-hub-signature-256': `sha256=${createHmac('sha256', SECRET).update(body).digest('hex')}` }),
  },
  {
    name: 'HubSpot',
    timed: true,
    verify: hubspotSignature({ secret: ['OLD', 'NEW'], url: URL_CALLED }),
    headers: (body, at) => ({
      'x-hubspot-request-timestamp': String(at),
      'x-hubspot-signature-v3': HubspotSignature.getSignature('POST', 'v3', {
        signature: '',
        clientSecret: SECRET,
        requestBody: body,
        url: URL_CALLED,
        timestamp: at,
      }),
    }),
  },
]

test('Z32 HubSpot signs the URL it calls, which may be computed from the path', async () => {
  const verify = hubspotSignature({ secret: 'NEW', url: (path) => `https://sync.example.com${path}` })
  const signedFor = (url: string): Record<string, string> => ({
    'x-hubspot-request-timestamp': String(NOW),
    'x-hubspot-signature-v3': HubspotSignature.getSignature('POST', 'v3', {
      signature: '',
      clientSecret: SECRET,
      requestBody: BODY,
      url,
      timestamp: NOW,
    }),
  })
  const delivery = {
    method: 'POST',
    path: '/webhooks/acme/crm/hubspot',
    headers: signedFor('https://sync.example.com/webhooks/acme/crm/hubspot'),
    rawBody: Buffer.from(BODY),
  }
  expect(await verify(delivery, { now: NOW, secrets })).toMatchObject({ id: expect.any(String) })
  expect(() => verify({ ...delivery, path: '/webhooks/umbrella/crm/hubspot' }, { now: NOW, secrets })).toThrow(
    WebhookRefused,
  )
})

describe.each(VENDORS)('Z32 a message of $name', ({ timed, verify, headers }) => {
  const judge = async (delivery: Partial<InboundDelivery>, now = NOW): Promise<string> => {
    try {
      return (
        await verify(
          { method: 'POST', path: '/', headers: headers(BODY, NOW), rawBody: Buffer.from(BODY), ...delivery },
          { now, secrets },
        )
      ).id
    } catch (error) {
      if (error instanceof WebhookRefused) return 'refused'
      throw error
    }
  }

  test('Z32 is verified by its bytes, and the same bytes have the same id', async () => {
    expect(await judge({})).not.toBe('refused')
    expect(await judge({})).toBe(await judge({}, NOW + 1_000))
    for (const rawBody of [`${BODY} `, BODY.replace('ë', 'e'), ''])
      expect(await judge({ rawBody: Buffer.from(rawBody) })).toBe('refused')
    // The same JSON, formatted differently.
    expect(await judge({ rawBody: Buffer.from(JSON.stringify(JSON.parse(BODY), null, 1)) })).toBe('refused')
  })

  test('Z32 is rejected without a header, and with any byte changed', async () => {
    const whole = headers(BODY, NOW)
    for (const [name, value] of Object.entries(whole)) {
      expect(await judge({ headers: { ...whole, [name]: undefined } }), name).toBe('refused')
      expect(await judge({ headers: { ...whole, [name]: '' } }), name).toBe('refused')
      expect(await judge({ headers: { ...whole, [name]: value.slice(0, -1) } }), name).toBe('refused')
      expect(
        await judge({
          headers: { ...whole, [name]: `${value.slice(0, -2)}${value.at(-2) === '1' ? '2' : '1'}${value.at(-1)}` },
        }),
        name,
      ).toBe('refused')
    }
  })

  test('XF11 Z32 is valid for 300 s, before and after', async () => {
    const at = async (seconds: number): Promise<boolean> => (await judge({}, NOW + seconds * 1_000)) !== 'refused'
    expect([await at(0), await at(299), await at(-299), await at(301), await at(-301)]).toEqual([
      true,
      true,
      true,
      !timed,
      !timed,
    ])
  })
})

describe('Z29 Standard Webhooks', () => {
  test('Z29 the official library and ours sign alike and accept each other', () => {
    const secret = generateSecret()
    const now = Date.now()
    const official = new Official(secret)
    expect(computeSignature(secret, 'msg_2', Math.floor(now / 1_000), BODY)).toBe(
      official.sign('msg_2', new Date(now), BODY),
    )
    expect(official.verify(BODY, createSignatureHeaders([secret], 'msg_2', now, BODY))).toEqual(JSON.parse(BODY))
    const headers = {
      'webhook-id': 'msg_3',
      'webhook-timestamp': String(Math.floor(now / 1_000)),
      'webhook-signature': `v1a,xyz ${official.sign('msg_3', new Date(now), BODY)}`,
    }
    expect(verifyStandardWebhook({ headers, rawBody: Buffer.from(BODY) }, { secrets: [secret], now })).toEqual({
      id: 'msg_3',
    })
  })

  test('Z29 the published vector', () => {
    // From the tests of the reference implementations.
    expect(
      computeSignature(
        'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
        'msg_p5jXN8AQM9LWM0D4loKWxJek',
        1614265330,
        '{"test": 2432232314}',
      ),
    ).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=')
  })

  test('Z29 an id with a dot cannot shift the signed parts', () => {
    // An old signature, with a body that begins like a current timestamp.
    const [old, now] = [NOW / 1_000 - 1_000, NOW / 1_000]
    const headers = {
      'webhook-id': `msg_1.${old}`,
      'webhook-timestamp': String(now),
      'webhook-signature': computeSignature(SECRET, 'msg_1', old, `${now}.${BODY}`),
    }
    expect(headers['webhook-signature']).toBe(computeSignature(SECRET, `msg_1.${old}`, now, BODY))
    expect(() =>
      verifyStandardWebhook({ headers, rawBody: Buffer.from(BODY) }, { secrets: [SECRET], now: NOW }),
    ).toThrow(WebhookRefused)
  })
})

test("GitHub's published vector", () => {
  const verify = githubSignature({ secret: 'S' })
  const headers = { 'x-hub-signature-256': 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17' }
  expect(
    verify(
      { method: 'POST', path: '/', headers, rawBody: Buffer.from('Hello, World!') },
      { now: 0, secrets: { get: () => "It's a Secret to Everybody" } },
    ),
  ).toHaveProperty('id')
})

test('XF11 a GitHub message replayed under another delivery id is the same message', () => {
  const { verify, headers } = VENDORS[2]!
  const ids = ['a', 'b'].map((guid) =>
    verify(
      {
        method: 'POST',
        path: '/',
        headers: { ...headers(BODY, NOW), 'x-github-delivery': guid },
        rawBody: Buffer.from(BODY),
      },
      { now: NOW, secrets },
    ),
  )
  expect(ids[0]).toEqual(ids[1])
})

test('Z32 texts of different lengths differ, without an exception', () => {
  expect([
    timingSafeTextEqual('a', 'ab'),
    timingSafeTextEqual('', ''),
    timingSafeTextEqual('ab', 'ab'),
    timingSafeTextEqual('é', 'e'),
  ]).toEqual([false, true, true, false])
})
