import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { compactLogPeriodically } from '../../src/runner/compact-log.ts'
import { openStore, runCycle, Worker, type Change, type Execute, type Log, type Store } from '../../src/index.ts'

let folder: string
let url: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tidemark-run-'))
  url = `sqlite:${join(folder, 'store.db')}`
})
afterEach(() => rmSync(folder, { recursive: true }))

const upsert = (key: string, record: Record<string, string | number> = { id: key }): Change => ({
  type: 'upsert',
  key,
  record,
})
const returning =
  (...keys: string[]): Execute =>
  async () => ({ changes: keys.map((key) => upsert(key)), hasMore: false })

async function keys(database = 'contacts', tenant = 'default'): Promise<string[]> {
  const store = await openStore(url, { tenant })
  const rows = await store.rows({ database, limit: 100 })
  await store.close()
  return rows.map((row) => row.key)
}

describe('one cycle from a program of one’s own', () => {
  test('lands the rows in the store that the URL names', async () => {
    const result = await runCycle({
      store: url,
      sync: { name: 'all', database: 'contacts', execute: returning('a', 'b') },
    })
    expect(result).toMatchObject({
      worker: 'worker',
      sync: 'all',
      stopReason: 'complete',
      counts: { created: 2 },
      error: null,
    })
    expect(await keys()).toEqual(['a', 'b'])
  })

  test('the days that a database keeps its history reach the store, and keepLog drops what is older', async () => {
    const worker = new Worker()
    worker.database('contacts', { history: { keepDays: 3 } })
    worker.database('events', { history: false })
    let day = 0
    const changes = (): Change[] => ['contacts', 'events'].map((database) => ({ ...upsert('a', { day }), database }))
    worker.sync('all', {
      database: 'contacts',
      databases: ['events'],
      mode: 'incremental',
      execute: async () => ({ changes: changes(), hasMore: false, nextState: { day } }),
    })
    const store = await openStore(url)
    const DAY = 86_400_000
    const clock = {
      now: () => Date.UTC(2026, 0, 1) + day * DAY,
      sleep: (_ms: number, signal?: AbortSignal) =>
        new Promise<void>((_, reject) => signal?.addEventListener('abort', () => reject(new Error('stopped')))),
    }
    for (day = 1; day <= 6; day++)
      expect(await runCycle(worker, 'all', { store, clock })).toMatchObject({ stopReason: 'complete', error: null })
    const stop = new AbortController()
    const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
    await compactLogPeriodically(
      store,
      { random: { next: Math.random }, log: quiet, clock: { ...clock, sleep: async () => stop.abort() } },
      DAY,
      stop.signal,
    )
    const days = async (database: string): Promise<unknown[]> =>
      (await store.history(database, 'a')).map(({ text }) => (JSON.parse(text!) as { day: number }).day)
    expect([await days('contacts'), await days('events')]).toEqual([
      [3, 4, 5, 6],
      [5, 6],
    ])
    await store.close()
  })

  test('how rows are deleted reaches the store: soft, and hard again once the setting is gone', async () => {
    const store = await openStore(url)
    const run = async (deletes: 'soft' | undefined, ...listed: string[]): Promise<unknown> => {
      const worker = new Worker()
      worker.database('contacts', deletes === undefined ? {} : { deletes })
      worker.sync('all', { database: 'contacts', sweep: { maxDeleteShare: 1 }, execute: returning(...listed) })
      const { stopReason, counts } = await runCycle(worker, 'all', { store })
      return [
        stopReason,
        counts.swept,
        (await store.databases())[0]!.rows,
        (await store.schema('contacts'))!.deletedRows,
      ]
    }
    expect(await run('soft', 'a', 'b', 'c', 'd')).toEqual(['complete', 0, 4, 0])
    expect(await run('soft', 'a', 'b', 'c')).toEqual(['complete', 1, 3, 1])
    expect(await run(undefined, 'a', 'b')).toEqual(['complete', 1, 2, 1])
    expect(await run(undefined, 'a', 'b')).toEqual(['complete', 0, 2, 0])
    await store.close()
  })

  test('a store that does not keep deleted rows refuses a sync that asks for it, before a page is read', async () => {
    const { supportsSoftDeletes: _, ...store } = await openStore(url)
    const worker = new Worker()
    worker.database('contacts', { deletes: 'soft' })
    let asked = 0
    worker.sync('all', {
      database: 'contacts',
      execute: async () => ({ changes: [], hasMore: false, nextState: { asked: ++asked } }),
    })
    const { stopReason, error } = await runCycle(worker, 'all', { store })
    expect([stopReason, error?.code, asked]).toEqual(['error', 'STORE_UNSUPPORTED', 0])
    expect(error!.message).toContain('database "contacts" has `deletes: \'soft\'`')
    await store.close()
  })

  test('does not close a store that was passed open', async () => {
    const store = await openStore(url)
    const sync = { name: 'all', database: 'contacts', execute: returning('a') }
    await runCycle({ store, worker: 'crm', sync })
    await runCycle({ store, worker: 'crm', sync })
    expect(await store.syncs()).toEqual([{ worker: 'crm', sync: 'all' }])
    await store.close()
  })

  test('N5 N7 an incremental sync continues where it stopped, through a new store', async () => {
    const seen: unknown[] = []
    const run = (): Promise<unknown> =>
      runCycle({
        store: url,
        sync: {
          name: 'delta',
          database: 'contacts',
          mode: 'incremental',
          execute: async (state: { page: number } | undefined) => {
            seen.push(state)
            return { changes: [], hasMore: false, nextState: { page: (state?.page ?? 0) + 1 } }
          },
        },
      })
    await run()
    await run()
    await run()
    expect(seen).toEqual([undefined, { page: 1 }, { page: 2 }])
  })

  test('keeps tenants apart, by URL and by open store', async () => {
    const sync = { name: 'all', database: 'contacts', execute: returning('a') }
    await runCycle({ store: url, tenant: 'acme', sync })
    const store: Store = await openStore(url)
    await runCycle({ store, tenant: 'globex', sync: { ...sync, execute: returning('g') } })
    await store.close()
    expect([await keys(), await keys('contacts', 'acme'), await keys('contacts', 'globex')]).toEqual([[], ['a'], ['g']])
  })

  test('checks records against a schema, and lands those that fit', async () => {
    const schema = z.object({ id: z.string(), age: z.number() })
    const result = await runCycle({
      store: url,
      sync: {
        name: 'all',
        database: { name: 'contacts', schema },
        databases: ['notes'],
        execute: async () => ({
          changes: [
            upsert('a', { id: 'a', age: 5 }),
            upsert('b', { id: 'b', age: 'old' }),
            { ...upsert('n'), database: 'notes' },
          ],
          hasMore: false,
        }),
      },
    })
    expect(result.counts).toMatchObject({ created: 2, quarantined: 1 })
    expect([await keys(), await keys('notes')]).toEqual([['a'], ['n']])
  })

  test('gives the source its secrets, log, pacer and network', async () => {
    const server = createServer((request, response) =>
      response.end(JSON.stringify([{ id: request.headers.authorization }])),
    ).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const messages: string[] = []
    const note = (message: string): void => void messages.push(message)
    const log: Log = { debug: () => {}, info: note, warn: note, error: note }
    const result = await runCycle({
      store: url,
      log,
      secrets: { TOKEN: 't0k3n' },
      sync: {
        name: 'all',
        database: 'contacts',
        pacer: { allowedRequests: 100, intervalMs: 1_000 },
        execute: async (_state, { fetch, secrets, log }) => {
          log.info('asking')
          const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, {
            headers: { authorization: secrets.get('TOKEN') },
          })
          const items = (await response.json()) as { id: string }[]
          return { changes: items.map(({ id }) => upsert(id)), hasMore: false }
        },
      },
    })
    server.close()
    expect(result.error).toBeNull()
    expect(messages).toContain('asking')
    expect(await keys()).toEqual(['t0k3n'])
  })

  test('a failing source is a result, and a missing secret says so', async () => {
    const failing: Execute = async (_state, { secrets }) => ({
      changes: [upsert(secrets.get('NO_SUCH_SECRET_HERE'))],
      hasMore: false,
    })
    const result = await runCycle({
      store: url,
      sync: { name: 'all', database: 'contacts', limits: { retriesMax: 0 }, execute: failing },
    })
    expect(result).toMatchObject({ stopReason: 'error', error: { code: 'SECRET_MISSING' } })
  })

  test('reports progress, and stops at the signal', async () => {
    const controller = new AbortController()
    const progress: string[] = []
    const result = await runCycle({
      store: url,
      signal: controller.signal,
      onProgress: (step) => progress.push(step.kind),
      sync: {
        name: 'all',
        database: 'contacts',
        execute: async (state: number | undefined) => {
          const page = state ?? 0
          if (page === 2) controller.abort()
          return { changes: [upsert(`k${page}`)], hasMore: true, nextState: page + 1 }
        },
      },
    })
    expect(result.stopReason).toBe('cancelled')
    expect(progress).toContain('begun')
    expect(progress).toContain('landed')
  })

  test('invalid input is reported before anything is opened', async () => {
    await expect(
      runCycle({ store: url, sync: { name: '../x', database: 'contacts', execute: returning() } }),
    ).rejects.toMatchObject({ code: 'NAME_INVALID' })
    await expect(
      runCycle({ store: url, sync: { name: 'x', database: 'contacts', modus: 1, execute: returning() } as never }),
    ).rejects.toMatchObject({ code: 'SYNC_INVALID' })
    await expect(
      runCycle({ store: 'nope', sync: { name: 'x', database: 'contacts', execute: returning() } }),
    ).rejects.toMatchObject({ code: 'STORE_URL_INVALID' })
    expect(existsSync(join(folder, 'store.db'))).toBe(false)
  })
})

describe('one cycle of a worker', () => {
  test('N16 the sweep of the backfill deletes rows of the delta', async () => {
    const worker = new Worker({ name: 'crm' })
    const contacts = worker.database('contacts')
    let remote = ['a', 'b', 'c']
    worker.sync('backfill', {
      database: contacts,
      schedule: 'manual',
      execute: async () => ({ changes: remote.map((key) => upsert(key)), hasMore: false }),
    })
    worker.sync('delta', {
      database: contacts,
      mode: 'incremental',
      execute: async () => ({ changes: [upsert('d')], hasMore: false, nextState: 1 }),
    })
    await runCycle(worker, 'backfill', { store: url })
    await runCycle(worker, 'delta', { store: url })
    expect(await keys()).toEqual(['a', 'b', 'c', 'd'])
    remote = ['a', 'b']
    expect(await runCycle(worker, 'backfill', { store: url })).toMatchObject({
      stopReason: 'complete',
      counts: { swept: 2 },
    })
    expect(await keys()).toEqual(['a', 'b'])
  })

  test('F7 two replace syncs do not sweep each other’s rows', async () => {
    const worker = new Worker({ name: 'crm' })
    worker.database('contacts')
    worker.sync('eu', { database: 'contacts', execute: returning('e1', 'e2') })
    worker.sync('us', { database: 'contacts', execute: returning('u1') })
    for (const name of ['eu', 'us', 'eu', 'us'])
      expect(await runCycle(worker, name, { store: url })).toMatchObject({
        stopReason: 'complete',
        counts: { swept: 0 },
      })
    expect(await keys()).toEqual(['e1', 'e2', 'u1'])
  })

  test('an unknown sync is refused', async () => {
    await expect(runCycle(new Worker(), 'all', { store: url })).rejects.toMatchObject({ code: 'SYNC_UNKNOWN' })
  })
})
