import { required } from '../../values/required.ts'
import type { StateText } from '../../contract/index.ts'
import { redactState, redactTidemark } from '../../redaction/redact-state.ts'
import type { RegistryRecord } from '../../strategies/kit/envelope.ts'
import { stringifyJson } from '../../values/json.ts'
import { RawJson } from './json-document.ts'

/** Includes the value only with `reveal`. */
export function stateDocument(state: StateText, reveal: boolean): object | null {
  if (state === null) return null
  return reveal ? { ...redactState(state), value: new RawJson(JSON.parse(state)) } : redactState(state)
}

/** The same as text. */
export function describeState(state: StateText, reveal: boolean): string {
  if (state === null) return 'none'
  if (reveal) return state
  const { digest8, bytes } = required(redactState(state), 'the digest of the state')
  return `#${digest8} (${bytes} bytes)`
}

/** The checkpoint as a registry record. A cursor that is not a time is shown as its digest. */
export function registryDocument(record: RegistryRecord, reveal: boolean): RawJson {
  const { last_cursor: cursor } = record
  const shown =
    cursor === null || reveal
      ? cursor
      : redactTidemark(typeof cursor === 'string' ? cursor : stringifyJson(cursor), false)
  return new RawJson({ ...record, last_cursor: shown })
}
