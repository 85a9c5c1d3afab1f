import type { SyncContext } from '../../contract/index.ts'
import { buildConfig, connectCluster, type KafkaOptions } from './connect.ts'
import { toSyncError } from './failures.ts'

/** Lists every topic that the account can see, except Kafka's internal topics. */
export async function listTopics(
  options: KafkaOptions,
  context: Pick<SyncContext, 'secrets' | 'signal'>,
): Promise<string[]> {
  context.signal.throwIfAborted()
  const config = buildConfig(options, context)
  try {
    const cluster = await connectCluster(config)
    try {
      const { topicMetadata } = await cluster.metadata()
      return topicMetadata
        .filter(({ topic }) => !topic.startsWith('__'))
        .map(({ topic }) => topic)
        .toSorted()
    } finally {
      await cluster.disconnect()
    }
  } catch (error) {
    throw toSyncError(error, `Kafka at ${config.brokers.join(', ')}`)
  }
}
