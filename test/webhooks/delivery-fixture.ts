import { onTestFinished } from 'vitest'
import type { Ports, Store, Webhook, WebhookSettings } from '../../src/contract/index.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { SyncDriver, type StoreHarness } from '../../src/testing/store-cases/harness.ts'
import { Deliverer } from '../../src/webhooks/deliverer.ts'
import { generateSecret, serializeSecrets } from '../../src/webhooks/secrets.ts'
import { createSender, type SenderOptions } from '../../src/webhooks/send.ts'
import type { Receiver } from './receiver.ts'

export type OpenHarness = () => Promise<StoreHarness>

/** A store with any number of deliverers. Time can be advanced. */
export class DeliveryFixture {
  readonly harness: StoreHarness
  readonly store: Store
  readonly lines: string[] = []
  readonly ports: Ports
  shiftMs = 0
  #deliverers = 0

  private constructor(harness: StoreHarness) {
    this.harness = harness
    this.store = harness.store
    const note = (message: string, fields?: object): void =>
      void this.lines.push(JSON.stringify({ message, ...fields }))
    this.ports = {
      clock: { now: () => systemClock.now() + this.shiftMs, sleep: (ms, signal) => systemClock.sleep(ms, signal) },
      random: systemRandom,
      log: { debug: note, info: note, warn: note, error: note },
    }
  }

  static async open(open: OpenHarness): Promise<DeliveryFixture> {
    const harness = await open()
    onTestFinished(() => harness.close())
    return new DeliveryFixture(harness)
  }

  async add(
    receiver: Pick<Receiver, 'url'>,
    overrides: Partial<WebhookSettings> = {},
    place = { sequence: 0, floor: 0 },
  ): Promise<string> {
    const secret = generateSecret()
    const id = `wh_${receiver.url.replaceAll(/\W/g, '')}`
    await this.store.putWebhook(
      {
        id,
        url: receiver.url,
        databases: null,
        actions: null,
        allow: ['http', 'private', 'port'],
        secrets: serializeSecrets([{ secret, endsAt: null }]),
        createdAt: 1,
        ...overrides,
      },
      place,
    )
    return secret
  }

  deliver(options: SenderOptions & { store?: Store } = {}): Deliverer {
    const { store = this.store, ...sender } = options
    const send = createSender(sender)
    const deliverer = new Deliverer({
      store,
      ports: this.ports,
      send,
      holder: `test-${++this.#deliverers}`,
      pollMs: 20,
    })
    deliverer.start()
    onTestFinished(async () => {
      await deliverer.stop({ graceMs: 0 })
      await send.close()
    })
    return deliverer
  }

  driver(sync = 'delta'): Promise<SyncDriver> {
    return SyncDriver.acquire(this.store, { sync })
  }

  /** Waits until the webhook matches. */
  async until(fits: (webhook: Webhook) => boolean, at = 0): Promise<Webhook> {
    for (;;) {
      const webhook = (await this.store.webhooks())[at]!
      if (fits(webhook)) return webhook
      await systemClock.sleep(20)
    }
  }
}
