import { createHash } from 'node:crypto'
import type { StateText } from '../contract/index.ts'
import type { RegistryRecord } from '../strategies/index.ts'
import { stringifyJson } from '../values/json.ts'
import { canonicalInstant } from '../values/instant.ts'
import { Foreign } from './json-document.ts'

/**
 * What may be seen of a state by whoever looks over the shoulder: enough to tell two apart, nothing of what is inside.
 * The value itself only for somebody who asked to reveal it.
 */
export function stateDocument(state: StateText, reveal: boolean): object | null {
  if (state === null) return null
  const redacted = { digest8: digest8(state), bytes: Buffer.byteLength(state) }
  return reveal ? { ...redacted, value: new Foreign(JSON.parse(state)) } : redacted
}

/** The same in words. */
export function describeState(state: StateText, reveal: boolean): string {
  if (state === null) return 'none'
  return reveal ? state : `#${digest8(state)} (${Buffer.byteLength(state)} bytes)`
}

/** A tidemark is a time, or the last cursor of a source without times; a cursor is a piece of state. */
export function showTidemark(tidemark: string | null, reveal: boolean): string | null {
  if (tidemark === null || reveal || canonicalInstant(tidemark) !== null) return tidemark
  return `#${digest8(tidemark)}`
}

/** The checkpoint as a registry lists it; a cursor that is no time as its digest. */
export function registryDocument(record: RegistryRecord, reveal: boolean): Foreign {
  const { last_cursor: cursor } = record
  const shown = cursor === null || reveal ? cursor : showTidemark(typeof cursor === 'string' ? cursor : stringifyJson(cursor), false)
  return new Foreign({ ...record, last_cursor: shown })
}

function digest8(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 8)
}
