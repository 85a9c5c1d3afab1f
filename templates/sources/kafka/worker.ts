import { Worker } from 'tidemark'
import { kafka } from 'tidemark/sources/kafka'
import { realOrSimulated } from 'tidemark/testing'

// Without KAFKA_BROKERS in .env a simulated broker answers, inside this process, and people place orders; with it, the real ones.
const simulated = realOrSimulated('kafka', { unless: 'KAFKA_BROKERS', since: '{{now}}' })
const cluster = kafka({ brokers: 'KAFKA_BROKERS' })

const worker = new Worker({ name: '{{name}}' })
// The last value of every key of a topic, by the partitions' offsets.
worker.track('orders', { database: worker.database('orders'), source: simulated(cluster.topic('orders')), schedule: 'continuous' })

export default worker
