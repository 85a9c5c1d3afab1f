import { createKafkaDestination } from '../../src/destinations/kafka/create-destination.ts'
import type { KafkaDestinationOptions } from '../../src/destinations/kafka/destination.ts'
import type { Destination } from '../../src/contract/index.ts'
import { systemClock } from '../../src/platform/clock.ts'
import type { DestinationHarness, StoredRow } from '../../src/testing/destination-cases/harness.ts'
import { parseJson } from '../../src/values/json.ts'
import { KafkaSimulator, type KafkaApiName } from '../../simulators/src/index.ts'

/** A message as a reader receives it. */
export interface ReceivedMessage {
  readonly partition: number
  readonly offset: number
  readonly key: string
  readonly value: string | null
  readonly headers: Readonly<Record<string, string>>
}

export interface KafkaHarness extends DestinationHarness {
  readonly simulator: KafkaSimulator
  readonly brokers: string[]
  /** The committed messages of a topic. */
  messages(topic: string): ReceivedMessage[]
}

export const RETRY = { retries: 1, initialRetryTime: 10 }
export const PARTITIONS = 3

/** Cut faults break every connection until the session that met them is closed. */
const COUNTED: ReadonlySet<KafkaApiName> = new Set([
  'initProducerId',
  'addPartitionsToTxn',
  'produce',
  'endTxn',
  'createTopics',
])

/** A simulated cluster of three brokers. */
export async function openKafkaHarness(options: Partial<KafkaDestinationOptions> = {}): Promise<KafkaHarness> {
  const simulator = new KafkaSimulator({ clock: systemClock }, { brokers: 3 })
  const brokers = await simulator.listen()
  const destination = createKafkaDestination({ brokers, partitions: PARTITIONS, ...options }, RETRY)
  const isTransactional = options.transactions ?? true
  let [isBroken, happened] = [false, false]
  const messages = (topic: string): ReceivedMessage[] => readMessages(simulator, topic)
  return {
    simulator,
    brokers,
    destination: withClose(destination, () => void (isBroken = false)),
    messages,
    rows: async (database) => toRows(messages(database), readMode(messages(`_tidemark.${database}`)), !isTransactional),
    interrupt(fault) {
      let left = fault === 'commit' ? Infinity : fault.statement
      happened = false
      simulator.faults.decide = (api) => {
        if (isBroken) return { kind: 'cut', where: 'before' }
        const isCommit = fault === 'commit' && api === (isTransactional ? 'endTxn' : 'produce')
        if (happened || (!isCommit && !(COUNTED.has(api) && left-- === 0))) return undefined
        isBroken = happened = true
        return { kind: 'cut', where: isCommit ? 'inside' : 'before' }
      }
      return () => {
        simulator.faults.decide = null
        isBroken = false
        return happened
      }
    },
    async backUp() {
      const restores = simulator.topics.names.flatMap((topic) =>
        (simulator.topics.partitions(topic) ?? []).map((log) => log.save()),
      )
      return async () => restores.forEach((restore) => restore())
    },
    close: () => simulator.close(),
  }
}

function withClose(destination: Destination, onClose: () => void): Destination {
  return {
    ...destination,
    async open(context) {
      try {
        const session = await destination.open(context)
        const close = async (): Promise<void> => {
          onClose()
          await session.close()
        }
        return {
          position: (database) => session.position(database),
          prepare: (schema) => session.prepare(schema),
          apply: (batch, step) => session.apply(batch, step),
          remove: (database) => session.remove(database),
          close,
        }
      } catch (error) {
        onClose()
        throw error
      }
    },
  }
}

export function readMessages(simulator: KafkaSimulator, topic: string): ReceivedMessage[] {
  return (simulator.topics.partitions(topic) ?? []).flatMap((log, partition) =>
    log.committedRecords().map(({ offset, key, value, headers }) => ({
      partition,
      offset,
      key: String(key),
      value: value === null ? null : String(value),
      headers: Object.fromEntries(headers.map(([name, text]) => [name, String(text)])),
    })),
  )
}

function readMode(messages: readonly ReceivedMessage[]): string {
  const last = messages.findLast(({ key }) => key === 'position')?.value
  return last === undefined || last === null ? 'mirror' : (JSON.parse(last) as { mode: string }).mode
}

/** The rows as the guide describes them for a reader. */
export function toRows(messages: readonly ReceivedMessage[], mode: string, isDeduplicated: boolean): StoredRow[] {
  const partitions = new Map<string, number>()
  const seen = new Map<string, [load: number, sequence: number]>()
  const rows: StoredRow[] = []
  const current = new Map<string, StoredRow>()
  for (const { key, value, partition, headers } of messages) {
    if ((partitions.get(key) ?? partition) !== partition) throw new Error(`${key} is in two partitions.`)
    partitions.set(key, partition)
    const [load, sequence] = [Number(headers['load']), Number(headers['sequence'])]
    const [lastLoad, lastSequence] = seen.get(key) ?? [-1, -1]
    if (isDeduplicated && (load < lastLoad || (load === lastLoad && sequence <= lastSequence))) continue
    seen.set(key, [load, sequence])
    const row = { key, sequence, record: value === null ? null : (parseJson(value) as StoredRow['record']) }
    rows.push({ ...row, action: headers['action']! })
    if (row.record === null) current.delete(key)
    else current.set(key, row)
  }
  return mode === 'mirror' ? [...current.values()] : rows.toSorted((a, b) => a.sequence - b.sequence)
}
