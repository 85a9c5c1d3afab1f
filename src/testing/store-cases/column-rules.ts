import assert from 'node:assert/strict'
import type { ColumnRulesInForce, Store, StoredColumnRules } from '../../contract/index.ts'
import {
  counts,
  DATABASE,
  makeQuarantined,
  OPERATOR,
  readFeed,
  readLiveRows,
  remove,
  rule,
  SyncDriver,
  upsert,
  type StoreCase,
} from './harness.ts'

const BY = { ...OPERATOR, reason: 'rewritten' }
const CHANGE = { worker: 'crm', sync: 'list', database: DATABASE, isApplied: false }

/** Which rules wrote the rows, and rows that are rewritten by others. */
export const columnRuleCases: readonly StoreCase[] = [
  rule('the rules of every cycle are recorded, with the sequence from which rows follow them', async ({ store }) => {
    const list = await SyncDriver.acquire(store, { sync: 'list', mode: 'replace' })
    await list.begin({ rules: inForce('') })
    await list.complete([upsert('1', {})])
    assert.deepEqual(await store.columnRules('crm'), [])
    await list.begin({ rules: inForce('a') })
    const { headSequence } = await list.complete([upsert('1', { n: 1 })])
    assert.deepEqual((await readRules(store)).used, [
      { sync: '', since: 0, rules: '' },
      { sync: 'list', since: 1, rules: 'a' },
    ])
    await list.begin({ rules: inForce('a') })
    await list.complete([upsert('1', { n: 2 })])
    // A delta writes by new rules before the listing that covers it begins.
    const delta = await SyncDriver.acquire(store)
    await delta.begin({ rules: inForce('b') })
    const rules = await readRules(store)
    assert.deepEqual(
      [rules.fingerprint, rules.used.at(-1)],
      ['a', { sync: 'delta', since: headSequence + 1, rules: 'b' }],
    )
    assert.equal(rules.used.length, 3)
  }),
  rule('the first cycle of a sync leaves no rows of other rules', async ({ store }) => {
    const list = await SyncDriver.acquire(store, { sync: 'list', mode: 'replace' })
    const delta = await SyncDriver.acquire(store)
    await delta.begin({ rules: inForce('a') })
    await list.begin({ rules: inForce('a') })
    await list.complete([upsert('1', {})])
    assert.deepEqual((await readRules(store)).used, [{ sync: '', since: 0, rules: 'a' }])
  }),
  rule('rewritten rows follow the new rules, unless a cycle has begun with others since', async ({ store, reopen }) => {
    const list = await SyncDriver.acquire(store, { sync: 'list', mode: 'replace' })
    await list.cycle([upsert('1', {})])
    const noted = await store.changeColumnRules({ ...CHANGE, rules: 'b' }, BY)
    assert.deepEqual(
      [noted?.fingerprint, noted?.used],
      [
        '',
        [
          { sync: '', since: 0, rules: '' },
          { sync: 'list', since: 1, rules: 'b' },
        ],
      ],
    )
    await list.begin({ rules: inForce('c') })
    await list.complete([upsert('1', {})])
    assert.equal(await store.changeColumnRules({ ...CHANGE, rules: 'b', isApplied: true }, BY), null)
    await store.changeColumnRules({ ...CHANGE, rules: 'b' }, BY)
    await store.changeColumnRules({ ...CHANGE, rules: 'b', isApplied: true }, BY)
    assert.deepEqual(await readRules(await reopen()), {
      worker: 'crm',
      sync: 'list',
      database: DATABASE,
      fingerprint: 'b',
      since: 0,
      used: [{ sync: '', since: 0, rules: 'b' }],
    })
    const { entries } = await store.auditChain({ after: 0, limit: 100 })
    assert.deepEqual(
      entries.filter(({ action }) => action === 'column-rules').map(({ reason }) => reason),
      [`${DATABASE} of list: rewritten`],
    )
  }),
  rule('a rewriting replaces rows, keeps their quarantined records and moves no checkpoint', async ({ store }) => {
    const list = await SyncDriver.acquire(store, { sync: 'list', mode: 'replace' })
    await list.cycle([upsert('1', { n: 1 }, { at: 5 }), upsert('2', { n: 2 }), upsert('3', { n: 3 })])
    const delta = await SyncDriver.acquire(store)
    await delta.cycle([upsert('2', { n: 4 }, { at: 9 })])
    await list.begin()
    await list.page([], { quarantined: [makeQuarantined('1')] })
    const before = await store.readCheckpoint(list.ref)
    const readAtSequence = await store.headSequence()
    await delta.cycle([remove('3', { at: 9 })])
    const landings = [upsert('1', { m: 1 }, { at: 5 }), upsert('2', { m: 4 }, { at: 9 })]
    const outcome = await list.send(
      await list.draft({ kind: 'columns', actor: 'ana', reason: 'because' }, landings, {
        readAtSequence,
        listing: {
          settledSequence: readAtSequence,
          lookupAnswers: { database: DATABASE, confirmed: ['1', '2'], refuted: [] },
        },
      }),
    )
    assert.deepEqual(outcome.kind === 'landed' && outcome.counts, counts({ updated: 2 }))
    assert.deepEqual(await readLiveRows(store), [
      ['1', { m: 1 }],
      ['2', { m: 4 }],
    ])
    assert.deepEqual(await store.readCheckpoint(list.ref), before)
    assert.equal((await store.quarantineEntries()).length, 1)
    const [entry] = await readFeed(store, outcome.kind === 'landed' ? outcome.headSequence - 1 : 0)
    assert.deepEqual([entry?.cycle, entry?.page, entry?.sync], [0, -1, 'list'])
    // A row that was deleted since it was read does not come back, and one that was written since is newer.
    const late = await list.draft({ kind: 'columns', actor: 'ana', reason: 'because' }, [upsert('3', { m: 3 })], {
      readAtSequence,
      listing: {
        settledSequence: readAtSequence,
        lookupAnswers: { database: DATABASE, confirmed: ['3'], refuted: [] },
      },
    })
    assert.equal((await list.send(late)).kind, 'overlap')
  }),
]

function inForce(rules: string): ColumnRulesInForce {
  return { sync: 'list', fingerprints: { [DATABASE]: rules } }
}

async function readRules(store: Store): Promise<StoredColumnRules> {
  const [rules] = await store.columnRules('crm')
  assert.ok(rules !== undefined)
  return rules
}
