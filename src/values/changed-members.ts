import type { JsonObject, LogEntry } from '../contract/index.ts'
import { parseJson, stringifyJson } from './json.ts'

/** The names of the fields that differ from the previous entry; all fields for the first. */
export function listChangedMembers(before: LogEntry | undefined, entry: LogEntry): string[] {
  const [old, now] = [parseMembers(before), parseMembers(entry)]
  const names = new Set([...Object.keys(old), ...Object.keys(now)])
  return [...names].filter((name) => stringifyJson(old[name] ?? null) !== stringifyJson(now[name] ?? null))
}

function parseMembers(entry: LogEntry | undefined): JsonObject {
  return entry === undefined || entry.text === null ? {} : (parseJson(entry.text) as JsonObject)
}
