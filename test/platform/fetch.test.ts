import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTcpServer, type AddressInfo, type Server as TcpServer, type Socket } from 'node:net'
import { inspect } from 'node:util'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { afterEach, describe, expect, test } from 'vitest'
import { createFetch } from '../../src/platform/fetch.ts'
import { resolveRedirect } from '../../src/platform/redirect.ts'

const servers: Server[] = []
const wires: Array<{ server: TcpServer; sockets: Socket[] }> = []
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
  for (const { server, sockets } of wires.splice(0)) {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
})

async function serve(listener: (request: IncomingMessage, response: ServerResponse) => unknown): Promise<string> {
  const server = createServer((request, response) => void listener(request, response)).listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A server that says whatever it likes, byte for byte. `sockets` are the connections it was given. */
async function serveBytes(
  answer: (socket: Socket, request: string, connection: number) => void,
): Promise<{ url: string; sockets: Socket[] }> {
  const sockets: Socket[] = []
  const server = createTcpServer((socket) => {
    const connection = sockets.push(socket)
    socket.on('error', () => {}).on('data', (bytes) => answer(socket, bytes.toString(), connection))
  }).listen(0, '127.0.0.1')
  wires.push({ server, sockets })
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sockets }
}

const echo = (request: IncomingMessage, response: ServerResponse): void => {
  response.end(JSON.stringify({ method: request.method, url: request.url, headers: request.headers }))
}

describe('fetch', () => {
  test('answers with a standard Response', async () => {
    const url = await serve((_, response) => response.writeHead(201, { 'x-total': '3' }).end('{"a":1}'))
    const response = await createFetch()(`${url}/x`)
    expect(response).toBeInstanceOf(Response)
    expect([response.status, response.ok, response.headers.get('x-total'), response.url]).toEqual([
      201,
      true,
      '3',
      `${url}/x`,
    ])
    expect(await response.json()).toEqual({ a: 1 })
  })

  test('sends method, headers and body', async () => {
    const url = await serve(async (request, response) => {
      const pieces = await request.toArray()
      response.end(
        `${request.method} ${String(request.headers['x-key'])} ${Buffer.concat(pieces as Buffer[]).toString()}`,
      )
    })
    const response = await createFetch()(new URL(url), { method: 'post', headers: { 'x-key': 'k' }, body: 'hello' })
    expect(await response.text()).toBe('POST k hello')
  })

  test('answers without a body keep their status', async () => {
    const url = await serve((request, response) => response.writeHead(Number(request.url!.slice(1))).end())
    for (const status of [204, 304, 404, 500]) expect((await createFetch()(`${url}/${status}`)).status).toBe(status)
    expect(
      (
        await createFetch({ bodyBytesMax: 1 })(
          await serve((_, response) => response.writeHead(200, { 'content-length': '5' }).end('12345')),
          { method: 'HEAD' },
        )
      ).status,
    ).toBe(200)
  })

  test('Z39: breaks a body off at the limit, declared or not', async () => {
    const url = await serve((request, response) => {
      if (request.url === '/declared') return response.end('x'.repeat(2_000))
      response.write('x'.repeat(900))
      response.end('x'.repeat(900))
    })
    const fetch = createFetch({ bodyBytesMax: 1_000 })
    await expect(fetch(`${url}/declared`)).rejects.toMatchObject({ code: 'SOURCE_INVALID' })
    const streamed = await fetch(`${url}/streamed`)
    await expect(streamed.text()).rejects.toMatchObject({
      code: 'SOURCE_INVALID',
      message: expect.stringContaining('1000 bytes'),
    })
    expect(await (await createFetch({ bodyBytesMax: 1_800 })(`${url}/streamed`)).text()).toHaveLength(1_800)
  })

  test('XD10: counts a compressed body by its decompressed size', async () => {
    const bomb = gzipSync(Buffer.alloc(5_000_000))
    expect(bomb.length).toBeLessThan(10_000)
    const url = await serve((_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb))
    const response = await createFetch({ bodyBytesMax: 100_000 })(url)
    await expect(response.arrayBuffer()).rejects.toMatchObject({ code: 'SOURCE_INVALID' })
  })

  test('XD8: gives up on a server that accepts and says nothing, or stops in the middle', async () => {
    const url = await serve((request, response) => {
      if (request.url === '/half') response.writeHead(200).write('half')
    })
    const fetch = createFetch({ headersTimeoutMs: 100, bodyIdleMs: 100 })
    await expect(fetch(`${url}/never`)).rejects.toMatchObject({ code: 'SOURCE_TIMEOUT' })
    const half = await fetch(`${url}/half`)
    await expect(half.text()).rejects.toMatchObject({ code: 'SOURCE_TIMEOUT' })
  })

  test('reports an unreachable server', async () => {
    const url = await serve(echo)
    servers.pop()!.close()
    await expect(createFetch()(`${url}/path?key=secret`)).rejects.toMatchObject({
      code: 'SOURCE_UNAVAILABLE',
      message: `${url}/path could not be reached (ECONNREFUSED).`,
    })
  })

  test('XD7: a body that is cut off is an error, not an end, however its length is declared', async () => {
    const whole = gzipSync('{"a":1}')
    const { url } = await serveBytes((socket, request) => {
      if (request.startsWith('GET /declared')) socket.end('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf')
      if (request.startsWith('GET /chunked'))
        socket.end('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n')
      if (request.startsWith('GET /packed'))
        socket.end(
          Buffer.concat([
            Buffer.from('HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\nconnection: close\r\n\r\n'),
            whole.subarray(0, -9),
          ]),
        )
    })
    for (const path of ['/declared', '/chunked', '/packed']) {
      await expect((async () => (await createFetch()(`${url}${path}`)).text())(), path).rejects.toMatchObject({
        code: 'SOURCE_INVALID',
      })
    }
  })

  test('XD8, Z39: a body without end stops at the bytes of the wire, before a packed one unfolds', async () => {
    const noise = Buffer.from(Array.from({ length: 1_000 }, (_, index) => (index * 7_919) % 251))
    const url = await serve((request, response) => {
      if (request.url === '/packed') response.setHeader('content-encoding', 'gzip')
      const pour = (): void => {
        while (response.write(request.url === '/packed' ? gzipSync(noise) : noise)) if (response.destroyed) return
      }
      response.on('drain', pour)
      pour()
    })
    for (const path of ['/plain', '/packed']) {
      const response = await createFetch({ wireBytesMax: 10_000 })(`${url}${path}`)
      await expect(response.arrayBuffer(), path).rejects.toMatchObject({ code: 'SOURCE_INVALID' })
    }
  })

  test('XD11: unpacks one encoding and refuses a chain of them', async () => {
    const packed = {
      gzip: gzipSync('{"a":1}'),
      'x-gzip': gzipSync('{"a":1}'),
      deflate: deflateSync('{"a":1}'),
      br: brotliCompressSync('{"a":1}'),
      identity: '{"a":1}',
    }
    const url = await serve((request, response) => {
      const encoding = decodeURIComponent(request.url!.slice(1))
      const body = Object.hasOwn(packed, encoding)
        ? packed[encoding as keyof typeof packed]
        : gzipSync(gzipSync('{"a":1}'))
      response.setHeader('content-encoding', encoding.includes('|') ? encoding.split('|') : encoding)
      response.end(body)
    })
    const fetch = createFetch()
    for (const encoding of Object.keys(packed))
      expect(await (await fetch(`${url}/${encoding}`)).text(), encoding).toBe('{"a":1}')
    for (const chain of ['gzip, gzip', 'gzip|gzip', 'deflate, gzip, br', 'zstd', '__proto__', 'toString']) {
      await expect(fetch(`${url}/${encodeURIComponent(chain)}`), chain).rejects.toMatchObject({
        code: 'SOURCE_INVALID',
      })
    }
  })

  test('a body that cannot be decompressed is an error', async () => {
    const url = await serve((request, response) =>
      response.writeHead(200, { 'content-encoding': request.url!.slice(1) }).end('not packed at all'),
    )
    for (const encoding of ['gzip', 'deflate', 'br']) {
      await expect((await createFetch()(`${url}/${encoding}`)).text(), encoding).rejects.toMatchObject({
        code: 'SOURCE_INVALID',
      })
    }
  })

  test('XD30: an unsolicited response never reaches the next request, and its connection is closed', async () => {
    const reply = (text: string): string => `HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n${text}`
    const { url, sockets } = await serveBytes((socket, request) => {
      const path = request.split(' ')[1]!
      socket.write(path === '/first' ? `${reply('first')}${reply('poison')}` : reply(path))
    })
    const fetch = createFetch()
    expect(await (await fetch(`${url}/first`)).text()).toBe('first')
    const later = await Promise.all(['/a', '/b', '/c'].map(async (path) => (await fetch(`${url}${path}`)).text()))
    expect(later).toEqual(['/a', '/b', '/c'])
    expect(sockets[0]!.destroyed).toBe(true)
  })

  test('XD30: after a breach of the protocol the next request goes over a new connection', async () => {
    const { url, sockets } = await serveBytes((socket, _, connection) => {
      socket.write(
        connection === 1
          ? 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 7\r\n\r\nokHTTP/1'
          : 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nclean',
      )
    })
    const fetch = createFetch()
    await expect(fetch(url)).rejects.toMatchObject({ code: 'SOURCE_INVALID' })
    expect(await (await fetch(url)).text()).toBe('clean')
    expect(sockets).toHaveLength(2)
  })

  test('Z16: bytes that are not HTTP are not included in the error', async () => {
    const { url } = await serveBytes((socket) => socket.write('220 canary-7f3a ready\r\n'))
    const error = await createFetch()(`${url}/x?key=canary-7f3a`).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'SOURCE_INVALID' })
    expect(inspect(error, { depth: 9 })).not.toContain('canary-7f3a')
  })

  test('an invalid status is an error', async () => {
    const { url } = await serveBytes((socket) =>
      socket.write('HTTP/1.1 999 Request denied\r\ncontent-length: 0\r\n\r\n'),
    )
    await expect(createFetch()(url)).rejects.toMatchObject({ code: 'SOURCE_INVALID' })
  })

  test('sends every form of body with its content type', async () => {
    const url = await serve(async (request, response) => {
      const pieces = await request.toArray()
      response.end(`${String(request.headers['content-type'])} ${Buffer.concat(pieces as Buffer[]).toString()}`)
    })
    const send = async (
      body: NonNullable<RequestInit['body']>,
      headers: Record<string, string> = {},
    ): Promise<string> => (await createFetch()(url, { method: 'POST', body, headers })).text()
    expect(await send('a')).toBe('text/plain;charset=UTF-8 a')
    expect(await send('{}', { 'content-type': 'application/json' })).toBe('application/json {}')
    expect(await send(new URLSearchParams({ a: 'b c' }))).toBe('application/x-www-form-urlencoded;charset=UTF-8 a=b+c')
    expect(await send(new TextEncoder().encode('bytes'))).toBe('undefined bytes')
    expect(await send(new Blob(['blob'], { type: 'text/csv' }))).toBe('text/csv blob')
    const form = new FormData()
    form.set('field', 'value')
    expect(await send(form)).toMatch(/^multipart\/form-data; ?boundary=.*value/s)
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

  test('an unread body releases its connection', async () => {
    let closed: Promise<unknown> | undefined
    const url = await serve((request, response) => {
      closed = once(request.socket, 'close')
      response.writeHead(200).write('x')
    })
    const response = await createFetch()(url)
    await response.body!.cancel()
    await closed
  })

  test('refuses a URL with credentials before anything is sent', async () => {
    let requests = 0
    const url = new URL(await serve((_, response) => (requests++, response.end())))
    for (const given of [`http://user:word@${url.host}/`, `http://user@${url.host}/`, `http://:word@${url.host}/`]) {
      await expect(createFetch()(given)).rejects.toMatchObject({ code: 'CONNECTOR_FAILED' })
    }
    expect(requests).toBe(0)
  })

  test('does not quote a credential it refuses', async () => {
    await expect(createFetch()('https://user:hunter2@example.com/x')).rejects.toSatisfy(
      (error: Error) => !JSON.stringify([error.message, error.stack]).includes('hunter2'),
    )
    await expect(
      createFetch()('https://example.com/', { headers: { authorization: 'Bearer hunter2\nx' } }),
    ).rejects.toSatisfy((error: Error) => !`${error.message}${error.stack}${String(error.cause)}`.includes('hunter2'))
    for (const url of ['/relative', 'ftp://example.com', 'file:///etc/passwd', 'data:text/plain,x'])
      await expect(createFetch()(url)).rejects.toMatchObject({ code: 'CONNECTOR_FAILED' })
  })
})

describe('a redirect', () => {
  const headers = {
    authorization: 'Bearer secret',
    'x-api-key': 'secret',
    cookie: 'secret',
    accept: 'application/json',
  }

  test('within one origin keeps everything', async () => {
    const url = await serve((request, response) =>
      request.url === '/a' ? response.writeHead(302, { location: '/b' }).end() : echo(request, response),
    )
    const response = await createFetch()(`${url}/a`, { headers })
    expect(response.url).toBe(`${url}/b`)
    expect(await response.json()).toMatchObject({ url: '/b', headers })
  })

  test('XD29: to another origin takes no credential along, in whatever header', () => {
    const hop = {
      url: new URL('https://api.example.com/a'),
      method: 'GET',
      headers: new Headers(headers),
      body: null,
      isCrossOrigin: false,
    }
    const next = resolveRedirect(
      new Response(null, { status: 307, headers: { location: 'https://files.example.com/b' } }),
      hop,
    )!
    expect([...next.headers]).toEqual([['accept', 'application/json']])
    expect(next).toMatchObject({ isCrossOrigin: true, body: null })
    // Further redirects stay without credentials and among public addresses, also back at the first origin.
    const back = resolveRedirect(
      new Response(null, { status: 302, headers: { location: 'https://api.example.com/c' } }),
      next,
    )!
    expect([...back.headers]).toEqual([['accept', 'application/json']])
    expect(back.isCrossOrigin).toBe(true)
  })

  test.each([
    'http://127.0.0.1:1/',
    'http://localhost:1/',
    'http://[::1]:1/',
    'http://169.254.169.254/latest/meta-data/',
    'http://10.0.0.1/',
    'http://192.168.1.1/',
    'http://0x7f000001/',
    'http://2130706433/',
    'http://[::ffff:127.0.0.1]/',
    'http://[64:ff9b::7f00:1]/',
    'http://[fd00::1]/',
    'http://[fe80::1]/',
    'http://metadata.google.internal/',
    'http://intranet/',
    'http://0/',
  ])('XD29: to %s is not followed, from whichever origin', async (location) => {
    let requests = 0
    const url = await serve((_, response) => (requests++, response.writeHead(302, { location }).end()))
    await expect(createFetch()(`${url}/a`, { headers })).rejects.toMatchObject({
      code: 'SOURCE_INVALID',
      message: expect.stringContaining('not public'),
    })
    expect(requests).toBe(1)
  })

  test('XD29: to another port of the same machine lands nothing of what listens there', async () => {
    let reached = 0
    const inner = await serve((_, response) => (reached++, response.end('internal')))
    const url = await serve((_, response) => response.writeHead(302, { location: inner }).end())
    await expect(createFetch()(url)).rejects.toMatchObject({ code: 'SOURCE_INVALID' })
    expect(reached).toBe(0)
  })

  test.each([
    ['a private address', ['10.0.0.1']],
    ['a mixed answer', ['93.184.216.34', '127.0.0.1']],
    ['a mapped address', ['::ffff:127.0.0.1']],
  ])('XD29: to a name that resolves to %s is not connected to', async (_, addresses) => {
    const inner = await serve((__, response) => response.end('internal'))
    const url = await serve((__, response) =>
      response.writeHead(302, { location: inner.replace('127.0.0.1', 'files.example.com') }).end(),
    )
    const resolved: string[] = []
    const fetch = createFetch({
      resolve: async (name) => (
        resolved.push(name),
        addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
      ),
    })
    await expect(fetch(url)).rejects.toMatchObject({
      code: 'SOURCE_INVALID',
      message: expect.stringContaining('not public'),
    })
    expect(resolved).toEqual(['files.example.com'])
  })

  test('XD29: with publicOnly, neither a private address nor a name of one is connected to', async () => {
    let reached = 0
    const inner = await serve((_, response) => (reached++, response.end('internal')))
    const fetch = createFetch({ publicOnly: true, resolve: async () => [{ address: '127.0.0.1', family: 4 }] })
    for (const url of [inner, inner.replace('127.0.0.1', '[::ffff:127.0.0.1]'), inner.replace('127.0.0.1', 'a.test')])
      await expect(fetch(url)).rejects.toMatchObject({
        code: 'SOURCE_INVALID',
        message: expect.stringContaining('because its address is not public'),
      })
    expect(reached).toBe(0)
  })

  test('XD29: to another origin takes no body along', async () => {
    const other = await serve(echo)
    const url = await serve((_, response) => response.writeHead(308, { location: other }).end())
    await expect(createFetch()(url, { method: 'POST', body: 'client_secret=x' })).rejects.toMatchObject({
      code: 'SOURCE_INVALID',
    })
  })

  test('turns a POST into a GET where browsers do', async () => {
    const url = await serve((request, response) =>
      request.url === '/b'
        ? echo(request, response)
        : response.writeHead(Number(request.url!.slice(1)), { location: '/b' }).end(),
    )
    const methods = await Promise.all(
      [301, 302, 303, 307, 308].map(async (status) => {
        const response = await createFetch()(`${url}/${status}`, { method: 'POST', body: 'x' })
        return ((await response.json()) as { method: string }).method
      }),
    )
    expect(methods).toEqual(['GET', 'GET', 'GET', 'POST', 'POST'])
  })

  test('a redirect loop, or a redirect to another protocol, is refused', async () => {
    let requests = 0
    const loop = await serve((_, response) => (requests++, response.writeHead(302, { location: '/' }).end()))
    await expect(createFetch({ redirectsMax: 3 })(loop)).rejects.toMatchObject({
      code: 'SOURCE_INVALID',
      message: expect.stringContaining('redirects too many times'),
    })
    expect(requests).toBe(4)
    const file = await serve((_, response) => response.writeHead(302, { location: 'file:///etc/passwd' }).end())
    await expect(createFetch()(file)).rejects.toMatchObject({ code: 'SOURCE_INVALID' })
  })

  test('is returned to the caller on request', async () => {
    const url = await serve((_, response) => response.writeHead(302, { location: '/b' }).end())
    expect((await createFetch()(url, { redirect: 'manual' })).status).toBe(302)
    await expect(createFetch()(url, { redirect: 'error' })).rejects.toMatchObject({ code: 'SOURCE_INVALID' })
  })
})
