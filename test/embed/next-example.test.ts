import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { expect, onTestFinished, test, vi } from 'vitest'
import { storeUrl } from './embed-fixture.ts'

type RouteHandler = (request: Request, context: { params: Promise<Record<string, string[]>> }) => Promise<Response>
type RouteModule = Partial<Record<string, unknown>>

test('the routes of the example for Next.js serve the API, a page of the copy and a cron trigger', async () => {
  vi.stubEnv('DATABASE_URL', storeUrl())
  vi.stubEnv('CRON_SECRET', 'a-secret-of-the-project')
  const { tidemark } = await import('../../examples/next/tidemark.ts')
  onTestFinished(() => tidemark.stop())
  const url = await serve({
    '/sync/': await import('../../examples/next/app/sync/[...path]/route.ts'),
    '/customers': await import('../../examples/next/app/customers/route.ts'),
    '/cron': await import('../../examples/next/app/cron/route.ts'),
  })
  expect((await fetch(`${url}/cron`)).status).toBe(401)
  const cron = await fetch(`${url}/cron`, { headers: { authorization: 'Bearer a-secret-of-the-project' } })
  expect(await cron.json()).toEqual({ cycles: 1, isComplete: true })
  expect(await (await fetch(`${url}/customers`)).json()).toEqual(['Ada', 'Grace'])

  expect((await fetch(`${url}/sync/agents/v1/customers`)).status).toBe(401)
  const { text } = await tidemark.keys.create({ name: 'app', scopes: ['*:read', 'sync:write'] })
  const headers = { authorization: `Bearer ${text}` }
  const rows = await fetch(`${url}/sync/agents/v1/customers?limit=1`, { headers })
  expect(await rows.json()).toMatchObject({ data: [{ id: 'ada' }] })
  const trigger = await fetch(`${url}/sync/api/syncs/shop/customers/trigger`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: '{}',
  })
  expect(trigger.status).toBe(200)
  expect(await tidemark.status()).toMatchObject([{ triggeredAt: expect.any(Number) }])
  expect((await fetch(`${url}/sync/agents/v1/customers`, { method: 'PUT', headers })).status).toBe(405)

  const leaving = new AbortController()
  const stream = await fetch(`${url}/sync/agents/v1/changes`, {
    headers: { ...headers, accept: 'text/event-stream' },
    signal: leaving.signal,
  })
  const { value } = await stream.body!.pipeThrough(new TextDecoderStream()).getReader().read()
  expect(value).toContain('Ada')
  leaving.abort()

  vi.stubEnv('NEXT_RUNTIME', 'edge')
  const { register } = await import('../../examples/next/instrumentation.ts')
  await register()
  vi.stubEnv('NEXT_RUNTIME', 'nodejs')
  await register()
  // The trigger from above, taken by the schedules of this process.
  await vi.waitFor(async () => expect(await tidemark.status()).toMatchObject([{ triggeredAt: null }]), 20_000)
})

/** Calls route modules as Next.js does: by path and method, with a `Request` whose body is a stream. */
async function serve(routes: Readonly<Record<string, RouteModule>>): Promise<string> {
  const server = createServer((request, response) => void dispatch(routes, request, response))
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function dispatch(
  routes: Readonly<Record<string, RouteModule>>,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const { method = 'GET', url = '/' } = incoming
  const [, route] = Object.entries(routes).find(([path]) => url.startsWith(path)) ?? []
  const handler = route?.[method] as RouteHandler | undefined
  if (handler === undefined) return void outgoing.writeHead(405).end()
  const leaving = new AbortController()
  outgoing.once('close', () => leaving.abort())
  const hasBody = method !== 'GET' && method !== 'HEAD'
  const request = new Request(new URL(url, 'http://app.example'), {
    method,
    headers: incoming.headers as Record<string, string>,
    signal: leaving.signal,
    ...(hasBody && { body: Readable.toWeb(incoming) as ReadableStream, duplex: 'half' }),
  })
  const params = Promise.resolve({ path: url.split('/').slice(2) })
  const response = await handler(request, { params })
  outgoing.writeHead(response.status, Object.fromEntries(response.headers))
  const reader = response.body?.getReader()
  outgoing.once('close', () => void reader?.cancel().catch(() => {}))
  for (;;) {
    const part = await reader?.read().catch(() => undefined)
    if (part === undefined || part.done) return void outgoing.end()
    outgoing.write(part.value)
  }
}
