import { systemClock } from '../../../src/platform/clock.ts'
import { ERROR_CODES, type KafkaErrorName } from '../../../simulators/src/kafka/error-codes.ts'
import { KafkaSimulator, type KafkaApiName, type KafkaFault } from '../../../simulators/src/index.ts'
import { FAILURES, type KafkaCluster, type KafkaFailure } from '../../setup/kafka-cluster.ts'

/** Per partition, as the mock has it. */
const RETENTION_BYTES = 5 * 1024 ** 2

/** The simulator, worked like the mock; of groups, which it does not have, nothing is refused. */
export async function startSimulated(brokerCount = 1): Promise<KafkaCluster> {
  const simulator = new KafkaSimulator({ clock: systemClock }, { brokers: brokerCount })
  const { topics, faults } = simulator
  const brokers = await simulator.listen()
  const brokersOf = (broker: number | 'all') =>
    (broker === 'all' ? brokers.map((_, at) => at + 1) : [broker]).map((id) => simulator.broker(id))
  return {
    brokers,
    createTopic: async (name, partitions) => topics.create(name, partitions, { retentionBytes: RETENTION_BYTES }),
    down: async (broker) => void (await Promise.all(brokersOf(broker).map((one) => one.stop()))),
    up: async (broker) => void (await Promise.all(brokersOf(broker).map((one) => one.start()))),
    setDelay: async (broker, delayMs) => brokersOf(broker).forEach((one) => void (one.delayMs = delayMs)),
    failNext: async (api, error, times = 1) => faults.plan(faultOf(error), { api: api as KafkaApiName, times }),
    failNoMore: async (api) => faults.clear(api as KafkaApiName),
    setTopicError: async (topic) => topics.delete(topic),
    setLeader: async (topic, partition, broker) => topics.log(topic, partition).setLeader(broker),
    setCoordinator: async () => {},
    stop: () => simulator.close(),
  }
}

function faultOf(failure: KafkaFailure): KafkaFault {
  if (failure === 'disconnect') return { kind: 'cut', where: 'before' }
  const error = (Object.keys(ERROR_CODES) as KafkaErrorName[]).find((name) => ERROR_CODES[name] === FAILURES[failure])
  return { kind: 'error', error: error ?? 'UNKNOWN_SERVER_ERROR' }
}
