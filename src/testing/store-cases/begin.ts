import assert from 'node:assert/strict'
import { DATABASE, START, type StoreCase, SyncDriver, upsert, rule } from './harness.ts'
import { required } from '../../values/required.ts'

export const beginCases: readonly StoreCase[] = [
  rule('a sync that never ran has version 0 and nothing else, and reading it creates nothing', async ({ store }) => {
    assert.deepEqual(await store.readCheckpoint({ worker: 'crm', sync: 'delta' }), {
      version: 0,
      committed: null,
      committedBy: null,
      inflight: null,
      scope: null,
      tidemark: null,
      paused: false,
      triggeredAt: null,
      failures: 0,
      lastError: null,
      retryAt: null,
      lastSuccessAt: null,
      completeSince: null,
      backfillNeeded: null,
      heldBy: null,
      heldSince: null,
      heldUntil: null,
    })
    assert.deepEqual(await store.syncs(), [])
    assert.deepEqual(await store.audit({ worker: 'crm', sync: 'delta' }), [])
    assert.deepEqual(await store.cycles({ worker: 'crm', sync: 'delta' }), [])
    assert.deepEqual(await store.lastSlotTimes('crm'), {})
    assert.equal(await store.headSequence(), 0)
  }),
  rule('a first cycle begins at page 0 without state, and leaves committed as it is', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    const { inflight, resumed, headSequence: position } = await driver.begin({ at: START + 5 })
    assert.equal(resumed, false)
    assert.equal(position, 0)
    assert.deepEqual(inflight, {
      cycle: inflight.cycle,
      mode: 'incremental',
      page: 0,
      state: null,
      startedAt: START + 5,
      scope: null,
      tidemark: null,
      guardState: null,
      startSequence: 0,
    })
    const checkpoint = await store.readCheckpoint(driver.ref)
    assert.deepEqual(checkpoint.inflight, inflight)
    assert.deepEqual([checkpoint.version, checkpoint.committed, checkpoint.committedBy], [0, null, null])
  }),
  rule('N11 an incremental cycle begins from the committed state, a replace cycle without one', async ({ store }) => {
    const delta = await SyncDriver.acquire(store)
    await delta.cycle([upsert('a', { n: 1 })], { state: '{"since":1}' })
    assert.equal((await delta.begin()).inflight.state, '{"since":1}')

    const backfill = await SyncDriver.acquire(store, { sync: 'backfill', mode: 'replace' })
    await backfill.cycle([upsert('b', { n: 1 })], { state: '{"since":2}' })
    assert.equal((await backfill.begin()).inflight.state, null)
  }),
  rule('N15 each sync has its own state, also when two share a database', async ({ store }) => {
    const delta = await SyncDriver.acquire(store, { owner: 'accounts' })
    const backfill = await SyncDriver.acquire(store, { sync: 'backfill', mode: 'replace', owner: 'accounts' })
    await delta.cycle([upsert('a', { n: 1 })], { state: '"of the delta"' })
    await backfill.begin()
    await backfill.page([upsert('a', { n: 1 })], { state: '"of the backfill"' })
    await delta.begin()
    assert.deepEqual(
      [(await store.readCheckpoint(delta.ref)).committed, (await store.readCheckpoint(delta.ref)).inflight?.state],
      ['"of the delta"', '"of the delta"'],
    )
    assert.deepEqual(
      [
        (await store.readCheckpoint(backfill.ref)).committed,
        (await store.readCheckpoint(backfill.ref)).inflight?.state,
      ],
      [null, '"of the backfill"'],
    )
  }),
  rule('an unfinished cycle is resumed after its last page, by any runner', async ({ store, reopen }) => {
    const first = await SyncDriver.acquire(store, { mode: 'replace' })
    await (await SyncDriver.acquire(store, { sync: 'other' })).cycle([upsert('x', { n: 0 })])
    const begun = await first.begin()
    assert.equal(begun.inflight.startSequence, 1)
    await first.page([upsert('a', { n: 1 }), upsert('b', { n: 1 })], { state: '{"next":"b"}' })
    await first.page([upsert('c', { n: 1 })], { state: '{"next":"c"}', guardState: '{"mark":"c"}' })

    const heir = await SyncDriver.acquire(await reopen(), { mode: 'replace', holder: 'runner-2', evict: 'runner-1' })
    const again = await heir.begin({ at: START + 99_999 })
    assert.equal(again.resumed, true)
    assert.equal(again.headSequence, 4)
    assert.deepEqual(again.inflight, { ...begun.inflight, page: 2, state: '{"next":"c"}', guardState: '{"mark":"c"}' })
    await heir.complete([upsert('d', { n: 1 })])
    assert.equal((await store.cycles(heir.ref)).length, 1)
  }),
  rule('a resumed cycle is recorded as running, whatever ended it before', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    const { inflight } = await driver.begin()
    await driver.page([upsert('a', { n: 1 })])
    await driver.release({
      cycle: inflight.cycle,
      stopReason: 'error',
      endedAt: START + 1,
      error: { code: 'SOURCE_UNAVAILABLE', message: 'away' },
    })
    const [ended] = await store.cycles(driver.ref)
    assert.deepEqual(
      [required(ended, 'ended').endedAt, required(ended, 'ended').stopReason, required(ended, 'ended').error?.code],
      [START + 1, 'error', 'SOURCE_UNAVAILABLE'],
    )
    const again = await SyncDriver.acquire(store)
    assert.equal((await again.begin()).resumed, true)
    const [running] = await store.cycles(driver.ref)
    assert.deepEqual(
      [
        required(running, 'running').endedAt,
        required(running, 'running').stopReason,
        required(running, 'running').error,
      ],
      [null, null, null],
    )
  }),
  rule('a fresh begin abandons the unfinished cycle and starts over from committed', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.cycle([], { state: '"committed"' })
    const abandoned = await driver.begin()
    await driver.page([upsert('a', { n: 1 })], { state: '"half way"', guardState: '"of the old cycle"' })
    const { inflight, resumed } = await driver.begin({ fresh: true })
    assert.equal(resumed, false)
    assert.notEqual(inflight.cycle, abandoned.inflight.cycle)
    assert.deepEqual(
      [inflight.page, inflight.state, inflight.startSequence, inflight.guardState],
      [0, '"committed"', 1, null],
    )
  }),
  rule('a cycle of the other mode is not resumed', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    const incremental = await driver.begin()
    await driver.page([upsert('a', { n: 1 })])
    const replace = await driver.begin({ mode: 'replace' })
    assert.equal(replace.resumed, false)
    assert.notEqual(replace.inflight.cycle, incremental.inflight.cycle)
    assert.deepEqual([replace.inflight.mode, replace.inflight.page, replace.inflight.state], ['replace', 0, null])
  }),
  rule('a requested run is no longer requested once it began', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    await store.signalSync(driver.ref, { kind: 'trigger', actor: 'operator', at: START + 7 })
    assert.equal((await store.readCheckpoint(driver.ref)).triggeredAt, START + 7)
    await driver.begin()
    assert.equal((await store.readCheckpoint(driver.ref)).triggeredAt, null)
  }),
  rule('the databases of a sync exist from its first begin, also while they are empty', async ({ store, supports }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.begin({ databases: [DATABASE, 'people'] })
    const databases = (await store.databases()).toSorted((a, b) => (a.name < b.name ? -1 : 1))
    assert.deepEqual(
      databases.map(({ name, rows, columns }) => ({ name, rows, columns })),
      [
        { name: 'people', rows: 0, columns: [] },
        { name: DATABASE, rows: 0, columns: [] },
      ],
    )
    if (supports?.select === undefined) return
    for (const { table, history } of databases) {
      assert.deepEqual([await supports.select(table), await supports.select(history)], [[], []])
    }
  }),
  rule('every cycle is recorded from its begin: newest first, for one sync or for all', async ({ store }) => {
    const delta = await SyncDriver.acquire(store)
    const first = await delta.begin({ at: START + 1, trigger: 'schedule' })
    await delta.complete([upsert('a', { n: 1 })])
    const backfill = await SyncDriver.acquire(store, { sync: 'backfill', mode: 'replace' })
    const second = await backfill.begin({ at: START + 2, trigger: 'manual' })
    const third = await delta.begin({ at: START + 3, trigger: 'webhook' })

    assert.deepEqual(
      (await store.cycles(null)).map(({ cycle }) => cycle),
      [third, second, first].map(({ inflight }) => inflight.cycle),
    )
    assert.deepEqual(
      (await store.cycles(null, { limit: 1 })).map(({ cycle }) => cycle),
      [third.inflight.cycle],
    )
    const [newest, oldest] = await store.cycles(delta.ref)
    assert.equal(required(newest, 'newest').cycle, third.inflight.cycle)
    assert.deepEqual(
      [
        required(oldest, 'oldest').worker,
        required(oldest, 'oldest').sync,
        required(oldest, 'oldest').mode,
        required(oldest, 'oldest').trigger,
        required(oldest, 'oldest').startedAt,
        required(oldest, 'oldest').startSequence,
      ],
      ['crm', 'delta', 'incremental', 'schedule', START + 1, 0],
    )
    assert.deepEqual(
      [
        required(newest, 'newest').startSequence,
        required(newest, 'newest').endedAt,
        required(newest, 'newest').stopReason,
      ],
      [1, null, null],
    )
  }),
]
