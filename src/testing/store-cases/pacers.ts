import assert from 'node:assert/strict'
import { START, type StoreCase, rule } from './harness.ts'
import { required } from '../../values/required.ts'

const API = { worker: 'crm', pacer: 'api', paceMs: 100 }

export const pacerCases: readonly StoreCase[] = [
  rule(
    'NX1 an unused pacer gives the next slot at once, and each one after it a pace later, to any caller',
    async ({ store, reopen }) => {
      // A pace longer than a stall of the machine: a store with its own clock never gives a slot in the past.
      const { now, firstSlotAt: first } = await store.takeSlots({ ...API, paceMs: 60_000, count: 1, at: START })
      assert.equal(first, now)
      const again = await (await reopen()).takeSlots({ ...API, paceMs: 60_000, count: 1, at: START })
      assert.equal(again.firstSlotAt, first + 60_000)
      assert.deepEqual(await store.lastSlotTimes('crm'), { api: first + 60_000 })
    },
  ),
  rule('NX1 several slots are taken at once, and the next come after the last of them', async ({ store }) => {
    const { firstSlotAt: first } = await store.takeSlots({ ...API, paceMs: 60_000, count: 5, at: START })
    assert.equal(
      (await store.takeSlots({ ...API, paceMs: 60_000, count: 2, at: START })).firstSlotAt,
      first + 5 * 60_000,
    )
    assert.equal(
      (await store.takeSlots({ ...API, paceMs: 60_000, count: 1, at: START })).firstSlotAt,
      first + 7 * 60_000,
    )
  }),
  rule('NX1 of many concurrent callers, none gets the slot of another', async ({ store, reopen }) => {
    const other = await reopen()
    const taken = await Promise.all(
      Array.from({ length: 40 }, async (_, i) => {
        const count = 1 + (i % 3)
        const { firstSlotAt: first } = await required([store, other][i % 2], 'the value[i % 2]').takeSlots({
          ...API,
          paceMs: 60_000,
          count,
          at: START,
        })
        return Array.from({ length: count }, (__, n) => first + n * 60_000)
      }),
    )
    const slots = taken.flat().toSorted((a, b) => a - b)
    const gaps = slots.slice(1).map((slot, i) => slot - required(slots[i], 'slots[i]'))
    assert.deepEqual(
      gaps,
      gaps.map(() => 60_000),
    )
  }),
  rule('NX1 slots are never in the past, and idle time is not saved up', async ({ store }) => {
    const { firstSlotAt: first } = await store.takeSlots({ ...API, paceMs: 1, count: 1, at: START })
    // Longer than the pace, also by the clock of a store that has one.
    await new Promise((resolve) => setTimeout(resolve, 20))
    const { now, firstSlotAt: later } = await store.takeSlots({ ...API, paceMs: 1, count: 3, at: START + 20 })
    assert.equal(later, now)
    assert.ok(later > first + 1)
    assert.equal((await store.lastSlotTimes('crm'))['api'], later + 2)
  }),
  rule('NX1 pacers of another name, worker or tenant have slots of their own', async ({ store }) => {
    await store.takeSlots({ ...API, paceMs: 60_000, count: 9, at: START })
    const acme = store.forTenant('acme')
    for (const [of, request] of [
      [store, { ...API, pacer: 'search' }],
      [store, { ...API, worker: 'shop' }],
      [acme, API],
    ] as const) {
      const { now, firstSlotAt: first } = await of.takeSlots({ ...request, count: 1, at: START })
      assert.equal(first, now)
    }
    assert.deepEqual(Object.keys(await store.lastSlotTimes('crm')).toSorted(), ['api', 'search'])
    assert.deepEqual(Object.keys(await acme.lastSlotTimes('shop')), [])
  }),
  rule(
    'XC26 a clock that was set back blocks no pacer, and one that is slightly behind gets no slot twice',
    async ({ store, supports }) => {
      // Where the store has its own clock, no other counts.
      if (supports?.ownClock === true) return
      await store.takeSlots({ ...API, count: 3, at: START })
      assert.equal((await store.takeSlots({ ...API, count: 1, at: START - 30_000 })).firstSlotAt, START + 300)
      const back = START - 3_600_000
      const { now, firstSlotAt: first } = await store.takeSlots({ ...API, count: 1, at: back })
      assert.equal(now, back)
      assert.ok(first >= back + 100 && first <= back + 31_000, `${first - back} ms later`)
    },
  ),
]
