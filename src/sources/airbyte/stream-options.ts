import type { JsonValue } from '../../contract/index.ts'

/** How to read a stream of a manifest. */
export interface AirbyteStreamOptions {
  /** Fields that identify a record. The default is the primary key of the manifest. */
  readonly key?: readonly string[]
  /** `full_refresh` reads the complete list in every cycle, also of a stream with a cursor. */
  readonly mode?: 'incremental' | 'full_refresh'
  /** Time until a change is visible in the source, in ms. The cursor stays that far behind. Default 60,000. */
  readonly lagMs?: number
  /** Records from this time on, such as 2024-01-31, if the start of the manifest is earlier. */
  readonly since?: string
  /** Partitions that are read at the same time. Default 1. */
  readonly concurrency?: number
}

/** The settings that the specification of a manifest asks for. A value of only `${NAME}` is a secret. */
export interface AirbyteSettings {
  readonly [name: string]: JsonValue | undefined
}
