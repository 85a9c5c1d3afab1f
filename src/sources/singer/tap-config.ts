import type { JsonObject, JsonValue, Secrets } from '../../contract/index.ts'
import { maskSecrets, registerSecret } from '../../redaction/known-secrets.ts'
import { Secret } from '../../redaction/secret.ts'

/** What a tap is configured with: JSON, in which `${NAME}` and nothing else stands for a secret of that name. */
export interface TapConfig {
  readonly [name: string]: JsonValue | Secret | TapConfig | readonly (JsonValue | Secret | TapConfig)[]
}

/** Takes out of a text what must not be shown. */
export type Redact = (text: string) => string

/** With the secrets looked up, which happens when the tap is about to start and not before. */
export function fillSecrets(config: TapConfig, secrets: Secrets): JsonObject {
  const visit = (value: unknown, name: string): JsonValue => {
    if (value instanceof Secret) return value.reveal()
    if (typeof value === 'string') {
      const secret = /^\$\{(\w+)\}$/.exec(value)?.[1]
      if (secret === undefined && !SECRET_NAME.test(name)) return value
      const found = secret === undefined ? value : secrets.get(secret)
      registerSecret(found)
      return found
    }
    if (Array.isArray(value)) return value.map((item) => visit(item, name))
    if (typeof value !== 'object' || value === null) return value as JsonValue
    return Object.fromEntries(Object.entries(value).map(([member, inner]) => [member, visit(inner, member)]))
  }
  return visit(config, '') as JsonObject
}

/** As those who write taps call what they would not show. */
const SECRET_NAME = /key|token|secret|pass|pwd|auth|credential|private/i

/** A word so short stands in every other sentence. */
const REDACTED_LENGTH_MIN = 4

/** Without secrets, and without the values of a state: neither is for a log (invariant 10). */
export function createRedactor(state: () => JsonValue | undefined): Redact {
  return (text) => listLeafValues(state()).filter((word) => word.length >= REDACTED_LENGTH_MIN).toSorted((a, b) => b.length - a.length).reduce((said, word) => said.replaceAll(word, '[state]'), maskSecrets(text))
}

function listLeafValues(value: JsonValue | undefined): string[] {
  if (value === null || value === undefined || typeof value === 'boolean') return []
  return typeof value === 'object' ? Object.values(value).flatMap(listLeafValues) : [String(value)]
}
