import { Worker } from 'tidemark'
import { kafka } from 'tidemark/sources/kafka'

// The last value of every key of a topic, by the partitions' offsets.
const cluster = kafka({ brokers: ['127.0.0.1:9092'] })

const worker = new Worker({ name: '{{name}}' })
worker.track('orders', { database: worker.database('orders'), source: cluster.topic('orders'), schedule: 'continuous' })

export default worker
