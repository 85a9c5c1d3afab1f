import { join } from 'node:path'
import { fileTokens } from '../../connector/file-token-store.ts'
import type { JsonSchema } from '../../values/config-schema.ts'
import type {
  DiscoverContext,
  DiscoveredStream,
  SourceDescriptor,
  SourceProject,
  SourceStream,
  StreamDeclaration,
} from '../../sources/kit/define-source.ts'
import { SOURCES, type SourceName } from '../../sources/registry.ts'

/** A source, opened with the `config` and the folder of a manifest. */
export interface Connector {
  /** The schema of `config`. */
  readonly config: JsonSchema
  /** Additional schema of its streams. */
  readonly stream: JsonSchema
  readonly followsChanges: boolean
  /** The source itself reads only the fields in `select`; otherwise they are selected after reading. */
  readonly selectsFields: boolean
  /** False if the manifest defines the streams, so that an unlisted stream is not gone. */
  readonly listsStreams: boolean
  open(
    config: unknown,
    folder: string,
  ): Promise<{ stream(declaration: StreamDeclaration, declared: readonly StreamDeclaration[]): SourceStream }>
  discover?(
    config: unknown,
    folder: string,
    context: DiscoverContext,
    declared?: readonly StreamDeclaration[],
  ): Promise<readonly DiscoveredStream[]>
}

/** The folder for refresh tokens, next to the manifest. */
const TOKENS_FOLDER = '.tidemark/tokens'

/** The values of `connector` in a manifest. */
export const CONNECTORS = Object.fromEntries(
  Object.entries<SourceDescriptor>(SOURCES).map(([name, source]) => [name, createConnector(source)]),
) as Readonly<Record<SourceName, Connector>>

function createConnector(source: SourceDescriptor): Connector {
  const { config, streams } = source
  return {
    config,
    stream: {
      ...(streams.required !== undefined && { required: streams.required }),
      properties: { options: streams.options, ...streams.fields },
    },
    selectsFields: streams.fields?.select === undefined,
    followsChanges: streams.followsChanges ?? false,
    listsStreams: streams.areListed ?? true,
    async open(given, folder) {
      const opened = await source.open(given, openProject(folder))
      return { stream: (declaration, declared) => source.stream(opened, declaration, declared) }
    },
    ...(source.discover !== undefined && {
      discover: async (given, folder, context, declared = []) =>
        source.discover!(await source.open(given, openProject(folder)), context, declared),
    }),
  }
}

/** The project of a manifest in this folder. */
export function openProject(folder: string): SourceProject {
  return { folder, tokens: fileTokens({ folder: join(folder, TOKENS_FOLDER) }) }
}
