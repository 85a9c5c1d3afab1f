import type { Checkpoint, JsonObject, JsonValue, LogEntry, SyncRef } from '../../contract/index.ts'
import { parseJson } from '../../values/json.ts'
import { required } from '../../values/required.ts'
import { formatIso } from './instants.ts'

/** A feed record in the envelope format: stream, commit time, cursor, key and record. */
export interface Envelope {
  readonly stream: string
  readonly emitted_at: string
  readonly cursor: string | null
  readonly key: JsonObject
  readonly record: JsonObject | null
}

/** Builds the envelope of a feed entry. It is computed, not stored: its timestamp would make every re-read a change. */
export function toEnvelope(
  { key: text, text: record, cursor, committedAt }: Pick<LogEntry, 'key' | 'text' | 'cursor' | 'committedAt'>,
  { streamId, key }: { readonly streamId: string; readonly key: readonly string[] },
): Envelope {
  const parts = key.length === 1 ? [text] : (JSON.parse(text) as string[])
  const parsed = record === null ? null : (parseJson(record) as JsonObject)
  const fields = key.map((field, index): [string, JsonValue] => [
    field,
    parsed?.[field] ?? required(parts[index], `key part ${field}`),
  ])
  return {
    stream: streamId,
    emitted_at: formatIso(committedAt).replace('.000Z', 'Z'),
    cursor,
    key: Object.fromEntries(fields),
    record: parsed,
  }
}

/** A checkpoint in the registry format. */
export interface RegistryRecord {
  readonly tenant_id: string
  readonly connector_id: string
  readonly stream_id: string
  readonly last_cursor: JsonValue
  readonly cursor_field: string | null
  readonly version: number
}

/**
 * Reads the cursor from a state that names its field, as watermark, table and file states do; otherwise uses the
 * tidemark. The result contains a cursor, so do not log it.
 */
export function toRegistryRecord(
  tenant: string,
  { worker, sync }: SyncRef,
  { committed, version, tidemark }: Pick<Checkpoint, 'committed' | 'version' | 'tidemark'>,
): RegistryRecord {
  const state = (committed === null ? null : parseJson(committed)) as Readonly<Record<string, JsonValue>> | null
  const read = (name: string, camelName: string): JsonValue => state?.[name] ?? state?.[camelName] ?? null
  return {
    tenant_id: tenant,
    connector_id: worker,
    stream_id: (read('stream_id', 'streamId') ?? sync) as string,
    last_cursor: read('cursor_value', 'cursorValue') ?? tidemark,
    cursor_field: read('cursor_field', 'cursorField') as string | null,
    version,
  }
}
