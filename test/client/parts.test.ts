import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { EventStreamParser } from '../../src/client/event-stream-parser.ts'
import { fileCheckpoint } from '../../src/client/node/index.ts'
import { START_POSITION } from '../../src/client/reader-position.ts'
import { computeDelayMs, parseRetryAfterMs } from '../../src/client/retry.ts'
import { ClientError, createClient } from '../../src/client/index.ts'
import { RecentKeys } from '../../src/client/recent-keys.ts'
import { streamEvents } from '../../src/client/stream-events.ts'
import { Transport } from '../../src/client/transport.ts'
import { buildPackage } from '../cli/package.ts'

const ROOT = resolve(import.meta.dirname, '../..')

test('A24 the delay follows Retry-After or X-RateLimit-Reset, by the server’s clock', () => {
  const date = 'Sat, 31 Jan 2026 12:00:00 GMT'
  const reset = String(Date.parse(date) / 1_000 + 42)
  const waited = (headers: Record<string, string>, now = 0): number | undefined =>
    parseRetryAfterMs(new Headers(headers), now)
  expect(waited({ date, 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': reset })).toBe(42_000)
  expect(waited({ date, 'retry-after': '7' })).toBe(7_000)
  expect(waited({ date, 'retry-after': 'Sat, 31 Jan 2026 12:01:00 GMT' })).toBe(60_000)
  expect(waited({ date, 'retry-after': '7', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': reset })).toBe(7_000)
  expect(waited({ date, 'retry-after': 'soon', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': reset })).toBe(42_000)
  expect(waited({ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': reset }, Date.parse(date))).toBe(42_000)
  // Quota is left, so the reset does not apply to this response.
  expect(waited({ date, 'x-ratelimit-remaining': '5', 'x-ratelimit-reset': reset })).toBeUndefined()
  for (const nonsense of ['', 'soon', '-5', 'NaN'])
    expect(
      waited({ date, 'retry-after': nonsense, 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': nonsense }),
      nonsense,
    ).toBeUndefined()
  const asked = (ms: number): number =>
    computeDelayMs(new ClientError('RATE_LIMIT_EXCEEDED', '', { retryAfterMs: ms }), 9, { next: () => 0 })
  expect(asked(42_000)).toBe(42_000)
  expect(asked(10 * 365 * 24 * 3_600_000)).toBe(900_000)
  expect(
    [1, 2, 3, 20].map((attempt) => computeDelayMs(new ClientError('NETWORK_FAILED', ''), attempt, { next: () => 1 })),
  ).toEqual([500, 1_000, 2_000, 30_000])
})

test('events parse the same however the network splits them', () => {
  const text =
    ': up to date\nid: c0\n\nid: c1\r\nevent: change\r\ndata: {"a":\r\ndata:1}\r\n\r\nretry: 5\n\ndata: x\n\n'
  const whole = [
    { id: 'c0', event: 'message', data: null },
    { id: 'c1', event: 'change', data: '{"a":\n1}' },
    { id: null, event: 'message', data: null },
    { id: null, event: 'message', data: 'x' },
  ]
  for (let a = 0; a <= text.length; a++) {
    for (let b = a; b <= text.length; b += 7) {
      const lines = new EventStreamParser()
      expect(
        [text.slice(0, a), text.slice(a, b), text.slice(b)].flatMap((part) => lines.push(part)),
        `${a} ${b}`,
      ).toEqual(whole)
    }
  }
})

test('a silent server is abandoned, by request and by stream', async () => {
  const { signal } = new AbortController()
  // Never responds, until the caller gives up.
  const mute = ((_: unknown, init: RequestInit) =>
    new Promise((__, reject) =>
      init.signal!.addEventListener('abort', () => reject(init.signal!.reason as Error)),
    )) as typeof fetch
  await expect(
    new Transport({ url: 'http://x', key: '', fetch: mute }).requestJson({ path: '/', timeoutMs: 20, signal }),
  ).rejects.toMatchObject({ code: 'TIMEOUT', isTransient: true })
  // Starts the response, then stalls.
  const stalling = (async (_: unknown, init: RequestInit) =>
    new Response(
      new ReadableStream<Uint8Array>({
        start(controller) {
          controller.enqueue(new TextEncoder().encode('id: c1\n\n'))
          init.signal!.addEventListener('abort', () => controller.error(init.signal!.reason))
        },
      }),
      { headers: { 'content-type': 'text/event-stream' } },
    )) as typeof fetch
  const batches = streamEvents(
    new Transport({ url: 'http://x', key: '', fetch: stalling }),
    {},
    { types: undefined, signal, silenceMaxMs: 20 },
  )
  expect((await batches.next()).value).toEqual({ changes: [], cursor: 'c1', upToDate: true })
  await expect(batches.next()).rejects.toMatchObject({ code: 'TIMEOUT', isTransient: true })
})

test('A25 changes that a stream sends before an error count, then the client recovers', async () => {
  const change = (key: string): string =>
    `id: after-${key}\nevent: change\ndata: ${JSON.stringify({ eventId: key, resourceType: 't', resourceId: key, action: 'created', updatedAt: '2026-01-01T00:00:00.000Z', snapshot: {} })}\n\n`
  const error = `event: error\ndata: ${JSON.stringify({ error: 'INVALID_REQUEST', message: 'Lost.', status: 400, requestId: 'r1', details: { reason: 'cursor_expired', restart: 'backfill' } })}\n\n`
  const [asked, told]: [string[], string[]] = [[], []]
  const answers = [`${change('a')}${error}`, `${change('a')}${change('b')}: up to date\nid: end\n\n`]
  const fake = (async (url: string) => {
    asked.push(url)
    return new Response(answers.shift(), { headers: { 'content-type': 'text/event-stream' } })
  }) as typeof fetch
  const stop = new AbortController()
  const client = createClient({ url: 'http://x/prefix/', key: '', fetch: fake })
  for await (const { resourceId } of client.changes({
    mode: 'stream',
    types: ['t'],
    signal: stop.signal,
    onRestart: ({ from }) => void told.push(from),
    onRestored() {
      told.push('restored')
      stop.abort()
    },
  }))
    told.push(resourceId)
  expect(told).toEqual(['a', 'backfill', 'a', 'b', 'restored'])
  expect(asked).toEqual(['http://x/prefix/agents/v1/changes?types=t', 'http://x/prefix/agents/v1/changes?types=t'])
})

test('only the newest keys are remembered', () => {
  const seen = new RecentKeys(3)
  for (const key of ['a', 'b', 'c', 'd']) seen.add(key)
  expect(['a', 'b', 'd'].map((key) => seen.has(key))).toEqual([false, true, true])
})

test('a file checkpoint is available to the next process, and a damaged one is reported', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-checkpoint-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'deep', 'feed.json')
  expect(await fileCheckpoint(file).load()).toBeNull()
  const position = { ...START_POSITION, cursor: 'c1', last: { key: 'k', updatedAt: '2026-01-01T00:00:00.000Z' } }
  await fileCheckpoint(file).save({ ...START_POSITION, cursor: 'c0' })
  await fileCheckpoint(file).save(position)
  expect(await fileCheckpoint(file).load()).toEqual(position)
  // A crash left a draft behind: the old file stays.
  writeFileSync(`${file}.draft`, '{"cur')
  expect(await fileCheckpoint(file).load()).toEqual(position)
  writeFileSync(file, readFileSync(file, 'utf8').slice(0, 9))
  await expect(fileCheckpoint(file).load()).rejects.toMatchObject({
    code: 'CHECKPOINT_INVALID',
    message: expect.stringContaining(file) as unknown,
  })
})

test('the client compiles with browser APIs only, without Node', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-browser-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const compile = (file: string): string => {
    writeFileSync(
      join(folder, 'tsconfig.json'),
      JSON.stringify({
        extends: join(ROOT, 'tsconfig.json'),
        compilerOptions: {
          types: [],
          lib: ['es2024', 'dom', 'dom.iterable', 'dom.asynciterable'],
          rootDir: '/',
          rewriteRelativeImportExtensions: false,
          allowImportingTsExtensions: true,
        },
        include: [],
        files: [file],
      }),
    )
    return spawnSync(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', folder], {
      encoding: 'utf8',
    }).stdout
  }
  expect(compile(join(ROOT, 'src/client/index.ts'))).toBe('')
  // The check can find a Node import.
  expect(compile(join(ROOT, 'src/client/node/index.ts'))).toContain('node:fs/promises')
})

test('the package exports it, and nothing it loads depends on Node', () => {
  const folder = buildPackage()
  const { exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    exports: Record<string, { default: string }>
  }
  const loaded = new Set<string>()
  const load = (file: string): void => {
    if (loaded.has(file)) return
    loaded.add(file)
    for (const [, name = ''] of readFileSync(file, 'utf8').matchAll(
      /(?:^(?:import|export)\b[^'"`;]*?\bfrom\s+|\bimport\(\s*|^import\s+)['"]([^'"]+)['"]/gm,
    )) {
      expect(name, file).toMatch(/^\.\.?\//)
      load(resolve(dirname(file), name))
    }
  }
  load(join(folder, exports['./client']!.default))
  expect(loaded.size).toBeGreaterThan(10)
  expect(readFileSync(join(folder, exports['./client/node']!.default), 'utf8')).toContain('fileCheckpoint')
})
