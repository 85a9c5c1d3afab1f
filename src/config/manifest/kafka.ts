import { COUNT, given, inMode, KNOWN, object, SECRET, TEXT, type Connector } from './connector.ts'

const BROKERS = {
  type: 'string',
  pattern: '^(?:\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}|[^\\s,:@]+:\\d+(?:,\\s*[^\\s,:@]+:\\d+)*)$',
  description: 'host:port of some brokers, with commas between, or ${NAME} of a secret that holds them',
} as const

const SASL = {
  ...object({ mechanism: { enum: ['plain', 'scram-sha-256', 'scram-sha-512', 'oauthbearer'] }, username: SECRET, password: SECRET, token: SECRET }, ['mechanism']),
  if: { properties: { mechanism: { const: 'oauthbearer' } } },
  // oxlint-disable-next-line unicorn/no-thenable
  then: { required: ['token'] },
  else: { required: ['username', 'password'] },
}

/** Topics of Kafka: a message's key is the row's. */
export const kafka: Connector = {
  isFollowed: true,
  config: object({ brokers: BROKERS, ssl: { ...object({ ca: SECRET, cert: SECRET, key: SECRET }), type: ['boolean', 'object'] }, sasl: SASL, client_id: TEXT }, ['brokers']),
  stream: {
    properties: {
      options: object({
        topic: TEXT, include: { type: 'array', items: { enum: ['partition', 'offset', 'timestamp', 'headers'] }, uniqueItems: true },
        tombstones_ms: COUNT, page_size: COUNT, page_bytes: COUNT,
      }),
      key: KNOWN, cursor: KNOWN, select: KNOWN, safety_window: { not: {}, description: 'of a connector that follows a cursor: a log keeps its order, and goes on where it stood' },
    },
  },
  async open(config) {
    const { kafka: open } = await import('../../sources/kafka/source.ts')
    const source = open(optionsOf(config))
    return {
      stream(stream) {
        const { topic = stream.id, include, tombstones_ms: tombstonesMs, page_size: pageSize, page_bytes: pageBytes } = (stream.options ?? {}) as any
        return inMode(source.topic(topic, given({ include, tombstonesMs, pageSize, pageBytes })), stream)
      },
    }
  },
  async discover(config, _folder, context) {
    const { topicsOf } = await import('../../sources/kafka/source.ts')
    return (await topicsOf(optionsOf(config), context)).map((id) => ({ id, key: ['key'], candidates: [] }))
  },
}

function optionsOf({ brokers, ssl, sasl, client_id: clientId }: any): any {
  return { brokers, ...given({ ssl, sasl, clientId }) }
}
