import { CONNECTION_FIELDS, toSasl } from '../../sources/kafka/connection-schema.ts'
import { COUNT_SCHEMA, objectSchema, TEXT_SCHEMA } from '../../values/config-schema.ts'
import { defineDestination } from '../kit/define-destination.ts'
import { JSON_TYPES } from '../kit/json-types.ts'

/** Topics of a Kafka cluster. */
export default defineDestination({
  name: 'kafka',
  title: 'Kafka',
  packages: ['kafkajs', 'node:crypto', 'node:timers/promises'],
  install: { kafkajs: '^2' },
  config: objectSchema(
    {
      ...CONNECTION_FIELDS,
      topic_prefix: TEXT_SCHEMA,
      partitions: COUNT_SCHEMA,
      replication_factor: COUNT_SCHEMA,
      create_topics: { type: 'boolean' },
      transactions: { type: 'boolean' },
    },
    ['brokers'],
  ),
  types: JSON_TYPES,
  limits: [
    ['Any record', 'sent as it is in the store, as JSON: every value and every field'],
    ['A record larger than `max.message.bytes` of the topic', 'stops the destination with DESTINATION_REFUSED'],
    ['A name that is not a name of a topic', 'stops the destination with DESTINATION_INVALID'],
  ],
  async create(config) {
    const { kafka } = await import('./destination.ts')
    const { brokers, ssl, sasl, partitions, transactions } = config
    return kafka({
      brokers,
      ...(config.topic_prefix !== undefined && { topic: config.topic_prefix }),
      ...(ssl !== undefined && { ssl }),
      ...(sasl !== undefined && { sasl: toSasl(sasl) }),
      ...(config.client_id !== undefined && { clientId: config.client_id }),
      ...(partitions !== undefined && { partitions }),
      ...(config.replication_factor !== undefined && { replicationFactor: config.replication_factor }),
      ...(config.create_topics !== undefined && { createTopics: config.create_topics }),
      ...(transactions !== undefined && { transactions }),
    })
  },
})
