import { describe, expect, expectTypeOf, test } from 'vitest'
import type { Page } from '../../src/contract/index.ts'
import { isWorker, Worker } from '../../src/worker/worker.ts'
import type { SyncOptions } from '../../src/worker/sync-options.ts'

const execute = async (): Promise<Page<undefined>> => ({ changes: [], hasMore: false })
const code = (expected: string, message?: RegExp): unknown =>
  expect.objectContaining({
    code: expected,
    ...(message === undefined ? {} : { message: expect.stringMatching(message) }),
  })

describe('declaring', () => {
  test('N14 several syncs refer to one database, by handle or by name', () => {
    const worker = new Worker({ name: 'crm' })
    const contacts = worker.database('contacts')
    worker.sync('backfill', { database: contacts, mode: 'replace', schedule: 'manual', execute })
    worker.sync('delta', { database: 'contacts', mode: 'incremental', schedule: { cron: '*/5 * * * *' }, execute })
    expect(worker.plans().map((plan) => plan.databases)).toEqual([[{ name: 'contacts' }], [{ name: 'contacts' }]])
  })

  test('a database says how many days its history is kept at least; false and nothing leave it to the log', () => {
    const worker = new Worker()
    worker.database('customers', { history: { keepDays: 365 } })
    worker.database('events', { history: false })
    worker.database('orders')
    expect(worker.manifest.databases).toEqual([
      { name: 'customers', schema: null, historyDays: 365 },
      { name: 'events', schema: null },
      { name: 'orders', schema: null },
    ])
    for (const history of [{ keepDays: 0 }, { keepDays: 1.5 }, {}, { keepDays: 1, days: 2 }, true, null, 30]) {
      expect(() => worker.database('other', { history: history as never }), JSON.stringify(history)).toThrow(
        code('SCHEMA_INVALID'),
      )
    }
  })

  test('a database says whether its deletes are hard or soft; another value is refused with the two there are', () => {
    const worker = new Worker()
    worker.database('customers', { deletes: 'soft' })
    worker.database('events', { deletes: 'hard' })
    worker.database('orders')
    expect(worker.manifest.databases).toEqual([
      { name: 'customers', schema: null, deletes: 'soft' },
      { name: 'events', schema: null },
      { name: 'orders', schema: null },
    ])
    worker.sync('all', { database: 'customers', databases: ['events', 'orders'], execute })
    expect(worker.plan('all').databases.map(({ deletes }) => deletes)).toEqual(['soft', undefined, undefined])
    for (const deletes of ['Soft', 'never', '', true, null, {}]) {
      expect(() => worker.database('other', { deletes: deletes as never }), JSON.stringify(deletes)).toThrow(
        code('SCHEMA_INVALID'),
      )
    }
    expect(() => worker.database('other', { deletes: 'gone' as never })).toThrow(
      "`deletes` is \"gone\", but it must be 'hard' or 'soft'.",
    )
    // @ts-expect-error -- the type names the two there are
    expect(() => worker.database('other', { deletes: 'softly' })).toThrow(code('SCHEMA_INVALID'))
  })

  test('a sync without more is a replace sync every 30 minutes', () => {
    const worker = new Worker()
    worker.database('contacts')
    worker.sync('all', { database: 'contacts', execute })
    expect(worker.manifest.syncs).toEqual([
      {
        name: 'all',
        mode: 'replace',
        schedule: { kind: 'interval', intervalMs: 1_800_000 },
        priority: 0,
        databases: ['contacts'],
        pacers: [],
        owner: 'worker/all',
        pair: null,
      },
    ])
  })

  test('a name is taken once, whatever its case; only a sync and a database may share theirs', () => {
    const worker = new Worker()
    worker.database('contacts')
    worker.pacer('api', { allowedRequests: 1, intervalMs: 1 })
    worker.sync('all', { database: 'contacts', execute })
    worker.sync('contacts', { database: 'contacts', execute })
    expect(() => worker.sync('Contacts', { database: 'contacts', execute })).toThrow(
      code('NAME_TAKEN', /sync "contacts"/),
    )
    expect(() => worker.sync('api', { database: 'contacts', execute })).toThrow(code('NAME_TAKEN', /pacer "api"/))
    expect(() => worker.database('api')).toThrow(code('NAME_TAKEN'))
    expect(() => worker.pacer('all', { allowedRequests: 1, intervalMs: 1 })).toThrow(code('NAME_TAKEN'))
    expect(() => worker.database('Contacts')).toThrow(code('NAME_TAKEN'))
  })

  test('a failed declaration reserves nothing', () => {
    const worker = new Worker()
    expect(() => worker.database('contacts', { schema: 5 as never })).toThrow(code('SCHEMA_INVALID'))
    expect(() => worker.pacer('api', { allowedRequests: 0, intervalMs: 1 })).toThrow(code('PACER_INVALID'))
    worker.database('contacts')
    worker.pacer('api', { allowedRequests: 1, intervalMs: 1 })
    expect(() => worker.sync('all', { database: 'contact', execute })).toThrow(code('DATABASE_UNKNOWN'))
    expect(() => worker.sync('all', { database: 'contacts', schedule: '5s', execute })).toThrow(
      code('SCHEDULE_INVALID'),
    )
    worker.sync('all', { database: 'contacts', execute })
    expect(worker.plans()).toHaveLength(1)
  })

  test.each([
    '',
    '.',
    '..',
    '../x',
    'a/b',
    'a\\b',
    'a b',
    "a'; drop table x --",
    'a"b',
    '_a',
    '-a',
    '.a',
    'ä',
    'a\n',
    'a\0',
    'x'.repeat(64),
    '__proto__',
    5,
    null,
  ])('XD25 XD26 %j cannot be a name', (name) => {
    const worker = new Worker()
    worker.database('contacts')
    expect(() => worker.database(name as string)).toThrow(code('NAME_INVALID'))
    expect(() => worker.pacer(name as string, { allowedRequests: 1, intervalMs: 1 })).toThrow(code('NAME_INVALID'))
    expect(() => worker.sync(name as string, { database: 'contacts', execute })).toThrow(code('NAME_INVALID'))
    expect(() => new Worker({ name: name as string })).toThrow(code('NAME_INVALID'))
  })

  test('XD25 names that only look odd are fine', () => {
    const worker = new Worker()
    for (const name of ['a', '0', 'a.b-c_d', 'constructor', 'toString', 'select', 'x'.repeat(63)]) worker.database(name)
    expect(worker.manifest.databases).toHaveLength(7)
  })

  test('a database or pacer must be declared, and in this worker', () => {
    const worker = new Worker()
    const other = new Worker()
    worker.database('contacts')
    worker.pacer('api', { allowedRequests: 1, intervalMs: 1 })
    const foreign = other.database('contacts')
    const foreignPacer = other.pacer('api', { allowedRequests: 1, intervalMs: 1 })
    expect(() => worker.sync('a', { database: foreign, execute })).toThrow(code('DATABASE_UNKNOWN', /another worker/))
    expect(() => worker.sync('a', { database: 'contcats', execute })).toThrow(
      code('DATABASE_UNKNOWN', /Did you mean "contacts"/),
    )
    expect(() => worker.sync('a', { database: 'contacts', databases: ['x'], execute })).toThrow(
      code('DATABASE_UNKNOWN'),
    )
    expect(() => worker.sync('a', { database: 'contacts', pacer: 'apu', execute })).toThrow(
      code('PACER_UNKNOWN', /Did you mean "api"/),
    )
    expect(() => worker.sync('a', { database: 'contacts', pacer: foreignPacer, execute })).toThrow(
      code('PACER_UNKNOWN'),
    )
    expect(() => worker.sync('a', { database: 'toString', execute })).toThrow(code('DATABASE_UNKNOWN'))
  })

  test.each<[Record<string, unknown>, RegExp]>([
    [{ execute: 'x' }, /"all".*execute/],
    [{ execute: undefined }, /execute/],
    [{ mode: 'incremetal' }, /mode.*Did you mean "incremental"/],
    [{ modus: 'replace' }, /"modus"/],
    [{ shedule: '5m' }, /"shedule".*Did you mean "schedule"/],
    [{ limits: { pageMax: 5 } }, /"pageMax".*Did you mean "pagesMax"/],
    [{ limits: { pagesMax: 0 } }, /limits\.pagesMax is 0/],
    [{ limits: { deadlineMs: Number.NaN } }, /limits\.deadlineMs/],
    [{ limits: 5 }, /limits are 5/],
    [{ sweep: { maxDeleteShare: 1.5 } }, /sweep\.maxDeleteShare/],
    [{ sweep: { allowEmty: true } }, /Did you mean "allowEmpty"/],
    [{ owner: "x'y" }, /owner/],
    [{ scope: 5 }, /scope/],
    [{ databases: 'contacts' }, /databases/],
    [{ priority: 'high' }, /priority/],
    [{ upstreamToleranceMs: -1 }, /upstreamToleranceMs/],
    [{ database: undefined }, /no database/],
  ])('a sync with %j is refused by name', (wrong, message) => {
    const worker = new Worker()
    worker.database('contacts')
    const options = { database: 'contacts', execute, ...wrong } as SyncOptions
    expect(() => worker.sync('all', options)).toThrow(code('SYNC_INVALID', message))
  })

  test('unknown options of databases, pacers and workers are named too', () => {
    const worker = new Worker()
    expect(() => worker.database('a', { schmea: {} } as never)).toThrow(/Did you mean "schema"/)
    expect(() => worker.pacer('a', { allowedRequests: 1, intervallMs: 1 } as never)).toThrow(
      code('PACER_INVALID', /"intervalMs"/),
    )
    expect(() => worker.pacer('a', undefined as never)).toThrow(code('PACER_INVALID'))
    expect(() => new Worker({ nmae: 'x' } as never)).toThrow(code('WORKER_INVALID', /"name"/))
  })

  test('N19 the type of state follows from execute', () => {
    type State = { phase: 'list'; page: number } | { phase: 'deltas'; since: Record<string, string> }
    const worker = new Worker()
    worker.database('contacts')
    worker.sync('inferred', {
      database: 'contacts',
      execute: async (state: { page: number } | undefined) => ({
        changes: [],
        hasMore: true,
        nextState: { page: (state?.page ?? 0) + 1 },
      }),
    })
    worker.sync<State>('union', {
      database: 'contacts',
      execute: async (state) => {
        expectTypeOf(state).toEqualTypeOf<State | undefined>()
        return { changes: [], hasMore: true, nextState: { phase: 'list', page: 2 } }
      },
    })
    worker.sync<State>('given', {
      database: 'contacts',
      // @ts-expect-error a state of another shape
      execute: async (state) => ({
        changes: [],
        hasMore: state?.phase === 'list',
        nextState: { phase: 'list', page: 'two' },
      }),
    })
    expect(worker.plans()).toHaveLength(3)
  })
})

describe('a plan', () => {
  test('carries everything as values, with defaults', () => {
    const worker = new Worker({ name: 'crm' })
    const contacts = worker.database('contacts')
    const notes = worker.database('notes')
    const api = worker.pacer('api', { allowedRequests: 100, intervalMs: 60_000 })
    worker.sync('all', {
      database: contacts,
      databases: [notes, contacts],
      pacer: [api, 'api'],
      execute,
      scope: 'eu',
      upstreamToleranceMs: 5,
      limits: { pagesMax: 7 },
      sweep: { maxDeleteShare: 0.1 },
    })
    expect(worker.plan('all', { limits: { pagesMax: 9, retriesMax: 1 } })).toMatchObject({
      worker: 'crm',
      sync: 'all',
      mode: 'replace',
      databases: [{ name: 'contacts' }, { name: 'notes' }],
      owner: 'crm/all',
      execute,
      pacers: [{ name: 'api', allowedRequests: 100, intervalMs: 60_000 }],
      scope: 'eu',
      upstreamToleranceMs: 5,
      limits: { pagesMax: 7, retriesMax: 1, emptyPagesMax: 1_000 },
      sweep: { maxShare: 0.1, allowEmpty: false },
    })
  })

  test('XB14 an incremental sync knows the replace syncs that write its databases', () => {
    const worker = new Worker()
    for (const name of ['contacts', 'notes']) worker.database(name)
    worker.sync('delta', { database: 'contacts', mode: 'incremental', execute })
    worker.sync('all', { database: 'contacts', execute })
    worker.sync('notes', { database: 'notes', execute })
    worker.sync('both', { database: 'notes', databases: ['contacts'], execute })
    expect(worker.plans().map(({ sync, listings }) => [sync, listings])).toEqual([
      ['delta', ['all', 'both']],
      ['all', undefined],
      ['notes', undefined],
      ['both', undefined],
    ])
  })

  test('a pacer is the same for all syncs that use it', () => {
    const worker = new Worker()
    worker.database('contacts')
    worker.pacer('api', { allowedRequests: 100, intervalMs: 60_000 })
    worker.pacer('idle', { allowedRequests: 1, intervalMs: 1 })
    for (const name of ['a', 'b', 'c', 'd']) worker.sync(name, { database: 'contacts', pacer: 'api', execute })
    for (const { pacers } of worker.plans())
      expect(pacers).toEqual([{ name: 'api', allowedRequests: 100, intervalMs: 60_000 }])
    expect(worker.manifest.pacers.map(({ name }) => name)).toEqual(['api', 'idle'])
  })

  test('an unknown sync is answered with the nearest one', () => {
    const worker = new Worker({ name: 'crm' })
    worker.database('contacts')
    worker.sync('contacts-delta', { database: 'contacts', execute })
    expect(() => worker.plan('contact-delta')).toThrow(code('SYNC_UNKNOWN', /"crm".*Did you mean "contacts-delta"/))
    expect(() => worker.plan('zzz')).toThrow(/has no sync "zzz"\.$/)
  })
})

describe('who owns the rows', () => {
  function owners(declare: (worker: Worker) => void): Record<string, string> {
    const worker = new Worker({ name: 'w' })
    for (const name of ['contacts', 'notes']) worker.database(name)
    declare(worker)
    return Object.fromEntries(worker.plans().map((plan) => [plan.sync, plan.owner]))
  }

  test('N16 a backfill and its deltas own them together, in whatever order they are declared', () => {
    expect(
      owners((worker) => {
        worker.sync('delta', { database: 'contacts', mode: 'incremental', execute })
        worker.sync('backfill', { database: 'contacts', execute })
        worker.sync('deletes', { database: 'contacts', mode: 'incremental', execute })
      }),
    ).toEqual({ delta: 'w/backfill', backfill: 'w/backfill', deletes: 'w/backfill' })
  })

  test('N10 F7 with two replace syncs each owns only what it returned', () => {
    expect(
      owners((worker) => {
        worker.sync('eu', { database: 'contacts', execute })
        worker.sync('us', { database: 'contacts', execute })
        worker.sync('delta', { database: 'contacts', mode: 'incremental', execute })
      }),
    ).toEqual({ eu: 'w/eu', us: 'w/us', delta: 'w/delta' })
  })

  test('N15 syncs of different databases, and deltas without a backfill, own their own', () => {
    expect(
      owners((worker) => {
        worker.sync('contacts-all', { database: 'contacts', execute })
        worker.sync('notes-a', { database: 'notes', mode: 'incremental', execute })
        worker.sync('notes-b', { database: 'notes', mode: 'incremental', execute })
      }),
    ).toEqual({ 'contacts-all': 'w/contacts-all', 'notes-a': 'w/notes-a', 'notes-b': 'w/notes-b' })
  })

  test('an explicit owner wins, and the delta follows its backfill there', () => {
    expect(
      owners((worker) => {
        worker.sync('backfill', { database: 'contacts', owner: 'people/v1', execute })
        worker.sync('delta', { database: 'contacts', mode: 'incremental', execute })
        worker.sync('own', { database: 'contacts', mode: 'incremental', owner: 'mine', execute })
      }),
    ).toEqual({ backfill: 'people/v1', delta: 'people/v1', own: 'mine' })
  })

  test('F7 a delta of two databases joins no backfill that reads only one of them', () => {
    expect(
      owners((worker) => {
        worker.sync('backfill', { database: 'contacts', execute })
        worker.sync('delta', { database: 'contacts', databases: ['notes'], mode: 'incremental', execute })
      }),
    ).toEqual({ backfill: 'w/backfill', delta: 'w/delta' })
    expect(
      owners((worker) => {
        worker.sync('backfill', { database: 'contacts', databases: ['notes'], execute })
        worker.sync('delta', { database: 'notes', mode: 'incremental', execute })
      }),
    ).toEqual({ backfill: 'w/backfill', delta: 'w/backfill' })
  })
})

describe('the schedules of a tracked pair', () => {
  test('SD6: the backfill runs by hand unless it has a schedule of its own', () => {
    const worker = new Worker({ name: 'w' })
    const source = { backfill: execute, delta: execute }
    worker.track('plain', { database: worker.database('a'), source })
    worker.track('verified', { database: worker.database('b'), source, schedule: '15m', backfillSchedule: '1d' })
    expect(worker.manifest.syncs.map(({ name, schedule, mode }) => [name, schedule, mode])).toEqual([
      ['plain-backfill', { kind: 'manual' }, 'replace'],
      ['plain', expect.objectContaining({ kind: 'interval', intervalMs: 300_000 }), 'incremental'],
      ['verified-backfill', expect.objectContaining({ kind: 'interval', intervalMs: 86_400_000 }), 'replace'],
      ['verified', expect.objectContaining({ kind: 'interval', intervalMs: 900_000 }), 'incremental'],
    ])
    expect(() => worker.track('wrong', { database: 'a', source, backfillSchedule: 'never' as never })).toThrow(
      /schedule/i,
    )
  })
})

describe('the webhooks of a worker', () => {
  const verify = () => ({ id: 'x' })

  test('one with a database is a sync of its own that nothing schedules, in the name of the backfill; one without can only trigger', () => {
    const worker = new Worker({ name: 'w' })
    const database = worker.database('contacts')
    worker.sync('all', { database, execute })
    worker.webhook('landing', { database, verify, execute: () => {} })
    worker.webhook('asking', { verify, execute: () => ({ trigger: 'all' }) })
    expect(worker.manifest.webhooks).toEqual([
      { name: 'landing', databases: ['contacts'] },
      { name: 'asking', databases: [] },
    ])
    expect(worker.manifest.syncs[1]).toMatchObject({
      name: 'landing',
      mode: 'incremental',
      schedule: { kind: 'manual' },
      owner: 'w/all',
    })
    expect(worker.webhooks().map(({ worker: name, plan, syncs }) => [name, plan?.sync ?? null, syncs])).toEqual([
      ['w', 'landing', ['all']],
      ['w', null, ['all']],
    ])
    expect(new Worker().manifest).not.toHaveProperty('webhooks')
  })

  test('one without verify, with a name that is taken or with an option that is none is refused, and reserves nothing', () => {
    const worker = new Worker({ name: 'w' })
    const database = worker.database('contacts')
    worker.sync('all', { database, execute })
    const given = { verify, execute: () => {} }
    for (const options of [
      { execute: () => {} },
      { verify },
      { ...given, secret: 'x' },
      { ...given, databases: [database] },
      null,
    ]) {
      expect(() => worker.webhook('hook', options as never)).toThrow(
        expect.objectContaining({ code: 'WEBHOOK_INVALID' }),
      )
    }
    expect(() => worker.webhook('hook', { ...given, database: 'nowhere' })).toThrow(
      expect.objectContaining({ code: 'DATABASE_UNKNOWN' }),
    )
    expect(() => worker.webhook('all', { ...given, database })).toThrow(expect.objectContaining({ code: 'NAME_TAKEN' }))
    worker.webhook('hook', { ...given, database })
    expect(() => worker.webhook('HOOK', given)).toThrow(expect.objectContaining({ code: 'NAME_TAKEN' }))
  })
})

describe('a worker from another copy of the package', () => {
  test('is known by its structure', () => {
    expect(isWorker(new Worker())).toBe(true)
    expect(isWorker({ name: undefined, manifest: { syncs: [] }, plan: () => {}, plans: () => [] })).toBe(true)
    for (const other of [null, undefined, 5, {}, Worker, { plan() {}, plans() {} }, []])
      expect(isWorker(other)).toBe(false)
  })

  test('its manifest is plain JSON', () => {
    const worker = new Worker({ name: 'crm' })
    worker.database('contacts', { schema: { type: 'object' } })
    worker.sync('all', { database: 'contacts', schedule: 'manual', execute })
    const { manifest } = worker
    expect(JSON.parse(JSON.stringify(manifest))).toEqual(manifest)
    expect(manifest).toMatchObject({
      name: 'crm',
      databases: [{ name: 'contacts', schema: 'json' }],
      syncs: [{ schedule: { kind: 'manual' } }],
    })
  })
})
