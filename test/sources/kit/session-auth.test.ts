import { expect, test } from 'vitest'
import { createAuth } from '../../../src/sources/kit/config-auth.ts'
import { createHttpClient } from '../../../src/sources/kit/http-client.ts'
import { MemoryTokenStore } from '../../../src/sources/kit/token-store.ts'
import { contextOf, json, serve } from './loopback.ts'

const SECRETS = { USER_NAME: 'ann', PASS: 'correct horse' }
const tokens = (): MemoryTokenStore => new MemoryTokenStore()

/** A server whose sessions end after some requests. */
async function serveSessions(requestsPerSession: number): Promise<{ base: string; logins: unknown[] }> {
  const logins: unknown[] = []
  let left = 0
  const base = await serve(async (request, response) => {
    if (request.url === '/login') {
      let body = ''
      for await (const chunk of request) body += String(chunk)
      const given = JSON.parse(body) as { password: string }
      if (given.password !== SECRETS.PASS) return json(response, { error: 'no' }, { status: 400 })
      logins.push(given)
      left = requestsPerSession
      return json(response, { data: { token: `session-${logins.length}` } })
    }
    if (request.headers['x-session'] !== `session-${logins.length}` || left-- <= 0)
      return json(response, {}, { status: 401 })
    return json(response, [{ id: 1 }])
  })
  return { base, logins }
}

const open = async (base: string, password = 'PASS') =>
  createHttpClient({
    baseUrl: base,
    ...(await createAuth(
      {
        kind: 'session',
        login_url: `${base}/login`,
        credentials: { user: 'USER_NAME', password },
        token_at: 'data.token',
        header: 'x-session',
      },
      tokens,
    )),
  })

test('a session logs in once for concurrent requests, and again when the source ends it', async () => {
  const { base, logins } = await serveSessions(3)
  const client = await open(base)
  const context = contextOf({ secrets: SECRETS })
  await Promise.all([1, 2, 3].map(() => client.get('/items', {}, context)))
  expect(logins).toEqual([{ user: 'ann', password: 'correct horse' }])
  expect((await client.get('/items', {}, context)).body).toEqual([{ id: 1 }])
  expect(logins).toHaveLength(2)
})

test('a rejected login is AUTH_REJECTED, and the message has no secret', async () => {
  const { base } = await serveSessions(3)
  const client = await open(base, 'USER_NAME')
  const error = await client.get('/items', {}, contextOf({ secrets: SECRETS })).catch((reason: unknown) => reason)
  expect(error).toMatchObject({ code: 'AUTH_REJECTED', message: expect.not.stringContaining('ann') as string })
})

test('a source that rejects a new session is not asked again and again', async () => {
  const { base, logins } = await serveSessions(0)
  const client = await open(base)
  await expect(client.get('/items', {}, contextOf({ secrets: SECRETS }))).rejects.toMatchObject({
    code: 'AUTH_REJECTED',
  })
  expect(logins.length).toBeLessThanOrEqual(2)
})

test.each([
  ['a header', { kind: 'api_key', key: 'PASS', header: 'x-key', prefix: 'Key ' }, { 'x-key': 'Key correct horse' }, ''],
  ['the query', { kind: 'api_key', key: 'PASS', query: 'api_key' }, {}, '?api_key=correct%20horse'],
] as const)('an API key of a manifest is sent in %s', async (_, auth, headers, query) => {
  let seen: unknown
  const base = await serve((request, response) => {
    seen = { url: request.url, headers: request.headers }
    json(response, [])
  })
  const client = createHttpClient({ baseUrl: base, ...(await createAuth(auth, tokens)) })
  await client.get('/a', {}, contextOf({ secrets: SECRETS }))
  expect(seen).toMatchObject({ url: `/a${query}`, headers })
})

test('an API key needs exactly one place', async () => {
  await expect(createAuth({ kind: 'api_key', key: 'PASS' }, tokens)).rejects.toMatchObject({ code: 'SYNC_INVALID' })
})

test('OAuth of a manifest uses the refresh token, the fields and the form', async () => {
  let form = ''
  const base = await serve(async (request, response) => {
    if (request.url === '/token') {
      for await (const chunk of request) form += String(chunk)
      return json(response, { access_token: 'access', expires_in: 3_600 })
    }
    return json(response, [request.headers.authorization])
  })
  const auth = await createAuth(
    {
      kind: 'oauth',
      token_url: `${base}/token`,
      client_id: 'USER_NAME',
      client_secret: 'PASS',
      refresh_token: 'PASS',
      fields: { audience: 'api' },
      client_auth: 'form',
    },
    tokens,
  )
  const { body } = await createHttpClient({ baseUrl: base, ...auth }).get('/a', {}, contextOf({ secrets: SECRETS }))
  expect(body).toEqual(['Bearer access'])
  expect(Object.fromEntries(new URLSearchParams(form))).toEqual({
    audience: 'api',
    grant_type: 'refresh_token',
    refresh_token: 'correct horse',
    client_id: 'ann',
    client_secret: 'correct horse',
  })
})
