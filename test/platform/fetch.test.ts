import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, test } from 'vitest'
import { createFetch } from '../../src/platform/fetch.ts'

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const echo = (request: IncomingMessage, response: ServerResponse): void => {
  response.end(JSON.stringify({ method: request.method, url: request.url, headers: request.headers }))
}

describe('fetch', () => {
  test('answers with a standard Response', async () => {
    const url = await serve((_, response) => response.writeHead(201, { 'x-total': '3' }).end('{"a":1}'))
    const response = await createFetch()(`${url}/x`)
    expect(response).toBeInstanceOf(Response)
    expect([response.status, response.ok, response.headers.get('x-total'), response.url]).toEqual([201, true, '3', `${url}/x`])
    expect(await response.json()).toEqual({ a: 1 })
  })

  test('sends method, headers and body', async () => {
    const url = await serve(async (request, response) => {
      const pieces = await request.toArray()
      response.end(`${request.method} ${String(request.headers['x-key'])} ${Buffer.concat(pieces as Buffer[]).toString()}`)
    })
    const response = await createFetch()(new URL(url), { method: 'post', headers: { 'x-key': 'k' }, body: 'hello' })
    expect(await response.text()).toBe('POST k hello')
  })

  test('answers without a body keep their status', async () => {
    const url = await serve((request, response) => response.writeHead(Number(request.url!.slice(1))).end())
    for (const status of [204, 304, 404, 500]) expect((await createFetch()(`${url}/${status}`)).status).toBe(status)
    expect((await createFetch({ bodyBytesMax: 1 })(await serve((_, response) => response.writeHead(200, { 'content-length': '5' }).end('12345')), { method: 'HEAD' })).status).toBe(200)
  })

  test('breaks a body off at the limit, declared or not', async () => {
    const url = await serve((request, response) => {
      if (request.url === '/declared') return response.end('x'.repeat(2_000))
      response.write('x'.repeat(900))
      response.end('x'.repeat(900))
    })
    const fetch = createFetch({ bodyBytesMax: 1_000 })
    await expect(fetch(`${url}/declared`)).rejects.toMatchObject({ code: 'SOURCE_INVALID' })
    const streamed = await fetch(`${url}/streamed`)
    await expect(streamed.text()).rejects.toMatchObject({ code: 'SOURCE_INVALID', message: expect.stringContaining('1000 bytes') })
    expect(await (await createFetch({ bodyBytesMax: 1_800 })(`${url}/streamed`)).text()).toHaveLength(1_800)
  })

  test('counts a compressed body as what it unfolds to', async () => {
    const bomb = gzipSync(Buffer.alloc(5_000_000))
    expect(bomb.length).toBeLessThan(10_000)
    const url = await serve((_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb))
    const response = await createFetch({ bodyBytesMax: 100_000 })(url)
    await expect(response.arrayBuffer()).rejects.toMatchObject({ code: 'SOURCE_INVALID' })
  })

  test('gives up on a server that accepts and says nothing, or stops in the middle', async () => {
    const url = await serve((request, response) => {
      if (request.url === '/half') response.writeHead(200).write('half')
    })
    const fetch = createFetch({ headersTimeoutMs: 100, bodyIdleMs: 100 })
    await expect(fetch(`${url}/never`)).rejects.toMatchObject({ code: 'SOURCE_TIMEOUT' })
    const half = await fetch(`${url}/half`)
    await expect(half.text()).rejects.toMatchObject({ code: 'SOURCE_TIMEOUT' })
  })

  test('says that nobody is there', async () => {
    const url = await serve(echo)
    servers.pop()!.close()
    await expect(createFetch()(`${url}/path?key=secret`)).rejects.toMatchObject({
      code: 'SOURCE_UNAVAILABLE', message: `${url}/path could not be reached (ECONNREFUSED).`,
    })
  })

  test('a body that is cut off is an error, not an end', async () => {
    const url = await serve((request, response) => {
      response.writeHead(200, { 'content-length': '100' }).write('half')
      setImmediate(() => request.socket.destroy())
    })
    await expect((async () => (await createFetch()(url)).text())()).rejects.toMatchObject({ code: 'SOURCE_UNAVAILABLE' })
  })

  test('ends with the reason of the signal, before and within the body', async () => {
    const url = await serve((request, response) => {
      if (request.url === '/half') response.writeHead(200).write('half')
    })
    for (const path of ['/never', '/half']) {
      const controller = new AbortController()
      const reason = new Error('lease lost')
      const reading = createFetch()(`${url}${path}`, { signal: controller.signal }).then((response) => response.text())
      setTimeout(() => controller.abort(reason), 50)
      await expect(reading).rejects.toBe(reason)
    }
  })

  test('a body nobody wants is let go', async () => {
    let closed: Promise<unknown> | undefined
    const url = await serve((request, response) => {
      closed = once(request.socket, 'close')
      response.writeHead(200).write('x')
    })
    const response = await createFetch()(url)
    await response.body!.cancel()
    await closed
  })

  test('does not quote a credential it refuses', async () => {
    await expect(createFetch()('https://user:hunter2@example.com/x')).rejects.toSatisfy((error: Error) => !JSON.stringify([error.message, error.stack]).includes('hunter2'))
    await expect(createFetch()('https://example.com/', { headers: { authorization: 'Bearer hunter2\nx' } })).rejects.toSatisfy((error: Error) => !`${error.message}${error.stack}${String(error.cause)}`.includes('hunter2'))
    for (const url of ['/relative', 'ftp://example.com', 'file:///etc/passwd', 'data:text/plain,x']) await expect(createFetch()(url)).rejects.toMatchObject({ code: 'CONNECTOR_FAILED' })
  })
})

describe('a redirect', () => {
  const headers = { authorization: 'Bearer secret', 'x-api-key': 'secret', cookie: 'secret', accept: 'application/json' }

  test('within one origin keeps everything', async () => {
    const url = await serve((request, response) => (request.url === '/a' ? response.writeHead(302, { location: '/b' }).end() : echo(request, response)))
    const response = await createFetch()(`${url}/a`, { headers })
    expect(response.url).toBe(`${url}/b`)
    expect(await response.json()).toMatchObject({ url: '/b', headers })
  })

  test('to another origin takes no credential along, in whatever header', async () => {
    const other = await serve(echo)
    const url = await serve((_, response) => response.writeHead(307, { location: `${other}/b` }).end())
    const text = await (await createFetch()(`${url}/a`, { headers })).text()
    expect(text).not.toContain('secret')
    expect(JSON.parse(text)).toMatchObject({ url: '/b', headers: { accept: 'application/json' } })
  })

  test('to another origin takes no body along', async () => {
    const other = await serve(echo)
    const url = await serve((_, response) => response.writeHead(308, { location: other }).end())
    await expect(createFetch()(url, { method: 'POST', body: 'client_secret=x' })).rejects.toMatchObject({ code: 'SOURCE_INVALID' })
  })

  test('turns a POST into a GET where browsers do', async () => {
    const url = await serve((request, response) => (request.url === '/b' ? echo(request, response) : response.writeHead(Number(request.url!.slice(1)), { location: '/b' }).end()))
    const methods = await Promise.all([301, 302, 303, 307, 308].map(async (status) => {
      const response = await createFetch()(`${url}/${status}`, { method: 'POST', body: 'x' })
      return ((await response.json()) as { method: string }).method
    }))
    expect(methods).toEqual(['GET', 'GET', 'GET', 'POST', 'POST'])
  })

  test('without end, or to something that is not the web, is refused', async () => {
    const loop = await serve((_, response) => response.writeHead(302, { location: '/' }).end())
    await expect(createFetch()(loop)).rejects.toMatchObject({ code: 'SOURCE_INVALID', message: expect.stringContaining('without end') })
    const file = await serve((_, response) => response.writeHead(302, { location: 'file:///etc/passwd' }).end())
    await expect(createFetch()(file)).rejects.toMatchObject({ code: 'SOURCE_INVALID' })
  })

  test('is left to the caller who wants it', async () => {
    const url = await serve((_, response) => response.writeHead(302, { location: '/b' }).end())
    expect((await createFetch()(url, { redirect: 'manual' })).status).toBe(302)
    await expect(createFetch()(url, { redirect: 'error' })).rejects.toMatchObject({ code: 'SOURCE_INVALID' })
  })
})
