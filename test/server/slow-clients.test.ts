import { gzipSync } from 'node:zlib'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { upsert } from '../../src/testing/store-cases/harness.ts'
import { openHarness } from '../stores/sqlite-harness.ts'
import { addKey, ServerFixture } from './server-fixture.ts'

function dial(stand: ServerFixture): { socket: Socket; ended: Promise<string> } {
  const { hostname, port } = new URL(stand.url)
  const socket = connect(Number(port), hostname)
  onTestFinished(() => void socket.destroy())
  const ended = new Promise<string>((resolve) => {
    let text = ''
    socket
      .on('data', (data) => (text += String(data)))
      .on('close', () => resolve(text))
      .on('error', () => {})
  })
  return { socket, ended }
}

test('an incomplete request times out, in its headers or its body, with an error response', async () => {
  const stand = await ServerFixture.open(openHarness, { timeoutMs: 200 })
  const key = await addKey(stand.store, ['admin'])
  const heads = [
    'GET /agents/v1/changes HTTP/1.1\r\nhost: x\r\nx-slow: ',
    `POST /api/webhooks HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"url":`,
    'POST /webhooks/a/b HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabcde\r\n',
  ]
  for (const head of heads) {
    const { socket, ended } = dial(stand)
    socket.write(head)
    expect(await ended).toMatch(/^HTTP\/1\.1 408 Request Timeout[\s\S]*"error":"REQUEST_TIMEOUT"/)
  }
  // A client may wait for its response as long as it likes.
  const {
    body: { page },
  } = await stand.get('/agents/v1/changes')
  expect((await stand.get(`/agents/v1/changes?wait=1&cursor=${page.nextCursor}`)).status).toBe(200)
})

test('XF18 a stream that is not read is closed and no longer counted; one that is read continues', async () => {
  const stand = await ServerFixture.open(openHarness, { timeoutMs: 1_000 })
  // More than the network buffers for a reader.
  await (
    await stand.driver()
  ).cycle(Array.from({ length: 60 }, (_, n) => upsert(`k${n}`, { text: 'x'.repeat(500_000) })))
  const dialled = once(stand.server.app.server, 'connection')
  const { socket } = dial(stand)
  socket.pause()
  socket.write(
    `GET /agents/v1/changes HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${stand.key}\r\naccept: text/event-stream\r\n\r\n`,
  )
  await dialled
  while ((await connections(stand)) > 0) await new Promise((resolve) => setTimeout(resolve, 20))
  const reader = dial(stand)
  reader.socket.write(
    `GET /agents/v1/changes HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${stand.key}\r\naccept: text/event-stream\r\n\r\n`,
  )
  while (reader.socket.bytesRead < 60 * 500_000) await new Promise((resolve) => setTimeout(resolve, 20))
  await new Promise((resolve) => setTimeout(resolve, 1_200))
  expect(await connections(stand)).toBe(1)
})

test('a compressed body is not decompressed, and one that is too large is not read to its end', async () => {
  const stand = await ServerFixture.open(openHarness)
  const key = await addKey(stand.store, ['admin'])
  const post = async (body: Uint8Array, headers: Record<string, string>): Promise<number> =>
    (
      await stand.post('/api/webhooks', {
        key,
        body: new Uint8Array(body),
        headers: { 'content-type': 'application/json', ...headers },
      })
    ).status
  const bomb = gzipSync(Buffer.alloc(20_000_000, 0x20))
  expect(bomb.length).toBeLessThan(60_000)
  expect(await post(bomb, { 'content-encoding': 'gzip' })).toBe(400)
  const { socket, ended } = dial(stand)
  socket.write(
    `POST /api/webhooks HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: 1000000000\r\n\r\n`,
  )
  socket.write('x'.repeat(100_000))
  expect(await ended).toMatch(/^HTTP\/1\.1 413 /)
  for (const poison of [
    '{"__proto__":{"url":"https://hooks.example.com/"}}',
    '{"constructor":{"prototype":{"x":1}},"url":"https://hooks.example.com/"}',
    '['.repeat(30_000),
  ])
    expect(await post(Buffer.from(poison), {})).toBe(400)
  expect(await stand.store.webhooks()).toEqual([])
})

function connections(stand: ServerFixture): Promise<number> {
  return new Promise((resolve, reject) =>
    stand.server.app.server.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
  )
}
