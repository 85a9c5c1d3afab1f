import pg from 'pg'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import type { Store, WebhookProgress } from '../../src/contract/index.ts'
import { openPostgresStore } from '../../src/stores/postgres/store.ts'
import { seededRandom, DATABASE, START, SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { createDatabase, dropDatabase } from '../setup/postgres-server.ts'
import { query } from './postgres-harness.ts'

const server = inject('postgresUrl')
const BY = { actor: 'ana', at: START }

describe.skipIf(server === '')('postgres store, transactions that wait for each other', () => {
  let url: string
  const closing: Array<() => Promise<unknown>> = []

  async function open(): Promise<Store> {
    const store = await openPostgresStore({ url })
    closing.push(() => store.close())
    return store
  }
  async function connect(): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: Object.assign(new URL(server), { pathname: new URL(url).pathname }).href,
    })
    await client.connect()
    closing.push(() => client.end())
    return client
  }
  async function close(): Promise<void> {
    for (const end of closing.splice(0).reverse()) await end()
  }
  /** Deadlocks of this database, by the server's own count. Backends report when they end. */
  async function deadlocks(): Promise<number> {
    await close()
    const name = new URL(url).pathname.slice(1)
    await expect
      .poll(
        async () =>
          (await query(url, `select from pg_stat_activity where datname = '${name}' and application_name = 'tidemark'`))
            .length,
      )
      .toBe(0)
    return Number(
      (await query<{ deadlocks: string }>(url, `select deadlocks from pg_stat_database where datname = '${name}'`))[0]!
        .deadlocks,
    )
  }

  beforeEach(async () => {
    url = await createDatabase(server)
  })
  afterEach(async () => {
    await close()
    await dropDatabase(server, url)
  })

  for (const round of [1, 2, 3]) {
    test(`XA10 no two transactions on a new tenant deadlock (${round})`, async () => {
      const stores = await Promise.all([1, 2, 3].map(open))
      const failures: unknown[] = []
      for (let n = 0; n < 12; n++) {
        const actions = stores.flatMap((store, at) =>
          actionsOf(store.forTenant(`t${n}`), `p${at}`, seededRandom(round * 1_000 + n * 10 + at)),
        )
        for (const { status, ...rest } of await Promise.allSettled(actions.map((action) => action()))) {
          if (status === 'rejected') failures.push((rest as { reason: unknown }).reason)
        }
      }
      expect(failures).toEqual([])
      expect(await deadlocks()).toBe(0)
    })
  }

  for (const state of ['40P01', '40001']) {
    for (const [when, timing] of [
      ['in a statement', ''],
      ['at COMMIT', 'constraint'],
    ] as const) {
      test(`XB8 a transaction that the server aborted ${when} with ${state} is retried`, async () => {
        const store = await open()
        const driver = await SyncDriver.acquire(store)
        await driver.begin()
        await refuse(await connect(), state, timing, 2)
        await driver.page([upsert('a', { n: 1 })])
        expect((await store.rows({ database: DATABASE, limit: 9 })).length).toBe(1)
        expect((await store.changes({ after: 0, limit: 9 })).length).toBe(1)
      })
    }
  }

  test('XB8 a transaction that the server always aborts is STORE_BUSY', async () => {
    const store = await open()
    const driver = await SyncDriver.acquire(store)
    await driver.begin()
    const client = await connect()
    await refuse(client, '40P01', '', 1_000)
    await expect(driver.page([upsert('a', { n: 1 })])).rejects.toMatchObject({ code: 'STORE_BUSY' })
    const {
      rows: [counter],
    } = await client.query<{ last_value: string }>('select last_value from public.refused')
    expect(Number(counter!.last_value)).toBeLessThan(20)
    expect(await store.rows({ database: DATABASE, limit: 9 })).toEqual([])
  })

  test('XB4 a COMMIT with an unknown completion is COMMIT_UNKNOWN, and is not retried', async () => {
    const store = await open()
    const driver = await SyncDriver.acquire(store)
    await driver.begin()
    await refuse(await connect(), '40003', 'constraint', 1)
    await expect(driver.page([upsert('a', { n: 1 })])).rejects.toMatchObject({ code: 'COMMIT_UNKNOWN' })
  })

  test('Z14 a message that arrives during an erasure waits for it', async () => {
    const store = await open()
    await SyncDriver.acquire(store)
    const eraser = await connect()
    await eraser.query('begin; select from tidemark.tenants for update; update tidemark.tenants set erased = true')
    const claimed = store.claimInbound(
      { source: 'stripe', id: 'm1' },
      { at: START, claimTtlMs: 1_000, purgeBefore: 0, payload: '{}' },
    )
    const refused = expect(claimed).rejects.toMatchObject({ code: 'TENANT_ERASED' })
    await expect
      .poll(
        async () =>
          (
            await query(
              url,
              "select from pg_stat_activity where application_name = 'tidemark' and wait_event_type = 'Lock'",
            )
          ).length,
      )
      .toBe(1)
    await eraser.query('commit')
    await refused
    expect(await query(url, 'select from tidemark.inbound')).toEqual([])
  })
})

/**
 * Each action is something that a process may do to a tenant at any time. Being fenced, or finding the sync held, is
 * not a failure.
 */
function actionsOf(store: Store, holder: string, random: () => number): Array<() => Promise<unknown>> {
  const refs = ['delta', 'backfill'].map((sync) => ({ worker: 'crm', sync }))
  const cycle = (sync: string) => async (): Promise<void> => {
    const ref = { worker: 'crm', sync }
    const acquired = await store.acquire(ref, { holder, ttlMs: 1 + Math.floor(random() * 3), at: START })
    if (acquired.kind !== 'acquired') return
    const {
      lease,
      checkpoint: { version },
    } = acquired
    const begun = await store.beginCycle(lease, {
      at: START,
      mode: 'incremental',
      trigger: 'manual',
      fresh: true,
      databases: [],
    })
    if (begun === null) return
    const common = {
      lease,
      version,
      at: START,
      owner: 'crm',
      quarantined: [],
      columns: {},
      readAtSequence: 0,
      upstreamToleranceMs: 0,
    }
    const transition = {
      kind: 'continue',
      cycle: begun.inflight.cycle,
      page: 1,
      state: '1',
      tidemark: null,
      scope: null,
      guardState: null,
    } as const
    await store.commit({ ...common, transition, landings: [upsert(`${holder}-${sync}`, { n: random() })] })
    if (sync === 'delta') {
      const lost = {
        kind: 'set',
        state: null,
        actor: 'engine',
        reason: 'lost',
        backfillRequest: { sync: 'backfill', reason: 'lost' },
      } as const
      await store.commit({ ...common, transition: lost, landings: [] })
    }
    await store.release(lease, {
      cycle: begun.inflight.cycle,
      stopReason: 'error',
      endedAt: START,
      pages: 1,
      retries: 0,
      waitedMs: 0,
      retryAt: null,
      counts: { created: 0, updated: 0, deleted: 0, swept: 0, unchanged: 0, stale: 0, missing: 0, quarantined: 0 },
      error: { code: 'VERSION_CONFLICT', message: 'moved' },
    })
  }
  const deliver = async (): Promise<void> => {
    const settings = {
      id: 'w',
      url: 'https://example.com',
      databases: null,
      actions: null,
      allow: [],
      secrets: 's',
      createdAt: START,
    }
    await store.putWebhook(settings, { sequence: 0, floor: 0 })
    for (let n = 0; n < 3; n++) {
      const claim = await store.claimWebhook('w', { holder, ttlMs: 1, at: START })
      if (claim === null) continue
      const undelivered = [3, 1, 2].map((sequence) => ({
        sequence,
        messageId: `m${sequence}`,
        database: DATABASE,
        key: 'a',
        body: '{}',
        attempts: 1,
        firstAt: START,
        nextAt: START,
        failed: false,
        lastStatus: null,
        lastResponse: null,
      }))
      await store.recordDeliveries(claim, { progress: PROGRESS, delivered: [], undelivered })
      await store.recordDeliveries(claim, { progress: PROGRESS, delivered: [2, 3, 1], undelivered: [] })
    }
  }
  const pause = async (): Promise<void> => {
    for (let n = 0; n < 5; n++) {
      await store.recordPause({
        worker: `w${Math.floor(random() * 2)}`,
        pacers: ['c', 'a', 'b'],
        origin: 'https://example.com',
        ms: 1,
        at: START,
      })
    }
  }
  const count = async (): Promise<void> => {
    for (let n = 0; n < 5; n++)
      await store.countRequests(Math.floor(random() * 4), [
        ['b', 1],
        ['a', 1],
        ['c', 1],
      ])
  }
  return [
    ...refs.flatMap(({ sync }) => [cycle(sync), cycle(sync)]),
    ...refs.flatMap((ref) => [
      () => store.signalSync(ref, { kind: 'pause', ...BY }),
      () => store.signalSync(ref, { kind: 'resume', ...BY }),
    ]),
    () => store.signalSync(refs[0]!, { kind: 'trigger', ...BY }),
    () => store.eraseTenant(BY),
    deliver,
    pause,
    count,
    () => store.removeWebhook('w', BY),
    () => store.putDataKey({ id: `${holder}-key`, wrappedBy: 'k', wrapped: 'w' }, BY),
    () => store.compact({ before: START + 1, scanMax: 10 }),
    () => store.eraseTenant(BY),
  ]
}

const PROGRESS: WebhookProgress = {
  sequence: 0,
  floor: 0,
  failureStreak: 0,
  retryAt: null,
  succeededAt: null,
  failedAt: null,
  lastStatus: null,
  lastResponse: null,
  disabledReason: null,
}

/**
 * From now on the first `times` writes to the log are refused, in the statement or, by a constraint trigger, at COMMIT.
 */
async function refuse(client: pg.Client, state: string, timing: '' | 'constraint', times: number): Promise<void> {
  const when =
    timing === 'constraint'
      ? 'create constraint trigger refuse after insert on tidemark.commits deferrable initially deferred'
      : 'create trigger refuse after insert on tidemark.commits'
  await client.query(`
    create sequence public.refused;
    grant usage on sequence public.refused to public;
    create function public.refuse() returns trigger language plpgsql security definer as $$
      begin
        if nextval('public.refused') <= ${times} then raise exception 'refused' using errcode = '${state}'; end if;
        return new;
      end $$;
    ${when} for each row execute function public.refuse()`)
}
