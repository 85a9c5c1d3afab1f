import type { Admin } from 'kafkajs'
import { SyncError, type DestinationMode } from '../../contract/index.ts'

const TOPIC_RESOURCE = 2
const CLEANUP_POLICY = 'cleanup.policy'

/** A mirror keeps the last version of every key; a log of changes keeps all of them until you set a retention. */
const CONFIGS: Record<DestinationMode, Readonly<Record<string, string>>> = {
  mirror: { [CLEANUP_POLICY]: 'compact' },
  append: { [CLEANUP_POLICY]: 'delete', 'retention.ms': '-1' },
  history: { [CLEANUP_POLICY]: 'delete', 'retention.ms': '-1' },
}

/** One token per batch: old segments are compacted within the hour. */
const SIDE_CONFIG = { [CLEANUP_POLICY]: 'compact', 'segment.ms': '3600000' }

export interface TopicLayout {
  /** -1 for the default of the brokers. */
  readonly partitions: number
  readonly replicationFactor: number
}

/** Creates the topics that do not exist, and checks that the brokers keep the messages of the others. */
export async function ensureTopics(
  admin: Admin,
  { topic, sideTopic, mode }: { readonly topic: string; readonly sideTopic: string; readonly mode: DestinationMode },
  { partitions, replicationFactor }: TopicLayout,
): Promise<void> {
  const wanted = [
    { topic, numPartitions: partitions, config: CONFIGS[mode] },
    { topic: sideTopic, numPartitions: 1, config: SIDE_CONFIG },
  ]
  const existing = new Set(await admin.listTopics())
  const missing = wanted.filter((one) => !existing.has(one.topic))
  if (missing.length > 0)
    await admin.createTopics({
      topics: missing.map(({ config, ...one }) => ({
        ...one,
        replicationFactor,
        configEntries: Object.entries(config).map(([name, value]) => ({ name, value })),
      })),
    })
  for (const { topic: name, config } of wanted)
    if (existing.has(name)) await checkPolicy(admin, name, config[CLEANUP_POLICY] ?? '')
}

/** Brokers would delete rows, or versions of rows, that are still needed. */
async function checkPolicy(admin: Admin, topic: string, expected: string): Promise<void> {
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: [{ type: TOPIC_RESOURCE, name: topic, configNames: [CLEANUP_POLICY] }],
  })
  const policy = resources[0]?.configEntries.find(({ configName }) => configName === CLEANUP_POLICY)?.configValue
  if (policy !== expected)
    throw new SyncError(
      'DESTINATION_INVALID',
      `The topic ${topic} has ${CLEANUP_POLICY}=${policy ?? 'unknown'}, but this mode needs ${expected}. Change the setting of the topic, or use another topic.`,
    )
}
