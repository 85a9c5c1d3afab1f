import { createApiVersions } from './apis/api-versions.ts'
import type { KafkaApi } from './apis/api.ts'
import { addPartitionsToTxn } from './apis/add-partitions-to-txn.ts'
import { endTxn } from './apis/end-txn.ts'
import { fetch } from './apis/fetch.ts'
import { findCoordinator } from './apis/find-coordinator.ts'
import { initProducerId } from './apis/init-producer-id.ts'
import { listOffsets } from './apis/list-offsets.ts'
import { metadata } from './apis/metadata.ts'
import { produce } from './apis/produce.ts'
import { createTopics, deleteTopics, describeConfigs } from './apis/topic-administration.ts'

/** A request type of the Kafka protocol that the simulator supports. */
export type KafkaApiName =
  | 'produce'
  | 'fetch'
  | 'listOffsets'
  | 'metadata'
  | 'apiVersions'
  | 'findCoordinator'
  | 'createTopics'
  | 'deleteTopics'
  | 'initProducerId'
  | 'addPartitionsToTxn'
  | 'endTxn'
  | 'describeConfigs'

export const APIS: Readonly<Record<KafkaApiName, KafkaApi>> = {
  produce,
  fetch,
  listOffsets,
  metadata,
  apiVersions: createApiVersions(() => Object.values(APIS)),
  findCoordinator,
  createTopics,
  deleteTopics,
  initProducerId,
  addPartitionsToTxn,
  endTxn,
  describeConfigs,
}
