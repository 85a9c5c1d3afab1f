import { Worker } from 'tidemark'
import { kafka } from 'tidemark/sources/kafka'

// The last value of every key of a topic, by the partitions' offsets. The addresses of some brokers are in .env.
const cluster = kafka({ brokers: 'KAFKA_BROKERS' })

const worker = new Worker({ name: '{{name}}' })
worker.track('orders', { database: worker.database('orders'), source: cluster.topic('orders'), schedule: 'continuous' })

export default worker
