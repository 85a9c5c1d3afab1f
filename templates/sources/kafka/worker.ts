import { Worker } from 'tidemark'
import { kafka } from 'tidemark/sources/kafka'
import { realOrSimulated } from '@tidemark/simulators'

// Until KAFKA_BROKERS is set in .env, the worker reads a simulated broker with new orders in this process.
const simulated = realOrSimulated('kafka', { unless: 'KAFKA_BROKERS', since: '{{now}}' })
const cluster = kafka({ brokers: 'KAFKA_BROKERS' })

const worker = new Worker({ name: '{{name}}' })
// The last value of every key of a topic. The state is the offset of each partition.
worker.track('orders', { database: worker.database('orders'), source: simulated(cluster.topic('orders')), schedule: 'continuous' })

export default worker
