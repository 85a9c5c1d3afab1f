import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/**
 * A Kafka cluster of librdkafka's mock brokers, on free ports of this machine, spoken to by any client over the real protocol:
 * produce, fetch, seek, list offsets, consumer groups with their offsets.
 *
 * It does not support the following, so no test may depend on it:
 * - nothing is on disk: a stopped cluster has forgotten everything;
 * - no compaction, and no retention by time or by setting. A partition keeps its newest 5 MiB (or 100 000 batches) and moves
 *   its low end up when more is produced: the one way to see an offset fall out of range (kafkajs answers that by a silent
 *   jump to its default offset);
 * - a client cannot create or delete topics or add partitions: `createTopic` does. A topic that is only asked for comes to be,
 *   with four partitions;
 * - a broker that is down keeps its partitions and its groups: give them away by `setLeader` and `setCoordinator`;
 * - an offset by time is always the end;
 * - no TLS, authentication, ACLs or quotas, and no transactions from kafkajs (the cluster reports broker 0 as the controller);
 * - a group is formed after three seconds, and a member that vanished is missed only after its session time-out: ask for the
 *   least that works, 6 s. `maxWaitTimeInMs: 100` spares five seconds at every disconnect.
 */
export interface KafkaCluster {
  /** `host:port` of every broker; their ids are 1, 2, 3… in this order. */
  readonly brokers: readonly string[]
  createTopic(name: string, partitions: number): Promise<void>
  /** Closes its connections and accepts no new ones. `'all'` is every broker. */
  down(broker: number | 'all'): Promise<void>
  up(broker: number | 'all'): Promise<void>
  /** Delays each of its responses by this much. */
  setDelay(broker: number | 'all', delayMs: number): Promise<void>
  /** Fails the next requests of this kind, at any broker. */
  failNext(api: KafkaApi, error: KafkaFailure, times?: number): Promise<void>
  /** Clears unused faults of `failNext`. */
  failNoMore(api: KafkaApi): Promise<void>
  /** The error that clients get when they request the topic's metadata; null clears it. */
  setTopicError(topic: string, error: KafkaFailure | null): Promise<void>
  /** null: the partition has no leader. */
  setLeader(topic: string, partition: number, broker: number | null): Promise<void>
  setCoordinator(group: string, broker: number): Promise<void>
  stop(): Promise<void>
}

const APIS = {
  produce: 0,
  fetch: 1,
  listOffsets: 2,
  metadata: 3,
  offsetCommit: 8,
  offsetFetch: 9,
  findCoordinator: 10,
  joinGroup: 11,
  heartbeat: 12,
  leaveGroup: 13,
  syncGroup: 14,
  apiVersions: 18,
  initProducerId: 22,
} as const
export const FAILURES = {
  /** Cuts the connection without an error. */
  disconnect: -195,
  unknown: -1,
  offsetOutOfRange: 1,
  corruptMessage: 2,
  unknownTopicOrPartition: 3,
  leaderNotAvailable: 5,
  notLeaderForPartition: 6,
  requestTimedOut: 7,
  brokerNotAvailable: 8,
  coordinatorNotAvailable: 15,
  notCoordinator: 16,
  topicAuthorizationFailed: 29,
  groupAuthorizationFailed: 30,
  kafkaStorageError: 56,
} as const
export type KafkaApi = keyof typeof APIS
export type KafkaFailure = keyof typeof FAILURES

const HEADER = ['/usr/include/librdkafka/rdkafka_mock.h', '/usr/local/include/librdkafka/rdkafka_mock.h'].find((path) =>
  existsSync(path),
)
export const hasKafka = HEADER !== undefined && spawnSync('cc', ['--version']).status === 0
export const KAFKA_HINT = 'Install librdkafka and a C compiler (`apt-get install librdkafka-dev gcc`).'

export async function startKafka(brokerCount = 1): Promise<KafkaCluster> {
  if (!hasKafka) throw new Error(`No Kafka can be started. ${KAFKA_HINT}`)
  const cluster = spawn(compile(), [String(brokerCount)], { stdio: ['pipe', 'pipe', 'inherit'] })
  // A command to a stopped cluster is detected by the missing answer.
  cluster.stdin.on('error', () => {})
  const exited = new Promise<void>((resolve) => cluster.once('exit', () => resolve()).once('error', () => resolve()))
  const lines = createInterface({ input: cluster.stdout })[Symbol.asyncIterator]()
  let last: Promise<unknown> = Promise.resolve()
  const nextLine = async () => {
    const { value, done } = await lines.next()
    if (done === true) throw new Error('The Kafka cluster has ended.')
    return value as string
  }
  /** One at a time: answers arrive in the order of the commands. */
  const send = (...words: (string | number)[]): Promise<void> => {
    const answered = last.then(async () => {
      cluster.stdin.write(`${words.join(' ')}\n`)
      const answer = await nextLine()
      if (answer !== 'ok') throw new Error(`The Kafka cluster refuses "${words.join(' ')}": ${answer}`)
    })
    last = answered.catch(() => {})
    return answered
  }
  const brokers = (await nextLine()).split(',')
  const idOf = (broker: number | 'all') => (broker === 'all' ? -1 : broker)
  return {
    brokers,
    createTopic: (name, partitions) => send('topic', name, partitions),
    down: (broker) => send('down', idOf(broker)),
    up: (broker) => send('up', idOf(broker)),
    setDelay: (broker, delayMs) => send('rtt', idOf(broker), delayMs),
    failNext: (api, error, times = 1) => send('fail', APIS[api], FAILURES[error], times),
    failNoMore: (api) => send('fail-no-more', APIS[api]),
    setTopicError: (topic, error) => send('topic-error', topic, error === null ? 0 : FAILURES[error]),
    setLeader: (topic, partition, broker) => send('leader', topic, partition, broker ?? -1),
    setCoordinator: (group, broker) => send('coordinator', 'group', group, broker),
    stop: async () => {
      cluster.stdin.end()
      const slow = setTimeout(() => cluster.kill('SIGKILL'), 5_000)
      await exited
      clearTimeout(slow)
    },
  }
}

/** Compiled once per program text: the result is cached under a hash of it. */
function compile(): string {
  const source = join(import.meta.dirname, 'kafka-cluster.c')
  const folder = join(import.meta.dirname, '../../node_modules/.cache/tidemark')
  const program = join(
    folder,
    `kafka-cluster-${createHash('sha256').update(readFileSync(source)).digest('hex').slice(0, 16)}`,
  )
  if (existsSync(program)) return program
  mkdirSync(folder, { recursive: true })
  // Test files run concurrently: the last to finish wins, and a partial program is never run.
  const unfinished = `${program}.${process.pid}`
  const compiled = spawnSync('cc', ['-Wall', '-Wextra', '-Werror', '-O1', '-o', unfinished, source, '-lrdkafka'], {
    encoding: 'utf8',
  })
  if (compiled.status !== 0)
    throw new Error(`The Kafka cluster could not be compiled: ${compiled.stderr.slice(-2_000)}`)
  renameSync(unfinished, program)
  return program
}
