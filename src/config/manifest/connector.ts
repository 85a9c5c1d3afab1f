import { SyncError, type Clock, type Log, type Mode, type SyncContext } from '../../contract/index.ts'
import type { JsonSchema } from '../../worker/schema.ts'
import type { SyncOptions } from '../../worker/sync-options.ts'
import type { TrackSource } from '../../worker/track-options.ts'
import type { ManifestStream } from './manifest.ts'

/** A single sync (replace or incremental), or a tracked pair. */
export type ConnectorStream = (Pick<SyncOptions<any>, 'execute' | 'limits'> & { readonly mode: Mode }) | TrackSource

export interface ConnectorInstance {
  stream(stream: ManifestStream): ConnectorStream
}

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

export interface Connector {
  /** The schema of `config`. Secrets are written as `${NAME}`. */
  readonly config: JsonSchema
  /** Additional schema of its streams. */
  readonly stream: { readonly required?: JsonSchema; readonly properties: Readonly<Record<string, JsonSchema>> }
  /** Imports the code of the source. */
  open(config: any, folder: string): Promise<ConnectorInstance>
  /** False if the manifest defines the streams, so that an unlisted stream is not gone. */
  readonly listsStreams?: false
  /** Whether changes are followed without a declared cursor. */
  readonly followsChanges?: boolean
  /** `declared` are the streams of the manifest, for sources that can describe only named streams. */
  discover?(
    config: any,
    folder: string,
    context: Pick<SyncContext, 'fetch' | 'secrets' | 'signal'> & { readonly clock: Clock; readonly log: Log },
    declared?: readonly ManifestStream[],
  ): Promise<DiscoveredStream[]>
}

/** A secret in a manifest: its name, never its value. */
export const SECRET_SCHEMA = {
  type: 'string',
  pattern: '^\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}$',
  description: 'a secret: write ${NAME} here, and set NAME in the environment or in .env',
} as const

export const TEXT_SCHEMA = { type: 'string', minLength: 1 } as const
export const COUNT_SCHEMA = { type: 'integer', minimum: 1 } as const

/** Not resolved when the manifest is read: the connector looks up these secrets when it needs them. */
export const LATE_SECRETS = { 'x-secrets': 'late' } as const

export function objectSchema(properties: Record<string, JsonSchema>, required: string[] = []): JsonSchema {
  return { type: 'object', properties, additionalProperties: false, ...(required.length > 0 && { required }) }
}

/** A stream option that the connector sets itself. */
export const SET_BY_CONNECTOR = { not: {}, description: 'set by this connector and cannot be changed' } as const

/** Removes undefined options, which differ from absent ones. */
export function omitUndefined<Members extends object>(
  members: Members,
): { [Name in keyof Members]?: Exclude<Members[Name], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    [Name in keyof Members]?: Exclude<Members[Name], undefined>
  }
}

/** The name in the source: `options.<member>`, or the last part of the stream id. */
export function resolveStreamName({ id, options = {} }: ManifestStream, member = 'stream'): string {
  return (options as Record<string, string | undefined>)[member] ?? id.slice(id.lastIndexOf('.') + 1)
}

/** Finds a stream by name and applies `mode`. */
export function selectStream(
  streams: Readonly<Record<string, ConnectorStream>>,
  stream: ManifestStream,
): ConnectorStream {
  const name = resolveStreamName(stream)
  const found = Object.hasOwn(streams, name) ? streams[name] : undefined
  if (found === undefined)
    throw new SyncError(
      'SOURCE_NOT_FOUND',
      `Unknown stream "${name}". The streams are ${Object.keys(streams).join(', ')}.`,
    )
  return applyMode(found, stream)
}

/** A full refresh of a tracked pair is its backfill. */
export function applyMode(opened: ConnectorStream, { mode }: ManifestStream): ConnectorStream {
  return mode === 'full_refresh' && 'backfill' in opened ? { mode: 'replace', execute: opened.backfill } : opened
}
