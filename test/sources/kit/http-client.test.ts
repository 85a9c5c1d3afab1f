import { inspect } from 'node:util'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import type { JsonValue } from '../../../src/contract/index.ts'
import { apiKey, basic, bearer, type Auth } from '../../../src/sources/kit/auth.ts'
import { createHttpClient, type HttpClientOptions, type RequestOptions } from '../../../src/sources/kit/http-client.ts'
import { classifyGraphqlResponse, type ResponseClassifier } from '../../../src/sources/kit/classify-response.ts'
import { Secret } from '../../../src/redaction/secret.ts'
import { contextOf, failureOf, json, serve, type ContextOptions, type Listener } from './loopback.ts'

type Ask = { client?: Partial<HttpClientOptions>; context?: ContextOptions; options?: RequestOptions; path?: string }

async function ask(
  listener: Listener,
  { client = {}, context = {}, options = {}, path = '/items' }: Ask = {},
): Promise<{ status: number; body: JsonValue; serverTime: number | null }> {
  const url = await serve(listener)
  return createHttpClient({ baseUrl: url, ...client }).get(path, {}, contextOf(context), options)
}

const answering =
  (status: number, { headers = {}, body = {} }: { headers?: Record<string, string>; body?: unknown } = {}): Listener =>
  (_, response) =>
    json(response, body, { status, headers })

describe('a response', () => {
  test('is exact JSON with the status and the time of the source', async () => {
    const answer = await ask((_, response) =>
      json(response, '{"id":9007199254740993,"__proto__":1,"text":"ü"}', {
        headers: { date: 'Sun, 01 Mar 2026 12:00:00 GMT' },
      }),
    )
    expect(answer).toMatchObject({ status: 200, serverTime: Date.parse('2026-03-01T12:00:00Z') })
    expect(Object.entries(answer.body as object)).toEqual([
      ['id', 9007199254740993n],
      ['__proto__', 1],
      ['text', 'ü'],
    ])
  })

  test('to a request with a query, headers and credentials', async () => {
    const url = await serve((request, response) =>
      json(response, {
        url: request.url,
        key: request.headers['x-key'],
        own: request.headers['x-own'],
        accept: request.headers.accept,
      }),
    )
    const client = createHttpClient({
      baseUrl: `${url}/v1/`,
      auth: apiKey({ header: 'X-Key', key: 'NAME' }),
      headers: { 'X-Own': 'a' },
    })
    const { body } = await client.get(
      'items',
      { q: 'a b+c&d', none: undefined, nil: null, list: ['x', 2], on: true, big: 2n ** 60n },
      contextOf({ secrets: { NAME: 'value' } }),
      { headers: { 'x-own': 'b' } },
    )
    expect(body).toEqual({
      url: '/v1/items?q=a%20b%2Bc%26d&list=x&list=2&on=true&big=1152921504606846976',
      key: 'value',
      own: 'b',
      accept: 'application/json',
    })
  })

  test('to a POST of JSON or a form', async () => {
    const url = await serve(async (request, response) =>
      json(response, {
        type: request.headers['content-type'],
        sent: Buffer.concat((await request.toArray()) as Buffer[]).toString(),
      }),
    )
    const client = createHttpClient({ baseUrl: url })
    expect((await client.post('/q', { id: 2n ** 60n }, contextOf())).body).toEqual({
      type: 'application/json',
      sent: '{"id":1152921504606846976}',
    })
    expect((await client.post('/q', new URLSearchParams({ a: 'b c' }), contextOf())).body).toEqual({
      type: 'application/x-www-form-urlencoded',
      sent: 'a=b+c',
    })
  })

  test('without content is null', async () => {
    expect((await ask((_, response) => response.writeHead(204).end())).body).toBe(null)
  })

  test('in another charset is decoded with it', async () => {
    const answer = await ask((_, response) =>
      response
        .writeHead(200, { 'content-type': 'application/vnd.api+json; charset="ISO-8859-1"' })
        .end(Buffer.from('"ü"', 'latin1')),
    )
    expect(answer.body).toBe('ü')
  })

  test('is text if requested, and no other type is accepted', async () => {
    const options = { text: ['application/xml', 'text/xml'] }
    const deep = `<a>${'['.repeat(1_000)}</a>`
    const xml =
      (type: string): Listener =>
      (request, response) =>
        response
          .writeHead(200, { 'content-type': type })
          .end(request.headers.accept === 'application/xml, text/xml' ? deep : '')
    expect((await ask(xml('text/xml; charset=utf-8'), { options })).body).toBe(deep)
    expect(await failureOf(ask(xml('text/html'), { options }))).toMatchObject({
      code: 'SOURCE_INVALID',
      message: expect.stringContaining('text/html instead of application/xml'),
    })
    expect(
      await failureOf(
        ask(xml('application/xml; charset=utf-8'), { options, client: { limits: { bodyBytesMax: 100 } } }),
      ),
    ).toMatchObject({ code: 'SOURCE_INVALID' })
    expect(
      await failureOf(
        ask((_, response) => response.writeHead(200, { 'content-type': 'text/xml' }).end(Buffer.from([0xff])), {
          options,
        }),
      ),
    ).toMatchObject({ code: 'SOURCE_INVALID', message: expect.stringContaining('not valid application/xml') })
  })

  test('without a content type is parsed as JSON', async () => {
    expect((await ask((_, response) => response.writeHead(200).end('[1]'))).body).toEqual([1])
  })
})

describe('a status', () => {
  test.each([
    [400, 'CONNECTOR_FAILED'],
    [402, 'AUTH_REJECTED'],
    [403, 'AUTH_REJECTED'],
    [404, 'CONNECTOR_FAILED'],
    [405, 'CONNECTOR_FAILED'],
    [408, 'SOURCE_UNAVAILABLE'],
    [409, 'SOURCE_UNAVAILABLE'],
    [410, 'CONNECTOR_FAILED'],
    [422, 'CONNECTOR_FAILED'],
    [425, 'SOURCE_UNAVAILABLE'],
    [429, 'RATE_LIMITED'],
    [500, 'SOURCE_UNAVAILABLE'],
    [502, 'SOURCE_UNAVAILABLE'],
    [503, 'SOURCE_UNAVAILABLE'],
    [504, 'SOURCE_UNAVAILABLE'],
    [304, 'SOURCE_INVALID'],
  ])('XD3, XD4, XD5, RX6: %i is %s, and says so by method, path and status', async (status, code) => {
    const error = await failureOf(ask(answering(status)))
    expect(error).toMatchObject({ code, message: `GET /items answered ${status}.` })
  })

  test('XD1: 429 and 503 carry the requested wait', async () => {
    expect(await failureOf(ask(answering(429, { headers: { 'retry-after': '7' } })))).toMatchObject({
      code: 'RATE_LIMITED',
      retryAfterMs: 7_000,
    })
    expect(await failureOf(ask(answering(503, { headers: { 'retry-after': '8' } })))).toMatchObject({
      code: 'SOURCE_UNAVAILABLE',
      retryAfterMs: 8_000,
    })
    expect(await failureOf(ask(answering(429)))).toMatchObject({ retryAfterMs: undefined })
    expect(
      await failureOf(
        ask(answering(429, { headers: { 'retry-after': '7' } }), { client: { limits: { retryAfterMaxMs: 5_000 } } }),
      ),
    ).toMatchObject({ retryAfterMs: 5_000 })
  })

  test('XD2: 403 is a rate limit if a header reports an exhausted budget', async () => {
    expect(
      await failureOf(ask(answering(403, { headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '60' } }))),
    ).toMatchObject({ code: 'RATE_LIMITED', retryAfterMs: 60_000 })
    expect(await failureOf(ask(answering(403, { headers: { 'retry-after': '60' } })))).toMatchObject({
      code: 'RATE_LIMITED',
      retryAfterMs: 60_000,
    })
  })

  test('XD5: 404 of one item is a valid response if listed in `answers`', async () => {
    expect(
      await ask(answering(404, { body: { message: 'gone' } }), { options: { answers: [404, 410] } }),
    ).toMatchObject({ status: 404, body: { message: 'gone' } })
    const limited = ask(answering(403, { headers: { 'retry-after': '5' } }), { options: { answers: [403] } })
    expect(await failureOf(limited)).toMatchObject({ code: 'RATE_LIMITED', retryAfterMs: 5_000 })
    expect(
      await ask((_, response) => response.writeHead(404, { 'content-type': 'text/html' }).end('<html>'), {
        options: { answers: [404] },
      }),
    ).toMatchObject({ status: 404, body: null })
  })

  test('a rejected cursor is not a wrong request', async () => {
    const options = { cursorRefusals: [400, 410] }
    for (const status of [400, 410])
      expect(await failureOf(ask(answering(status), { options }))).toMatchObject({ code: 'CURSOR_REJECTED' })
    expect(await failureOf(ask(answering(422), { options }))).toMatchObject({ code: 'CONNECTOR_FAILED' })
    expect(await failureOf(ask(answering(503), { options: { cursorRefusals: [503] } }))).toMatchObject({
      code: 'SOURCE_UNAVAILABLE',
    })
  })
})

describe('invalid data', () => {
  const answers: Record<string, Listener> = {
    'XD6: a login page': (_, response) =>
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end('<html>Please log in</html>'),
    'XD6: a login page that says it is JSON': (_, response) => json(response, '<html>Please log in</html>'),
    'XD6: a login page that says nothing': (_, response) => response.writeHead(200).end('<html>Please log in</html>'),
    'XD6: plain text': (_, response) => response.writeHead(200, { 'content-type': 'text/plain' }).end('[]'),
    'XD6: a content type made to be shown': (_, response) =>
      response.writeHead(200, { 'content-type': 'canary/<script>alert(1)</script>' }).end('[]'),
    'XD6: nothing at all': (_, response) => json(response, ''),
    'XD7: JSON cut in the middle': (_, response) => json(response, '[{"a":1},{"a"'),
    'XD7: JSON cut at a boundary': (_, response) => json(response, '[{"a":1}'),
    'XD7: two documents': (_, response) => json(response, '[1][2]'),
    'XD7: fewer bytes than said': (request, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' }).write('[1]')
      setImmediate(() => request.socket.end())
    },
    'XD7: text that is not text': (_, response) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(Buffer.from([0x22, 0xff, 0xfe, 0x22])),
    'XD7: an unknown encoding': (_, response) =>
      response.writeHead(200, { 'content-type': 'application/json; charset=klingon' }).end('[]'),
    'XD10: a bomb, small on the wire': (_, response) =>
      response
        .writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
        .end(gzipSync(`[${' '.repeat(3_000_000)}]`)),
    'XD11: two encodings': (_, response) =>
      response
        .writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip, gzip' })
        .end(gzipSync(gzipSync('[]'))),
    'XD12: brackets without end': (_, response) => json(response, '['.repeat(20_000)),
    'XD8: bytes without end': (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      const pour = (): void => {
        while (response.write(' '.repeat(1_000))) if (response.destroyed) return
      }
      response.on('drain', pour)
      pour()
    },
  }

  test.each(Object.keys(answers))('%s', async (name) => {
    const error = await failureOf(ask(answers[name]!, { client: { limits: { bodyBytesMax: 100_000 } } }))
    expect(error).toMatchObject({ code: 'SOURCE_INVALID' })
    expect(inspect(error, { depth: 9 })).not.toMatch(/Please log in|canary|script/)
  })

  test('XD8, Z39: a slow body ends at the deadline', async () => {
    const error = await failureOf(
      ask(
        (_, response) => {
          response.writeHead(200, { 'content-type': 'application/json' })
          const timer = setInterval(() => response.write(' '), 5)
          response.on('close', () => clearInterval(timer))
        },
        { client: { limits: { bodyDeadlineMs: 150 } } },
      ),
    )
    expect(error).toMatchObject({
      code: 'SOURCE_TIMEOUT',
      message: 'GET /items answered 200 took longer than 150 ms to arrive.',
    })
  })

  test('XD8: a body without bytes, or one that stalls, ends in the transport', async () => {
    const silent = ask(() => {}, { context: { limits: { headersTimeoutMs: 100 } } })
    const half = ask((_, response) => response.writeHead(200, { 'content-type': 'application/json' }).write('['), {
      context: { limits: { bodyIdleMs: 100 } },
    })
    for (const error of await Promise.all([failureOf(silent), failureOf(half)]))
      expect(error).toMatchObject({ code: 'SOURCE_TIMEOUT' })
  })

  test('XD8: every request ends with the cycle', async () => {
    for (const listener of [
      () => {},
      ((_, response) => response.writeHead(200, { 'content-type': 'application/json' }).write('[')) as Listener,
    ]) {
      const controller = new AbortController()
      const reason = new Error('lease lost')
      const asking = ask(
        (request, response) => {
          listener(request, response)
          setTimeout(() => controller.abort(reason), 20)
        },
        { context: { signal: controller.signal } },
      )
      expect(await failureOf(asking)).toBe(reason)
    }
  })

  test('an error response whose body never ends is still reported', async () => {
    const error = await failureOf(
      ask((_, response) => response.writeHead(503, { 'content-type': 'application/json' }).write('x'.repeat(100_000)), {
        client: { limits: { bodyDeadlineMs: 100 } },
      }),
    )
    expect(error).toMatchObject({ code: 'SOURCE_UNAVAILABLE' })
  })
})

describe('a response classifier', () => {
  /** The Salesforce format: a list of errors with codes, with status 403. */
  const salesforce: ResponseClassifier = ({ body }) => {
    const limited =
      Array.isArray(body) &&
      body.some(
        (error) =>
          typeof error === 'object' &&
          error !== null &&
          'errorCode' in error &&
          error.errorCode === 'REQUEST_LIMIT_EXCEEDED',
      )
    return limited ? { code: 'RATE_LIMITED', reason: 'a request limit', retryAfterMs: 60_000 } : null
  }

  test('NX2: finds a rate limit in the body of a 403', async () => {
    const error = await failureOf(
      ask(answering(403, { body: [{ errorCode: 'REQUEST_LIMIT_EXCEEDED', message: 'canary' }] }), {
        client: { classifyResponse: salesforce },
      }),
    )
    expect(error).toMatchObject({
      code: 'RATE_LIMITED',
      retryAfterMs: 60_000,
      message: 'GET /items answered 403 with a request limit: REQUEST_LIMIT_EXCEEDED: canary',
    })
    expect(
      await failureOf(
        ask(answering(403, { body: [{ errorCode: 'OTHER' }] }), { client: { classifyResponse: salesforce } }),
      ),
    ).toMatchObject({ code: 'AUTH_REJECTED' })
  })

  test.each([
    ['NX2: a limit by type', { errors: [{ type: 'RATE_LIMITED' }] }, 'RATE_LIMITED'],
    ['NX2: a limit by code', { errors: [{ message: 'x', extensions: { code: 'RATELIMITED' } }] }, 'RATE_LIMITED'],
    ['NX2: a limit beside data', { data: { a: 1 }, errors: [{ extensions: { code: 'THROTTLED' } }] }, 'RATE_LIMITED'],
    ['NX9: a refusal', { errors: [{ extensions: { code: 'AUTHENTICATION_ERROR' } }] }, 'AUTH_REJECTED'],
    [
      'NX9: a part of the data',
      { data: { a: 1, b: null }, errors: [{ path: ['b'], message: 'canary' }] },
      'SOURCE_INVALID',
    ],
    ['NX9: errors of a strange shape', { errors: [null, 'x', 1, []] }, 'SOURCE_INVALID'],
  ])('of GraphQL: %s is no data, whatever the status says', async (_, body, code) => {
    const error = await failureOf(
      ask(answering(200, { body, headers: { 'retry-after': '3' } }), {
        client: { classifyResponse: classifyGraphqlResponse },
      }),
    )
    expect(error).toMatchObject({ code, retryAfterMs: 3_000 })
  })

  test('of GraphQL accepts data without errors', async () => {
    for (const body of [{ data: { a: 1 } }, { data: {}, errors: [] }])
      expect(
        (await ask(answering(200, { body }), { client: { classifyResponse: classifyGraphqlResponse } })).body,
      ).toEqual(body)
  })
})

describe('credentials', () => {
  const headersOf = async (auth: Auth, secrets: Record<string, string>): Promise<unknown> => {
    const answer = await ask(
      (request, response) => json(response, { authorization: request.headers.authorization ?? null, url: request.url }),
      { client: { auth }, context: { secrets } },
    )
    return answer.body
  }

  test('are sent where the source expects them', async () => {
    expect(await headersOf(bearer('TOKEN'), { TOKEN: 't' })).toEqual({ authorization: 'Bearer t', url: '/items' })
    expect(await headersOf(basic({ user: 'USER', password: new Secret('p:ü') }), { USER: 'u' })).toEqual({
      authorization: `Basic ${Buffer.from('u:p:ü').toString('base64')}`,
      url: '/items',
    })
    expect(await headersOf(apiKey({ query: 'api_key', key: 'KEY' }), { KEY: 'k&k' })).toEqual({
      authorization: null,
      url: '/items?api_key=k%26k',
    })
    await expect(headersOf(bearer('TOKEN'), {})).rejects.toMatchObject({ code: 'SECRET_MISSING' })
  })

  test('XD4: that are rejected and cannot be renewed are not retried', async () => {
    let asked = 0
    const error = await failureOf(
      ask(
        (_, response) => {
          asked++
          json(response, {}, { status: 401 })
        },
        { client: { auth: bearer(new Secret('t')) } },
      ),
    )
    expect([error.code, asked]).toEqual(['AUTH_REJECTED', 1])
  })

  test.each([401, 403])('XD4, NX9: that are rejected with %i are renewed once', async (status) => {
    const auth: Auth = {
      credentials: async () => ({ headers: { authorization: new Secret('old') }, query: {} }),
      renew: async () => ({ headers: { authorization: new Secret('new') }, query: {} }),
    }
    const seen: unknown[] = []
    const listener =
      (good: string): Listener =>
      (request, response) => {
        seen.push(request.headers.authorization)
        json(response, {}, { status: request.headers.authorization === good ? 200 : status })
      }
    expect(await ask(listener('new'), { client: { auth } })).toMatchObject({ status: 200 })
    expect(await failureOf(ask(listener('newer'), { client: { auth } }))).toMatchObject({
      code: 'AUTH_REJECTED',
      message: `GET /items answered ${status}.`,
    })
    expect(seen).toEqual(['old', 'new', 'old', 'new'])
  })
})

describe('a redirect', () => {
  test('XD29: to another origin is not followed, with or without credentials', async () => {
    const visits: string[] = []
    const other = await serve((request, response) => {
      visits.push(request.url)
      json(response, {})
    })
    const location = other.replace('127.0.0.1', 'localhost')
    for (const target of [`${other}/x`, `${location}/x`, 'http://169.254.169.254/latest', 'file:///etc/passwd']) {
      const error = await failureOf(
        ask((_, response) => response.writeHead(302, { location: `${target}?token=canary` }).end(), {
          client: { auth: bearer(new Secret('t')) },
        }),
      )
      expect(error).toMatchObject({ code: 'SOURCE_INVALID' })
      expect(error.message).not.toContain('canary')
    }
    expect(visits).toEqual([])
  })

  test('XD29: outside the path of the source is not followed', async () => {
    const url = await serve((request, response) =>
      request.url === '/v1/items' ? response.writeHead(302, { location: '/login' }).end() : json(response, {}),
    )
    expect(await failureOf(createHttpClient({ baseUrl: `${url}/v1` }).get('/items', {}, contextOf()))).toMatchObject({
      code: 'SOURCE_INVALID',
    })
  })

  test('within the source is followed up to a limit', async () => {
    expect(
      (
        await ask((request, response) =>
          request.url === '/items' ? response.writeHead(307, { location: '/items/' }).end() : json(response, 'true'),
        )
      ).body,
    ).toBe(true)
    expect(await failureOf(ask((_, response) => response.writeHead(302, { location: '/items' }).end()))).toMatchObject({
      code: 'SOURCE_INVALID',
      message: 'GET /items redirects more than 5 times.',
    })
  })

  test('XD29: of a POST is not followed', async () => {
    const url = await serve((request, response) =>
      request.url === '/q' ? response.writeHead(307, { location: '/r' }).end() : json(response, {}),
    )
    expect(await failureOf(createHttpClient({ baseUrl: url }).post('/q', {}, contextOf()))).toMatchObject({
      code: 'SOURCE_INVALID',
    })
  })
})

describe('a link', () => {
  test('NX8: is followed within the origin of the source, with credentials', async () => {
    const url = await serve((request, response) =>
      json(response, { url: request.url, next: `${url}/v1/items?cursor=a%20b`, key: request.headers.authorization }),
    )
    const client = createHttpClient({ baseUrl: `${url}/v1`, auth: bearer(new Secret('t')) })
    const first = await client.get('/items', {}, contextOf())
    const link = client.resolveLink((first.body as { next: string }).next, first, contextOf())
    expect((await client.get(link, {}, contextOf())).body).toMatchObject({
      url: '/v1/items?cursor=a%20b',
      key: 'Bearer t',
    })
    expect(client.resolveLink('?cursor=3', first, contextOf())).toBe(`${url}/v1/items?cursor=3`)
  })

  test('NX8, Z36: to another origin is not requested', async () => {
    const url = await serve((_, response) => json(response, {}))
    const client = createHttpClient({ baseUrl: `${url}/v1` })
    const first = await client.get('/items', {}, contextOf())
    for (const link of ['http://169.254.169.254/', '/v2/items', `${url}/v1/../admin`]) {
      expect(() => client.resolveLink(link, first, contextOf())).toThrow(
        expect.objectContaining({ code: 'SOURCE_INVALID' }),
      )
    }
    const asking = contextOf({ fetch: () => Promise.reject(new Error('asked')) })
    expect(await failureOf(client.get('http://169.254.169.254/', {}, asking))).toMatchObject({ code: 'SOURCE_INVALID' })
  })
})

test('Z16: no error contains a query, a header, a token, a link or a body', async () => {
  const listeners: Listener[] = [
    (_, response) => json(response, { secret: 'canary' }, { status: 500, headers: { 'x-secret': 'canary' } }),
    (_, response) => json(response, '{"canary"'),
    (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('canary'),
    (_, response) => response.writeHead(302, { location: 'https://canary.example/canary' }).end(),
    (request) => request.socket.destroy(),
    (request) => request.socket.end('canary'),
  ]
  for (const [index, listener] of listeners.entries()) {
    const url = await serve(listener)
    const client = createHttpClient({
      baseUrl: `${url}/v1`,
      auth: apiKey({ query: 'key', key: new Secret('canary') }),
      headers: { 'x-key': 'canary' },
    })
    for (const target of ['/items', `${url}/v1/query/canary?after=canary`]) {
      const error = await failureOf(client.get(target, { after: 'canary' }, contextOf()))
      expect(inspect(error, { depth: 9 }), `${index} ${target}`).not.toContain('canary')
    }
  }
})
