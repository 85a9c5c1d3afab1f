import { ENGINE_BUGS } from './engine.ts'
import type { PlantedBug } from './planted-bug.ts'
import { PLATFORM_BUGS } from './platform.ts'
import { SCHEMA_CHANGE_BUGS } from './schema-changes.ts'
import { DESTINATION_BUGS } from './destinations.ts'
import { SERVICE_BUGS } from './services.ts'
import { SOFT_DELETE_BUGS } from './soft-deletes.ts'
import { SOURCE_BUGS } from './sources.ts'
import { STORE_BUGS } from './stores.ts'
import { TABLE_BUGS } from './tables.ts'

/** Run by `npm run campaign:bugs`; see CONTRIBUTING.md. */
export const PLANTED_BUGS: readonly PlantedBug[] = [
  ...ENGINE_BUGS,
  ...STORE_BUGS,
  ...TABLE_BUGS,
  ...SCHEMA_CHANGE_BUGS,
  ...SOFT_DELETE_BUGS,
  ...PLATFORM_BUGS,
  ...SOURCE_BUGS,
  ...DESTINATION_BUGS,
  ...SERVICE_BUGS,
]
