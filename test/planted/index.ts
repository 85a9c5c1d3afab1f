import { AIRBYTE_BUGS } from './airbyte.ts'
import { CONNECT_BUGS } from './connect.ts'
import { COLUMN_BUGS } from './columns.ts'
import { CONSOLE_BUGS } from './console.ts'
import { DUCKDB_BUGS } from './duckdb.ts'
import { EMBED_BUGS } from './embed.ts'
import { ENGINE_BUGS } from './engine.ts'
import { EXPLORER_BUGS } from './explorer.ts'
import { MANIFEST_BUGS } from './manifests.ts'
import type { PlantedBug } from './planted-bug.ts'
import { LAKE_BUGS } from './lake.ts'
import { PAGED_VENDOR_BUGS } from './paged-vendors.ts'
import { PARTITION_BUGS } from './partitions.ts'
import { PLATFORM_BUGS } from './platform.ts'
import { POSTGRES_COMMIT_BUGS } from './postgres-commits.ts'
import { CAMPAIGN_BUGS } from './campaigns.ts'
import { PROBE_BUGS } from './probe.ts'
import { RANGE_BUGS } from './ranges.ts'
import { REST_BUGS } from './rest.ts'
import { ROW_VALUES_BUGS } from './row-values.ts'
import { SCHEMA_CHANGE_BUGS } from './schema-changes.ts'
import { DESTINATION_SERVICE_BUGS } from './destination-service.ts'
import { DESTINATION_BUGS } from './destinations.ts'
import { SERVICE_BUGS } from './services.ts'
import { SIMULATION_BUGS } from './simulation.ts'
import { SOFT_DELETE_BUGS } from './soft-deletes.ts'
import { SOURCE_BUGS } from './sources.ts'
import { SQL_DESTINATION_BUGS } from './sql-destinations.ts'
import { STORE_BUGS } from './stores.ts'
import { STREAM_BUGS } from './streams.ts'
import { TABLE_BUGS } from './tables.ts'
import { VENDOR_BUGS } from './vendors.ts'
import { VERIFY_BUGS } from './verify.ts'

/** Run by `npm run campaign:bugs`; see CONTRIBUTING.md. */
export const PLANTED_BUGS: readonly PlantedBug[] = [
  ...ENGINE_BUGS,
  ...STORE_BUGS,
  ...TABLE_BUGS,
  ...SCHEMA_CHANGE_BUGS,
  ...SOFT_DELETE_BUGS,
  ...POSTGRES_COMMIT_BUGS,
  ...PLATFORM_BUGS,
  ...PARTITION_BUGS,
  ...SOURCE_BUGS,
  ...REST_BUGS,
  ...DESTINATION_BUGS,
  ...DESTINATION_SERVICE_BUGS,
  ...SQL_DESTINATION_BUGS,
  ...STREAM_BUGS,
  ...LAKE_BUGS,
  ...DUCKDB_BUGS,
  ...ROW_VALUES_BUGS,
  ...SERVICE_BUGS,
  ...MANIFEST_BUGS,
  ...EMBED_BUGS,
  ...EXPLORER_BUGS,
  ...CONNECT_BUGS,
  ...CONSOLE_BUGS,
  ...VENDOR_BUGS,
  ...PAGED_VENDOR_BUGS,
  ...AIRBYTE_BUGS,
  ...RANGE_BUGS,
  ...PROBE_BUGS,
  ...CAMPAIGN_BUGS,
  ...COLUMN_BUGS,
  ...SIMULATION_BUGS,
  ...VERIFY_BUGS,
]
