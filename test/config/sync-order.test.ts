import { describe, expect, test } from 'vitest'
import { buildWorker } from '../../src/config/manifest/manifest.ts'
import { sortByParents } from '../../src/worker/sync-order.ts'
import { Worker } from '../../src/worker/worker.ts'

const execute = async () => ({ changes: [], hasMore: false })
const source = { backfill: execute, delta: execute }

function create(): { worker: Worker; sync: (name: string, ...after: string[]) => void } {
  const worker = new Worker({ name: 'shop' })
  const database = worker.database('rows')
  return { worker, sync: (name, ...after) => void worker.sync(name, { database, execute, after }) }
}

describe('after', () => {
  test('takes names and handles, of syncs that are declared earlier or later', () => {
    const { worker } = create()
    const first = worker.sync('first', { database: 'rows', execute })
    const pair = worker.track('pair', { database: 'rows', source })
    worker.sync('child', { database: 'rows', execute, after: [first, pair, 'last', 'first'] })
    worker.sync('last', { database: 'rows', execute, after: 'first' })
    const { syncs } = worker.manifest
    expect(syncs.find(({ name }) => name === 'child')).toMatchObject({ after: ['first', 'pair', 'last'] })
    expect(syncs.find(({ name }) => name === 'first')).not.toHaveProperty('after')
  })

  test('a child without a schedule follows its parents', () => {
    const { worker } = create()
    worker.sync('parent', { database: 'rows', execute })
    worker.sync('child', { database: 'rows', execute, after: 'parent' })
    worker.sync('hourly', { database: 'rows', execute, after: 'parent', schedule: '1h' })
    worker.track('pair', { database: 'rows', source, after: 'parent' })
    worker.track('alone', { database: 'rows', source })
    const schedules = Object.fromEntries(worker.manifest.syncs.map(({ name, schedule }) => [name, schedule]))
    expect(schedules).toMatchObject({
      parent: { kind: 'interval', intervalMs: 1_800_000 },
      child: { kind: 'continuous' },
      hourly: { kind: 'interval', intervalMs: 3_600_000 },
      pair: { kind: 'continuous' },
      'pair-backfill': { kind: 'manual' },
      alone: { kind: 'interval', intervalMs: 300_000 },
    })
    expect(worker.manifest.syncs.filter(({ after }) => after !== undefined).map(({ name }) => name)).toEqual([
      'child',
      'hourly',
      'pair-backfill',
      'pair',
    ])
  })

  test('an unknown name is an error with the closest name', () => {
    const { worker, sync } = create()
    sync('customers')
    sync('orders', 'custmers')
    expect(() => worker.manifest).toThrow(
      'Sync "orders": `after` names "custmers", which is not declared. Did you mean "customers"?',
    )
    expect(() => worker.manifest).toThrow(expect.objectContaining({ code: 'SYNC_UNKNOWN' }))
  })

  test('a cycle is an error at the declaration that closes it, and is spelled out', () => {
    const { worker, sync } = create()
    sync('a', 'b')
    sync('b', 'c')
    expect(() => sync('c', 'x', 'a')).toThrow('could ever start: c → a → b → c. Remove one of them.')
    expect(() => sync('self', 'self')).toThrow('self → self')
    // A refused declaration reserves nothing.
    sync('c')
    expect(worker.manifest.syncs.map(({ name }) => name)).toEqual(['a', 'b', 'c'])
  })

  test('the halves of a pair are one', () => {
    const { worker, sync } = create()
    sync('parent', 'pair-backfill')
    expect(() => worker.track('pair', { database: 'rows', source, after: 'parent' })).toThrow('pair → parent → pair')
    expect(() => worker.track('own', { database: 'rows', source, after: 'own-backfill' })).toThrow('own → own')
  })

  test('a value that is not a name is refused', () => {
    const { worker } = create()
    // @ts-expect-error Not a name.
    expect(() => worker.sync('a', { database: 'rows', execute, after: [5] })).toThrow('after names 5, not a sync')
  })

  test('many syncs in layers are checked in linear time', () => {
    const { worker, sync } = create()
    for (let layer = 0; layer < 20; layer++)
      for (const side of ['a', 'b', 'c'])
        sync(`${side}${layer}`, ...(layer === 0 ? [] : ['a', 'b', 'c'].map((other) => `${other}${layer - 1}`)))
    expect(worker.manifest.syncs).toHaveLength(60)
  })
})

test('a delta knows the range reads of its database, because they are listings', () => {
  const { worker } = create()
  const backfill = Object.assign(async () => ({ changes: [], hasMore: false }), { range: () => execute })
  worker.track('pair', { database: 'rows', source: { backfill, delta: execute } })
  worker.sync('events', { database: 'rows', mode: 'incremental', execute })
  expect(worker.plan('pair').listings).toEqual(['pair-backfill', 'pair~range'])
  expect(worker.plan('events').listings).toEqual(['pair-backfill', 'pair~range'])
})

test('parents are sorted before their children, and the order is otherwise kept', () => {
  const syncs = [{ name: 'd', after: ['b', 'c'] }, { name: 'a' }, { name: 'b', after: ['a'] }, { name: 'c' }]
  expect(sortByParents(syncs).map(({ name }) => name)).toEqual(['a', 'b', 'c', 'd'])
})

describe('in a manifest', () => {
  const build = (config: string, ...streams: string[]): Promise<Worker> =>
    buildWorker(
      'tidemark.yaml',
      'tidemark.yaml',
      {},
      ['connector: sql', `config: { url: "sqlite:shop.db"${config} }`, 'streams:', ...streams].join('\n'),
    )

  test('`after` names streams, in any order', async () => {
    const worker = await build('', '  - { id: orders, after: [customers] }', '  - { id: customers }')
    expect(worker.manifest.syncs[0]).toMatchObject({ after: ['customers'], schedule: { kind: 'continuous' } })
  })

  test.each([
    [
      ['  - { id: orders, after: [custmers] }', '  - { id: customers }'],
      'tidemark.yaml:4:27: orders: `after` names "custmers", which is not a selected stream. Did you mean "customers"?',
    ],
    [['  - { id: a, after: [b] }', '  - { id: b, after: [a] }'], 'b → a → b'],
  ])('%j is refused with its place', async (streams, message) => {
    await expect(build('', ...streams)).rejects.toThrow(message)
  })

  test('a start date has a date, and a stream with a cursor', async () => {
    await expect(build(', since: soon', '  - { id: a, cursor: at }')).rejects.toThrow(
      /tidemark\.yaml:2:\d+: config\.since: it is a start date: write 2024-01-31/,
    )
    await expect(build(', since: 2024-01-31', '  - { id: a }')).rejects.toThrow(
      /tidemark\.yaml:4:5: a: a: `since` needs/,
    )
    expect(
      (await build(', since: 2024-01-31', '  - { id: a, cursor: at }')).plan('a-backfill').execute.range,
    ).toBeDefined()
  })
})
