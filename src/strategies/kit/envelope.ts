import type { Checkpoint, JsonObject, JsonValue, LogEntry, SyncRef } from '../../contract/index.ts'
import { parseJson } from '../../values/json.ts'
import { isoOf } from './instants.ts'

/** A record as it is handed on: what it is of, when it landed, where it stands, and what tells it from others. */
export interface Envelope {
  readonly stream: string
  readonly emitted_at: string
  readonly cursor: string | null
  readonly key: JsonObject
  readonly record: JsonObject | null
}

/** The envelope of an entry of the feed. It is made of the entry and not landed with it: the time in it would make every re-read a change. */
export function envelopeOf({ key: text, text: record, cursor, committedAt }: Pick<LogEntry, 'key' | 'text' | 'cursor' | 'committedAt'>, { streamId, key }: { readonly streamId: string; readonly key: readonly string[] }): Envelope {
  const parts = key.length === 1 ? [text] : (JSON.parse(text) as string[])
  const parsed = record === null ? null : (parseJson(record) as JsonObject)
  const members = key.map((field, index): [string, JsonValue] => [field, parsed?.[field] ?? parts[index]!])
  return { stream: streamId, emitted_at: isoOf(committedAt).replace('.000Z', 'Z'), cursor, key: Object.fromEntries(members), record: parsed }
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

/** Of a watermark's checkpoint; of any other, what can be told: its sync and its version. Holds a position, so it belongs in no log. */
export function registryRecord(tenant: string, { worker, sync }: SyncRef, { committed, version }: Pick<Checkpoint, 'committed' | 'version'>): RegistryRecord {
  const state = (committed === null ? null : parseJson(committed)) as { stream_id?: string; cursor_field?: string; cursor_value?: JsonValue } | null
  return {
    tenant_id: tenant,
    connector_id: worker,
    stream_id: state?.stream_id ?? sync,
    last_cursor: state?.cursor_value ?? null,
    cursor_field: state?.cursor_field ?? null,
    version,
  }
}
