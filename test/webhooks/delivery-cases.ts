import { Webhook as Official } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import { serializeChange } from '../../src/feed/serialize-item.ts'
import { churn, currentRows, sortedEntries, type Replica } from '../../src/testing/store-cases/churn.ts'
import { remove, upsert } from '../../src/testing/store-cases/harness.ts'
import { editWebhook, pauseWebhook, replayWebhook, rotateWebhook } from '../../src/webhooks/manage-webhooks.ts'
import { generateSecret } from '../../src/webhooks/secrets.ts'
import { DeliveryFixture, type OpenHarness } from './delivery-fixture.ts'
import { Receiver, type ReceivedMessage } from './receiver.ts'

const ALL = { after: 0, limit: 1_000_000, scanMax: 1_000_000 }
const HOUR_MS = 3_600_000

export function describeDelivery(name: string, open: OpenHarness): void {
  describe(`webhooks on ${name}`, () => {
    test('A26 A27 Z29 the body is the feed item, and the official library accepts its signature', async () => {
      const stand = await DeliveryFixture.open(open)
      const receiver = await Receiver.open()
      const secret = await stand.add(receiver)
      stand.deliver()
      const driver = await stand.driver()
      await driver.cycle([upsert('a', '{"price":12345678901234567890.10,"name":"Ünïcode"}')])
      await driver.cycle([remove('a')])
      await receiver.until(({ length }) => length === 2)
      const { entries } = await stand.store.feed(ALL)
      expect(receiver.received.map(({ body }) => body)).toEqual(entries.map((entry) => serializeChange(entry)))
      expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
      for (const { body, headers, id } of receiver.received) {
        expect(new Official(secret).verify(body, headers as Record<string, string>)).toMatchObject({
          resourceType: 'thing',
          database: 'things',
          resourceId: 'a',
        })
        expect(() => new Official(generateSecret()).verify(body, headers as Record<string, string>)).toThrow()
        expect(id + String(headers['webhook-timestamp'])).not.toContain('.')
      }
    })

    test('a webhook receives only the databases and actions of its filter', async () => {
      const stand = await DeliveryFixture.open(open)
      const [some, all] = [await Receiver.open(), await Receiver.open()]
      await stand.add(some, { databases: ['rare'], actions: ['updated', 'deleted'] })
      await stand.add(all, { createdAt: 2 })
      const driver = await stand.driver()
      for (let n = 0; n < 3; n++) await driver.cycle([upsert('a', { n }), upsert('b', { n }, { database: 'rare' })])
      stand.deliver()
      await all.until(({ length }) => length === 6)
      const { sequence: position } = await stand.until((webhook) => webhook.sequence === 6)
      expect(position).toBe(6)
      expect(some.received.map(({ item }) => [item['database'], item['action'], item['snapshot'].n])).toEqual([
        ['rare', 'updated', 1],
        ['rare', 'updated', 2],
      ])
    })

    test('a wider filter applies from the current sequence: earlier filtered changes are not sent, unread ones are', async () => {
      const stand = await DeliveryFixture.open(open)
      const receiver = await Receiver.open()
      await stand.add(receiver, { databases: ['rare'] })
      const driver = await stand.driver()
      const both = (n: number) => driver.cycle([upsert('a', { n }), upsert('b', { n }, { database: 'rare' })])
      await both(1)
      const deliverer = stand.deliver()
      const { id } = await stand.until(({ sequence: position }) => position === 2)
      await deliverer.stop()
      // Committed before the edit, and not yet read.
      await both(2)
      await editWebhook(stand.store, id, { databases: ['rare', 'things'] }, { actor: 'ana', at: 1, isDone: true })
      await both(3)
      stand.deliver()
      await stand.until(({ sequence: position }) => position === 6)
      const sent = () => receiver.received.map(({ item }) => `${item['database']} ${item['snapshot'].n}`)
      expect(sent().toSorted()).toEqual(['rare 1', 'rare 2', 'rare 3', 'things 2', 'things 3'])
      // Earlier changes are sent only on request, and then with the new filter.
      receiver.received.length = 0
      await replayWebhook(stand.store, id, { all: true }, { actor: 'ana', at: stand.ports.clock.now() })
      await receiver.until(({ length }) => length === 6)
      expect(sent().toSorted()).toEqual(['rare 1', 'rare 2', 'rare 3', 'things 1', 'things 2', 'things 3'])
    })

    test('a narrower filter applies from the current sequence; failed deliveries are still sent, to the current URL, and before newer ones of their key', async () => {
      const stand = await DeliveryFixture.open(open)
      const [down, up] = [
        await Receiver.open((_, response) => void response.writeHead(500).end()),
        await Receiver.open(),
      ]
      await stand.add(down)
      const driver = await stand.driver()
      await driver.cycle([upsert('a', { n: 1 }), upsert('b', { n: 1 }, { database: 'rare' })])
      const deliverer = stand.deliver()
      const { id } = await stand.until(({ waiting }) => waiting === 2)
      await deliverer.stop()
      await driver.cycle([upsert('a', { n: 2 }), upsert('b', { n: 2 }, { database: 'rare' })])
      await editWebhook(
        stand.store,
        id,
        { url: up.url, databases: ['rare'], allow: ['http', 'private', 'port'] },
        { actor: 'ana', at: 1, isDone: true },
      )
      stand.shiftMs = 60_000
      stand.deliver()
      await stand.until(({ sequence: position, waiting }) => position === 4 && waiting === 0)
      expect(up.received.map(({ item }) => `${item['database']} ${item['snapshot'].n}`).toSorted()).toEqual([
        'rare 1',
        'rare 2',
        'things 1',
      ])
      expect(deliveredValues(up.received, 'b')).toEqual([1, 2])
    })

    test('an edit during a round ends it: no later change is evaluated with the old filter', async () => {
      const stand = await DeliveryFixture.open(open)
      let letGo = (): void => {}
      const held = new Promise<void>((resolve) => (letGo = resolve))
      const receiver = await Receiver.open(async (_, response) => {
        await held
        response.writeHead(200).end()
      })
      await stand.add(receiver, { databases: ['rare'] })
      const driver = await stand.driver()
      await driver.cycle([upsert('b', { n: 1 }, { database: 'rare' })])
      stand.deliver()
      await receiver.until(({ length }) => length === 1)
      const { id } = (await stand.store.webhooks())[0]!
      await editWebhook(stand.store, id, { databases: ['things'] }, { actor: 'ana', at: 1, isDone: true })
      await driver.cycle([upsert('a', { n: 1 }), upsert('b', { n: 2 }, { database: 'rare' })])
      letGo()
      await stand.until(({ sequence: position }) => position === 3)
      // The aborted round is read again with the new filter: it is neither recorded nor repeated.
      expect(receiver.received.map(({ item }) => `${item['database']} ${item['snapshot'].n}`)).toEqual([
        'rare 1',
        'things 1',
      ])
    })

    test('Z33 an item beyond 20 kB is sent without its record and marked as thin', async () => {
      const stand = await DeliveryFixture.open(open)
      const receiver = await Receiver.open()
      await stand.add(receiver)
      await (await stand.driver()).cycle([upsert('big', { text: 'é'.repeat(15_000) }), upsert('small', { text: 'x' })])
      stand.deliver()
      await receiver.until(({ length }) => length === 2)
      const byKey = new Map(receiver.received.map(({ item }) => [item['resourceId'], item]))
      expect(byKey.get('big')).toMatchObject({ action: 'created', snapshot: null, thin: true })
      expect(byKey.get('small')).not.toHaveProperty('thin')
    })

    test('XF12 Z31 during a rotation either secret is sufficient', async () => {
      const stand = await DeliveryFixture.open(open)
      const receiver = await Receiver.open()
      const old = await stand.add(receiver)
      const [webhook] = await stand.store.webhooks()
      const { secret: next } = await rotateWebhook(stand.store, webhook!.id, HOUR_MS, {
        actor: 'ana',
        at: stand.ports.clock.now(),
      })
      stand.deliver()
      const driver = await stand.driver()
      await driver.cycle([upsert('a', { n: 1 })])
      await receiver.until(({ length }) => length === 1)
      const [first] = receiver.received
      for (const secret of [old, next])
        expect(new Official(secret).verify(first!.body, first!.headers as Record<string, string>)).toMatchObject({
          resourceId: 'a',
        })
      stand.shiftMs = 2 * HOUR_MS
      await driver.cycle([upsert('a', { n: 2 })])
      await receiver.until(({ length }) => length === 2)
      expect(String(receiver.received[1]!.headers['webhook-signature']).split(' ')).toHaveLength(1)
    })

    test('XF12 after a rotation without overlap no message has the old signature, even in a round in progress', async () => {
      const stand = await DeliveryFixture.open(open)
      const held: Array<() => void> = []
      const receiver = await Receiver.open((_, response) => void held.push(() => response.writeHead(204).end()))
      await stand.add(receiver)
      const driver = await stand.driver()
      await driver.cycle(Array.from({ length: 40 }, (_, n) => upsert(`k${n}`, { n })))
      stand.deliver()
      // The first messages of the round are in flight, signed with the old secret.
      await receiver.until(({ length }) => length === 8)
      const [webhook] = await stand.store.webhooks()
      const { secret } = await rotateWebhook(stand.store, webhook!.id, 0, { actor: 'ana', at: stand.ports.clock.now() })
      receiver.answer = (_, response) => void response.writeHead(204).end()
      for (const answer of held) answer()
      await receiver.until(({ length }) => length === 40)
      for (const { body, headers } of receiver.received.slice(8))
        new Official(secret).verify(body, headers as Record<string, string>)
    })

    test('after an edit or a pause is acknowledged no message goes to the old URL, even in a round in progress', async () => {
      for (const change of ['edit', 'pause'] as const) {
        const stand = await DeliveryFixture.open(open)
        const held: Array<() => void> = []
        const [first, second] = [
          await Receiver.open((_, response) => void held.push(() => response.writeHead(204).end())),
          await Receiver.open(),
        ]
        await stand.add(first)
        const driver = await stand.driver()
        await driver.cycle(Array.from({ length: 40 }, (_, n) => upsert(`k${n}`, { n })))
        stand.deliver()
        await first.until(({ length }) => length === 8)
        const { id } = (await stand.store.webhooks())[0]!
        const by = { actor: 'ana', at: stand.ports.clock.now() }
        if (change === 'edit')
          await editWebhook(
            stand.store,
            id,
            { url: second.url, allow: ['http', 'private', 'port'] },
            { ...by, isDone: true },
          )
        else await pauseWebhook(stand.store, id, by)
        for (const answer of held) answer()
        if (change === 'edit') await second.until(({ length }) => length === 40)
        else await stand.until(({ heldBy }) => heldBy === null)
        expect(first.received).toHaveLength(8)
      }
    })

    test('Z30 XF10 a failed message is sent again with the same id and a new timestamp; its key waits and others continue', async () => {
      const stand = await DeliveryFixture.open(open)
      const receiver = await Receiver.open(
        ({ item }, response) => void response.writeHead(item['resourceId'] === 'bad' ? 500 : 200).end(),
      )
      await stand.add(receiver)
      const driver = await stand.driver()
      await driver.cycle([upsert('bad', { n: 1 }), upsert('good', { n: 1 })])
      await driver.cycle([upsert('bad', { n: 2 }), upsert('good', { n: 2 })])
      stand.deliver()
      await stand.until(({ sequence: position, waiting }) => position === 4 && waiting === 2)
      await driver.cycle([upsert('bad', { n: 3 }), upsert('good', { n: 3 })])
      await stand.until(({ sequence: position, waiting }) => position === 6 && waiting === 3)
      expect(deliveredValues(receiver.received, 'good')).toEqual([1, 2, 3])
      expect(deliveredValues(receiver.received, 'bad')).toEqual([1])
      receiver.answer = (_, response) => void response.writeHead(200).end()
      stand.shiftMs = 60_000
      await stand.until(({ waiting }) => waiting === 0)
      expect(deliveredValues(receiver.received, 'bad')).toEqual([1, 1, 2, 3])
      const [first, again] = receiver.received.filter(({ item }) => item['resourceId'] === 'bad')
      expect(again!.id).toBe(first!.id)
      expect(Number(again!.headers['webhook-timestamp'])).toBeGreaterThan(Number(first!.headers['webhook-timestamp']))
      expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(6)
    })

    test('XF10 Z33 a redirect is a failure and is not followed', async () => {
      const stand = await DeliveryFixture.open(open)
      const elsewhere = await Receiver.open()
      const receiver = await Receiver.open(
        (_, response) => void response.writeHead(302, { location: elsewhere.url }).end(),
      )
      await stand.add(receiver)
      await (await stand.driver()).cycle([upsert('a', { n: 1 })])
      stand.deliver()
      expect(await stand.until(({ waiting }) => waiting === 1)).toMatchObject({
        lastStatus: 302,
        failureStreak: 1,
        succeededAt: null,
      })
      expect(elsewhere.received).toEqual([])
    })

    test('XF10 Z33 410 disables the webhook with a reason; nothing is lost when it is resumed', async () => {
      const stand = await DeliveryFixture.open(open)
      const receiver = await Receiver.open((_, response) => void response.writeHead(410).end('moved out'))
      await stand.add(receiver)
      const driver = await stand.driver()
      await driver.cycle([upsert('a', { n: 1 })])
      stand.deliver()
      const { id, disabledReason: disabled } = await stand.until((webhook) => webhook.disabledReason !== null)
      expect(disabled).toContain('410')
      expect(stand.lines.join()).toContain('webhook disabled')
      await driver.cycle([upsert('b', { n: 1 })])
      receiver.answer = (_, response) => void response.writeHead(200).end()
      await stand.store.restartWebhook(id, { actor: 'test', at: stand.ports.clock.now() })
      await stand.until(({ waiting, sequence: position }) => waiting === 0 && position === 2)
      const [refused, ...delivered] = receiver.received.map(({ item }) => item['resourceId'])
      expect(refused).toBe('a')
      // Different keys are sent concurrently and may overtake each other.
      expect(delivered.map(String).toSorted()).toEqual(['a', 'b'])
    })

    test('XF10 Z33 429 with Retry-After delays all deliveries as requested', async () => {
      const stand = await DeliveryFixture.open(open)
      const receiver = await Receiver.open(
        (_, response) => void response.writeHead(429, { 'retry-after': '120' }).end(),
      )
      await stand.add(receiver)
      const driver = await stand.driver()
      await driver.cycle([upsert('a', { n: 1 })])
      const before = stand.ports.clock.now()
      stand.deliver()
      const { retryAt } = await stand.until(({ waiting }) => waiting === 1)
      expect(retryAt! - before).toBeGreaterThanOrEqual(120_000)
      await driver.cycle([upsert('b', { n: 1 })])
      stand.shiftMs = 100_000
      await settled()
      expect(receiver.received).toHaveLength(1)
      receiver.answer = (_, response) => void response.writeHead(200).end()
      stand.shiftMs = 200_000
      await stand.until(({ sequence: position, waiting }) => position === 2 && waiting === 0)
    })

    test('XF10 Z37 only the start of a huge response is read, and 256 safe characters are kept', async () => {
      const stand = await DeliveryFixture.open(open)
      let written = 0
      const receiver = await Receiver.open((_, response) => {
        response.writeHead(500)
        const piece = Buffer.from(`\u001b[31m<b>\r\n${'secret '.repeat(1_000)}`)
        const pour = (): void => {
          while (!response.destroyed && written < 50_000_000) {
            written += piece.length
            if (!response.write(piece)) return void response.once('drain', pour)
          }
          response.end()
        }
        pour()
      })
      await stand.add(receiver)
      await (await stand.driver()).cycle([upsert('a', { n: 1 })])
      stand.deliver()
      const { lastResponse } = await stand.until(({ waiting }) => waiting === 1)
      expect(lastResponse!.length).toBeLessThanOrEqual(256)
      expect(lastResponse).toMatch(/^\[31m<b> secret/)
      expect(written).toBeLessThan(20_000_000)
    })

    test('XF10 a receiver that never responds times out at the deadline, and delays no other', async () => {
      const stand = await DeliveryFixture.open(open)
      const [slow, quick] = [await Receiver.open(() => {}), await Receiver.open()]
      await stand.add(slow)
      await stand.add(quick, { createdAt: 2 })
      const driver = await stand.driver()
      const deliverer = stand.deliver({ deadlineMs: 3_000 })
      for (let n = 0; n < 5; n++) await driver.cycle([upsert(`k${n}`, { n })])
      await quick.until(({ length }) => length === 5)
      expect((await stand.store.webhooks())[0]!.failedAt).toBe(null)
      await stand.until(({ failedAt }) => failedAt !== null)
      expect((await stand.store.webhooks())[0]).toMatchObject({
        lastStatus: null,
        lastResponse: 'no response within 3 s',
      })
      await deliverer.stop({ graceMs: 0 })
    })

    test('XF10 a receiver that is down is probed by one message, and everything arrives in order once it is up', async () => {
      const stand = await DeliveryFixture.open(open)
      const receiver = await Receiver.open((_, response) => void response.socket!.destroy())
      await stand.add(receiver)
      const driver = await stand.driver()
      for (let n = 0; n < 10; n++) await driver.cycle(Array.from({ length: 20 }, (_, k) => upsert(`k${k}`, { n })))
      stand.deliver()
      const { retryAt, failureStreak: streak } = await stand.until((webhook) => webhook.retryAt !== null)
      expect(streak).toBe(5)
      const asked = receiver.received.length
      expect(asked).toBeLessThan(20)
      stand.shiftMs = retryAt! - Date.now()
      await stand.until((webhook) => webhook.failureStreak === streak + 1)
      expect(receiver.received.length).toBe(asked + 1)
      receiver.received.length = 0
      receiver.answer = (_, response) => void response.writeHead(200).end()
      stand.shiftMs += 2 * HOUR_MS
      await stand.until(({ sequence: position, waiting }) => position === 200 && waiting === 0)
      for (let k = 0; k < 20; k++)
        expect(deliveredValues(receiver.received, `k${k}`)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    })

    test('two processes on one store deliver each change once', async () => {
      const stand = await DeliveryFixture.open(open)
      const receiver = await Receiver.open()
      await stand.add(receiver)
      stand.deliver()
      stand.deliver({ store: await stand.harness.reopen() })
      const driver = await stand.driver()
      for (let n = 0; n < 30; n++) await driver.cycle([upsert('a', { n }), upsert(`k${n}`, { n })])
      await stand.until(({ sequence: position }) => position === 60)
      expect(receiver.received).toHaveLength(60)
      expect(deliveredValues(receiver.received, 'a')).toEqual(Array.from({ length: 30 }, (_, n) => n))
    })

    test('a log compacted beyond a webhook’s position disables the webhook with a reason', async () => {
      const stand = await DeliveryFixture.open(open)
      const receiver = await Receiver.open()
      const driver = await stand.driver()
      await driver.cycle([upsert('a', { n: 1 })])
      await stand.add(receiver, {}, { sequence: 1, floor: 0 })
      await driver.cycle([remove('a')])
      await driver.release()
      await stand.store.compact({ before: Number.MAX_SAFE_INTEGER, scanMax: 100 })
      stand.deliver()
      expect((await stand.until(({ disabledReason: disabled }) => disabled !== null)).disabledReason).toContain(
        'compacted',
      )
      // From the start, a compacted range is not a gap.
      const [{ id } = { id: '' }] = await stand.store.webhooks()
      await stand.store.restartWebhook(id, {
        actor: 'test',
        at: stand.ports.clock.now(),
        cursor: { sequence: 0, floor: (await stand.store.feed({ ...ALL, limit: 0 })).floor },
      })
      expect(await stand.until(({ sequence: position }) => position === 2)).toMatchObject({ disabledReason: null })
    })

    test('A28 O10 invariant 8: a webhook receiver, with concurrent writers, failures and takeovers, ends with the current rows', async () => {
      const stand = await DeliveryFixture.open(open)
      const [replica, seen] = [new Map() as Replica, new Set<string>()]
      let count = 0
      const receiver = await Receiver.open(({ id, item }, response) => {
        if (++count % 7 === 0) return void response.writeHead(503).end()
        if (!seen.has(id)) {
          seen.add(id)
          const name = `${item['database']}/${item['resourceId']}`
          if (item['action'] === 'deleted') replica.delete(name)
          else replica.set(name, JSON.stringify(item['snapshot']))
        }
        // Applied, although it looks like a failure.
        if (count % 11 === 0) response.socket!.destroy()
        else response.writeHead(200).end()
      })
      await stand.add(receiver)
      let deliverer = stand.deliver()
      let step = 0
      for await (const _ of churn(stand.store, 61, 160)) {
        if (++step % 10 === 0) await settled(10)
        if (step % 40 !== 0) continue
        await deliverer.stop({ graceMs: step % 80 === 0 ? 0 : 1_000 })
        deliverer = stand.deliver()
      }
      const position = await stand.store.headSequence()
      // The clock runs fast, so that waiting deliveries are due soon.
      while (
        !(await stand.store.webhooks()).every((webhook) => webhook.sequence === position && webhook.waiting === 0)
      ) {
        stand.shiftMs += 600_000
        await settled()
      }
      const rows = new Map(
        [...(await currentRows(stand.store))].map(([key, text]) => [key, JSON.stringify(JSON.parse(text))]),
      )
      expect(sortedEntries(replica)).toEqual(sortedEntries(rows))
      expect(seen.size).toBe(position)
    })
  })
}

function deliveredValues(received: readonly ReceivedMessage[], key: string): number[] {
  return received
    .filter(({ item }) => item['resourceId'] === key)
    .map(({ item }) => (item['snapshot'] as { n: number }).n)
}

/** Waits for some poll rounds. */
function settled(ms = 100): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
