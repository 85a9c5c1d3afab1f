import { describe, expect, test } from 'vitest'
import { createClient, type ChangesOptions } from '../../src/client/index.ts'
import type { Clock, Store } from '../../src/contract/index.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { seededRandom, remove, SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { Deliverer } from '../../src/webhooks/deliverer.ts'
import { createSender } from '../../src/webhooks/send.ts'
import { Receiver } from '../webhooks/receiver.ts'
import { Stream } from './feed-cases.ts'
import { WEBHOOK } from './route-samples.ts'
import { ServerFixture, type Body, type OpenHarness } from './server-fixture.ts'

const SECONDS = Number(process.env['TIDEMARK_CAMPAIGN_SECONDS'] ?? 4)
const WRITERS = 4

/** Writers commit from connections of their own, like other processes, while readers follow in every supported way. */
export function describeNoGap(name: string, open: OpenHarness): void {
  describe(`ten readers on ${name}, while ${WRITERS} writers commit for ${SECONDS} s`, () => {
    test(
      'XF1 XF8 A9 A10 A11 A26 A31 O10 no gap, no reorder: each ends with exactly the current rows',
      { timeout: SECONDS * 10_000 + 120_000 },
      async () => {
        const stand = await ServerFixture.open(open)
        await (await stand.driver('first')).cycle([upsert('first', {})])
        const until = Date.now() + SECONDS * 1_000
        let writing = true
        const readers = [
          byCursor,
          byCursorWithBreaks,
          byTime,
          byStream,
          byLongPoll,
          byList,
          byClient('poll'),
          byClient('stream'),
          byWebhook(0),
          byWebhook(0.2),
        ]
        const reading = readers.map((read, n) => read(stand, seededRandom(100 + n), () => writing))
        try {
          await Promise.all(
            Array.from({ length: WRITERS }, async (_, n) => write(await stand.harness.reopen(), n, until)),
          )
        } finally {
          writing = false
        }
        const replicas = await Promise.all(reading)
        expect(replicas).toHaveLength(10)
        const rows = (await stand.store.rows({ database: 'things', limit: 1_000_000 })).map(({ key, text }) => [
          key,
          JSON.stringify(JSON.parse(text)),
        ])
        expect(rows.length).toBeGreaterThan(5)
        expect(await stand.store.headSequence()).toBeGreaterThan(100)
        for (const [n, replica] of replicas.entries())
          expect(
            [...replica].toSorted(([a], [b]) => (a < b ? -1 : 1)),
            `reader ${n}`,
          ).toEqual(rows)
      },
    )
  })
}

/** A sync that upserts and deletes rows, with a different commit each time. */
export async function write(store: Store, n: number, until: number): Promise<void> {
  const random = seededRandom(n + 1)
  const driver = await SyncDriver.acquire(store, { sync: `writer-${n}`, mode: n === 0 ? 'replace' : 'incremental' })
  // On a busy machine: long enough to matter.
  for (let version = 0; Date.now() < until || version < 15; version++) {
    const keys = Array.from({ length: 12 }, (_, k) => `w${n}-${k}`).filter(() => random() < 0.5)
    // The replace sync deletes by omission; the others explicitly.
    const landings = keys.map((key) => (n > 0 && random() < 0.3 ? remove(key) : upsert(key, { version, by: n })))
    await driver.begin()
    if (random() < 0.5) await driver.page(landings.splice(0, 3))
    await driver.complete(landings)
    await new Promise((resolve) => setTimeout(resolve, random() * 8))
  }
}

export type Replica = Map<string, string>
type Read = (stand: ServerFixture, random: () => number, isWriting: () => boolean) => Promise<Replica>

export function apply(replica: Replica, { resourceId, action, snapshot }: Body): void {
  if (action === 'deleted') replica.delete(resourceId)
  else replica.set(resourceId, JSON.stringify(snapshot))
}

/** Checks that sequences are consecutive, times never decrease, and keys are in order within a time. */
export class Order {
  #sequence = 0
  #place = ''

  note({ eventId, updatedAt, resourceId }: Body): void {
    const sequence = Number(String(eventId).split('-')[1])
    if (sequence !== this.#sequence + 1) throw new Error(`after sequence ${this.#sequence} came ${sequence}`)
    const place = `${updatedAt} ${resourceId}`
    if (place <= this.#place) throw new Error(`after ${this.#place} came ${place}`)
    this.#sequence = sequence
    this.#place = place
  }
}

export async function page(stand: ServerFixture, query: string): Promise<Body> {
  const { status, body, text } = await stand.get(`/agents/v1/changes?${query}`)
  if (status !== 200) throw new Error(text)
  // An idle reader yields to the others.
  if (body.data.length === 0) await systemClock.sleep(20)
  return body
}

const byCursor: Read = async (stand, random, isWriting) => {
  const [replica, order] = [new Map() as Replica, new Order()]
  for (let cursor = '', last = false; ;) {
    last = !isWriting()
    const {
      data,
      page: { nextCursor, hasMore },
    } = await page(stand, `limit=${1 + Math.floor(random() * 60)}${cursor}`)
    for (const item of data) {
      order.note(item)
      apply(replica, item)
    }
    cursor = `&cursor=${nextCursor}`
    if (last && hasMore === false) return replica
  }
}

const byLongPoll: Read = async (stand, _, isWriting) => {
  const [replica, order] = [new Map() as Replica, new Order()]
  for (let cursor = '', last = false; ;) {
    last = !isWriting()
    const {
      data,
      page: { nextCursor, hasMore },
    } = await page(stand, `limit=200&wait=1${cursor}`)
    for (const item of data) {
      order.note(item)
      apply(replica, item)
    }
    cursor = `&cursor=${nextCursor}`
    if (last && hasMore === false) return replica
  }
}

/** The published client, which is stopped and resumed from its checkpoint now and then. */
function byClient(mode: NonNullable<ChangesOptions['mode']>): Read {
  return async (stand, random, isWriting) => {
    const [replica, done] = [new Map() as Replica, new Set<string>()]
    const client = createClient({ url: stand.url, key: stand.key })
    const ended = new AbortController()
    let sequence = 0
    void untilHead(stand, isWriting, async () => sequence).then(() => ended.abort())
    while (!ended.signal.aborted) {
      let left = 1 + Math.floor(random() * 500)
      for await (const change of client.changes({
        mode,
        checkpoint: client.checkpoint(mode),
        signal: ended.signal,
        waitSeconds: 1,
      })) {
        // The change that was current when the loop was left is redelivered.
        if (!done.has(change.eventId)) apply(replica, change)
        done.add(change.eventId)
        sequence = Number(change.eventId.split('-')[1])
        if (left-- === 0) break
      }
    }
    return replica
  }
}

/** Two processes deliver; the receiver rejects some messages, before or after it has processed them. */
function byWebhook(refusals: number): Read {
  return async (stand, random, isWriting) => {
    const [replica, taken] = [new Map() as Replica, new Set<string>()]
    const receiver = await Receiver.open(({ id, item }, response) => {
      const refused = random() < refusals
      if ((!refused || random() < 0.5) && !taken.has(id)) {
        taken.add(id)
        apply(replica, item)
      }
      response.writeHead(refused ? 500 : 204).end()
    })
    const id = `wh_${refusals}`
    await stand.store.putWebhook({ ...WEBHOOK, id, url: receiver.url }, { sequence: 0, floor: 0 })
    const send = createSender()
    const quiet = { debug() {}, info() {}, warn() {}, error() {} }
    const deliverers = await Promise.all(
      ['a', 'b'].map(
        async (holder) =>
          new Deliverer({
            store: await stand.harness.reopen(),
            send,
            holder,
            pollMs: 50 * HASTE,
            claimTtlMs: 5_000 * HASTE,
            ports: { clock: hasty, random: systemRandom, log: quiet },
          }),
      ),
    )
    for (const deliverer of deliverers) deliverer.start()
    await untilHead(stand, isWriting, async () => {
      const { sequence: position, waiting } = (await stand.store.webhooks()).find((webhook) => webhook.id === id)!
      return waiting === 0 ? position : -1
    })
    await Promise.all(deliverers.map((deliverer) => deliverer.stop()))
    await send.close()
    return replica
  }
}

/** Retry delays take hours; here an hour is two seconds. */
const HASTE = 2_000
const hasty: Clock = {
  now: () => START_AT + (systemClock.now() - START_AT) * HASTE,
  sleep: (ms, signal) => systemClock.sleep(ms / HASTE, signal),
}
const START_AT = systemClock.now()

async function untilHead(
  stand: ServerFixture,
  isWriting: () => boolean,
  reached: () => Promise<number>,
): Promise<void> {
  while (isWriting() || (await reached()) !== (await stand.store.headSequence())) await systemClock.sleep(50)
}

/** Drops half of its responses, like a consumer that crashes before it has stored them, and requests them again. */
const byCursorWithBreaks: Read = async (stand, random, isWriting) => {
  const replica: Replica = new Map()
  for (let cursor = '', last = false; ;) {
    last = !isWriting()
    const {
      data,
      page: { nextCursor, hasMore },
    } = await page(stand, `types=things&limit=20${cursor}`)
    for (const item of data) apply(replica, item)
    if (random() < 0.5) continue
    cursor = `&cursor=${nextCursor}`
    if (last && hasMore === false) return replica
  }
}

const byTime: Read = async (stand, _, isWriting) => {
  const replica: Replica = new Map()
  for (let since = '1970-01-01T00:00:00Z', last = false; ;) {
    last = !isWriting()
    // A time covers its whole commit: the pages of one read are linked by cursors, and reads by time.
    let [cursor, newest, more] = ['', since, true]
    while (more) {
      const {
        data,
        page: { nextCursor, hasMore },
      } = await page(stand, `limit=200&updatedSince=${since}${cursor}`)
      for (const item of data) apply(replica, item)
      newest = data.at(-1)?.updatedAt ?? newest
      cursor = `&cursor=${nextCursor}`
      more = hasMore
    }
    since = newest
    if (last) return replica
  }
}

const byStream: Read = async (stand, random, isWriting) => {
  const [replica, order] = [new Map() as Replica, new Order()]
  let [id, sequence] = [null as string | null, -1]
  for (;;) {
    const stream: Stream = await Stream.open(stand, '/agents/v1/changes', id === null ? {} : { 'last-event-id': id })
    // Now and then the connection breaks, and the reader resumes with its last event id.
    for (let left = Math.floor(random() * 200); left > 0; left--) {
      const head = isWriting() ? -2 : await stand.store.headSequence()
      if (head === sequence) {
        stream.close()
        return replica
      }
      const [event] = await stream.take(1)
      order.note(event!.data)
      apply(replica, event!.data)
      id = event!.id
      sequence = Number(String(event!.data.eventId).split('-')[1])
    }
    stream.close()
  }
}

/** A list shows no deletions: they come from the changes, like rows that were deleted after they were read. */
const byList: Read = async (stand, random, isWriting) => {
  const replica: Replica = new Map()
  for (let cursor = '', deletes = '', last = false; ;) {
    last = !isWriting()
    let more = true
    while (more) {
      const { body } = await stand.get(`/agents/v1/things?limit=${1 + Math.floor(random() * 60)}${cursor}`)
      if (!Array.isArray(body.data)) throw new Error(JSON.stringify(body))
      for (const { id, record } of body.data) replica.set(id, JSON.stringify(record))
      cursor = `&cursor=${body.page.nextCursor}`
      more = body.page.hasMore
    }
    for (more = true; more;) {
      const {
        data,
        page: { nextCursor, hasMore },
      } = await page(stand, `limit=200${deletes}`)
      for (const { resourceId, action } of data)
        if (action === 'deleted' && (await stand.get(`/agents/v1/things/${resourceId}`)).status === 404)
          replica.delete(resourceId)
      deletes = `&cursor=${nextCursor}`
      more = hasMore
    }
    if (last) return replica
  }
}
