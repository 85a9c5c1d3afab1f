import {
  COUNT_SCHEMA,
  omitUndefined,
  applyMode,
  SET_BY_CONNECTOR,
  objectSchema,
  SECRET_SCHEMA,
  TEXT_SCHEMA,
  type Connector,
} from './connector.ts'

const BROKERS_SCHEMA = {
  type: 'string',
  pattern: '^(?:\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}|[^\\s,:@]+:\\d+(?:,\\s*[^\\s,:@]+:\\d+)*)$',
  description: 'comma-separated host:port of brokers, or ${NAME} of a secret that contains them',
} as const

const SASL_SCHEMA = {
  ...objectSchema(
    {
      mechanism: { enum: ['plain', 'scram-sha-256', 'scram-sha-512', 'oauthbearer'] },
      username: SECRET_SCHEMA,
      password: SECRET_SCHEMA,
      token: SECRET_SCHEMA,
    },
    ['mechanism'],
  ),
  if: { properties: { mechanism: { const: 'oauthbearer' } } },
  // oxlint-disable-next-line unicorn/no-thenable
  then: { required: ['token'] },
  else: { required: ['username', 'password'] },
}

/** Kafka topics. The key of a message is the key of the row. */
export const kafka: Connector = {
  followsChanges: true,
  config: objectSchema(
    {
      brokers: BROKERS_SCHEMA,
      ssl: {
        ...objectSchema({ ca: SECRET_SCHEMA, cert: SECRET_SCHEMA, key: SECRET_SCHEMA }),
        type: ['boolean', 'object'],
      },
      sasl: SASL_SCHEMA,
      client_id: TEXT_SCHEMA,
    },
    ['brokers'],
  ),
  stream: {
    properties: {
      options: objectSchema({
        topic: TEXT_SCHEMA,
        include: { type: 'array', items: { enum: ['partition', 'offset', 'timestamp', 'headers'] }, uniqueItems: true },
        tombstones_ms: COUNT_SCHEMA,
        page_size: COUNT_SCHEMA,
        page_bytes: COUNT_SCHEMA,
      }),
      key: SET_BY_CONNECTOR,
      cursor: SET_BY_CONNECTOR,
      select: SET_BY_CONNECTOR,
      safety_window: {
        not: {},
        description: 'not supported by this connector: a log is ordered and continues at its offset',
      },
    },
  },
  async open(config) {
    const { kafka: open } = await import('../../sources/kafka/source.ts')
    const source = open(toKafkaOptions(config))
    return {
      stream(stream) {
        const {
          topic = stream.id,
          include,
          tombstones_ms: tombstonesMs,
          page_size: pageSize,
          page_bytes: pageBytes,
        } = (stream.options ?? {}) as any
        return applyMode(source.topic(topic, omitUndefined({ include, tombstonesMs, pageSize, pageBytes })), stream)
      },
    }
  },
  async discover(config, _folder, context) {
    const { listTopics: topicsOf } = await import('../../sources/kafka/source.ts')
    return (await topicsOf(toKafkaOptions(config), context)).map((id) => ({ id, key: ['key'], candidates: [] }))
  },
}

function toKafkaOptions({ brokers, ssl, sasl, client_id: clientId }: any): any {
  return { brokers, ...omitUndefined({ ssl, sasl, clientId }) }
}
