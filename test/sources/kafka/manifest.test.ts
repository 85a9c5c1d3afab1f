import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CONNECTORS } from '../../../src/config/manifest/connectors.ts'
import { readManifest, buildWorker } from '../../../src/config/manifest/manifest.ts'
import { openStore, runCycle } from '../../../src/index.ts'
import { hasKafka } from '../../setup/kafka-cluster.ts'
import { contextOf } from '../sql/cases.ts'
import { BrokerFixture } from './broker-fixture.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tidemark-kafka-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

const write = (text: string): string => {
  const path = join(folder, 'tidemark.yaml')
  writeFileSync(path, text)
  return path
}
const refusal = (config: string, stream = '{ id: orders }') =>
  buildWorker(write(`connector: kafka\nconfig: ${config}\nstreams: [${stream}]\n`), 'tidemark.yaml', {}).then(
    () => 'accepted',
    (error: { message: string }) => error.message,
  )

test('secrets stay names, brokers may be one, and what is missing or too much is said', async () => {
  const { config } = readManifest(
    write(
      'connector: kafka\nconfig: { brokers: "${BROKERS}", ssl: { ca: "${CA}" }, sasl: { mechanism: plain, username: "${USER}", password: "${PASSWORD}" } }\n',
    ),
    'tidemark.yaml',
    { CA: 'pem' },
  )
  expect(config).toEqual({
    brokers: 'BROKERS',
    ssl: { ca: 'CA' },
    sasl: { mechanism: 'plain', username: 'USER', password: 'PASSWORD' },
  })
  expect(await refusal('{ brokers: "a:1,b:2", ssl: true }')).toBe('accepted')
  expect(
    await refusal('{ brokers: "a:1" }', '{ id: orders, options: { topic: shop.orders.v1, include: [offset] } }'),
  ).toBe('accepted')
  expect(await refusal('{ brokers: somewhere }')).toContain('host:port')
  expect(await refusal('{ brokers: "user:secret@a:1" }')).not.toContain('secret@')
  expect(await refusal('{ brokers: "a:1", sasl: { mechanism: plain, username: "${USER}" } }')).toContain(
    '`password` is missing',
  )
  expect(await refusal('{ brokers: "a:1", sasl: { mechanism: oauthbearer } }')).toContain('`token` is missing')
  expect(await refusal('{ brokers: "a:1", sasl: { mechanism: plain, username: me, password: word } }')).toContain(
    'a secret',
  )
  expect(await refusal('{ brokers: "a:1" }', '{ id: orders, cursor: updated_at }')).toContain(
    'set by this connector and cannot be changed',
  )
})

describe.skipIf(!hasKafka)('against a cluster', () => {
  let broker: BrokerFixture
  beforeAll(async () => {
    broker = await BrokerFixture.open()
  })
  afterAll(() => broker?.close())

  test('RX2 topics are listed, and a manifest follows one and reads another whole', async () => {
    await broker.cluster.createTopic('shop.orders', 2)
    await broker.cluster.createTopic('countries', 1)
    await broker.cluster.createTopic('__own', 1)
    await broker.produce('shop.orders', [
      { key: 'a', value: { n: 1 } },
      { key: 'b', value: { n: 1 }, partition: 1 },
      { key: 'a', value: null },
    ])
    await broker.produce('countries', [{ key: 'de', value: { name: 'Germany' } }])
    const config = { brokers: broker.brokers.join(',') }
    expect(await CONNECTORS.kafka.discover!(config, folder, contextOf())).toEqual([
      { id: 'countries', key: ['key'], candidates: [] },
      { id: 'shop.orders', key: ['key'], candidates: [] },
    ])

    const worker = await buildWorker(
      write(
        `connector: kafka\nconfig: { brokers: "${config.brokers}" }\nstreams:\n  - id: shop.orders\n    options: { include: [partition] }\n  - id: lands\n    mode: full_refresh\n    options: { topic: countries }\n`,
      ),
      'tidemark.yaml',
      {},
    )
    expect(worker.manifest.syncs.map(({ name, mode }) => `${name} ${mode}`)).toEqual([
      'shop.orders-backfill replace',
      'shop.orders incremental',
      'lands replace',
    ])
    const store = await openStore(`sqlite:${join(folder, 'store.db')}`)
    for (const sync of ['shop.orders', 'lands'])
      expect((await runCycle(worker, sync, { store })).stopReason).toBe('complete')
    const rowsOf = async (database: string) =>
      (await store.rows({ database, limit: 10 })).map(({ key, text }) => [key, JSON.parse(text) as object])
    expect(await rowsOf('shop.orders')).toEqual([['b', { n: 1, _kafka: { partition: 1 } }]])
    expect(await rowsOf('lands')).toEqual([['de', { name: 'Germany' }]])
    await store.close()
  })
})
