import {
  COUNT_SCHEMA,
  objectSchema,
  SELECTED_AFTER_READING,
  SET_BY_CONNECTOR,
  TEXT_SCHEMA,
} from '../../values/config-schema.ts'
import { defineSource } from '../kit/define-source.ts'
import { omitUndefined } from '../kit/omit-undefined.ts'
import { applyMode } from '../kit/select-stream.ts'
import { SINCE_SCHEMA } from '../kit/since.ts'
import { CONNECTION_FIELDS, toSasl } from './connection-schema.ts'
import type { KafkaOptions } from './source.ts'

/** Kafka topics. The key of a message is the key of the row. */
export default defineSource({
  name: 'kafka',
  title: 'Kafka',
  times: { since: true, range: true },
  packages: ['kafkajs'],
  config: objectSchema({ ...CONNECTION_FIELDS, since: SINCE_SCHEMA }, ['brokers']),
  streams: {
    followsChanges: true,
    options: objectSchema({
      topic: TEXT_SCHEMA,
      include: { type: 'array', items: { enum: ['partition', 'offset', 'timestamp', 'headers'] }, uniqueItems: true },
      tombstones_ms: COUNT_SCHEMA,
      page_size: COUNT_SCHEMA,
      page_bytes: COUNT_SCHEMA,
    }),
    fields: {
      key: SET_BY_CONNECTOR,
      cursor: SET_BY_CONNECTOR,
      select: SELECTED_AFTER_READING,
      safety_window: {
        not: {},
        description: 'not supported by this connector: a log is ordered and continues at its offset',
      },
    },
  },
  async open({ brokers, ssl, sasl, client_id: clientId, since }) {
    const { kafka, listTopics } = await import('./source.ts')
    const options: KafkaOptions = { brokers, ...omitUndefined({ ssl, clientId, sasl: sasl && toSasl(sasl) }) }
    return { options, source: kafka(options), listTopics, since }
  },
  stream({ source, since }, declaration) {
    const {
      topic = declaration.id,
      include,
      tombstones_ms: tombstonesMs,
      page_size: pageSize,
      page_bytes: pageBytes,
    } = declaration.options ?? {}
    return applyMode(
      source.topic(topic, omitUndefined({ include, tombstonesMs, pageSize, pageBytes, since })),
      declaration,
    )
  },
  discover: async ({ options, listTopics }, context) =>
    (await listTopics(options, context)).map((id) => ({ id, key: ['key'], candidates: [] })),
  template: {
    rank: 170,
    label: 'Kafka topics',
    settings: { KAFKA_BROKERS: 'comma-separated host:port of brokers' },
    database: 'orders',
    simulated: 'a simulated broker',
    until: 'KAFKA_BROKERS is set in .env (see .env.example), then the real ones',
    packages: { kafkajs: '^2' },
  },
})
