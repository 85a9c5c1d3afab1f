import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { http } from '../../src/destinations/http/destination.ts'
import { cutBatch, type BatchPart } from '../../src/destinations/http/split-batch.ts'
import type { TokenStep } from '../../src/contract/index.ts'
import { createReceiver } from '../../src/destinations/http/receiver.ts'
import { runDestination } from '../../src/destinations/loop/run-destination.ts'
import { DestinationBench } from '../../src/testing/destination-cases/harness.ts'
import { createSignatureHeaders } from '../../src/webhooks/sign.ts'
import { closeServer, openHttpHarness, SECRET, type HttpHarness } from './http-harness.ts'

async function openBench(options: Parameters<typeof openHttpHarness>[0] = {}) {
  const harness = await openHttpHarness(options)
  const bench = await DestinationBench.open(harness)
  onTestFinished(async () => {
    await bench.store.close()
    await harness.close()
  })
  await bench.commit(...Array.from({ length: 5 }, (_, n) => [`k${n}`, { n, text: 'x'.repeat(100) }] as const))
  return { harness, bench }
}

const isBatch = (body: string): boolean => body.startsWith('{"kind":"batch"')

describe('a response other than the token', () => {
  test.each<[number, string]>([
    [401, 'DESTINATION_REFUSED'],
    [403, 'DESTINATION_REFUSED'],
    [404, 'DESTINATION_REFUSED'],
    [302, 'DESTINATION_REFUSED'],
    [400, 'DESTINATION_FAILED'],
    [429, 'DESTINATION_UNAVAILABLE'],
    [500, 'DESTINATION_UNAVAILABLE'],
    [507, 'DESTINATION_FULL'],
  ])('%i is %s, and nothing is applied', async (status, code) => {
    const { harness, bench } = await openBench()
    harness.respond((body) =>
      isBatch(body) ? new Response('<b>no</b>', { status, headers: { location: harness.url } }) : null,
    )
    const { report } = await bench.run()
    expect(report?.error).toMatchObject({ code, message: expect.stringContaining(`status ${status}`) })
    expect(report?.error?.message).not.toContain('token=t')
    expect(await harness.rows('things')).toEqual([])
    harness.respond(null)
    expect((await bench.run()).report?.error).toBeNull()
    expect(await harness.rows('things')).toHaveLength(5)
  })

  test('200 without the token of the batch is not an acknowledgement', async () => {
    const { harness, bench } = await openBench()
    for (const text of ['ok', '{"mode":null,"live":null,"loading":null}']) {
      harness.respond((body) => (isBatch(body) ? new Response(text) : null))
      expect((await bench.run()).report?.error?.code).toBe('DESTINATION_FAILED')
      expect(await harness.rows('things')).toEqual([])
    }
  })

  test('the token of another process is not an acknowledgement', async () => {
    const { harness, bench } = await openBench()
    harness.respond((body) => {
      if (!isBatch(body)) return null
      const { mode, next } = JSON.parse(body.split('\n')[0]!) as { mode: string; next: { epoch: number } }
      return Response.json({ mode, live: null, loading: { ...next, epoch: next.epoch + 1 } })
    })
    expect((await bench.run()).report?.error?.code).toBe('DESTINATION_FAILED')
    expect(harness.bodies.filter(isBatch)).toHaveLength(1)
  })

  test('409 ends the run of a process that is behind, and the next run continues from the stored token', async () => {
    const { harness, bench } = await openBench()
    await bench.run()
    await bench.commit(['k1', null])
    harness.respond((body) =>
      isBatch(body) ? new Response('{"mode":null,"live":null,"loading":null}', { status: 409 }) : null,
    )
    expect((await bench.run()).report?.error?.code).toBe('LEASE_LOST')
    harness.respond(null)
    await bench.run()
    expect(await harness.rows('things')).toHaveLength(4)
  })

  test('413 is answered with smaller requests, until one change is refused', async () => {
    const { harness, bench } = await openBench()
    harness.respond((body) => (body.length > 700 ? new Response(null, { status: 413 }) : null))
    expect((await bench.run()).report?.error).toBeNull()
    expect(await harness.rows('things')).toHaveLength(5)
    const sizes = harness.bodies.filter(isBatch).map((body) => body.split('\n').length - 1)
    expect(Math.max(...sizes)).toBeGreaterThan(1)
    harness.respond((body) => (body.includes('large') ? new Response(null, { status: 413 }) : null))
    await bench.commit(['k9', { n: 9, text: 'large' }])
    expect((await bench.run()).report?.error).toMatchObject({
      code: 'DESTINATION_REFUSED',
      message: expect.stringContaining('413'),
    })
  })

  test('Retry-After delays the next attempt', async () => {
    const { harness, bench } = await openBench()
    harness.respond(() => new Response(null, { status: 503, headers: { 'retry-after': '7200' } }))
    const delays: number[] = []
    const silent = () => {}
    await runDestination(
      { name: 'copy', destination: harness.destination, databases: ['things'], mode: 'mirror' },
      {
        store: bench.store,
        ports: {
          clock: {
            now: () => Date.now(),
            // The heartbeat waits for the end of the run.
            sleep: async (ms, signal) => (ms === 20_000 ? void (await once(signal!, 'abort')) : void delays.push(ms)),
          },
          random: { next: () => 0.5 },
          log: { debug: silent, info: silent, warn: silent, error: silent },
        },
        holder: 'one',
        signal: new AbortController().signal,
        newStoreId: () => 'store',
        claimTtlMs: 60_000,
        attemptsMax: 2,
      },
    )
    expect(delays).toEqual([7_200_000])
    expect((await bench.store.destinations())[0]!.retryAt).toBeGreaterThanOrEqual(Date.now() + 7_100_000)
  })
})

test('a receiver that is down, or does not respond in time, is unavailable', async () => {
  const { bench } = await openBench()
  const down = http({ url: 'http://127.0.0.1:1/', secret: SECRET })
  expect((await bench.run({ destination: down })).report?.error).toMatchObject({
    code: 'DESTINATION_UNAVAILABLE',
    message: expect.stringContaining('ECONNREFUSED'),
  })
  const silent = createServer(() => {}).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  onTestFinished(() => closeServer(silent))
  const slow = http({
    url: `http://127.0.0.1:${(silent.address() as AddressInfo).port}`,
    secret: SECRET,
    timeoutMs: 20,
  })
  expect((await bench.run({ destination: slow })).report?.error).toMatchObject({
    code: 'DESTINATION_UNAVAILABLE',
    message: expect.stringContaining('0.02 s'),
  })
})

test('each part of a batch has the token that it leads to, and only the last one completes a load', () => {
  const token = { storeId: 's', epoch: 2, sequence: 5, committedAt: 50, after: null }
  const changes = [6, 7, 8].map((sequence) => ({
    key: `k${sequence}`,
    action: 'created' as const,
    sequence,
    committedAt: sequence * 10,
    record: {},
    text: '{}',
  }))
  const batch = {
    schema: { database: 'things', mode: 'mirror' as const, columns: [] },
    target: 'loading' as const,
    isFirst: true,
    isLast: true,
    changes,
  }
  const cutAll = (step: TokenStep) => {
    const parts: BatchPart[] = []
    for (let rest: BatchPart | null = { batch, step }; rest !== null;) {
      const cut: ReturnType<typeof cutBatch> = cutBatch(rest, () => 10, 19)
      parts.push(cut.part)
      rest = cut.rest
    }
    return parts.map(({ batch: { isFirst, isLast, changes: some }, step: { previous, next } }) => ({
      keys: some.map(({ key }) => key),
      isFirst,
      isLast,
      steps: [previous, next].map((one) => one && [one.sequence, one.committedAt, one.after]),
    }))
  }
  // Changes of the feed.
  expect(cutAll({ previous: token, next: { ...token, sequence: 9, committedAt: 90 } })).toEqual([
    {
      keys: ['k6'],
      isFirst: true,
      isLast: false,
      steps: [
        [5, 50, null],
        [6, 60, null],
      ],
    },
    {
      keys: ['k7'],
      isFirst: false,
      isLast: false,
      steps: [
        [6, 60, null],
        [7, 70, null],
      ],
    },
    {
      keys: ['k8'],
      isFirst: false,
      isLast: true,
      steps: [
        [7, 70, null],
        [9, 90, null],
      ],
    },
  ])
  // Rows of a load.
  expect(cutAll({ previous: { ...token, after: '' }, next: token })).toEqual([
    {
      keys: ['k6'],
      isFirst: true,
      isLast: false,
      steps: [
        [5, 50, ''],
        [5, 50, 'k6'],
      ],
    },
    {
      keys: ['k7'],
      isFirst: false,
      isLast: false,
      steps: [
        [5, 50, 'k6'],
        [5, 50, 'k7'],
      ],
    },
    {
      keys: ['k8'],
      isFirst: false,
      isLast: true,
      steps: [
        [5, 50, 'k7'],
        [5, 50, null],
      ],
    },
  ])
})

test('a copy in another mode is refused', async () => {
  const { bench } = await openBench()
  await bench.run()
  const { report } = await bench.run({ mode: 'append' })
  expect(report?.error).toMatchObject({ code: 'DESTINATION_INVALID', message: expect.stringContaining('mode mirror') })
})

test('the URL, the secret and the headers are checked when the destination is declared', () => {
  const declare = (options: Partial<Parameters<typeof http>[0]>) => () =>
    http({ url: 'https://example.com/', secret: SECRET, ...options })
  const invalid = expect.objectContaining({ code: 'DESTINATION_INVALID' })
  expect(declare({ url: 'http://example.com/' })).toThrow(invalid)
  expect(declare({ url: 'http://example.com/', allowHttp: true })().location).toBe('the receiver at http://example.com')
  expect(declare({ url: 'http://localhost:8080/secret/path?key=1' })().location).toBe(
    'the receiver at http://localhost:8080',
  )
  for (const url of ['ftp://example.com/', 'https://user:password@example.com/', '/path'])
    expect(declare({ url })).toThrow(invalid)
  for (const secret of ['', 'whsec_', 'secret', 'whsec_c2hvcnQ=', SECRET.slice(6)])
    expect(declare({ secret })).toThrow(invalid)
  expect(declare({ secret: [SECRET, SECRET] })).not.toThrow()
  for (const headers of [{ 'Webhook-Id': 'x' }, { host: 'x' }, { 'a b': 'x' }, { a: 'x\r\nb: y' }])
    expect(declare({ headers })).toThrow(invalid)
  expect(declare({ headers: { authorization: 'Bearer 1' } })).not.toThrow()
})

describe('createReceiver', () => {
  async function captureBodies() {
    const opened = await openBench()
    await opened.bench.run()
    return opened
  }

  async function post({ url }: HttpHarness, body: string, { secret = SECRET, at = Date.now(), method = 'POST' } = {}) {
    const headers = createSignatureHeaders([secret], 'batch_1', at, body)
    const { status } = await fetch(url, { method, headers, ...(method === 'POST' && { body }) })
    return status
  }

  test('accepts only a signed and fresh request', async () => {
    const { harness } = await captureBodies()
    const body = '{"kind":"position","tenant":"default","database":"things"}'
    expect(await post(harness, body)).toBe(200)
    expect(await post(harness, body, { method: 'GET' })).toBe(405)
    expect(await post(harness, body, { at: Date.now() - 400_000 })).toBe(401)
    expect(await post(harness, body, { secret: `whsec_${Buffer.alloc(32, 8).toString('base64')}` })).toBe(401)
    for (const malformed of [
      '',
      '{}',
      '[]',
      '{"kind":"position","tenant":"default","database":"a\\"b"}',
      `${body.slice(0, -1)},`,
    ])
      expect(await post(harness, malformed)).toBe(400)
  })

  test('a request that arrives again changes nothing', async () => {
    const { harness, bench } = await captureBodies()
    const [first, ...loaded] = harness.bodies.filter(isBatch)
    await bench.commit(['k1', null], ['k2', { n: 22 }])
    await bench.run()
    const rows = await harness.rows('things')
    for (const body of [...loaded, harness.bodies.findLast(isBatch)!]) expect(await post(harness, body)).toBe(409)
    expect(await harness.rows('things')).toEqual(rows)
    // The first batch of a load may begin another one, which the next run completes.
    await post(harness, first!)
    await bench.run()
    expect(await harness.rows('things')).toEqual(rows)
  })

  test('of requests that arrive at once, one is applied', async () => {
    const { harness, bench } = await captureBodies()
    await bench.commit(['k1', null], ['k2', { n: 22 }])
    harness.respond((body) => (isBatch(body) ? new Response(null, { status: 400 }) : null))
    await bench.run()
    harness.respond(null)
    const batch = harness.bodies.findLast(isBatch)!
    const statuses = await Promise.all(Array.from({ length: 5 }, () => post(harness, batch)))
    expect(statuses.toSorted((a, b) => a - b)).toEqual([200, 409, 409, 409, 409])
    expect(await harness.rows('things')).toHaveLength(4)
  })

  test('calls its functions for one request at a time', async () => {
    let [active, most] = [0, 0]
    const receiver = createReceiver({
      secret: SECRET,
      async transaction(work) {
        most = Math.max(most, ++active)
        await new Promise((resolve) => setImmediate(resolve))
        const result = await work({})
        active--
        return result
      },
      readTokens: () => null,
      writeTokens: () => {},
      apply: () => {},
      remove: () => {},
    })
    const body = '{"kind":"position","tenant":"default","database":"things"}'
    const headers = createSignatureHeaders([SECRET], 'batch_1', Date.now(), body)
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => receiver(new Request('http://receiver', { method: 'POST', body, headers }))),
    )
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    expect(most).toBe(1)
  })

  test('a removal that arrives again does not delete rows that were loaded since', async () => {
    const { harness, bench } = await captureBodies()
    const session = await harness.destination.open({ tenant: 'default', signal: new AbortController().signal })
    await session.remove('things')
    await session.close()
    expect(await harness.rows('things')).toEqual([])
    const removal = harness.bodies.findLast((body) => body.startsWith('{"kind":"remove"'))!
    await bench.run()
    expect(await post(harness, removal)).toBe(409)
    expect(await harness.rows('things')).toHaveLength(5)
  })

  test('an error of its functions is reported, and answered with its status', async () => {
    const errors: unknown[] = []
    const failing = (thrown: Error) =>
      createReceiver({
        secret: SECRET,
        transaction: async () => {
          throw thrown
        },
        readTokens: () => null,
        writeTokens: () => {},
        apply: () => {},
        remove: () => {},
        onError: (given) => errors.push(given),
      })
    const body = '{"kind":"position","tenant":"default","database":"things"}'
    const request = () =>
      new Request('http://receiver', {
        method: 'POST',
        body,
        headers: createSignatureHeaders([SECRET], 'batch_1', Date.now(), body),
      })
    const full = Object.assign(new Error('disk full'), { status: 507 })
    expect((await failing(full)(request())).status).toBe(507)
    expect((await failing(new Error('locked'))(request())).status).toBe(500)
    expect(errors).toEqual([full, new Error('locked')])
  })

  test('a body above its limit is answered with 413', async () => {
    const receiver = createReceiver({
      secret: SECRET,
      bodyBytesMax: 10,
      transaction: <Result>(work: (transaction: object) => Promise<Result>) => work({}),
      readTokens: () => null,
      writeTokens: () => {},
      apply: () => {},
      remove: () => {},
    })
    expect((await receiver(new Request('http://receiver', { method: 'POST', body: 'x'.repeat(11) }))).status).toBe(413)
    expect((await receiver(new Request('http://receiver', { method: 'POST', body: 'x'.repeat(10) }))).status).toBe(401)
  })
})

test('the guide shows the receiver of the example', () => {
  const root = resolve(import.meta.dirname, '../..')
  const code = readFileSync(join(root, 'examples/http-receiver/receiver.ts'), 'utf8')
  expect(readFileSync(join(root, 'docs/guides/destinations/http.md'), 'utf8')).toContain(`\`\`\`ts\n${code}\`\`\``)
})
