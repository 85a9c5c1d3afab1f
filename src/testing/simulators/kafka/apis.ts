import { apiVersions } from './apis/api-versions.ts'
import type { Api } from './apis/api.ts'
import { fetch } from './apis/fetch.ts'
import { listOffsets } from './apis/list-offsets.ts'
import { metadata } from './apis/metadata.ts'
import { produce } from './apis/produce.ts'

export type KafkaApiName = 'produce' | 'fetch' | 'listOffsets' | 'metadata' | 'apiVersions'

export const APIS: Readonly<Record<KafkaApiName, Api>> = { produce, fetch, listOffsets, metadata, apiVersions: apiVersions(() => Object.values(APIS)) }
