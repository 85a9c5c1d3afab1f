import { SyncError, type SyncContext } from '../../contract/index.ts'
import { didYouMean } from '../../values/did-you-mean.ts'
import {
  objectSchema,
  SELECTED_AFTER_READING,
  SET_BY_CONNECTOR,
  TEXT_SCHEMA,
  type ObjectSchema,
} from '../../values/config-schema.ts'
import type {
  DiscoverContext,
  DiscoveredStream,
  SourceStream,
  StreamDeclaration,
  StreamRules,
} from './define-source.ts'

type TextSchema = typeof TEXT_SCHEMA
type NameOptions = Readonly<Record<string, string>>

/** The stream members of a source with a fixed set of streams, selected by `options.stream` or the last part of the id. */
export function selectFixedStreams({ followsChanges }: { readonly followsChanges: boolean }): {
  readonly streams: StreamRules<ObjectSchema<{ readonly stream: TextSchema }, never>>
  stream(streams: Readonly<Record<string, SourceStream>>, declaration: StreamDeclaration<NameOptions>): SourceStream
  discover(streams: Readonly<Record<string, SourceStream>>): Promise<DiscoveredStream[]>
} {
  return {
    streams: {
      followsChanges,
      options: objectSchema({ stream: TEXT_SCHEMA }),
      fields: { select: SELECTED_AFTER_READING, safety_window: NO_SAFETY_WINDOW, ...FIELDS_SET_BY_SOURCE },
    },
    stream: selectStream,
    discover: async (streams) => Object.keys(streams).map((id) => ({ id, key: ['id'], candidates: [] })),
  }
}

export interface NamedStreams {
  stream(name: string, declaration: StreamDeclaration<NameOptions>): SourceStream
  /** `names` are the streams of the manifest. */
  discover(context: SyncContext, names: readonly string[]): Promise<readonly DiscoveredStream[]>
}

export interface NamedStreamRules {
  readonly followsChanges: boolean
  readonly supportsSelect: boolean
  /** Whether a cycle can start before its cursor. */
  readonly supportsSafetyWindow: boolean
}

/** The stream members of a source whose streams the account defines, selected by the option or the last part of the id. */
export function selectNamedStreams(
  option: string,
  { followsChanges, supportsSelect, supportsSafetyWindow }: NamedStreamRules,
): {
  readonly streams: StreamRules<ObjectSchema<Readonly<Record<string, TextSchema>>, never>>
  stream(opened: NamedStreams, declaration: StreamDeclaration<NameOptions>): SourceStream
  discover(
    opened: NamedStreams,
    context: DiscoverContext,
    declared: readonly StreamDeclaration<NameOptions>[],
  ): Promise<readonly DiscoveredStream[]>
} {
  return {
    streams: {
      followsChanges,
      options: objectSchema({ [option]: TEXT_SCHEMA }),
      fields: {
        ...(!supportsSelect && { select: SELECTED_AFTER_READING }),
        ...(!supportsSafetyWindow && { safety_window: NO_SAFETY_WINDOW }),
        ...FIELDS_SET_BY_SOURCE,
      },
    },
    stream: (opened, declaration) =>
      applyMode(opened.stream(resolveStreamName(declaration, option), declaration), declaration),
    // Discovery runs outside a cycle and needs only these parts of the context.
    discover: (opened, context, declared) =>
      opened.discover(
        context as SyncContext,
        declared.map((declaration) => resolveStreamName(declaration, option)),
      ),
  }
}

const FIELDS_SET_BY_SOURCE = { key: SET_BY_CONNECTOR, cursor: SET_BY_CONNECTOR }
const NO_SAFETY_WINDOW = {
  not: {},
  description: 'not supported by this connector: it reads everything, or the source reports the changes',
} as const

/** Finds a stream by name and applies `mode`. */
function selectStream(
  streams: Readonly<Record<string, SourceStream>>,
  declaration: StreamDeclaration<NameOptions>,
): SourceStream {
  const name = resolveStreamName(declaration, 'stream')
  const found = Object.hasOwn(streams, name) ? streams[name] : undefined
  if (found === undefined) {
    const names = Object.keys(streams)
    throw new SyncError(
      'SOURCE_NOT_FOUND',
      `Unknown stream "${name}".${didYouMean(name, names) || ` The streams are ${names.join(', ')}.`}`,
    )
  }
  return applyMode(found, declaration)
}

/** The name in the source: `options.<option>`, or the last part of the stream id. */
export function resolveStreamName<Option extends string>(
  { id, options }: StreamDeclaration<{ readonly [Name in Option]?: string }>,
  option: Option,
): string {
  return options?.[option] ?? id.slice(id.lastIndexOf('.') + 1)
}

/** A full refresh of a tracked pair is its backfill. */
export function applyMode(opened: SourceStream, { mode }: StreamDeclaration<unknown>): SourceStream {
  return mode === 'full_refresh' && 'backfill' in opened ? { mode: 'replace', execute: opened.backfill } : opened
}
