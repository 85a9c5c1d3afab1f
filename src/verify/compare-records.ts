import type { JsonObject } from '../contract/index.ts'
import { equalsJson, parseJson, stringifyJson } from '../values/json.ts'

/** `ignored`: the records differ only in ignored fields. */
export type RecordMatch = 'equal' | 'ignored' | 'different'

/** Compares two records as JSON text. The order of fields does not matter. */
export function compareRecords(a: string, b: string, ignore: readonly string[]): RecordMatch {
  if (equalsJson(a, b)) return 'equal'
  return ignore.length > 0 && equalsJson(omitFields(a, ignore), omitFields(b, ignore)) ? 'ignored' : 'different'
}

function omitFields(text: string, names: readonly string[]): string {
  const record = parseJson(text) as JsonObject
  return stringifyJson(Object.fromEntries(Object.entries(record).filter(([name]) => !names.includes(name))))
}
