import { describe, expect, test } from 'vitest'
import {
  ClientError,
  memoryCheckpoint,
  type Change,
  type ChangesOptions,
  type Restart,
  type Retry,
} from '../../src/client/index.ts'
import { createServer } from '../../src/server/server.ts'
import { DATABASE, remove, upsert, type SyncDriver } from '../../src/testing/store-cases/harness.ts'
import { addKey, ServerFixture, type OpenHarness } from '../server/server-fixture.ts'
import { interceptFetch, clientOf, Copy, expected, MemoryCheckpoint, portsOf, takeUntil } from './consumer.ts'

const DAY_MS = 24 * 3_600_000
const MODES = ['poll', 'stream'] as const

/** Guarantees for a consumer over real HTTP, on every store. */
export function changesCases(open: OpenHarness): void {
  test('A2, A13, A21 every change arrives once, in commit order, and yields the same rows', async () => {
    const { stand } = await landed(open)
    const { client } = clientOf(stand)
    const copy = new Copy()
    for await (const change of client.changes({ follow: false, pageSize: 3 })) copy.take(change)
    const { done, rows } = await expected(stand.store, DATABASE)
    expect(copy.done).toEqual(done)
    expect(copy.rows).toEqual(rows)
    expect(done).toContain('deleted things/k2')
  })

  test('A11, A12, A30 a consumer that crashes anywhere between page and checkpoint loses nothing, and its keys prevent duplicates', async () => {
    const { stand } = await landed(open)
    const { client } = clientOf(stand)
    const { done, rows } = await expected(stand.store, DATABASE)
    for (const saveEach of ['page', 'change'] as const) {
      for (let dies = 1; dies <= done.length; dies++) {
        const [copy, checkpoint] = [new Copy(), new MemoryCheckpoint()]
        const options: ChangesOptions = { follow: false, pageSize: 3, checkpoint, saveEach }
        // Left open, as by a killed process.
        const first = client.changes(options)
        for (let n = 0; n < dies; n++) copy.take((await first.next()).value as Change)
        const delivered = copy.deliveries
        for await (const change of client.changes(options)) copy.take(change)
        expect(copy.done, `${saveEach} ${dies}`).toEqual(done)
        expect(copy.rows).toEqual(rows)
        const again = copy.deliveries - done.length
        // With a save after each change only the current one is redelivered, otherwise those of its page.
        expect(again, `${saveEach} ${dies} of ${delivered}`).toBe(saveEach === 'change' ? 1 : ((dies - 1) % 3) + 1)
      }
    }
  })

  test('AX9 a consumer without a disk stores its position on the server, by name, and the server reports its lag', async () => {
    const stand = await ServerFixture.open(open)
    await (await stand.driver()).cycle(Array.from({ length: 30 }, (_, n) => upsert(`k${n}`, { n })))
    const { client } = clientOf(stand)
    const copy = new Copy()
    for (let n = 1; n <= 30; n += 7)
      await takeUntil(client.changes({ checkpoint: client.checkpoint('warehouse'), pageSize: 10 }), copy, n)
    for await (const change of client.changes({ checkpoint: client.checkpoint('warehouse'), follow: false }))
      copy.take(change)
    const { done, rows } = await expected(stand.store, 'things')
    expect([copy.done, copy.rows]).toEqual([done, rows])
    // Only the change that was current when the loop was left is redelivered.
    expect(copy.deliveries).toBe(30 + 5)
    const other: string[] = []
    for await (const { resourceId } of client.changes({ checkpoint: client.checkpoint('other'), follow: false }))
      other.push(resourceId)
    expect(other).toHaveLength(30)
    expect((await stand.get('/agents/v1/sync-state/lag')).body.data).toMatchObject([
      { integrationKey: 'other', behind: 0 },
      { integrationKey: 'warehouse', behind: 0 },
    ])
  })

  test('A11 a checkpoint that cannot be saved stops the loop, and unsaved changes are redelivered', async () => {
    const { stand } = await landed(open)
    const { client } = clientOf(stand)
    const { done } = await expected(stand.store, DATABASE)
    const [copy, checkpoint] = [new Copy(), new MemoryCheckpoint()]
    checkpoint.onSave = (nth) => {
      if (nth > 1) throw new Error('the disk is full')
    }
    const read = async (): Promise<void> => {
      for await (const change of client.changes({ follow: false, pageSize: 3, checkpoint })) copy.take(change)
    }
    await expect(read()).rejects.toThrow('the disk is full')
    expect(copy.done).toEqual(done.slice(0, 6))
    checkpoint.onSave = () => {}
    await read()
    expect(copy.done).toEqual(done)
    expect(copy.deliveries).toBe(done.length + 3)
  })

  test('A24 a series of 429 responses is waited out as long as the server requests, and nothing is lost', async () => {
    const { stand } = await landed(open)
    const key = await addKey(stand.store, ['changes:read'], { rateLimit: 2 })
    const retries: Retry[] = []
    const { client, waits } = clientOf(stand, { key, onRetry: (retry) => retries.push(retry) })
    const copy = new Copy()
    for await (const change of client.changes({ follow: false, pageSize: 1 })) copy.take(change)
    const { done } = await expected(stand.store, DATABASE)
    expect(copy.done).toEqual(done)
    expect(copy.deliveries).toBe(done.length)
    expect(retries.length).toBeGreaterThan(2)
    for (const { error, delayMs, attempt } of retries) {
      expect(error).toMatchObject({ code: 'RATE_LIMIT_EXCEEDED', status: 429 })
      expect(attempt).toBe(1)
      expect(delayMs).toBeGreaterThanOrEqual(error.retryAfterMs!)
      expect(error.retryAfterMs).toBeGreaterThanOrEqual(1_000)
    }
    expect(waits).toEqual(retries.map(({ delayMs }) => delayMs))
  })

  test.each(MODES)(
    'A8, A25 an expired cursor: the client continues from the newest change, without gaps or duplicates (%s)',
    async (mode) => {
      const { stand, driver } = await landed(open)
      const { client } = clientOf(stand)
      const [copy, checkpoint, restarts] = [new Copy(), new MemoryCheckpoint(), [] as Restart[]]
      const options: ChangesOptions = {
        mode,
        checkpoint,
        pageSize: 3,
        saveEach: 'change',
        onRestart: (restart) => void restarts.push(restart),
      }
      const before = (await expected(stand.store, DATABASE)).done.length
      await takeUntil(client.changes({ ...options, follow: false }), copy, before + 1)
      stand.shift.ms += 8 * DAY_MS
      await driver.page([upsert('k1', { n: 9 }), upsert('late', { n: 1 })])
      const { done, rows } = await expected(stand.store, DATABASE)
      await takeUntil(client.changes(options), copy, done.length)
      expect(copy.done).toEqual(done)
      expect(copy.deliveries).toBe(done.length)
      expect(copy.rows).toEqual(rows)
      expect(restarts).toMatchObject([{ from: 'updatedSince', reason: 'cursor_expired' }])
      expect(restarts[0]!.message).toContain('7 days')
    },
  )

  test.each(MODES)(
    'A25, A30 a compacted log: everything is delivered again, and the consumer learns which rows were deleted (%s)',
    async (mode) => {
      const { stand, driver } = await landed(open)
      const { client } = clientOf(stand)
      const [copy, checkpoint, told] = [new Copy(), new MemoryCheckpoint(), [] as string[]]
      const marks = new Map<string, string>()
      let round = ''
      const stop = new AbortController()
      const options: ChangesOptions = {
        mode,
        checkpoint,
        pageSize: 2,
        onRestart(restart) {
          told.push(`${restart.from} ${restart.reason}`)
          round = restart.at
          copy.forget()
        },
        onRestored(restart) {
          expect(restart.at).toBe(round)
          told.push('restored')
          for (const at of copy.rows.keys()) if (marks.get(at) !== round) copy.rows.delete(at)
          stop.abort()
        },
      }
      for await (const change of client.changes({ ...options, follow: false })) copy.take(change)
      expect(copy.rows.has('things/k1')).toBe(true)
      await driver.page([remove('k1')])
      await driver.page([upsert('k3', { n: 30 }), upsert('new', { n: 1 })])
      await driver.complete([])
      while ((await stand.store.compact({ before: Number.MAX_SAFE_INTEGER, scanMax: 10_000 })).hasMore);
      for await (const change of client.changes({ ...options, signal: stop.signal })) {
        copy.take(change)
        marks.set(`${change.database}/${change.resourceId}`, round)
      }
      expect(told).toEqual(['backfill cursor_expired', 'restored'])
      expect(copy.rows).toEqual((await expected(stand.store, DATABASE)).rows)
      expect(JSON.parse(checkpoint.text!)).toMatchObject({ restart: null })
    },
  )

  test('A25 a consumer that crashes during a fresh backfill is still notified when it completes', async () => {
    const { stand, driver } = await landed(open)
    const { client } = clientOf(stand)
    const [checkpoint, told] = [new MemoryCheckpoint(), [] as string[]]
    const options: ChangesOptions = {
      follow: false,
      checkpoint,
      pageSize: 2,
      onRestart: ({ at }) => void told.push(`restart ${at}`),
      onRestored: ({ at }) => void told.push(`restored ${at}`),
    }
    for await (const _ of client.changes(options));
    await driver.page([upsert('k1', { n: 5 }), remove('k3')])
    await driver.complete([])
    while ((await stand.store.compact({ before: Number.MAX_SAFE_INTEGER, scanMax: 10_000 })).hasMore);
    const dying = client.changes(options)
    for (let n = 0; n < 4; n++) await dying.next()
    expect(told).toHaveLength(1)
    for await (const _ of client.changes(options));
    // The process that continues reports the restart again, under the same name.
    expect(told).toEqual([told[0], told[0], told[0]!.replace('restart', 'restored')])
  })

  test('A25 in a running loop a fresh backfill delivers everything again, including recent changes', async () => {
    const { stand } = await landed(open)
    let answers = 0
    const forgetful = interceptFetch((response) => (++answers === 3 ? refusal('cursor_expired', 'backfill') : response))
    const { client } = clientOf(stand, { fetch: forgetful })
    const told: string[] = []
    const options: ChangesOptions = {
      follow: false,
      pageSize: 3,
      onRestart: () => void told.push('restart'),
      onRestored: () => void told.push('restored'),
    }
    for await (const change of client.changes(options))
      told.push(`${change.action} ${change.database}/${change.resourceId}`)
    const { done } = await expected(stand.store, DATABASE)
    expect(told).toEqual([...done.slice(0, 6), 'restart', ...done, 'restored'])
  })

  test('A25 a server that rejects even a fresh backfill is not retried forever', async () => {
    const { stand } = await landed(open)
    const { client } = clientOf(stand, { fetch: interceptFetch(() => refusal('cursor_expired', 'backfill')) })
    const restarts: Restart[] = []
    const read = async (): Promise<void> => {
      for await (const _ of client.changes({ follow: false, onRestart: (restart) => void restarts.push(restart) }));
    }
    await expect(read()).rejects.toMatchObject({ code: 'INVALID_REQUEST', reason: 'cursor_expired' })
    expect(restarts).toHaveLength(1)
  })

  test('A25 a position that is lost repeatedly is retried with growing delays', async () => {
    const { stand } = await landed(open)
    let answers = 0
    const retries: Retry[] = []
    // Every second response, which is the one after a backfill has begun.
    const { client } = clientOf(stand, {
      fetch: interceptFetch((response) =>
        ++answers % 2 === 0 && answers < 12 ? refusal('cursor_expired', 'backfill') : response,
      ),
      onRetry: (retry) => retries.push(retry),
    })
    const told: string[] = []
    const options: ChangesOptions = {
      follow: false,
      pageSize: 3,
      onRestart: () => void told.push('restart'),
      onRestored: () => void told.push('restored'),
    }
    for await (const _ of client.changes(options));
    expect(told).toEqual([...Array<string>(5).fill('restart'), 'restored'])
    expect(retries.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4])
    answers = 0
    await expect(async () => {
      for await (const _ of client.changes({ ...options, retriesMax: 2 }));
    }).rejects.toMatchObject({ reason: 'cursor_expired' })
  })

  test('A25 a server that rejects every cursor it issues is retried with growing delays, also when recovering by time', async () => {
    const { stand } = await landed(open)
    const retries: Retry[] = []
    const refusing = interceptFetch((response) =>
      response.url.includes('cursor=') ? refusal('cursor_invalid', 'updatedSince') : response,
    )
    const { client } = clientOf(stand, { fetch: refusing, onRetry: (retry) => retries.push(retry) })
    await expect(async () => {
      for await (const _ of client.changes({ follow: false, pageSize: 3, retriesMax: 4 }));
    }).rejects.toMatchObject({ reason: 'cursor_invalid' })
    expect(retries.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4])
  })

  test('A11, A25 a consumer that crashes during recovery still finds its position, without duplicates', async () => {
    const { stand, driver } = await landed(open)
    await driver.page(['z1', 'z2', 'z3', 'z4', 'z5', 'z6', 'z7'].map((key) => upsert(key, { n: 1 })))
    const { client } = clientOf(stand)
    const before = (await expected(stand.store, DATABASE)).done.length
    for (let dies = 1; dies <= 4; dies++) {
      const [copy, checkpoint] = [new Copy(), new MemoryCheckpoint()]
      const options: ChangesOptions = { follow: false, pageSize: 2, checkpoint }
      for await (const change of client.changes(options)) copy.take(change)
      expect(copy.deliveries).toBe(before)
      stand.shift.ms += 8 * DAY_MS
      const saves = checkpoint.saves
      checkpoint.onSave = (nth) => {
        if (nth > saves + dies) throw new Error('died')
      }
      // The position is the last of seven changes committed together; with a page size of two it takes four pages to
      // reach it.
      const read = async (): Promise<void> => {
        for await (const change of client.changes(options)) copy.take(change)
      }
      await expect(read(), String(dies)).rejects.toThrow('died')
      checkpoint.onSave = () => {}
      await read()
      expect(copy.deliveries, String(dies)).toBe(before)
    }
  })

  test('AX3 with other types than those of the checkpoint, everything of the new types is delivered', async () => {
    const { stand, driver } = await landed(open)
    await driver.page([upsert('o1', { n: 1 }, { database: 'orders' })])
    const { client } = clientOf(stand)
    const [checkpoint, reasons] = [memoryCheckpoint(), [] as string[]]
    const read = async (types: string[]): Promise<string[]> => {
      const found: string[] = []
      for await (const change of client.changes({
        follow: false,
        types,
        checkpoint,
        onRestart: ({ reason }) => void reasons.push(reason),
      }))
        found.push(`${change.database}/${change.resourceId}`)
      return found
    }
    expect(await read(['orders'])).toEqual(['orders/o1'])
    expect(await read(['orders'])).toEqual([])
    const all = await read(['orders', DATABASE])
    expect(all).toContain('orders/o1')
    expect(all).toContain('things/k1')
    expect(reasons).toEqual(['cursor_filter'])
  })

  describe.each(MODES)('%s', (mode) => {
    test('A10, A30 a server restart is waited out, and nothing is lost or delivered twice', async () => {
      const { stand, driver } = await landed(open)
      const { client } = clientOf(stand)
      const [copy, checkpoint] = [new Copy(), new MemoryCheckpoint()]
      const first = (await expected(stand.store, DATABASE)).done.length
      const loop = takeUntil(client.changes({ mode, checkpoint, pageSize: 3, waitSeconds: 5 }), copy, first + 2)
      await until(() => copy.done.length === first)
      await stand.server.close()
      await driver.page([upsert('while-away', { n: 1 })])
      const again = createServer({ store: stand.store, ports: portsOf(stand), version: '0.0.0' })
      await again.listen(Number(new URL(stand.url).port))
      try {
        await until(() => copy.done.length === first + 1)
        await driver.page([upsert('after', { n: 1 })])
        await loop
      } finally {
        await again.close()
      }
      expect(copy.done).toEqual((await expected(stand.store, DATABASE)).done)
      expect(copy.deliveries).toBe(copy.done.length)
    })

    test('A10 a slow consumer gets all changes that are committed meanwhile', async () => {
      const { stand, driver } = await landed(open)
      const { client } = clientOf(stand)
      const copy = new Copy()
      let written = (await expected(stand.store, DATABASE)).done.length
      for await (const change of client.changes({ mode, pageSize: 3 })) {
        copy.take(change)
        if (copy.done.length <= 12) {
          await driver.page(
            Array.from({ length: 5 }, (_, n) => upsert(`s${copy.done.length}-${n}`, { pad: 'x'.repeat(2_000), n })),
          )
          written += 5
        }
        if (copy.done.length === written) break
      }
      expect(copy.done).toEqual((await expected(stand.store, DATABASE)).done)
      expect(copy.deliveries).toBe(copy.done.length)
    })
  })

  test('A11 a network that fails in every way causes neither loss nor duplicates', async () => {
    const { stand } = await landed(open)
    let request = 0
    const meddling = interceptFetch(async (response) => {
      const text = await response.clone().text()
      const headers = { 'content-type': 'application/json' }
      switch (++request % 6) {
        case 1:
          return new Response('<html>502 Bad Gateway</html>', { status: 502 })
        case 2:
          return new Response(text.slice(0, text.length / 2), { headers })
        case 3:
          throw new TypeError('fetch failed', { cause: { code: 'ECONNRESET' } })
        case 4:
          return new Response('"hello"', { headers })
        case 5:
          return new Response(new ReadableStream({ pull: (controller) => controller.error(new Error('terminated')) }), {
            headers,
          })
        default:
          return response
      }
    })
    const retries: Retry[] = []
    const { client } = clientOf(stand, { fetch: meddling, onRetry: (retry) => retries.push(retry) })
    const copy = new Copy()
    for await (const change of client.changes({ follow: false, pageSize: 4 })) copy.take(change)
    const { done } = await expected(stand.store, DATABASE)
    expect(copy.done).toEqual(done)
    expect(copy.deliveries).toBe(done.length)
    expect(retries.slice(0, 5).map(({ error, attempt }) => `${error.code} ${attempt}`)).toEqual([
      'SERVICE_UNAVAILABLE 1',
      'ANSWER_INVALID 2',
      'NETWORK_FAILED 3',
      'ANSWER_INVALID 4',
      'NETWORK_FAILED 5',
    ])
    const delays = retries.slice(0, 5).map(({ delayMs }) => delayMs)
    delays.forEach((delay, n) => expect(delay).toSatisfy((ms: number) => ms >= 250 * 2 ** n && ms <= 500 * 2 ** n))
  })

  test('A12 a page that is delivered twice is processed once', async () => {
    const { stand } = await landed(open)
    const pages: string[] = []
    const echoing = interceptFetch(async (response) => {
      const text = await response.text()
      pages.push(text)
      // Every other response repeats the previous page before its own.
      const body = JSON.parse(text) as { data: unknown[] }
      if (pages.length % 2 === 0) body.data.unshift(...(JSON.parse(pages.at(-2)!) as { data: unknown[] }).data)
      return new Response(JSON.stringify(body), response)
    })
    const { client } = clientOf(stand, { fetch: echoing })
    const copy = new Copy()
    for await (const change of client.changes({ follow: false, pageSize: 2 })) copy.take(change)
    const { done } = await expected(stand.store, DATABASE)
    expect(copy.done).toEqual(done)
    expect(copy.deliveries).toBe(done.length)
  })

  test('AD2, A29 a server without a final cursor and with unknown fields: the client continues by time, without duplicates', async () => {
    const { stand, driver } = await landed(open)
    const older = interceptFetch(async (response) => {
      const body = (await response.json()) as { data: object[]; page: { nextCursor: string | null; hasMore: boolean } }
      if (!body.page.hasMore) body.page.nextCursor = null
      return new Response(
        JSON.stringify({ ...body, later: 1, data: body.data.map((item) => ({ ...item, added: { by: 'v9' } })) }),
        response,
      )
    })
    const { client } = clientOf(stand, { fetch: older })
    const [copy, checkpoint] = [new Copy(), new MemoryCheckpoint()]
    for await (const change of client.changes({ follow: false, pageSize: 3, checkpoint })) copy.take(change)
    for await (const change of client.changes({ follow: false, pageSize: 3, checkpoint })) copy.take(change)
    await driver.page([upsert('later', { n: 1 }), remove('k1')])
    for await (const change of client.changes({ follow: false, pageSize: 3, checkpoint })) copy.take(change)
    const { done } = await expected(stand.store, DATABASE)
    expect(copy.done).toEqual(done)
    expect(copy.deliveries).toBe(done.length)
  })

  test('a consumer that leaves the loop has processed everything but the current change', async () => {
    const { stand } = await landed(open)
    const { client } = clientOf(stand)
    const [copy, checkpoint] = [new Copy(), new MemoryCheckpoint()]
    for await (const change of client.changes({ follow: false, pageSize: 5, checkpoint })) {
      if (copy.done.length === 2) break
      copy.take(change)
    }
    expect(copy.deliveries).toBe(2)
    for await (const change of client.changes({ follow: false, pageSize: 5, checkpoint })) copy.take(change)
    const { done } = await expected(stand.store, DATABASE)
    expect(copy.done).toEqual(done)
    expect(copy.deliveries).toBe(done.length)
  })

  test.each(MODES)(
    'an aborted signal ends the loop without an error, and processed changes are saved (%s)',
    async (mode) => {
      const { stand } = await landed(open)
      const { client } = clientOf(stand)
      const { done } = await expected(stand.store, DATABASE)
      const [copy, checkpoint, stop] = [new Copy(), new MemoryCheckpoint(), new AbortController()]
      const loop = (async () => {
        for await (const change of client.changes({ mode, checkpoint, signal: stop.signal })) copy.take(change)
      })()
      await until(() => checkpoint.saves > 0 && copy.done.length === done.length)
      stop.abort()
      await loop
      for await (const change of client.changes({ follow: false, checkpoint })) copy.take(change)
      expect(copy.deliveries).toBe(done.length)
    },
  )

  test('an error of the consumer is not mistaken for the abort that accompanies it', async () => {
    const { stand } = await landed(open)
    const stop = new AbortController()
    const checkpoint = {
      load: async () => null,
      async save() {
        stop.abort()
        throw new Error('the disk is full')
      },
    }
    const read = async (): Promise<void> => {
      for await (const _ of clientOf(stand).client.changes({ checkpoint, signal: stop.signal }));
    }
    await expect(read()).rejects.toThrow('the disk is full')
  })

  test('A23, AX7 permanent errors are thrown with code, request id and advice', async () => {
    const { stand } = await landed(open)
    const failure = async (
      options: Parameters<typeof clientOf>[1],
      asked: ChangesOptions = {},
    ): Promise<ClientError> => {
      try {
        for await (const _ of clientOf(stand, options).client.changes({ follow: false, ...asked }));
      } catch (error) {
        return error as ClientError
      }
      throw new Error('nothing was thrown')
    }
    const wrongKey = await failure({ key: `tmk_${'0'.repeat(16)}_${'A'.repeat(43)}` })
    expect(wrongKey).toBeInstanceOf(ClientError)
    expect(wrongKey).toMatchObject({
      code: 'UNAUTHORIZED',
      status: 401,
      advice: expect.stringContaining('tidemark keys create') as unknown,
    })
    expect(wrongKey.requestId).toMatch(/^[0-9a-f-]{36,}$/)
    expect(JSON.stringify([wrongKey, wrongKey.message])).not.toContain('AAAA')
    const scope = await failure({ key: await addKey(stand.store, ['things:read']) })
    expect(scope).toMatchObject({ code: 'FORBIDDEN', status: 403 })
    expect(await failure({}, { types: ['stuff'] })).toMatchObject({
      code: 'INVALID_REQUEST',
      reason: 'type_unknown',
      restart: null,
    })
    expect(await failure({}, { updatedSince: 'yesterday' })).toMatchObject({
      code: 'INVALID_REQUEST',
      reason: 'time_invalid',
    })
    expect(await failure({ url: 'http://127.0.0.1:1' }, { retriesMax: 2 })).toMatchObject({
      code: 'NETWORK_FAILED',
      status: null,
      requestId: null,
    })
    const newer = interceptFetch(async (response) =>
      Response.json({
        ...((await response.json()) as object),
        data: [
          {
            resourceType: 'things',
            resourceId: 'k',
            action: 'merged',
            updatedAt: '2026-01-01T00:00:00Z',
            snapshot: null,
          },
        ],
      }),
    )
    expect(await failure({ fetch: newer })).toMatchObject({
      code: 'CHANGE_UNKNOWN',
      message: expect.stringContaining('merged') as unknown,
    })
    expect(
      await failure({}, { checkpoint: { load: async () => ({ cursor: 5 }) as never, save: async () => {} } }),
    ).toMatchObject({ code: 'CHECKPOINT_INVALID' })
  })

  test('A1, A18, A19 lists and single rows work with unusual keys and numbers beyond double precision', async () => {
    const { stand, driver } = await landed(open)
    const odd = 'a/b c?d#é%2F&=…'
    await driver.page([upsert(odd, '{"big":9007199254740993,"small":1.5}')])
    await driver.page(Array.from({ length: 250 }, (_, n) => upsert(`m${n}`, { n })))
    const { client } = clientOf(stand)
    const rows: [string, unknown][] = []
    for await (const { id, record } of client.list(DATABASE)) rows.push([`things/${id}`, record])
    expect(rows.length).toBeGreaterThan(250)
    expect(new Map(rows)).toEqual((await expected(stand.store, DATABASE)).rows)
    expect(await client.get(DATABASE, odd)).toMatchObject({ id: odd, record: { big: 9007199254740993n, small: 1.5 } })
    expect(await client.get(DATABASE, 'nobody')).toBeNull()
    await expect(client.get(DATABASE, '..')).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
    expect(await client.databases()).toEqual([DATABASE])
    const { updatedAt } = (await client.get(DATABASE, 'm7'))!
    let late = 0
    for await (const _ of client.list(DATABASE, { updatedSince: updatedAt })) late++
    expect(late).toBe(250)
  })
}

/** Three pages of changes: rows created, updated and deleted. */
export async function landed(open: OpenHarness): Promise<{ stand: ServerFixture; driver: SyncDriver }> {
  const stand = await ServerFixture.open(open)
  const driver = await stand.driver()
  await driver.begin()
  await driver.page(['k1', 'k2', 'k3', 'k4', 'k5'].map((key, n) => upsert(key, { n })))
  await driver.page([upsert('k1', { n: 7 }), remove('k2'), upsert('k6', { n: 6 })])
  await driver.page([upsert('k2', { n: 22 }), upsert('k3', { n: 33 }), remove('k6')])
  return { stand, driver }
}

/** The server's error for a lost position. */
function refusal(reason: string, restart: string): Response {
  return Response.json(
    {
      error: 'INVALID_REQUEST',
      message: 'The place is lost.',
      status: 400,
      requestId: 'r',
      details: { reason, restart },
    },
    { status: 400 },
  )
}

async function until(done: () => boolean): Promise<void> {
  while (!done()) await new Promise((resolve) => setTimeout(resolve, 5))
}
