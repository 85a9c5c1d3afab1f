import type { StateText } from '../../contract/index.ts'
import { redactState, redactTidemark } from '../../redaction/redact-state.ts'
import type { RegistryRecord } from '../../strategies/kit/envelope.ts'
import { stringifyJson } from '../../values/json.ts'
import { RawJson } from './json-document.ts'

/** The value itself only for somebody who asked to reveal it. */
export function stateDocument(state: StateText, reveal: boolean): object | null {
  if (state === null) return null
  return reveal ? { ...redactState(state), value: new RawJson(JSON.parse(state)) } : redactState(state)
}

/** The same in words. */
export function describeState(state: StateText, reveal: boolean): string {
  if (state === null) return 'none'
  const { digest8, bytes } = redactState(state)!
  return reveal ? state : `#${digest8} (${bytes} bytes)`
}

/** The checkpoint as a registry lists it; a cursor that is no time as its digest. */
export function registryDocument(record: RegistryRecord, reveal: boolean): RawJson {
  const { last_cursor: cursor } = record
  const shown = cursor === null || reveal ? cursor : redactTidemark(typeof cursor === 'string' ? cursor : stringifyJson(cursor), false)
  return new RawJson({ ...record, last_cursor: shown })
}
