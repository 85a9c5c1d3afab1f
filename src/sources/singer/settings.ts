import type { JsonObject, JsonValue, Secrets } from '../../contract/index.ts'
import { Secret } from '../kit/secret.ts'

/** What a tap is configured with: JSON, in which `${NAME}` and nothing else stands for a secret of that name. */
export interface TapConfig {
  readonly [name: string]: JsonValue | Secret | TapConfig | readonly (JsonValue | Secret | TapConfig)[]
}

/** Takes out of a text what must not be shown. */
export type Redact = (text: string) => string

export interface Filled {
  readonly value: JsonObject
  readonly secrets: readonly string[]
}

/** With the secrets looked up, which happens when the tap is about to start and not before. */
export function fill(config: TapConfig, secrets: Secrets): Filled {
  const found: string[] = []
  const visit = (value: unknown, name: string): JsonValue => {
    if (value instanceof Secret) return note(value.reveal())
    if (typeof value === 'string') {
      const secret = /^\$\{(\w+)\}$/.exec(value)?.[1]
      if (secret !== undefined) return note(secrets.get(secret))
      return NAMED.test(name) ? note(value) : value
    }
    if (Array.isArray(value)) return value.map((item) => visit(item, name))
    if (typeof value !== 'object' || value === null) return value as JsonValue
    return Object.fromEntries(Object.entries(value).map(([member, inner]) => [member, visit(inner, member)]))
  }
  const note = (secret: string): string => {
    found.push(secret)
    return secret
  }
  return { value: visit(config, '') as JsonObject, secrets: found }
}

/** As those who write taps call what they would not show. */
const NAMED = /key|token|secret|pass|pwd|auth|credential|private/i

/** A word so short stands in every other sentence. */
const WORD_MIN = 4

/** Secrets in the forms they take on the way, and the values of a state: neither is for a log (invariant 10). */
export function redactorOf(secrets: readonly string[], state: () => JsonValue | undefined): Redact {
  const forms = secrets.flatMap((secret) => [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1), Buffer.from(secret).toString('base64')])
  return (text) => {
    const words = [...forms.map((word) => [word, '[secret]'] as const), ...leavesOf(state()).map((word) => [word, '[state]'] as const)]
    return words.filter(([word]) => word.length >= WORD_MIN).toSorted(([a], [b]) => b.length - a.length).reduce((said, [word, mask]) => said.replaceAll(word, mask), text)
  }
}

function leavesOf(value: JsonValue | undefined): string[] {
  if (value === null || value === undefined || typeof value === 'boolean') return []
  return typeof value === 'object' ? Object.values(value).flatMap(leavesOf) : [String(value)]
}
