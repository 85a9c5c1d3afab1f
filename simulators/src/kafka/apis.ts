import { createApiVersions } from './apis/api-versions.ts'
import type { KafkaApi } from './apis/api.ts'
import { fetch } from './apis/fetch.ts'
import { listOffsets } from './apis/list-offsets.ts'
import { metadata } from './apis/metadata.ts'
import { produce } from './apis/produce.ts'

/** A request type of the Kafka protocol that the simulator supports. */
export type KafkaApiName = 'produce' | 'fetch' | 'listOffsets' | 'metadata' | 'apiVersions'

export const APIS: Readonly<Record<KafkaApiName, KafkaApi>> = {
  produce,
  fetch,
  listOffsets,
  metadata,
  apiVersions: createApiVersions(() => Object.values(APIS)),
}
