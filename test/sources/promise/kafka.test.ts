import { describe, test } from 'vitest'
import { kafka } from '../../../src/sources/kafka/source.ts'
import { describeSource } from '../../../src/testing/describe-source.ts'
import { KafkaSimulator } from '../../../simulators/src/index.ts'
import { SkippingClock } from '../../../src/testing/skipping-clock.ts'
import type { SourceHarness } from '../../../src/testing/source-cases/harness.ts'

const PARTITIONS = 3

/** The source with kafkajs against a cluster over sockets, which is compacted sometimes. */
async function openHarness(part: 'topic' | 'listing'): Promise<SourceHarness> {
  const clock = new SkippingClock()
  const simulator = new KafkaSimulator({ clock }, { brokers: 2 })
  simulator.topics.create('orders', PARTITIONS)
  const source = kafka({ brokers: await simulator.listen() })[part]('orders', { pageSize: 6 })
  const truth = new Map<string, object>()
  let writes = 0
  const write = (keys: readonly string[], isGone = false): void => {
    writes++
    for (const key of keys) {
      const order = { id: key, writes }
      if (isGone) truth.delete(key)
      else truth.set(key, order)
      simulator.append('orders', Number(key) % PARTITIONS, [{ key, value: isGone ? null : JSON.stringify(order) }])
    }
    if (writes % 3 === 0)
      for (let partition = 0; partition < PARTITIONS; partition++)
        simulator.topics.log('orders', partition).compact({ tombstones: 'keep' })
  }
  let made = 0
  return {
    source,
    clock,
    create: (count) => {
      const keys = Array.from({ length: count }, () => String(++made))
      write(keys)
      return keys
    },
    change: (keys) => write(keys),
    remove: (keys) => write(keys, true),
    rows: () => Object.fromEntries(truth),
    close: () => simulator.close(),
  }
}

for (const part of ['topic', 'listing'] as const)
  describeSource(`kafka ${part}`, () => openHarness(part), { runner: { describe, test } })
