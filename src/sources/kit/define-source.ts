import type { Execute, Lookup, Mode, SyncContext } from '../../contract/index.ts'
import type { JsonSchema, ObjectSchema, SchemaValue } from '../../values/config-schema.ts'
import type { SourceAdvice } from './source-advice.ts'
import type { SourceTemplate } from './source-template.ts'
import type { TokenStore } from './token-store.ts'

/**
 * Declares a source: the default export of `src/sources/<name>/descriptor.ts`. Manifests, `init`, `advise`, `discover`,
 * the reference page and the import table are derived from it. The type of `config` follows from its schema.
 *
 * The registry imports every descriptor, so a descriptor imports `source.ts` only inside `open`.
 */
export function defineSource<
  const Name extends string,
  Config extends ObjectSchema,
  Options extends ObjectSchema,
  Opened,
  Advice extends SourceAdvice | undefined = undefined,
>(source: SourceDefinition<Name, Config, Options, Opened, Advice>): SourceDescriptor<Name, Advice> {
  return source as unknown as SourceDescriptor<Name, Advice>
}

interface SourceDefinition<Name, Config, Options, Opened, Advice> {
  /** The name of the folder, the import path and the connector in a manifest. */
  readonly name: Name
  /** The name of the system in prompts and documentation. */
  readonly title: string
  /** The packages that its files import, also those of Node.js. The import table allows no others. */
  readonly packages?: readonly string[]
  /** The schema of `config` in a manifest. Secrets are written as `${NAME}`. */
  readonly config: Config
  readonly streams: StreamRules<Options>
  readonly times: SourceTimes
  /** Imports the code of the source. Sends no request. */
  open(config: SchemaValue<Config>, project: SourceProject): Promise<Opened>
  /** `declared` are all streams of the manifest: one may depend on another. */
  stream(
    opened: Opened,
    declaration: StreamDeclaration<SchemaValue<Options>>,
    declared: readonly StreamDeclaration<SchemaValue<Options>>[],
  ): SourceStream
  /** Lists the streams. `declared` are those of the manifest, for sources that can describe only named streams. */
  discover?(
    opened: Opened,
    context: DiscoverContext,
    declared: readonly StreamDeclaration<SchemaValue<Options>>[],
  ): Promise<readonly DiscoveredStream[]>
  readonly template: SourceTemplate
  /** Absent if the strategy depends on the system that is read. */
  readonly advice?: Advice
}

/** Whether a source takes a start date and reads ranges of times: true, or the reason, a clause. */
export interface SourceTimes {
  /** `since` of its config, or of the options of a stream. */
  readonly since: true | string
  /** True if its streams with times read ranges. The others state their own reason; see Execute.rangeUnsupported. */
  readonly range: true | string
}

/** A source without the types of its config. The config was validated against the schema. */
export interface SourceDescriptor<
  Name extends string = string,
  Advice extends SourceAdvice | undefined = SourceAdvice | undefined,
> {
  readonly name: Name
  readonly title: string
  readonly packages?: readonly string[]
  readonly config: ObjectSchema
  readonly streams: StreamRules
  readonly times: SourceTimes
  open(config: unknown, project: SourceProject): Promise<unknown>
  stream(opened: unknown, declaration: StreamDeclaration, declared: readonly StreamDeclaration[]): SourceStream
  discover?(
    opened: unknown,
    context: DiscoverContext,
    declared: readonly StreamDeclaration[],
  ): Promise<readonly DiscoveredStream[]>
  readonly template: SourceTemplate
  readonly advice: Advice
}

/** The rules for the streams of a manifest. */
export interface StreamRules<Options = ObjectSchema> {
  /** The schema of `options`. */
  readonly options: Options
  /** Schemas of other fields, in addition to those that every stream has. */
  readonly fields?: Readonly<Partial<Record<StreamField, JsonSchema>>>
  readonly required?: readonly (StreamField | 'options')[]
  /** Whether changes are followed without a declared cursor. */
  readonly followsChanges?: boolean
  /** False if the manifest defines the streams, so that an unlisted stream is not gone. */
  readonly areListed?: false
}

type StreamField = 'key' | 'cursor' | 'select' | 'safety_window'

/** The project that uses the source. */
export interface SourceProject {
  /** Relative paths start here. */
  readonly folder: string
  /** Opens the durable token store of an account. */
  readonly tokens: (account: string) => TokenStore
}

/** The fields of a stream in a manifest that a source uses. */
export interface StreamDeclaration<Options = Readonly<Record<string, unknown>>> {
  readonly id: string
  readonly key?: readonly string[]
  readonly cursor?: string
  readonly mode?: 'incremental' | 'full_refresh'
  readonly select?: readonly string[]
  readonly safety_window?: string
  readonly options?: Options
}

interface StreamDatabases {
  /** Databases that it writes besides its own. A manifest declares them. */
  readonly databases?: readonly string[]
}

/** A single sync (replace or incremental), or a tracked pair. */
export type SourceStream = SingleStream | StreamPair

export interface SingleStream extends StreamDatabases {
  readonly mode: Mode
  readonly execute: Execute<any>
  readonly limits?: { readonly stateBytesMax?: number }
}

export interface StreamPair extends StreamDatabases {
  readonly backfill: Execute<any>
  readonly delta: Execute<any>
  readonly anchor?: (context: SyncContext) => Promise<any>
  readonly lookup?: Lookup
  readonly lagMs?: number
}

export type DiscoverContext = Pick<SyncContext, 'fetch' | 'secrets' | 'signal' | 'clock' | 'log'>

export interface DiscoveredStream {
  readonly id: string
  readonly key: readonly string[]
  readonly cursor?: string
  readonly candidates: readonly string[]
  /** Other names that a manifest may use for it. */
  readonly aliases?: readonly string[]
  /** The columns of its records, if the source lists them. */
  readonly columns?: readonly string[]
}
