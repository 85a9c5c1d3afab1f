import assert from 'node:assert/strict'
import type { StateTransition } from '../../contract/index.ts'
import {
  counts,
  instant,
  expectLanded,
  readLiveRows,
  makeQuarantined,
  readSnapshot,
  START,
  type StoreCase,
  scenario,
  SyncDriver,
  upsert,
  rule,
} from './harness.ts'
import { required } from '../../values/required.ts'

export const commitCases: readonly StoreCase[] = [
  rule('invariant 1: a page lands its rows and updates inflight, and leaves committed unchanged', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.cycle([], { state: '"old"' })
    const { inflight } = await driver.begin()
    const outcome = await driver.page([upsert('a', { n: 1 }), upsert('b', { n: 2 })], { state: '"p1"' })
    assert.deepEqual(outcome, {
      kind: 'landed',
      version: 1,
      headSequence: 2,
      counts: counts({ created: 2 }),
      paused: false,
    })
    const checkpoint = await store.readCheckpoint(driver.ref)
    assert.deepEqual(checkpoint.inflight, { ...inflight, page: 1, state: '"p1"' })
    assert.deepEqual([checkpoint.version, checkpoint.committed], [1, '"old"'])
    assert.equal(await store.headSequence(), 2)
    assert.deepEqual(await readLiveRows(store), [
      ['a', { n: 1 }],
      ['b', { n: 2 }],
    ])
  }),
  rule(
    'O5 R9 R11 invariant 2: the last page updates committed, clears inflight and increments the version by exactly one',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      for (const version of [1, 2, 3]) {
        const { inflight } = await driver.begin()
        await driver.page([upsert(`a${version}`, { n: 1 })])
        const outcome = await driver.complete([upsert(`b${version}`, { n: 1 })], {
          state: `{"v":${version}}`,
          tidemark: instant(version),
          scope: 'all',
        })
        assert.equal(outcome.version, version)
        const checkpoint = await store.readCheckpoint(driver.ref)
        assert.deepEqual(
          [
            checkpoint.version,
            checkpoint.committed,
            checkpoint.committedBy,
            checkpoint.inflight,
            checkpoint.tidemark,
            checkpoint.scope,
          ],
          [version, `{"v":${version}}`, inflight.cycle, null, instant(version), 'all'],
        )
      }
      assert.deepEqual(
        (await store.audit(driver.ref)).map(({ action, version, state }) => ({ action, version, state })),
        [3, 2, 1].map((version) => ({
          action: 'complete',
          version,
          state: `{"v":${version}}`,
        })),
      )
      assert.equal((await store.audit(driver.ref, { limit: 2 })).length, 2)
    },
  ),
  rule('a cycle without changes leaves the tidemark where it was', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.cycle([upsert('a', { n: 1 }, { at: 9 })], { tidemark: instant(9), scope: 'all' })
    await driver.cycle([])
    const { tidemark, scope } = await store.readCheckpoint(driver.ref)
    assert.deepEqual({ tidemark, scope }, { tidemark: instant(9), scope: 'all' })
  }),
  rule(
    'R17 an abandoned cycle lands its rows, clears inflight and leaves committed and the version unchanged',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      await driver.cycle([], { state: '"old"' })
      const { inflight } = await driver.begin()
      await driver.page([upsert('a', { n: 1 })])
      const outcome = await driver.abandon([upsert('b', { n: 1 })], 'the sweep was refused')
      assert.equal(outcome.version, 1)
      const checkpoint = await store.readCheckpoint(driver.ref)
      assert.deepEqual([checkpoint.version, checkpoint.committed, checkpoint.inflight], [1, '"old"', null])
      assert.deepEqual(
        (await readLiveRows(store)).map(([key]) => key),
        ['a', 'b'],
      )
      const [entry] = await store.audit(driver.ref)
      assert.deepEqual(
        [
          required(entry, 'entry').action,
          required(entry, 'entry').reason,
          required(entry, 'entry').cycle,
          required(entry, 'entry').version,
          required(entry, 'entry').state,
        ],
        ['abandon', 'the sweep was refused', inflight.cycle, 1, null],
      )
      assert.equal((await driver.begin()).inflight.state, '"old"')
    },
  ),
  rule(
    'XE11 the scope and tidemark of a page are stored with it, for the runner that resumes the cycle',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store, { mode: 'replace' })
      await driver.begin()
      await driver.page([upsert('a', { n: 1 })], { scope: 'account 1', tidemark: 'line 1' })
      assert.deepEqual(
        [
          required(driver.inflight, 'driver.inflight').scope,
          (await store.readCheckpoint(driver.ref)).inflight?.scope,
          (await store.readCheckpoint(driver.ref)).inflight?.tidemark,
        ],
        [null, 'account 1', 'line 1'],
      )
      assert.deepEqual(
        [(await store.readCheckpoint(driver.ref)).scope, (await store.readCheckpoint(driver.ref)).tidemark],
        [null, null],
      )
      const heir = await SyncDriver.acquire(store, { mode: 'replace', holder: 'runner-2', evict: 'runner-1' })
      const { inflight } = await heir.begin()
      assert.deepEqual([inflight.scope, inflight.tidemark], ['account 1', 'line 1'])
    },
  ),
  rule('NX4 an operator sets the state: earlier failures, error, wait and tidemark are cleared', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.cycle([upsert('a', { n: 1 }, { at: 1 })], { tidemark: 'line' })
    await driver.begin()
    await driver.release({
      stopReason: 'error',
      error: { code: 'SOURCE_TIMEOUT', message: 'no answer' },
      retryAt: START + 60_000,
    })
    const failed = await store.readCheckpoint(driver.ref)
    assert.deepEqual(
      [failed.failures, failed.lastError?.code, failed.retryAt, failed.tidemark],
      [1, 'SOURCE_TIMEOUT', START + 60_000, 'line'],
    )
    await (await SyncDriver.acquire(store)).set(null, 'ana', 'start over')
    const reset = await store.readCheckpoint(driver.ref)
    assert.deepEqual(
      [reset.failures, reset.lastError, reset.retryAt, reset.tidemark, reset.inflight, reset.committed],
      [0, null, null, null, null, null],
    )
  }),
  rule(
    'an operator sets the state: the version increases, the unfinished cycle is dropped, the audit log records the actor and the reason',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      await driver.cycle([], { state: '"old"' })
      await driver.begin()
      await driver.page([upsert('a', { n: 1 })])
      const outcome = await driver.set('"rewound"', 'ana', 'the vendor lost a day')
      assert.equal(outcome.version, 2)
      const checkpoint = await store.readCheckpoint(driver.ref)
      assert.deepEqual(
        [checkpoint.version, checkpoint.committed, checkpoint.committedBy, checkpoint.inflight],
        [2, '"rewound"', null, null],
      )
      const [entry] = await store.audit(driver.ref)
      assert.deepEqual(
        [
          required(entry, 'entry').action,
          required(entry, 'entry').actor,
          required(entry, 'entry').reason,
          required(entry, 'entry').version,
          required(entry, 'entry').cycle,
          required(entry, 'entry').state,
        ],
        ['set', 'ana', 'the vendor lost a day', 2, null, '"rewound"'],
      )
      assert.deepEqual(await readLiveRows(store), [['a', { n: 1 }]])
      assert.equal((await driver.begin()).inflight.state, '"rewound"')
      await driver.set(null)
      assert.equal((await store.readCheckpoint(driver.ref)).committed, null)
    },
  ),
  rule(
    'XB3 a commit on another version, page or cycle is a conflict: it returns the checkpoint and writes nothing',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      await driver.cycle([upsert('z', { n: 0 })])
      await driver.begin()
      await driver.page([upsert('a', { n: 1 })])
      const { cycle } = required(driver.inflight, 'driver.inflight')
      const wrong: Array<{ move: StateTransition; version?: number }> = [
        { move: driver.nextPage(), version: 0 },
        { move: driver.nextPage(), version: 2 },
        { move: driver.lastPage(), version: 2 },
        { move: { kind: 'set', state: '1', actor: 'ana', reason: '' }, version: 0 },
        ...[1, 3].flatMap((page): Array<{ move: StateTransition }> => [
          { move: { kind: 'continue', cycle, page, state: '1', tidemark: null, scope: null, guardState: null } },
          { move: { kind: 'complete', cycle, page, state: '1', tidemark: null, scope: null, sweep: null } },
          { move: { kind: 'abandon', cycle, page, reason: '' } },
        ]),
        ...[cycle - 1, cycle + 1].map((other): { move: StateTransition } => ({
          move: { kind: 'continue', cycle: other, page: 2, state: '1', tidemark: null, scope: null, guardState: null },
        })),
      ]
      const before = await readSnapshot(store)
      for (const { move, version = driver.version } of wrong) {
        const outcome = await driver.send(
          await driver.draft(move, [upsert('b', { n: 2 })], { version, quarantined: [makeQuarantined('q')] }),
        )
        if (outcome.kind !== 'conflict') assert.fail(`${JSON.stringify(move)} on version ${version}: ${outcome.kind}`)
        assert.deepEqual(outcome.checkpoint, await store.readCheckpoint(driver.ref))
        assert.deepEqual(await readSnapshot(store), before)
      }
    },
  ),
  rule('XB3 without an unfinished cycle there is nothing to continue, complete or abandon', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    const {
      inflight: { cycle },
    } = await driver.begin()
    await driver.complete([])
    const before = await readSnapshot(store)
    const moves: StateTransition[] = [
      { kind: 'continue', cycle, page: 2, state: '1', tidemark: null, scope: null, guardState: null },
      { kind: 'continue', cycle, page: 1, state: '1', tidemark: null, scope: null, guardState: null },
      { kind: 'complete', cycle, page: 2, state: '1', tidemark: null, scope: null, sweep: null },
      { kind: 'abandon', cycle, page: 2, reason: '' },
    ]
    for (const move of moves)
      assert.equal((await driver.send(await driver.draft(move, [upsert('b', { n: 2 })]))).kind, 'conflict')
    assert.deepEqual(await readSnapshot(store), before)
  }),
  rule(
    'XB4 after a commit whose answer was lost, reading back shows whether the page landed',
    async ({ store, reopen }) => {
      const driver = await SyncDriver.acquire(store)
      await driver.begin()
      const commit = await driver.draft(driver.nextPage(), [upsert('a', { n: 1 })])
      const other = await reopen()
      assert.equal(required((await other.readCheckpoint(driver.ref)).inflight, 'inflight').page, 0)
      expectLanded(await store.commit(commit))
      assert.equal(required((await other.readCheckpoint(driver.ref)).inflight, 'inflight').page, 1)

      const again = await other.commit(commit)
      if (again.kind !== 'conflict') assert.fail(`the same page landed twice: ${again.kind}`)
      assert.equal(again.checkpoint.inflight?.page, 1)
      assert.deepEqual(await scenario(store), [['created', 'a']])
    },
  ),
  rule(
    'XB4 after a last page whose answer was lost, the version and its cycle show whether it landed',
    async ({ store, reopen }) => {
      const driver = await SyncDriver.acquire(store)
      const {
        inflight: { cycle },
      } = await driver.begin()
      const commit = await driver.draft(driver.lastPage({ state: '"done"' }), [upsert('a', { n: 1 })])
      expectLanded(await store.commit(commit))

      const again = await (await reopen()).commit(commit)
      if (again.kind !== 'conflict') assert.fail(`the same cycle completed twice: ${again.kind}`)
      assert.deepEqual([again.checkpoint.version, again.checkpoint.committedBy], [commit.version + 1, cycle])
      assert.equal((await store.audit(driver.ref)).length, 1)
    },
  ),
  rule('N19 state is returned as the same text, whatever its content', async ({ store, reopen }) => {
    const driver = await SyncDriver.acquire(store)
    const states = [
      '""',
      '0',
      '{}',
      '{ "spaced" : 1.0 }',
      '{"n":9007199254740993}',
      JSON.stringify('ł\u0000\u{1f30a}\'";--'),
      JSON.stringify('x'.repeat(60_000)),
    ]
    for (const state of states) {
      await driver.begin()
      await driver.page([], { state })
      assert.equal(required((await (await reopen()).readCheckpoint(driver.ref)).inflight, 'inflight').state, state)
      await driver.complete([], { state })
      assert.equal((await store.readCheckpoint(driver.ref)).committed, state)
      assert.equal(required((await store.audit(driver.ref))[0], 'the result of audit[0]').state, state)
    }
  }),
  rule('the record of a cycle adds up its pages as they land, so that a crash loses none', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.begin()
    await driver.page([upsert('a', { n: 1 }), upsert('b', { n: 1 })])
    await driver.page([upsert('a', { n: 2 }), upsert('b', { n: 1 })], { quarantined: [makeQuarantined('q')] })
    const [record] = await store.cycles(driver.ref)
    assert.equal(required(record, 'record').pages, 2)
    assert.deepEqual(
      required(record, 'record').counts,
      counts({ created: 2, updated: 1, unchanged: 1, quarantined: 1 }),
    )
    assert.equal(required(record, 'record').endedAt, null)
  }),
  rule(
    'S22 the end reason of a cycle is recorded with its last page; a cycle that broke off, or had none, has no end reason',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      await driver.begin()
      await driver.complete([upsert('a', { n: 1 })], { endReason: 'reached_since' })
      await driver.begin()
      await driver.complete([])
      await driver.begin()
      await driver.page([upsert('b', { n: 1 })])
      await driver.release({ stopReason: 'max_pages' })
      const records = await store.cycles(driver.ref)
      assert.deepEqual(
        records.map(({ stopReason, endReason }) => [stopReason, endReason]),
        [
          ['max_pages', null],
          ['complete', null],
          ['complete', 'reached_since'],
        ],
      )
    },
  ),
  rule(
    'XA5 a cycle whose runner crashes after its last commit is recorded as complete, and its failures are cleared',
    async ({ store }) => {
      const failing = await SyncDriver.acquire(store)
      const {
        inflight: { cycle },
      } = await failing.begin()
      await failing.release({
        stopReason: 'error',
        error: { code: 'SOURCE_TIMEOUT', message: 'no answer' },
        retryAt: START + 60_000,
      })
      const dying = await SyncDriver.acquire(store)
      await dying.begin()
      await dying.complete([upsert('a', { n: 1 })])
      const [record] = await store.cycles(dying.ref)
      assert.deepEqual(
        [
          required(record, 'record').cycle,
          required(record, 'record').stopReason,
          required(record, 'record').error,
          required(record, 'record').pages,
        ],
        [cycle, 'complete', null, 1],
      )
      assert.notEqual(required(record, 'record').endedAt, null)
      const { failures, lastError, retryAt, lastSuccessAt } = await store.readCheckpoint(dying.ref)
      assert.deepEqual(
        { failures, lastError, retryAt, lastSuccessAt },
        { failures: 0, lastError: null, retryAt: null, lastSuccessAt: required(record, 'record').endedAt },
      )
    },
  ),
]
