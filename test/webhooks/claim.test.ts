import { expect, onTestFinished, test } from 'vitest'
import type { Ports, Store } from '../../src/contract/index.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { Deliverer } from '../../src/webhooks/deliverer.ts'
import { generateSecret, serializeSecrets } from '../../src/webhooks/secrets.ts'
import type { DeliveryOutcome, WebhookSender } from '../../src/webhooks/send.ts'
import { FakeClock } from '../engine/fake-clock.ts'

const TTL_MS = 60_000
const DELIVERED: DeliveryOutcome = { kind: 'delivered', status: 200, response: null, retryAfterMs: null }
const CUT_OFF: DeliveryOutcome = { kind: 'failed', status: null, response: null, retryAfterMs: null }

/** A webhook with one message to deliver, and a deliverer whose receiver responds on request. */
async function slowDelivery(wrap: (store: Store) => Store = (store) => store) {
  const store = await openSqliteStore({ file: ':memory:' })
  onTestFinished(() => store.close())
  const clock = new FakeClock()
  await store.putWebhook(
    {
      id: 'wh_slow',
      url: 'http://127.0.0.1:1/',
      databases: null,
      actions: null,
      allow: ['http', 'private', 'port'],
      secrets: serializeSecrets([{ secret: generateSecret(), endsAt: null }]),
      createdAt: 1,
    },
    { sequence: 0, floor: 0 },
  )
  await (await SyncDriver.acquire(store)).cycle([upsert('a', { n: 1 })])
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const ports: Ports = { clock, random: systemRandom, log }
  const cut: boolean[] = []
  let answer!: () => void
  const send: WebhookSender = ({ signal }) =>
    new Promise((resolve) => {
      answer = () => resolve(DELIVERED)
      signal!.addEventListener('abort', () => {
        cut.push(true)
        resolve(CUT_OFF)
      })
    })
  const deliverer = new Deliverer({ store: wrap(store), ports, send, holder: 'first', claimTtlMs: TTL_MS })
  await deliverer.poll()
  await clock.advance(0)
  const claimOfAnother = () => store.claimWebhook('wh_slow', { holder: 'second', ttlMs: TTL_MS, at: clock.now() })
  return { store, clock, deliverer, cut, claimOfAnother, answer: () => answer() }
}

test('a deliverer renews its claim while a receiver is slow, and no other process takes over', async () => {
  const { store, clock, cut, claimOfAnother, answer, deliverer } = await slowDelivery()
  for (let minute = 0; minute < 5; minute++) {
    await clock.advance(TTL_MS)
    expect(await claimOfAnother(), `after ${minute + 1} times the claim's life`).toBeNull()
  }
  expect(cut).toEqual([])
  answer()
  await clock.advance(0)
  await deliverer.stop({ graceMs: 0 })
  expect((await store.webhooks())[0]).toMatchObject({ sequence: 1, waiting: 0 })
  expect(await claimOfAnother()).not.toBeNull()
})

test('a deliverer that cannot renew its claim for its whole TTL aborts its messages', async () => {
  const { clock, cut } = await slowDelivery((store) => ({
    ...store,
    renewWebhook: async () => {
      throw new Error('out of reach')
    },
  }))
  await clock.advance(TTL_MS - 1)
  expect(cut).toEqual([])
  await clock.advance(TTL_MS / 3)
  expect(cut).toEqual([true])
})
