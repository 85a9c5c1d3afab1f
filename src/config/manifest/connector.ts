import { SyncError, type Clock, type Log, type Mode, type SyncContext } from '../../contract/index.ts'
import type { JsonSchema } from '../../worker/schema.ts'
import type { SyncOptions } from '../../worker/sync-options.ts'
import type { TrackSource } from '../../worker/track-options.ts'
import type { ManifestStream } from './manifest.ts'

/** Read by one function, whole each time or from where it stood; or read whole once and followed. */
export type ConnectorStream = (Pick<SyncOptions<any>, 'execute' | 'limits'> & { readonly mode: Mode }) | TrackSource

export interface ConnectorInstance {
  stream(stream: ManifestStream): ConnectorStream
}

export interface DiscoveredStream {
  readonly id: string
  readonly key: readonly string[]
  readonly cursor?: string
  readonly candidates: readonly string[]
  /** What else a manifest may call it. */
  readonly aliases?: readonly string[]
  /** What its records have, where the source tells. */
  readonly columns?: readonly string[]
}

export interface Connector {
  /** What `config` holds. `${NAME}` where it is a secret. */
  readonly config: JsonSchema
  /** What its streams need and may hold besides. */
  readonly stream: { readonly required?: JsonSchema; readonly properties: Readonly<Record<string, JsonSchema>> }
  /** The source's code is loaded only here. */
  open(config: any, folder: string): Promise<ConnectorInstance>
  /** False where streams are what the manifest makes them, and none is gone for not being listed. */
  readonly listsStreams?: false
  /** Whether changes are followed without a cursor to be named. */
  readonly followsChanges?: boolean
  /** `declared`: the streams that the manifest has already, of which a source may tell more. */
  discover?(config: any, folder: string, context: Pick<SyncContext, 'fetch' | 'secrets' | 'signal'> & { readonly clock: Clock; readonly log: Log }, declared?: readonly ManifestStream[]): Promise<DiscoveredStream[]>
}

/** A secret as it stands in a manifest: its name, and never itself. */
export const SECRET_SCHEMA = {
  type: 'string',
  pattern: '^\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}$',
  description: 'a secret: write ${NAME} here, and set NAME in the environment or in .env',
} as const

export const TEXT_SCHEMA = { type: 'string', minLength: 1 } as const
export const COUNT_SCHEMA = { type: 'integer', minimum: 1 } as const

/** Left as it is when the manifest is read: its connector looks secrets up when it needs them. */
export const LATE_SECRETS = { 'x-secrets': 'late' } as const

export function objectSchema(properties: Record<string, JsonSchema>, required: string[] = []): JsonSchema {
  return { type: 'object', properties, additionalProperties: false, ...(required.length > 0 && { required }) }
}

/** Of a stream: what its connector knows by itself. */
export const SET_BY_CONNECTOR = { not: {}, description: 'known of this connector, and cannot be chosen' } as const

/** Only what was given: an option that is undefined is not the same as none. */
export function omitUndefined<Members extends object>(members: Members): { [Name in keyof Members]?: Exclude<Members[Name], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as { [Name in keyof Members]?: Exclude<Members[Name], undefined> }
}

/** What the source calls it: `options.<member>`, or the end of the stream's id. */
export function resolveStreamName({ id, options = {} }: ManifestStream, member = 'stream'): string {
  return (options as Record<string, string | undefined>)[member] ?? id.slice(id.lastIndexOf('.') + 1)
}

/** One of those there are, as `mode` wants it. */
export function selectStream(streams: Readonly<Record<string, ConnectorStream>>, stream: ManifestStream): ConnectorStream {
  const name = resolveStreamName(stream)
  if (!Object.hasOwn(streams, name)) throw new SyncError('SOURCE_NOT_FOUND', `There is no stream "${name}"; there are ${Object.keys(streams).join(', ')}.`)
  return applyMode(streams[name]!, stream)
}

/** Of one that is followed a full refresh is its backfill. */
export function applyMode(opened: ConnectorStream, { mode }: ManifestStream): ConnectorStream {
  return mode === 'full_refresh' && 'backfill' in opened ? { mode: 'replace', execute: opened.backfill } : opened
}
