import assert from 'node:assert/strict'
import type { StateTransition } from '../../contract/index.ts'
import {
  counts,
  expectLanded,
  makeQuarantined,
  remove,
  START,
  type StoreCase,
  SyncDriver,
  upsert,
  rule,
} from './harness.ts'
import { required } from '../../values/required.ts'

const REF = { worker: 'crm', sync: 'delta' }

export const registryCases: readonly StoreCase[] = [
  rule('the syncs of a tenant are listed by worker and name', async ({ store }) => {
    for (const [worker, sync] of [
      ['crm', 'b'],
      ['billing', 'z'],
      ['crm', 'a'],
      ['Billing', 'z'],
    ] as const)
      await SyncDriver.acquire(store, { worker, sync })
    assert.deepEqual(await store.syncs(), [
      { worker: 'Billing', sync: 'z' },
      { worker: 'billing', sync: 'z' },
      { worker: 'crm', sync: 'a' },
      { worker: 'crm', sync: 'b' },
    ])
  }),
  rule(
    'a sync is paused and resumed, also before it ever ran; each is audited, and neither changes state',
    async ({ store }) => {
      await store.signalSync(REF, { kind: 'pause', actor: 'ana', at: START + 1 })
      assert.equal((await store.readCheckpoint(REF)).paused, true)
      const driver = await SyncDriver.acquire(store)
      await driver.begin()
      assert.equal((await driver.page([upsert('a', { n: 1 })])).paused, true)
      const before = await store.readCheckpoint(REF)
      await store.signalSync(REF, { kind: 'resume', actor: 'bo', at: START + 2 })
      assert.deepEqual(await store.readCheckpoint(REF), { ...before, paused: false })
      assert.equal((await driver.page([upsert('b', { n: 1 })])).paused, false)
      assert.deepEqual(
        (await store.audit(REF)).map(({ action, actor, at, version, state }) => ({
          action,
          actor,
          at,
          version,
          state,
        })),
        [
          { action: 'resume', actor: 'bo', at: START + 2, version: 0, state: null },
          { action: 'pause', actor: 'ana', at: START + 1, version: 0, state: null },
        ],
      )
    },
  ),
  rule(
    'requesting a run leaves the checkpoint as it is, and the request outlives a running cycle until the next begin',
    async ({ store, reopen }) => {
      const driver = await SyncDriver.acquire(store)
      await driver.begin()
      const before = await store.readCheckpoint(REF)
      await (await reopen()).signalSync(REF, { kind: 'trigger', actor: 'ana', at: START + 9 })
      assert.deepEqual(await store.readCheckpoint(REF), { ...before, triggeredAt: START + 9 })
      await driver.complete([])
      assert.equal((await store.readCheckpoint(REF)).triggeredAt, START + 9)
    },
  ),
  rule('a failed cycle is counted and has a retry time; a success resets it', async ({ store }) => {
    for (const failures of [1, 2]) {
      const driver = await SyncDriver.acquire(store)
      await driver.begin()
      await driver.release({
        stopReason: 'error',
        endedAt: START + failures,
        error: { code: 'SOURCE_TIMEOUT', message: `no answer ${failures}` },
        retryAt: START + 60_000,
      })
      const checkpoint = await store.readCheckpoint(REF)
      assert.deepEqual(
        [checkpoint.failures, checkpoint.lastError, checkpoint.retryAt, checkpoint.lastSuccessAt, checkpoint.heldBy],
        [
          failures,
          { code: 'SOURCE_TIMEOUT', message: `no answer ${failures}`, at: START + failures },
          START + 60_000,
          null,
          null,
        ],
      )
    }
    const driver = await SyncDriver.acquire(store)
    const {
      inflight: { cycle },
    } = await driver.begin()
    await driver.complete([])
    await driver.release({ cycle, stopReason: 'complete', endedAt: START + 50 })
    const { failures, lastError, retryAt, lastSuccessAt } = await store.readCheckpoint(REF)
    assert.deepEqual(
      { failures, lastError, retryAt, lastSuccessAt },
      { failures: 0, lastError: null, retryAt: null, lastSuccessAt: START + 50 },
    )
  }),
  rule('SX6 a resume clears the backoff and the failure count; the last error stays readable', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.begin()
    const error = { code: 'SOURCE_TIMEOUT', message: 'no answer' } as const
    await driver.release({ stopReason: 'error', endedAt: START + 1, error, retryAt: START + 60_000 })
    await store.signalSync(REF, { kind: 'resume', actor: 'ana', at: START + 2 })
    const { failures, retryAt, lastError, paused } = await store.readCheckpoint(REF)
    assert.deepEqual(
      { failures, retryAt, lastError, paused },
      { failures: 0, retryAt: null, lastError: { ...error, at: START + 1 }, paused: false },
    )
  }),
  rule('a cycle that was merely stopped is neither a failure nor a success', async ({ store }) => {
    const failed = await SyncDriver.acquire(store)
    await failed.begin()
    await failed.release({ stopReason: 'error', error: { code: 'SOURCE_TIMEOUT', message: 'no answer' } })
    const before = await store.readCheckpoint(REF)
    const driver = await SyncDriver.acquire(store)
    await driver.begin()
    await driver.release({ stopReason: 'cancelled' })
    assert.deepEqual(await store.readCheckpoint(REF), before)
  }),
  rule(
    'the record of a cycle is closed by its report; the retries and waits of a resumed cycle add up',
    async ({ store }) => {
      const first = await SyncDriver.acquire(store)
      const {
        inflight: { cycle },
      } = await first.begin({ at: START, trigger: 'schedule' })
      await first.page([upsert('a', { n: 1 })])
      await first.release({
        stopReason: 'error',
        endedAt: START + 10,
        retries: 2,
        waitedMs: 300,
        error: { code: 'SOURCE_TIMEOUT', message: 'no answer' },
      })
      const [stopped] = await store.cycles(REF)
      assert.deepEqual(
        [
          required(stopped, 'stopped').cycle,
          required(stopped, 'stopped').stopReason,
          required(stopped, 'stopped').endedAt,
          required(stopped, 'stopped').error,
        ],
        [cycle, 'error', START + 10, { code: 'SOURCE_TIMEOUT', message: 'no answer' }],
      )

      const second = await SyncDriver.acquire(store)
      await second.begin()
      await second.complete([upsert('b', { n: 1 })])
      await second.release({ cycle, stopReason: 'complete', endedAt: START + 20, retries: 1, waitedMs: 50 })
      assert.deepEqual(await store.cycles(REF), [
        {
          worker: 'crm',
          sync: 'delta',
          cycle,
          mode: 'incremental',
          trigger: 'schedule',
          startedAt: START,
          startSequence: 0,
          endedAt: START + 20,
          stopReason: 'complete',
          endReason: null,
          pages: 2,
          counts: counts({ created: 2 }),
          retries: 3,
          waitedMs: 350,
          error: null,
        },
      ])
    },
  ),
  rule(
    'XB3 a cycle that ended because its checkpoint was changed is in the audit log; any other failure is not',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      const { cycle } = (await driver.begin()).inflight
      await driver.set('"moved"')
      await driver.release({
        cycle,
        stopReason: 'error',
        endedAt: START + 5,
        error: { code: 'VERSION_CONFLICT', message: 'it moved' },
      })
      const next = await SyncDriver.acquire(store)
      await next.release({
        stopReason: 'error',
        endedAt: START + 6,
        error: { code: 'SOURCE_TIMEOUT', message: 'no answer' },
      })
      const [newest, set] = await store.audit(driver.ref, { limit: 10 })
      assert.deepEqual(newest, {
        version: 1,
        at: START + 5,
        actor: 'engine',
        action: 'conflict',
        reason: 'it moved',
        cycle,
        state: null,
      })
      assert.equal(required(set, 'set').action, 'set')
    },
  ),
  rule('a release without a report ends the lease and nothing else', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.begin()
    const before = await store.readCheckpoint(REF)
    const cycles = await store.cycles(REF)
    await driver.release()
    assert.deepEqual(await store.readCheckpoint(REF), { ...before, heldBy: null, heldSince: null, heldUntil: null })
    assert.deepEqual(await store.cycles(REF), cycles)
  }),

  // ── quarantine ──
  rule(
    'a record that cannot be landed is kept with its reason, and listed for one sync or for all',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      const other = await SyncDriver.acquire(store, { sync: 'other' })
      const {
        inflight: { cycle },
      } = await driver.begin()
      await driver.page([], {
        at: START + 5,
        quarantined: [makeQuarantined('a', { code: 'RECORD_TOO_LARGE', message: 'six megabytes', text: '{"x":' })],
      })
      await other.cycle([], { quarantined: [makeQuarantined(null)] })
      const all = await store.quarantineEntries()
      assert.deepEqual(all.map(({ sync, key }) => `${sync} ${key}`).toSorted(), ['delta a', 'other null'])
      assert.deepEqual(await store.quarantineEntries({ ref: driver.ref }), [
        {
          id: required(
            all.find(({ key }) => key === 'a'),
            'the match in all',
          ).id,
          worker: 'crm',
          sync: 'delta',
          cycle,
          page: 1,
          at: START + 5,
          database: 'things',
          key: 'a',
          code: 'RECORD_TOO_LARGE',
          message: 'six megabytes',
          text: '{"x":',
        },
      ])
      assert.equal((await store.quarantineEntries({ limit: 1 })).length, 1)
    },
  ),
  rule(
    'one record is one entry however often it occurs: by its key, or by its text when it has none',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      await driver.begin()
      for (const message of ['first', 'second']) {
        await driver.page([], {
          quarantined: [
            makeQuarantined('a', { message }),
            makeQuarantined(null, { text: 'one', message }),
            makeQuarantined(null, { text: 'two', message }),
            makeQuarantined('a', { message, database: 'people' }),
          ],
        })
      }
      const entries = await store.quarantineEntries()
      assert.equal(entries.length, 4)
      assert.deepEqual(new Set(entries.map(({ message, page }) => `${message} ${page}`)), new Set(['second 2']))
    },
  ),
  rule('a key that lands, or is deleted, leaves the quarantine of its sync and of no other', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    const other = await SyncDriver.acquire(store, { sync: 'other' })
    const quarantined = [
      makeQuarantined('a'),
      makeQuarantined('b'),
      makeQuarantined('c'),
      makeQuarantined('a', { database: 'people' }),
      makeQuarantined(null),
    ]
    await driver.cycle([], { quarantined })
    await other.cycle([], { quarantined: [makeQuarantined('a')] })
    await driver.cycle([upsert('a', { n: 1 }), remove('b')])
    assert.deepEqual(
      (await store.quarantineEntries()).map(({ sync, database, key }) => `${sync} ${database} ${key}`).toSorted(),
      ['delta people a', 'delta things c', 'delta things null', 'other things a'],
    )
  }),
  rule(
    'XD24 drift is recorded with the page that contained it, and a cycle begins with the known fields',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      assert.deepEqual((await driver.begin()).columns, { things: [] })
      await driver.page([upsert('a', { n: 1 })])
      await driver.complete([upsert('a', { n: 1, note: 'x' })], { drift: 'new things.note (string)' })
      const {
        columns,
        inflight: { cycle },
      } = await driver.begin()
      assert.deepEqual(columns, {
        things: [
          { name: 'n', kinds: ['integer'] },
          { name: 'note', kinds: ['string'] },
        ],
      })
      const audit = await store.audit(driver.ref)
      assert.deepEqual(
        audit.map(({ action, reason, version, cycle: of }) => [action, reason, version, of]),
        [
          ['complete', '', 1, cycle - 1],
          ['drift', 'new things.note (string)', 0, cycle - 1],
        ],
      )
    },
  ),
  rule(
    'invariant 1 a replay lands, drops or keeps each entry with its old time, without affecting the checkpoint or an unfinished cycle',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store, { mode: 'replace' })
      await driver.cycle([upsert('old', { n: 1 }), upsert('swept', { n: 1 })])
      await driver.begin()
      await driver.page([upsert('old', { n: 1 })], {
        at: START + 50,
        quarantined: ['a', 'b', 'c'].map((key) => makeQuarantined(key)),
      })
      const before = await store.readCheckpoint(driver.ref)
      const [record] = await store.cycles(driver.ref)
      const entries = await store.quarantineEntries()
      const idOf = (key: string): number =>
        required(
          entries.find((entry) => entry.key === key),
          'the match in entries',
        ).id
      const replay = (superseded: number[]): StateTransition => ({
        kind: 'replay',
        actor: 'ana',
        reason: 'the schema was mended',
        superseded,
      })
      const outcome = expectLanded(
        await driver.send(
          await driver.draft(replay([idOf('b')]), [upsert('a', { n: 1 }), upsert('swept', { n: 2 })], {
            at: START + 90,
            quarantined: [makeQuarantined('c', { code: 'SCHEMA_MISMATCH', message: 'still not' })],
          }),
        ),
      )
      assert.deepEqual(outcome.counts, counts({ created: 1, updated: 1, quarantined: 1 }))
      assert.deepEqual(await store.quarantineEntries(), [
        {
          ...required(
            entries.find(({ key }) => key === 'c'),
            'the match in entries',
          ),
          code: 'SCHEMA_MISMATCH',
          message: 'still not',
        },
      ])
      assert.deepEqual(await store.readCheckpoint(driver.ref), before)
      assert.deepEqual(await store.cycles(driver.ref), [record, (await store.cycles(driver.ref))[1]])
      const [audited] = await store.audit(driver.ref, { limit: 1 })
      assert.deepEqual(
        [
          required(audited, 'audited').action,
          required(audited, 'audited').actor,
          required(audited, 'audited').reason,
          required(audited, 'audited').state,
          required(audited, 'audited').version,
        ],
        ['replay', 'ana', 'the schema was mended', null, before.version],
      )
      // Replayed rows were written since the cycle began, so its sweep leaves them.
      assert.equal((await driver.complete([])).counts.swept, 0)
      // Entries of another sync, or under a stale lease, are not removed.
      const other = await SyncDriver.acquire(store, { sync: 'other' })
      await other.cycle([], { quarantined: [makeQuarantined('x')] })
      const [x] = await store.quarantineEntries({ ref: other.ref })
      expectLanded(await driver.send(await driver.draft(replay([required(x, 'x').id]), [])))
      assert.equal((await store.quarantineEntries({ ref: other.ref })).length, 1)
      await store.acquire(driver.ref, {
        holder: 'another',
        ttlMs: 1_000,
        at: START + 1_000,
        evictHolder: driver.lease.holder,
      })
      assert.deepEqual(await store.commit(await driver.draft(replay([]), [upsert('late', { n: 1 })])), {
        kind: 'fenced',
      })
    },
  ),
]
