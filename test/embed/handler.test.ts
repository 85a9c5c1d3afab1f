import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Tidemark } from '../../src/embed/index.ts'
import { openTidemark, PeopleFixture } from './embed-fixture.ts'

/** Sends a request to a mounted instance, whatever mounts it. */
type Send = (path: string, init?: RequestInit) => Promise<Response>

const PREFIX = '/sync/v1'

const HOSTS: Record<string, (tidemark: Tidemark) => Promise<Send>> = {
  'a Fetch handler': async (tidemark) => (path, init) =>
    tidemark.handler(new Request(`https://app.example${PREFIX}${path}`, init)),
  Hono: async (tidemark) => {
    const app = new Hono()
    app.all(`${PREFIX}/*`, (context) => tidemark.handler(context.req.raw))
    return async (path, init) => app.request(`${PREFIX}${path}`, init)
  },
  'node:http': async (tidemark) => listen(createServer(tidemark.nodeListener)),
  Express: async (tidemark) => {
    const app = express()
    app.use(PREFIX, tidemark.nodeListener)
    app.use(express.json())
    return listen(createServer(app))
  },
  Fastify: async (tidemark) => {
    const app = fastify()
    await app.register(async (scope) => {
      scope.removeAllContentTypeParsers()
      scope.addContentTypeParser('*', (_request, _body, done) => done(null))
      scope.all(`${PREFIX}/*`, (request, reply) => {
        reply.hijack()
        tidemark.nodeListener(request.raw, reply.raw)
      })
    })
    onTestFinished(() => app.close())
    const url = await app.listen({ port: 0 })
    return (path, init) => fetch(`${url}${PREFIX}${path}`, init)
  },
}

describe.each(Object.entries(HOSTS))('mounted in %s', (_name, mount) => {
  test('serves rows, the feed and signals, with a key', async () => {
    const { fixture, tidemark } = open()
    const send = await mount(tidemark)
    const { text } = await tidemark.keys.create({ name: 'app', scopes: ['*:read', 'sync:write'] })
    const headers = { authorization: `Bearer ${text}` }
    await tidemark.run('people')

    const rows = await send('/agents/v1/people', { headers })
    expect(rows.status).toBe(200)
    expect(await rows.json()).toMatchObject({ data: [{ id: 'ada', record: { name: 'Ada' } }] })
    const changes = await send('/agents/v1/changes?limit=10', { headers: { ...headers, 'accept-encoding': 'gzip' } })
    expect(JSON.stringify(await changes.json())).toContain('Ada')

    const trigger = await send('/api/syncs/staff/people/trigger', {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({}),
    })
    expect(trigger.status).toBeLessThan(300)
    expect(await tidemark.status()).toMatchObject([{ triggeredAt: expect.any(Number) }])
    expect(fixture.pages).toBe(1)
  })

  test('refuses a request without a key, also on loopback', async () => {
    const send = await mount(open().tidemark)
    for (const path of ['/agents/v1/people', '/api/syncs', '/api/quarantine'])
      expect((await send(path)).status, path).toBe(401)
  })

  test('refuses a body that is too long, and an unknown path', async () => {
    const { tidemark } = open()
    const send = await mount(tidemark)
    const { text } = await tidemark.keys.create({ name: 'app', scopes: ['admin'] })
    const headers = { authorization: `Bearer ${text}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ url: 'x'.repeat(2_000_000) })
    const response = await send('/api/webhooks', { method: 'POST', headers, body }).catch(() => null)
    // A server of Node.js may close the connection while the client still sends.
    expect(response?.status ?? 413).toBe(413)
    expect((await send('/agents/v1/nothing/here/at/all', { headers })).status).toBe(404)
  })

  test('streams changes as they are committed, until the client leaves', async () => {
    const { fixture, tidemark } = open()
    const send = await mount(tidemark)
    const { text } = await tidemark.keys.create({ name: 'app' })
    const leaving = new AbortController()
    const response = await send('/agents/v1/changes', {
      headers: { authorization: `Bearer ${text}`, accept: 'text/event-stream' },
      signal: leaving.signal,
    })
    expect(response.headers.get('content-type')).toContain('text/event-stream')
    const events = readAll(response)
    await tidemark.run('people')
    await vi.waitFor(() => expect(events.text).toContain('Ada'), 20_000)
    fixture.records.set('bob', { name: 'Bob' })
    await tidemark.run('people')
    await vi.waitFor(() => expect(events.text).toContain('Bob'), 20_000)
    leaving.abort()
    await events.done
  })
})

test('a path outside of the prefix is not served', async () => {
  const { tidemark } = open()
  const outside = await tidemark.handler(new Request('https://app.example/agents/v1/people'))
  expect(outside.status).toBe(404)
  expect(await outside.json()).toMatchObject({ error: 'NOT_FOUND', message: expect.stringContaining(PREFIX) })
})

test('a body without an end is read up to the limit', async () => {
  const { tidemark } = open()
  const { text } = await tidemark.keys.create({ name: 'app', scopes: ['admin'] })
  let bytes = 0
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      bytes += 65_536
      if (bytes > 50_000_000) controller.close()
      else controller.enqueue(new Uint8Array(65_536))
    },
  })
  const init = { method: 'POST', headers: { authorization: `Bearer ${text}` }, body, duplex: 'half' as const }
  const response = await tidemark.handler(new Request(`https://app.example${PREFIX}/api/webhooks`, init))
  expect([413, 415]).toContain(response.status)
  expect(bytes).toBeLessThan(2_000_000)
})

test('a stream whose reader leaves frees its slot', async () => {
  const { tidemark } = open()
  const { text } = await tidemark.keys.create({ name: 'app' })
  const headers = { authorization: `Bearer ${text}`, accept: 'text/event-stream' }
  // A key may have 32 open streams.
  for (let n = 0; n < 40; n++) {
    const response = await tidemark.handler(new Request(`https://app.example${PREFIX}/agents/v1/changes`, { headers }))
    expect(response.status, `stream ${n}`).toBe(200)
    await response.body?.cancel()
  }
})

function open(): { fixture: PeopleFixture; tidemark: Tidemark } {
  const fixture = new PeopleFixture()
  fixture.records.set('ada', { name: 'Ada' })
  return { fixture, tidemark: openTidemark({ workers: [fixture.worker], prefix: PREFIX }) }
}

async function listen(server: ReturnType<typeof createServer>): Promise<Send> {
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return (path, init) => fetch(`http://127.0.0.1:${port}${PREFIX}${path}`, init)
}

function readAll(response: Response): { text: string; done: Promise<void> } {
  const events = { text: '', done: Promise.resolve() }
  const read = async (): Promise<void> => {
    const decoder = new TextDecoder()
    for await (const chunk of response.body ?? []) events.text += decoder.decode(chunk, { stream: true })
  }
  events.done = read().catch(() => {})
  return events
}
