import type { SyncContext } from '../../contract/index.ts'
import { configOf, connect, type KafkaOptions } from './connect.ts'
import { failureOf } from './failures.ts'

/** Every topic that the account may see, but for those that Kafka keeps for itself. */
export async function topicsOf(options: KafkaOptions, context: Pick<SyncContext, 'secrets' | 'signal'>): Promise<string[]> {
  context.signal.throwIfAborted()
  const config = configOf(options, context)
  try {
    const cluster = await connect(config)
    try {
      const { topicMetadata } = await cluster.metadata()
      return topicMetadata.filter(({ topic }) => !topic.startsWith('__')).map(({ topic }) => topic).toSorted()
    } finally {
      await cluster.disconnect()
    }
  } catch (error) {
    throw failureOf(error, `Kafka at ${config.brokers.join(', ')}`)
  }
}
