import type { DeleteMode, DestinationMode, SchemaMode } from '../../contract/index.ts'
import type { DestinationName } from '../../destinations/registry.ts'
import type { StreamDeclaration } from '../../sources/kit/define-source.ts'
import type { SourceName } from '../../sources/registry.ts'
import type { ColumnRules } from '../../transforms/column-rules.ts'
import type { JsonSchema } from '../../worker/schema.ts'
import type { ScheduleInput } from '../schedule.ts'
import type { StreamSelection } from './select-streams.ts'

/** A validated `tidemark.yaml`. */
export interface ManifestFile {
  readonly name?: string
  readonly connector: SourceName
  readonly config: Readonly<Record<string, unknown>>
  readonly select?: StreamSelection
  readonly streams: readonly ManifestStream[]
  readonly destinations: readonly ManifestDestination[]
}

export interface ManifestStream extends StreamDeclaration {
  readonly schema_strategy?: 'discovery' | 'declared'
  readonly schema?: JsonSchema | SchemaMode
  readonly schema_changes?: SchemaMode
  readonly history?: { readonly keep_days: number } | false
  readonly deletes?: DeleteMode
  readonly drop?: ColumnRules['drop']
  readonly rename?: ColumnRules['rename']
  readonly cast?: ColumnRules['cast']
  readonly hash?: ColumnRules['hash']
  readonly mask?: ColumnRules['mask']
  readonly encrypt?: ColumnRules['encrypt']
  readonly state_handling?: 'platform_registry'
  readonly schedule?: ScheduleInput
  readonly backfill_schedule?: ScheduleInput
  readonly after?: readonly string[]
}

export interface ManifestDestination {
  readonly name: string
  readonly connector: DestinationName
  readonly config: Readonly<Record<string, unknown>>
  readonly databases?: readonly string[]
  readonly mode?: DestinationMode
  readonly schedule?: ScheduleInput
  readonly children?: Readonly<Record<string, readonly string[]>>
}
