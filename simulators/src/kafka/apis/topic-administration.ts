import { ERROR_CODES, type KafkaErrorName } from '../error-codes.ts'
import { WireWriter } from '../wire-writer.ts'
import type { KafkaApi, KafkaRequest } from './api.ts'

const TOPIC = 2
/** Used for a topic without a number of partitions. */
const PARTITIONS = 1

/** The first broker is the controller, which alone changes topics. */
function checkController({ broker, cluster, plannedError }: KafkaRequest): KafkaErrorName {
  return plannedError ?? (broker === cluster.brokers[0]?.id ? 'NONE' : 'NOT_CONTROLLER')
}

export const createTopics: KafkaApi = {
  key: 19,
  versions: [1, 2],
  respond(request) {
    const { version, body, cluster } = request
    const topics = cluster.readTopics()
    const asked = body.array(() => ({
      topic: body.string(),
      partitions: body.int32(),
      replicas: body.int16(),
      assignment: body.array(() => [body.int32(), body.array(() => body.int32())]),
      configs: body.array(() => [body.string(), body.nullableString() ?? ''] as const),
    }))
    body.int32()
    const isTrial = body.int8() === 1
    const created = asked.map(({ topic, partitions, configs }) => {
      let error = checkController(request)
      if (error === 'NONE' && !/^[A-Za-z0-9._-]{1,249}$/.test(topic)) error = 'INVALID_TOPIC_EXCEPTION'
      if (error === 'NONE' && topics.partitions(topic) !== undefined) error = 'TOPIC_ALREADY_EXISTS'
      if (error === 'NONE' && (partitions === 0 || partitions < -1)) error = 'INVALID_PARTITIONS'
      if (error === 'NONE' && !isTrial)
        topics.create(topic, partitions === -1 ? PARTITIONS : partitions, { configs: Object.fromEntries(configs) })
      return { topic, error }
    })
    const answer = new WireWriter()
    if (version >= 2) answer.int32(0)
    return answer.nullableArray(created, ({ topic, error }) =>
      answer.nullableString(topic).int16(ERROR_CODES[error]).nullableString(null),
    )
  },
}

export const deleteTopics: KafkaApi = {
  key: 20,
  versions: [1, 1],
  respond(request) {
    const { body, cluster } = request
    const topics = cluster.readTopics()
    const deleted = body
      .array(() => body.string())
      .map((topic) => {
        let error = checkController(request)
        if (error === 'NONE' && topics.partitions(topic) === undefined) error = 'UNKNOWN_TOPIC_OR_PARTITION'
        if (error === 'NONE') topics.delete(topic)
        return { topic, error }
      })
    const answer = new WireWriter().int32(0)
    return answer.nullableArray(deleted, ({ topic, error }) => answer.nullableString(topic).int16(ERROR_CODES[error]))
  },
}

/** The settings of topics; others than the given ones have no defaults here, except `cleanup.policy`. */
export const describeConfigs: KafkaApi = {
  key: 32,
  versions: [0, 0],
  respond({ body, cluster, plannedError }) {
    const topics = cluster.readTopics()
    const described = body
      .array(() => ({ type: body.int8(), name: body.string(), names: body.nullableArray(() => body.string()) }))
      .map(({ type, name, names }) => {
        const configs = type === TOPIC ? topics.configs(name) : undefined
        const error = plannedError ?? (configs === undefined ? 'UNKNOWN_TOPIC_OR_PARTITION' : 'NONE')
        const all = Object.entries({ 'cleanup.policy': 'delete', ...configs })
        return { type, name, error, entries: all.filter(([config]) => names?.includes(config) ?? true) }
      })
    const answer = new WireWriter().int32(0)
    return answer.nullableArray(described, ({ type, name, error, entries }) => {
      answer.int16(ERROR_CODES[error]).nullableString(null).int8(type).nullableString(name)
      answer.nullableArray(error === 'NONE' ? entries : [], ([config, value]) =>
        answer.nullableString(config).nullableString(value).boolean(false).boolean(false).boolean(false),
      )
    })
  },
}
