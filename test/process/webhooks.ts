import { expect, test } from 'vitest'
import { computeMessageId } from '../../src/webhooks/message.ts'
import { Receiver } from '../webhooks/receiver.ts'
import type { Build } from './build.ts'
import { Child } from './child.ts'
import type { ProcessStoreFixture } from './process-store-fixture.ts'

const ROWS = 5

export function describeWebhooks(build: () => Build, stand: () => ProcessStoreFixture): void {
  test('XA6 killed after the commit and before any delivery: the next process delivers it, with the ids it would have had', async () => {
    const { url, receiver, expected } = await landed(build(), stand())
    expect(receiver.received).toEqual([])
    const child = new Child(build(), 'webhooks.mjs', { input: { url, task: 'deliver' } })
    await receiver.until(({ length }) => length === ROWS)
    expect(receiver.received.map(({ id }) => id).toSorted()).toEqual(expected)
    await child.kill()
  })

  test('XA7 killed after a delivery and before it was recorded: it is delivered again at once, with the same ids', async () => {
    const { url, receiver, expected } = await landed(build(), stand())
    const first = new Child(build(), 'webhooks.mjs', { input: { url, task: 'deliver', dieAt: 'note' } })
    await first.until('noting')
    expect(receiver.received.map(({ id }) => id).toSorted()).toEqual(expected)
    await first.kill()
    await stand().settled(url)
    expect(await stand().look(url, async (store) => (await store.webhooks())[0])).toMatchObject({
      sequence: 0,
      waiting: 0,
    })
    // Its claim would last for a minute; the next process detects that its holder exited.
    const second = new Child(build(), 'webhooks.mjs', { input: { url, task: 'deliver' } })
    await receiver.until(({ length }) => length === 2 * ROWS)
    expect(
      receiver.received
        .slice(ROWS)
        .map(({ id }) => id)
        .toSorted(),
    ).toEqual(expected)
    await second.kill()
  })

  test('XA7 killed while a receiver has not answered: it is delivered again, with the same id', async () => {
    const { url, receiver, expected } = await landed(build(), stand())
    receiver.answer = () => {}
    const first = new Child(build(), 'webhooks.mjs', { input: { url, task: 'deliver' } })
    await receiver.until(({ length }) => length === ROWS)
    await first.kill()
    receiver.answer = (_, response) => void response.writeHead(200).end()
    const second = new Child(build(), 'webhooks.mjs', { input: { url, task: 'deliver' } })
    await receiver.until(({ length }) => length === 2 * ROWS)
    expect(
      receiver.received
        .slice(ROWS)
        .map(({ id }) => id)
        .toSorted(),
    ).toEqual(expected)
    await second.kill()
  })
}

/** A store in which a process landed changes for a webhook, and was killed. */
async function landed(
  build: Build,
  stand: ProcessStoreFixture,
): Promise<{ url: string; receiver: Receiver; expected: string[] }> {
  const url = await stand.fresh()
  const receiver = await Receiver.open()
  const { signal } = await new Child(build, 'webhooks.mjs', {
    input: { url, receiver: receiver.url, task: 'land', rows: ROWS },
  }).ended
  expect(signal).toBe('SIGKILL')
  const { entries } = await stand.look(url, (store) => store.feed({ after: 0, limit: 100, scanMax: 100 }))
  expect(entries).toHaveLength(ROWS)
  return { url, receiver, expected: entries.map((entry) => computeMessageId('default', entry)).toSorted() }
}
