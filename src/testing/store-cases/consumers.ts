import assert from 'node:assert/strict'
import type { Consumer } from '../../contract/index.ts'
import { rule, START, type StoreCase } from './harness.ts'

export const consumerCases: readonly StoreCase[] = [
  rule(
    'AX9 a consumer is identified by its owner, its name and its databases; another tenant sees none of it',
    async ({ store, reopen }) => {
      const one = createConsumer('b', { databases: ['things', 'ünlaut'], cursor: 'c', metadata: '{"a":"ü"}' })
      assert.equal(await store.putConsumer(one, { ownedMax: 3 }), true)
      assert.equal(await store.putConsumer(createConsumer('a', { resource: 'things' }), { ownedMax: 3 }), true)
      assert.equal(
        await store.putConsumer(createConsumer('b', { resource: 'things', sequence: 5 }), { ownedMax: 3 }),
        true,
      )
      const again = await reopen()
      assert.deepEqual(
        (await again.consumers()).map(({ name, resource }) => [name, resource]),
        [
          ['a', 'things'],
          ['b', 'changes'],
          ['b', 'things'],
        ],
      )
      assert.deepEqual((await again.consumers())[1], one)
      const later = {
        ...one,
        databases: null,
        sequence: 3,
        cursor: null,
        checkpointAt: START + 1,
        reportedAt: START + 2,
        metadata: null,
      }
      assert.equal(await again.putConsumer(later, { ownedMax: 3 }), true)
      assert.deepEqual((await store.consumers())[1], later)
      const other = store.forTenant('acme')
      assert.deepEqual(await other.consumers(), [])
      assert.equal(await other.removeConsumer(one), false)
      assert.equal(await store.removeConsumer({ ...one, owner: 'bob' }), false)
      assert.equal(await store.removeConsumer(one), true)
      assert.equal(await store.removeConsumer(one), false)
      assert.deepEqual(
        (await store.consumers()).map(({ name, resource }) => [name, resource]),
        [
          ['a', 'things'],
          ['b', 'things'],
        ],
      )
    },
  ),
  rule('AX9 the number of consumers of an owner is limited; existing ones can continue', async ({ store }) => {
    for (const name of ['a', 'b']) assert.equal(await store.putConsumer(createConsumer(name), { ownedMax: 2 }), true)
    assert.equal(await store.putConsumer(createConsumer('c'), { ownedMax: 2 }), false)
    assert.equal(await store.putConsumer(createConsumer('b', { sequence: 9 }), { ownedMax: 2 }), true)
    assert.equal(await store.putConsumer(createConsumer('c', { owner: 'bob' }), { ownedMax: 2 }), true)
    assert.deepEqual(
      (await store.consumers()).map(({ owner, name, sequence }) => [owner, name, sequence]),
      [
        ['ana', 'a', 1],
        ['ana', 'b', 9],
        ['bob', 'c', 1],
      ],
    )
  }),
  rule(
    'Z43 requests are counted per window and caller, across all processes that share the store, and per tenant',
    async ({ store, reopen }) => {
      const second = await reopen()
      assert.deepEqual(
        await store.countRequests(7, [
          ['b', 3],
          ['a', 1],
        ]),
        [3, 1],
      )
      assert.deepEqual(
        await second.countRequests(7, [
          ['a', 5],
          ['c', 2],
        ]),
        [6, 2],
      )
      assert.deepEqual(await store.countRequests(8, [['a', 1]]), [1])
      // A clock that is behind still finds its window.
      assert.deepEqual(await second.countRequests(7, [['a', 1]]), [7])
      await store.countRequests(9, [['a', 1]])
      assert.deepEqual(await second.countRequests(7, [['a', 1]]), [1])
      assert.deepEqual(await store.forTenant('acme').countRequests(9, [['a', 1]]), [1])
      const counts = await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          (n % 2 === 0 ? store : second).countRequests(
            9,
            n % 3 === 0
              ? [
                  ['x', 1],
                  ['y', 1],
                ]
              : [
                  ['y', 1],
                  ['x', 1],
                ],
          ),
        ),
      )
      assert.equal(Math.max(...counts.flat()), 20)
    },
  ),
]

function createConsumer(name: string, overrides: Partial<Consumer> = {}): Consumer {
  return {
    owner: 'ana',
    name,
    resource: 'changes',
    databases: null,
    sequence: 1,
    cursor: null,
    checkpointAt: START,
    reportedAt: START,
    metadata: null,
    ...overrides,
  }
}
