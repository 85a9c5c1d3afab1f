import type { JsonObject, JsonValue, Secrets } from '../../contract/index.ts'
import { maskSecrets, registerSecret } from '../../redaction/known-secrets.ts'
import { Secret } from '../../redaction/secret.ts'

/** The tap's configuration: JSON, in which a value of exactly `${NAME}` is replaced by the secret of that name. */
export interface TapConfig {
  readonly [name: string]: JsonValue | Secret | TapConfig | readonly (JsonValue | Secret | TapConfig)[]
}

/** Removes confidential values from a text. */
export type Redact = (text: string) => string

/** Resolves the secrets. Called only when the tap is about to start. */
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
    return Object.fromEntries(Object.entries(value).map(([field, inner]) => [field, visit(inner, field)]))
  }
  return visit(config, '') as JsonObject
}

/** Common names of confidential options. */
const SECRET_NAME = /key|token|secret|pass|pwd|auth|credential|private/i

/** Shorter values occur in ordinary text. */
const REDACTED_LENGTH_MIN = 4

/** Invariant 10: neither secrets nor values of a state are logged. */
export function createRedactor(state: () => JsonValue | undefined): Redact {
  return (text) =>
    listLeafValues(state())
      .filter((value) => value.length >= REDACTED_LENGTH_MIN)
      .toSorted((a, b) => b.length - a.length)
      .reduce((redacted, value) => redacted.replaceAll(value, '[state]'), maskSecrets(text))
}

function listLeafValues(value: JsonValue | undefined): string[] {
  if (value === null || value === undefined || typeof value === 'boolean') return []
  return typeof value === 'object' ? Object.values(value).flatMap(listLeafValues) : [String(value)]
}
