import { context, propagation, trace } from '@opentelemetry/api'
import { expect, onTestFinished, test } from 'vitest'
import { openStore } from '../../src/stores/open-store.ts'
import { runCycle, type InlineSync, type RunOptions } from '../../src/worker/run-cycle.ts'
import { SPANS, SyncError, type Change, type Page, type Store } from '../../src/contract/index.ts'
import { createLog } from '../../src/platform/log.ts'
import { openTelemetry } from '../../src/platform/open-telemetry.ts'
import { TelemetryRecorder } from './telemetry-recorder.ts'

const upsert = (key: string, record = {}): Change => ({ type: 'upsert', key, record })
const ok = async (): Promise<Response> => new Response('{}', { headers: { 'x-request-id': 'req_1' } })

/** Two pages, one request each. */
const twoPages: InlineSync['execute'] = async (state, { fetch }) => {
  const page = typeof state === 'number' ? state : 1
  await fetch(`https://api.example.com/v1/things?page=${page}`)
  return { changes: [upsert(`k${page}`)], hasMore: page < 2, nextState: page + 1 }
}

test('without setup a cycle runs as usual; also after the setup was removed', async () => {
  for (const was of [false, true]) {
    // As after the shutdown of a program's own telemetry: the package is there, without a provider.
    if (was) trace.setGlobalTracerProvider(trace.getTracerProvider())
    if (was) trace.disable()
    expect((await openTelemetry()) === null).toBe(!was)
    const result = await run(await memory(), twoPages, { fetch: ok })
    expect(result).toMatchObject({ stopReason: 'complete' })
    expect(result).not.toHaveProperty('trace')
  }
})

test.each([true, false])(
  'a cycle is a tree: pages inside the cycle, requests and commits inside their page, also for the page read ahead (context propagation: %s)',
  async (carries) => {
    const watcher = new TelemetryRecorder({ carries })
    const result = await run(await memory(), twoPages, { fetch: ok })
    expect(result).toMatchObject({ stopReason: 'complete', pages: 2 })
    const [cycle, ...others] = watcher.spans('tidemark.cycle')
    expect(others).toEqual([])
    expect(cycle).toMatchObject({
      parent: null,
      kind: 'internal',
      isError: false,
      attributes: {
        'tidemark.tenant': 'default',
        'tidemark.worker': 'shop',
        'tidemark.sync': 'things',
        'tidemark.mode': 'incremental',
        'tidemark.trigger': 'library',
        'tidemark.cycle': 1,
        'tidemark.stop_reason': 'complete',
        'tidemark.pages': 2,
        'tidemark.records.created': 2,
        'tidemark.resumed': false,
      },
    })
    expect(result.trace).toEqual({ traceId: cycle!.trace, spanId: cycle!.id })
    const pages = watcher.spans('tidemark.page')
    expect(
      pages.map(({ parent, attributes }) => [
        parent,
        attributes['tidemark.page'],
        attributes['tidemark.outcome'],
        attributes['tidemark.changes'],
      ]),
    ).toEqual([
      [cycle!.id, 1, 'landed', 1],
      [cycle!.id, 2, 'landed', 1],
    ])
    for (const name of ['GET', 'tidemark.commit']) {
      expect(watcher.spans(name).map(({ parent, attributes }) => [parent, attributes['tidemark.page']])).toEqual(
        pages.map(({ id }, at) => [id, at + 1]),
      )
    }
    expect(watcher.spans('GET')[0]).toMatchObject({
      kind: 'client',
      attributes: {
        'http.request.method': 'GET',
        'server.address': 'api.example.com',
        'server.port': 443,
        'http.response.status_code': 200,
        'tidemark.request_id': 'req_1',
      },
    })
    // Page 2 was requested before page 1 was committed, and still has its own span.
    expect(watcher.spans('GET')[1]!.startedAt).toBeLessThanOrEqual(pages[0]!.endedAt)
    expect(new Set(watcher.spans().map((span) => span.trace)).size).toBe(1)
    expect(watcher.open).toBe(0)
  },
)

test('a cycle inside a span of the program is part of its trace', async () => {
  const watcher = new TelemetryRecorder()
  const tracer = trace.getTracer('program')
  await tracer.startActiveSpan('nightly', async (span) => {
    await run(await memory(), twoPages, { fetch: ok })
    span.end()
  })
  expect(watcher.spans('tidemark.cycle')[0]!.parent).toBe(watcher.spans('nightly')[0]!.id)
})

test('failures carry their code: a request, a retried page, a cycle', async () => {
  const watcher = new TelemetryRecorder()
  let asked = 0
  const result = await run(
    await memory(),
    async (_state, { fetch }) => {
      const answer = await fetch('https://api.example.com/v1')
      if (!answer.ok) throw new SyncError(asked < 3 ? 'SOURCE_UNAVAILABLE' : 'AUTH_REJECTED', 'it says secret-words')
      throw new Error('never')
    },
    {
      fetch: async () =>
        ++asked === 2
          ? Promise.reject(new SyncError('SOURCE_TIMEOUT', 'no answer'))
          : new Response('', { status: asked === 1 ? 503 : 401 }),
      clock: hasty,
    },
  )
  expect(result.error).toMatchObject({ code: 'AUTH_REJECTED' })
  expect(
    watcher
      .spans('GET')
      .map(({ isError, attributes }) => [isError, attributes['error.type'], attributes['http.response.status_code']]),
  ).toEqual([
    [true, '503', 503],
    [true, 'SOURCE_TIMEOUT', undefined],
    [true, '401', 401],
  ])
  expect(
    watcher
      .spans('tidemark.page')
      .map(({ isError, attributes }) => [isError, attributes['error.type'], attributes['tidemark.outcome']]),
  ).toEqual([[true, 'AUTH_REJECTED', 'failed']])
  expect(watcher.spans('tidemark.cycle')[0]).toMatchObject({
    isError: true,
    attributes: { 'error.type': 'AUTH_REJECTED', 'tidemark.stop_reason': 'error', 'tidemark.retries': 2 },
  })
  expect(await watcher.points('tidemark.errors')).toEqual(
    expect.arrayContaining([
      { labels: { 'error.type': 'SOURCE_UNAVAILABLE', 'tidemark.outcome': 'retried' }, value: 1, count: 1 },
      { labels: { 'error.type': 'SOURCE_TIMEOUT', 'tidemark.outcome': 'retried' }, value: 1, count: 1 },
      { labels: { 'error.type': 'AUTH_REJECTED', 'tidemark.outcome': 'failed' }, value: 1, count: 1 },
    ]),
  )
  expect(await watcher.points('tidemark.wait.duration')).toMatchObject([
    { labels: { 'tidemark.reason': 'source' }, count: 2 },
  ])
})

test('no span stays open: a failed commit, a discarded page read ahead, a held sync', async () => {
  const watcher = new TelemetryRecorder()
  const store = await memory()
  // Before the next page has been read, and after.
  for (const [nth, whenItFails] of [
    async () => {},
    async () => expect.poll(() => watcher.spans('GET').length).toBe(4),
  ].entries()) {
    const refuse = async (): Promise<never> => {
      await whenItFails()
      await new Promise((resolve) => setTimeout(resolve, nth * 50))
      throw new SyncError('STORE_FAILED', 'the disk is full')
    }
    await run(withCommit(store, refuse), twoPages, { fetch: ok })
    expect(watcher.spans('tidemark.commit')[nth]).toMatchObject({
      isError: true,
      attributes: { 'error.type': 'STORE_FAILED', 'tidemark.outcome': 'failed' },
    })
    expect(
      watcher
        .spans('tidemark.page')
        .slice(nth * 2)
        .map(({ attributes }) => String(attributes['tidemark.outcome']))
        .toSorted(),
    ).toEqual(['discarded', 'failed'])
    expect(watcher.open).toBe(0)
  }

  await store.acquire({ worker: 'shop', sync: 'things' }, { holder: 'somebody', ttlMs: 60_000, at: Date.now() })
  await run(store, twoPages, { fetch: ok })
  expect(watcher.spans('tidemark.cycle').at(-1)).toMatchObject({
    isError: false,
    attributes: { 'tidemark.stop_reason': 'held' },
  })
  expect(watcher.open).toBe(0)
  expect(
    (await watcher.points('tidemark.cycles')).map(({ labels, value }) => [labels['tidemark.stop_reason'], value]),
  ).toEqual([
    ['error', 2],
    ['held', 1],
  ])
})

test('a page whose rows another sync wrote meanwhile is read again, in a new span', async () => {
  const watcher = new TelemetryRecorder()
  const store = await memory()
  let reads = 0
  await run(
    store,
    async (): Promise<Page> => {
      if (++reads === 1)
        await run(
          store,
          async () => ({ changes: [upsert('k', { by: 'other' })], hasMore: false, nextState: 1 }),
          {},
          'other',
        )
      return { changes: [upsert('k', { by: 'things' })], hasMore: false, nextState: 1 }
    },
    {},
  )
  const own = watcher.spans('tidemark.page').filter(({ attributes }) => attributes['tidemark.sync'] === 'things')
  expect(own.map(({ attributes }) => [attributes['tidemark.page'], attributes['tidemark.outcome']])).toEqual([
    [1, 'overlap'],
    [1, 'landed'],
  ])
  expect(watcher.open).toBe(0)
})

test('spans have exactly the attributes of the table', async () => {
  const watcher = new TelemetryRecorder()
  const store = await memory()
  await run(store, twoPages, { fetch: async () => new Response('', { status: 404, headers: { 'request-id': 'r' } }) })
  await run(store, async () => Promise.reject(new SyncError('SOURCE_INVALID', 'no')), { clock: hasty })
  await run(
    withCommit(store, () => Promise.reject(new SyncError('STORE_FAILED', 'no'))),
    twoPages,
    { fetch: ok },
  )
  for (const [name, shown] of [
    ['cycle', 'tidemark.cycle'],
    ['page', 'tidemark.page'],
    ['fetch', 'GET'],
    ['commit', 'tidemark.commit'],
  ] as const) {
    expect([
      name,
      [...new Set(watcher.spans(shown).flatMap(({ attributes }) => Object.keys(attributes)))].toSorted(),
    ]).toEqual([name, [...SPANS[name].attributes].toSorted()])
  }
})

test('vendors do not get the trace context, and instrumentation of the client does not show a request twice; unless propagation is enabled', async () => {
  const watcher = new TelemetryRecorder()
  const sent: Headers[] = []
  /** Like an instrumentation of undici: its own span, with propagated headers. */
  const instrumented = async (_input: string | URL, init: RequestInit = {}): Promise<Response> => {
    const headers = new Headers(init.headers)
    const span = trace.getTracer('undici').startSpan('auto')
    propagation.inject(trace.setSpan(context.active(), span), headers, {
      set: (carrier, key, value) => carrier.set(key, value),
    })
    span.end()
    sent.push(headers)
    return new Response('{}')
  }
  const asks: InlineSync['execute'] = async (_state, { fetch }) => {
    await fetch('https://api.example.com/v1', { headers: { accept: 'application/json' } })
    return { changes: [], hasMore: false, nextState: 1 }
  }
  await run(await memory(), asks, { fetch: instrumented })
  await run(await memory(), asks, { fetch: instrumented, sendTraceparent: true })
  const last = watcher.spans('GET').at(-1)!
  expect(sent.map((headers) => [headers.get('accept'), headers.get('traceparent')])).toEqual([
    ['application/json', null],
    ['application/json', `00-${last.trace}-${last.id}-01`],
  ])
  expect(watcher.spans('auto')).toEqual([])
})

test('log lines name their span, also without context propagation', async () => {
  for (const carries of [true, false]) {
    const watcher = new TelemetryRecorder({ carries })
    const lines: Record<string, unknown>[] = []
    const telemetry = await openTelemetry()
    const log = createLog({
      level: 'debug',
      write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>),
      context: telemetry!.logFields,
    })
    await run(
      await memory(),
      async (_state, context) => {
        await context.fetch('https://api.example.com/v1?key=hidden')
        context.log.info('connector speaks', { tenant: 'forged', sync: 'forged', cycle: 99, ours: 1 })
        return { changes: [], hasMore: false, nextState: 1 }
      },
      { fetch: ok, log },
    )
    log.info('outside')
    const page = watcher.spans('tidemark.page').at(-1)!
    expect(lines).toEqual([
      expect.objectContaining({
        message: 'the source responded',
        tenant: 'default',
        worker: 'shop',
        sync: 'things',
        cycle: 1,
        page: 1,
        method: 'GET',
        host: 'api.example.com',
        status: 200,
        requestId: 'req_1',
        trace_id: page.trace,
        span_id: page.id,
      }),
      expect.objectContaining({
        message: 'connector speaks',
        tenant: 'default',
        worker: 'shop',
        sync: 'things',
        cycle: 1,
        page: 1,
        ours: 1,
        trace_id: page.trace,
        span_id: page.id,
      }),
      { time: expect.any(String), level: 'info', message: 'outside' },
    ])
    for (const api of [trace, context, propagation]) api.disable()
  }
})

test('metrics of a cycle: pages, records by outcome, durations, lag, the slots of a pacer', async () => {
  const watcher = new TelemetryRecorder()
  const store = await memory()
  const sync = { worker: 'shop', sync: 'things' }
  const of = { 'tidemark.worker': sync.worker, 'tidemark.sync': sync.sync }
  await run(
    store,
    async (state, context) => {
      await context.fetch('https://api.example.com/v1')
      await context.fetch('https://api.example.com/v1')
      return {
        changes: [upsert('a'), upsert('b', { n: state === undefined ? 1 : 2 }), { type: 'delete', key: 'none' }],
        hasMore: false,
        nextState: 1,
      }
    },
    { fetch: ok, clock: hasty },
    'things',
    { pacer: { allowedRequests: 1, intervalMs: 2_000 } },
  )
  expect(await watcher.points('tidemark.records')).toEqual([
    { labels: { ...of, 'tidemark.outcome': 'created' }, value: 2, count: 1 },
    { labels: { ...of, 'tidemark.outcome': 'missing' }, value: 1, count: 1 },
  ])
  expect(await watcher.points('tidemark.pages')).toEqual([{ labels: of, value: 1, count: 1 }])
  expect(await watcher.points('tidemark.cycles')).toEqual([
    { labels: { ...of, 'tidemark.stop_reason': 'complete' }, value: 1, count: 1 },
  ])
  expect(await watcher.points('http.client.request.duration')).toMatchObject([
    {
      labels: { 'http.request.method': 'GET', 'server.address': 'api.example.com', 'http.response.status_code': 200 },
      count: 2,
    },
  ])
  expect(await watcher.points('tidemark.commit.duration')).toMatchObject([
    { labels: { 'tidemark.outcome': 'landed' }, count: 1 },
  ])
  expect(await watcher.points('tidemark.wait.duration')).toMatchObject([
    { labels: { 'tidemark.reason': 'pacer' }, count: 1, value: expect.closeTo(2, 0) },
  ])
  expect(await watcher.points('tidemark.cycle.duration')).toMatchObject([
    { labels: { 'tidemark.stop_reason': 'complete' }, count: 1 },
  ])
  expect(await watcher.points('tidemark.cycle.lag')).toMatchObject([{ labels: of, count: 1 }])

  // A copy that is not renewed ages, and every failed cycle reports its age.
  const { startedAt } = (await store.cycles(null))[0]!
  await run(store, async () => Promise.reject(new SyncError('SOURCE_INVALID', 'no')), {
    clock: { ...hasty, now: () => startedAt + 3_600_000 },
  })
  const [lag] = await watcher.points('tidemark.cycle.lag')
  expect(lag).toMatchObject({ count: 2 })
  expect(lag!.value).toBeGreaterThan(3_500)
})

/** A clock without waits. */
const hasty = {
  now: () => Date.now(),
  sleep: async (ms: number, signal?: AbortSignal) =>
    ms > 30_000
      ? new Promise<void>((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason as Error)))
      : undefined,
}

async function memory(): Promise<Store> {
  const store = await openStore('sqlite::memory:', {
    environment: { TIDEMARK_KEY: Buffer.alloc(32, 7).toString('base64') },
  })
  onTestFinished(() => store.close())
  return store
}

function withCommit(store: Store, commit: () => Promise<never>): Store {
  return new Proxy(store, {
    get: (of, name: keyof Store) =>
      name === 'commit' ? commit : typeof of[name] === 'function' ? (of[name] as () => unknown).bind(of) : of[name],
  })
}

function run(
  store: Store,
  execute: InlineSync['execute'],
  options: Partial<RunOptions>,
  name = 'things',
  more: Partial<InlineSync> = {},
) {
  return runCycle({
    worker: 'shop',
    sync: { name, database: 'things', mode: 'incremental', execute, ...more },
    store,
    log: createLog({ level: 'silent' }),
    ...options,
  })
}
