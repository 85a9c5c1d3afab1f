import type { Checkpoint, JsonObject, JsonValue, LogEntry, SyncRef } from '../../contract/index.ts'
import { parseJson } from '../../values/json.ts'
import { formatIso } from './instants.ts'

/** A record as it is handed on: what it is of, when it landed, where it stands, and what tells it from others. */
export interface Envelope {
  readonly stream: string
  readonly emitted_at: string
  readonly cursor: string | null
  readonly key: JsonObject
  readonly record: JsonObject | null
}

/** The envelope of an entry of the feed. It is made of the entry and not landed with it: the time in it would make every re-read a change. */
export function toEnvelope({ key: text, text: record, cursor, committedAt }: Pick<LogEntry, 'key' | 'text' | 'cursor' | 'committedAt'>, { streamId, key }: { readonly streamId: string; readonly key: readonly string[] }): Envelope {
  const parts = key.length === 1 ? [text] : (JSON.parse(text) as string[])
  const parsed = record === null ? null : (parseJson(record) as JsonObject)
  const members = key.map((field, index): [string, JsonValue] => [field, parsed?.[field] ?? parts[index]!])
  return { stream: streamId, emitted_at: formatIso(committedAt).replace('.000Z', 'Z'), cursor, key: Object.fromEntries(members), record: parsed }
}

/** A checkpoint as a registry lists it. */
export interface RegistryRecord {
  readonly tenant_id: string
  readonly connector_id: string
  readonly stream_id: string
  readonly last_cursor: JsonValue
  readonly cursor_field: string | null
  readonly version: number
}

/** Of a position that names its field, as those of watermarks, tables and files do; of any other, the tidemark. Holds a position, so it belongs in no log. */
export function toRegistryRecord(tenant: string, { worker, sync }: SyncRef, { committed, version, tidemark }: Pick<Checkpoint, 'committed' | 'version' | 'tidemark'>): RegistryRecord {
  const state = (committed === null ? null : parseJson(committed)) as Readonly<Record<string, JsonValue>> | null
  const told = (name: string, alike: string): JsonValue => state?.[name] ?? state?.[alike] ?? null
  return {
    tenant_id: tenant,
    connector_id: worker,
    stream_id: (told('stream_id', 'streamId') ?? sync) as string,
    last_cursor: told('cursor_value', 'cursorValue') ?? tidemark,
    cursor_field: told('cursor_field', 'cursorField') as string | null,
    version,
  }
}
