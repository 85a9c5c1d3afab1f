import type { DestinationMode, DestinationPosition } from '../../contract/index.ts'

/**
 * The state of a topic: the value of the last message with the key `position` in its side topic, written in the
 * transaction of the rows.
 */
export interface TopicState extends DestinationPosition {
  readonly mode: DestinationMode
  /** The number of partitions that keys are distributed over. It stays when partitions are added. */
  readonly partitions: number
  /** The epoch that began the load which the rows come from. */
  readonly load: number
  /** By partition, the first offset of the unfinished load; null without one. */
  readonly loadStart: readonly string[] | null
  /** By partition, an offset that the topic has reached. A smaller end shows that messages were lost. */
  readonly ends: readonly string[]
  /** The fingerprint of the last schema that was written. */
  readonly schema: string
}

export const POSITION_KEY = 'position'
export const SCHEMA_KEY_PREFIX = 'schema:'

export function serializeState(state: TopicState): string {
  return JSON.stringify(state)
}

export function parseState(text: string): TopicState {
  return JSON.parse(text) as TopicState
}

/** The side topic has the position and the schemas of a topic. */
export function sideTopicOf(topic: string): string {
  return `_tidemark.${topic}`
}
