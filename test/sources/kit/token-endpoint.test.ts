import { describe, expect, test } from 'vitest'
import { maskSecrets } from '../../../src/redaction/known-secrets.ts'
import { Secret } from '../../../src/redaction/secret.ts'
import { requestTokens, type TokenEndpoint } from '../../../src/sources/kit/token-endpoint.ts'
import { contextOf, failureOf, json, serve } from './loopback.ts'

const GRANT = { grant_type: 'authorization_code', code: 'code-1' }
const client = { clientId: new Secret('the client'), clientSecret: new Secret('s:cret/+%') }

async function ask(
  answer: { status?: number; type?: string | null; body: string },
  endpoint: Partial<TokenEndpoint> = {},
): ReturnType<typeof requestTokens> {
  const url = await serve((_request, response) => {
    const { status = 200, type = 'application/json', body } = answer
    response.writeHead(status, type === null ? {} : { 'content-type': type }).end(body)
  })
  return requestTokens({ ...client, url: `${url}/token`, ...endpoint }, GRANT, contextOf())
}

describe('the answer of a token endpoint', () => {
  test.each([
    ['the standard', { body: '{"access_token":"access-1","token_type":"bearer","expires_in":60,"scope":"a b"}' }],
    ['no token_type', { body: '{"access_token":"access-1","expires_in":"60","scope":"a b"}' }],
    ['token_type user', { body: '{"access_token":"access-1","token_type":"user","expires_in":60,"scope":"a b"}' }],
    ['status 201', { status: 201, body: '{"access_token":"access-1","expires_in":60,"scope":"a b"}' }],
    ['a form', { type: 'application/x-www-form-urlencoded', body: 'access_token=access-1&expires_in=60&scope=a+b' }],
    ['JSON as text', { type: 'text/plain', body: ' {"access_token":"access-1","expires_in":60,"scope":"a b"}\n' }],
    ['JSON without a type', { type: null, body: '{"access_token":"access-1","expires_in":60,"scope":"a b"}' }],
  ])('%s is read', async (_name, answer) => {
    expect(await ask(answer)).toMatchObject({
      kind: 'granted',
      accessToken: 'access-1',
      refreshToken: null,
      lifetimeMs: 60_000,
      scope: 'a b',
    })
  })

  test('tokens in a nested object are found', async () => {
    const body = '{"ok":true,"authed_user":{"access_token":"nested-1","refresh_token":"nested-2"},"team":{"id":"T1"}}'
    expect(await ask({ body }, { tokensAt: 'authed_user' })).toMatchObject({
      kind: 'granted',
      accessToken: 'nested-1',
      refreshToken: 'nested-2',
      lifetimeMs: null,
      body: { team: { id: 'T1' } },
    })
    expect((await failureOf(ask({ body }))).message).toBe('POST /token answered 200 without an access token.')
  })

  test.each([
    ['200 with an error', { body: '{"error":"bad_verification_code"}' }, 'bad_verification_code'],
    ['200 with an error and a token', { body: '{"error":"invalid_grant","access_token":"x"}' }, 'invalid_grant'],
    ['a form with an error', { type: 'text/plain', body: 'error=bad_refresh_token&error_uri=x' }, 'bad_refresh_token'],
    ['ok: false', { body: '{"ok":false,"error":"invalid_code"}' }, 'invalid_code'],
    ['ok: false without an error', { body: '{"ok":false}' }, null],
    ['400', { status: 400, body: '{"error":"invalid_grant"}' }, 'invalid_grant'],
    ['401', { status: 401, body: '{"error":"invalid_client"}' }, 'invalid_client'],
    ['400 without JSON', { status: 400, type: 'text/html', body: '<h1>no</h1>' }, null],
    ['an error with a sentence', { status: 400, body: '{"error":"The code code-1 was used."}' }, null],
  ])('%s is a refusal', async (_name, answer, reason) => {
    expect(await ask(answer)).toMatchObject({ kind: 'refused', reason })
  })

  test.each([
    [429, 'RATE_LIMITED'],
    [503, 'SOURCE_UNAVAILABLE'],
  ])('status %d is not a refusal', async (status, code) => {
    expect(await failureOf(ask({ status, body: '{"error":"invalid_grant"}' }))).toMatchObject({ code })
  })

  test('a body that is neither JSON nor a form is invalid, and is not quoted', async () => {
    const { message } = await failureOf(ask({ type: 'text/html', body: '<p>access_token=leak</p>' }))
    expect(message).toBe('POST /token answered 200 with 24 bytes that are neither JSON nor a form.')
  })

  test('a lifetime that is not a number is none', async () => {
    for (const value of ['"never"', '0', '-1', 'null', '1e999'])
      expect(await ask({ body: `{"access_token":"t","expires_in":${value}}` })).toMatchObject({ lifetimeMs: null })
  })

  test('tokens are masked wherever they are printed', async () => {
    await ask({ body: '{"access_token":"masked-access-token","refresh_token":"masked-refresh-token"}' })
    expect(maskSecrets('masked-access-token masked-refresh-token')).not.toContain('masked-')
  })
})

describe('the request of a client', () => {
  const seen = async (
    endpoint: Partial<TokenEndpoint>,
  ): Promise<{ headers: Record<string, unknown>; body: string }> => {
    let found: { headers: Record<string, unknown>; body: string } | undefined
    const url = await serve(async (request, response) => {
      let body = ''
      for await (const chunk of request) body += String(chunk)
      found = { headers: request.headers, body }
      json(response, { access_token: 't' })
    })
    await requestTokens({ ...client, url: `${url}/token`, ...endpoint }, GRANT, contextOf())
    return found!
  }
  const BASIC = `Basic ${Buffer.from('the+client:s%3Acret%2F%2B%25').toString('base64')}`

  test('has a basic header, or members in the body, as a form or as JSON', async () => {
    expect(await seen({})).toMatchObject({
      headers: { authorization: BASIC, 'content-type': 'application/x-www-form-urlencoded' },
      body: 'grant_type=authorization_code&code=code-1',
    })
    expect((await seen({ clientAuth: 'form' })).body).toBe(
      'grant_type=authorization_code&code=code-1&client_id=the+client&client_secret=s%3Acret%2F%2B%25',
    )
    const asJson = await seen({ format: 'json' })
    expect(asJson).toMatchObject({ headers: { authorization: BASIC, 'content-type': 'application/json' } })
    expect(JSON.parse(asJson.body)).toEqual(GRANT)
  })

  test('names a public client in the body', async () => {
    const sent = await seen({ clientSecret: null })
    expect(sent.headers['authorization']).toBeUndefined()
    expect(sent.body).toBe('grant_type=authorization_code&code=code-1&client_id=the+client')
  })
})
