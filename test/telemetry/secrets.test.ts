import { expect, onTestFinished, test } from 'vitest'
import { openStore } from '../../src/stores/open-store.ts'
import { runCycle, type InlineSync } from '../../src/worker/run-cycle.ts'
import { SPANS, SyncError, type Store } from '../../src/contract/index.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { createLog } from '../../src/platform/log.ts'
import { openTelemetry } from '../../src/platform/open-telemetry.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { registerSecret } from '../../src/redaction/known-secrets.ts'
import { Deliverer } from '../../src/webhooks/deliverer.ts'
import { generateSecret, serializeSecrets } from '../../src/webhooks/secrets.ts'
import { createSender } from '../../src/webhooks/send.ts'
import { Receiver } from '../webhooks/receiver.ts'
import { TelemetryRecorder } from './telemetry-recorder.ts'

/** A different value each, so that a match identifies the leak. */
const CANARIES = {
  query: 'canary-query-1',
  path: 'canary-path-2',
  header: 'canary-header-3',
  body: 'canary-body-4',
  answer: 'canary-answer-5',
  answerHeader: 'canary-said-6',
  state: 'canary-state-7',
  cursor: 'canary-cursor-8',
  key: 'canary-key-9',
  record: 'canary-record-10',
  thrown: 'canary-thrown-11',
  cause: 'canary-cause-12',
  webhookPath: 'canary-hook-13',
  webhookQuery: 'canary-hook-14',
  scope: 'canary-scope-15',
  host: 'canary-host-17',
  echoed: 'canary-echoed-18',
  method: 'CANARY-METHOD-16',
} as const

async function openScene() {
  const watcher = new TelemetryRecorder()
  const lines: string[] = []
  const telemetry = (await openTelemetry())!
  const log = createLog({ level: 'debug', write: (line) => void lines.push(line), context: telemetry.logFields })
  const store = await openStore('sqlite::memory:', {
    environment: { TIDEMARK_KEY: Buffer.alloc(32, 7).toString('base64') },
  })
  onTestFinished(() => store.close())
  return { watcher, lines, telemetry, log, store }
}

test('XF16 invariant 10: canaries in addresses, headers, states, records, keys, cursors and error messages: no span, metric or log line contains one', async () => {
  const { watcher, lines, telemetry, log, store } = await openScene()
  const run = (name: string, execute: InlineSync['execute'], fetch = answering(200)): ReturnType<typeof runCycle> =>
    runCycle({
      worker: 'office',
      sync: { name, database: 'people', mode: 'incremental', execute, limits: { retriesMax: 1 } },
      store,
      log,
      fetch,
      clock: hasty,
    })

  await run('good', async (state, { fetch, log: own }) => {
    await fetch(`https://api.example.com/${CANARIES.path}?token=${CANARIES.query}#${CANARIES.query}`, {
      method: 'POST',
      headers: { authorization: CANARIES.header },
      body: CANARIES.body,
    })
    await fetch('https://api.example.com/', { method: CANARIES.method })
    own.info('a page', { state: { ...Object(state), place: CANARIES.state } as never })
    return {
      changes: [
        { type: 'upsert', key: CANARIES.key, record: { text: CANARIES.record }, cursor: CANARIES.cursor },
        { type: 'upsert', key: `${CANARIES.key}\0`, record: { text: CANARIES.record } },
      ],
      hasMore: state === undefined,
      nextState: { place: CANARIES.state, n: state === undefined ? 1 : 2 },
      scope: CANARIES.scope,
    }
  })
  for (const thrown of [
    new Error(CANARIES.thrown),
    new SyncError('SOURCE_UNAVAILABLE', `it said ${CANARIES.thrown}`, { cause: new Error(CANARIES.cause) }),
    Object.assign(new Error(CANARIES.thrown), { code: CANARIES.cause, name: CANARIES.cause, stack: CANARIES.cause }),
    CANARIES.thrown,
  ]) {
    await run('failing', async () => Promise.reject(thrown as Error))
  }
  // A registered secret: a host or an id that contains it is masked.
  registerSecret(CANARIES.host)
  registerSecret(CANARIES.echoed)
  await run(
    'known',
    async (_state, { fetch }) => {
      await fetch(`https://${CANARIES.host}.example.com/`)
      return { changes: [], hasMore: false, nextState: 1 }
    },
    async () => new Response('{}', { headers: { 'x-request-id': `id-${CANARIES.echoed}` } }),
  )
  await run(
    'refused',
    async (_state, { fetch }) => {
      const answer = await fetch(`https://api.example.com/${CANARIES.path}?${CANARIES.query}`)
      throw new SyncError('AUTH_REJECTED', await answer.text())
    },
    answering(401),
  )
  await run(
    'unreachable',
    async (_state, { fetch }) => fetch(`https://u:${CANARIES.header}@api.example.com/${CANARIES.path}`) as never,
    async () => Promise.reject(Object.assign(new TypeError(CANARIES.thrown), { cause: new Error(CANARIES.cause) })),
  )

  const receiver = await faltering(CANARIES.answer)
  const secret = generateSecret()
  await store.putWebhook(
    {
      id: 'wh_1',
      url: `${receiver.url}/${CANARIES.webhookPath}?token=${CANARIES.webhookQuery}`,
      databases: null,
      actions: null,
      allow: ['http', 'private', 'port'],
      secrets: serializeSecrets([{ secret, endsAt: null }]),
      createdAt: 1,
    },
    { sequence: 0, floor: 0 },
  )
  await deliverAll(store, log, telemetry, watcher)

  for (const [name, canary] of Object.entries({ ...CANARIES, webhookSecret: secret })) {
    expect([name, 'spans and figures', excerpt(await watcher.exported(), canary)]).toEqual([
      name,
      'spans and figures',
      null,
    ])
    expect([name, 'log', excerpt(lines.join(''), canary)]).toEqual([name, 'log', null])
  }
  // Control: the search finds values, and there was output to search.
  for (const found of ['api.example.com', '[secret].example.com', 'id-[secret]'])
    expect([found, excerpt(await watcher.exported(), found) === null]).toEqual([found, false])
  expect(new Set(watcher.spans().map(({ name }) => name))).toEqual(
    new Set(['tidemark.cycle', 'tidemark.page', 'tidemark.commit', 'tidemark.delivery', 'GET', 'POST', '_OTHER']),
  )
  expect(lines.length).toBeGreaterThan(5)
})

test('a delivery is a separate trace with its webhook, attempt and outcome', async () => {
  const { watcher, lines, telemetry, log, store } = await openScene()
  await runCycle({
    worker: 'office',
    sync: {
      name: 'people',
      database: 'people',
      mode: 'incremental',
      execute: async () => ({ changes: [{ type: 'upsert', key: 'k', record: {} }], hasMore: false, nextState: 1 }),
    },
    store,
    log,
  })
  const receiver = await faltering('')
  await store.putWebhook(
    {
      id: 'wh_1',
      url: receiver.url,
      databases: null,
      actions: null,
      allow: ['http', 'private', 'port'],
      secrets: serializeSecrets([{ secret: generateSecret(), endsAt: null }]),
      createdAt: 1,
    },
    { sequence: 0, floor: 0 },
  )
  await deliverAll(store, log, telemetry, watcher)

  const deliveries = watcher.spans('tidemark.delivery')
  const messageId = receiver.received[0]!.id
  expect(
    deliveries.map(({ parent, kind, isError, attributes }) => [
      parent,
      kind,
      isError,
      attributes['tidemark.attempt'],
      attributes['tidemark.outcome'],
      attributes['http.response.status_code'],
      attributes['error.type'],
      attributes['tidemark.request_id'],
    ]),
  ).toEqual([
    [null, 'client', true, 1, 'failed', 503, '503', messageId],
    [null, 'client', false, 2, 'delivered', 200, undefined, messageId],
  ])
  expect([...new Set(deliveries.flatMap(({ attributes }) => Object.keys(attributes)))].toSorted()).toEqual(
    [...SPANS.delivery.attributes].toSorted(),
  )
  expect(
    (await watcher.points('tidemark.delivery.duration')).map(({ labels, count }) => [
      labels['tidemark.outcome'],
      count,
    ]),
  ).toEqual([
    ['failed', 1],
    ['delivered', 1],
  ])
  // Receivers do not get the trace context either.
  expect(receiver.received.map(({ headers }) => headers['traceparent'])).toEqual([undefined, undefined])
  expect(
    lines
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ message }) => String(message).startsWith('webhook message')),
  ).toEqual([
    expect.objectContaining({
      level: 'info',
      message: 'webhook message not delivered',
      tenant: 'default',
      webhook: 'wh_1',
      requestId: messageId,
      attempt: 1,
      status: 503,
      trace_id: deliveries[0]!.trace,
      span_id: deliveries[0]!.id,
    }),
    expect.objectContaining({
      level: 'debug',
      message: 'webhook message delivered',
      tenant: 'default',
      webhook: 'wh_1',
      requestId: messageId,
      attempt: 2,
      status: 200,
      trace_id: deliveries[1]!.trace,
    }),
  ])
  expect(watcher.open).toBe(0)
})

/** Until two attempts are over; pending deliveries are tried at once. */
async function deliverAll(
  store: Store,
  log: ReturnType<typeof createLog>,
  { tracer, meter }: NonNullable<Awaited<ReturnType<typeof openTelemetry>>>,
  watcher: TelemetryRecorder,
): Promise<void> {
  let shiftMs = 0
  const clock = {
    now: () => Date.now() + shiftMs,
    sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(Math.min(ms, 20), signal),
  }
  const send = createSender()
  const deliverer = new Deliverer({
    store,
    ports: { clock, random: systemRandom, log, tracer, meter },
    send,
    holder: 'test',
    pollMs: 20,
  })
  deliverer.start()
  await expect.poll(() => watcher.spans('tidemark.delivery').length).toBe(1)
  // The second attempt is due.
  shiftMs = 60_000
  await expect.poll(() => watcher.spans('tidemark.delivery').length).toBe(2)
  await deliverer.stop({ graceMs: 1_000 })
  await send.close()
}

/** Accepts a message at the second attempt. */
async function faltering(words: string): Promise<Receiver> {
  const receiver = await Receiver.open(
    (_message, response) => void response.writeHead(receiver.received.length === 1 ? 503 : 200).end(words),
  )
  return receiver
}

function answering(status: number): () => Promise<Response> {
  // An invalid request id is not exported.
  return async () =>
    new Response(status === 200 ? '{}' : CANARIES.answer, {
      status,
      headers: { 'x-request-id': `Bearer ${CANARIES.answerHeader}`, 'x-said': CANARIES.answerHeader },
    })
}

const hasty = {
  now: () => Date.now(),
  sleep: async (ms: number, signal?: AbortSignal) =>
    ms > 30_000
      ? new Promise<void>((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason as Error)))
      : undefined,
}

function excerpt(text: string, canary: string): string | null {
  const at = text.indexOf(canary)
  return at < 0 ? null : text.slice(Math.max(0, at - 100), at + canary.length + 20)
}
