import type { JsonValue } from '../../contract/index.ts'
import { canonicalizeInstant, instantToMs } from '../../values/instant.ts'
import type { ResponseClass, ResponseFacts } from '../kit/classify-response.ts'
import { getAtPath, type FieldPath } from './field-path.ts'

/** Recognises a response, by all of the given conditions, and says what it means. The first rule that matches applies. */
export interface ErrorRule {
  /** The statuses. */
  readonly status?: readonly number[]
  /** A field of the response. Without `are`, it matches if it is present and neither null nor false. */
  readonly at?: FieldPath
  /** The values of that field. */
  readonly are?: readonly (string | number | boolean)[]
  /** A text that the response contains, in any case. */
  readonly text?: string
  /**
   * 'ignore': the request has no records. Unless an ignored answer is 404 or 410, a listing deletes no rows.
   * 'retry': the source is unavailable. 'rate-limited': wait, then retry. 'unauthorized': renew the credentials.
   * 'fail': the cycle ends.
   */
  readonly action: 'ignore' | 'retry' | 'rate-limited' | 'unauthorized' | 'fail'
  /** How long to wait, if the usual headers do not say it. */
  readonly wait?: WaitRule
}

/** The header or field with a wait, or with the time until which to wait. */
export interface WaitRule {
  readonly header?: string
  readonly at?: FieldPath
  /** 's' or 'ms' to wait, or 'time': RFC 3339, or seconds since 1970. The default is 's'. */
  readonly unit?: 's' | 'ms' | 'time'
}

/** The failure that a response is by the rules; null if none applies, or if the response is ignored. */
export function classifyByRules(rules: readonly ErrorRule[], facts: ResponseFacts): ResponseClass | null {
  const rule = rules.find((candidate) => matchesRule(candidate, facts))
  if (rule === undefined || rule.action === 'ignore') return null
  return { code: CODES[rule.action], reason: REASONS[rule.action], ...readWait(rule.wait, facts) }
}

const CODES = {
  retry: 'SOURCE_UNAVAILABLE',
  'rate-limited': 'RATE_LIMITED',
  unauthorized: 'AUTH_REJECTED',
  fail: 'CONNECTOR_FAILED',
} as const

const REASONS = {
  retry: 'an error that a rule retries',
  'rate-limited': 'a rate limit',
  unauthorized: 'rejected credentials',
  fail: 'an error that a rule names',
} as const

export function isIgnored(rules: readonly ErrorRule[], facts: ResponseFacts): boolean {
  return rules.find((candidate) => matchesRule(candidate, facts))?.action === 'ignore'
}

function matchesRule({ status, at, are, text }: ErrorRule, facts: ResponseFacts): boolean {
  if (status !== undefined && !status.includes(facts.status)) return false
  if (at !== undefined && !matchesValue(getAtPath(facts.body, at), are)) return false
  return text === undefined || containsText(facts, text.toLowerCase())
}

function matchesValue(value: JsonValue | undefined, are: ErrorRule['are']): boolean {
  if (are === undefined) return value !== undefined && value !== null && value !== false
  return are.some((expected) => value === expected || (typeof value === 'bigint' && Number(value) === expected))
}

function containsText({ body, text }: ResponseFacts, part: string): boolean {
  if (text !== undefined) return text.toLowerCase().includes(part)
  return findText(body, part)
}

/** Searches the values of a successful response, whose text is no longer there. */
function findText(value: JsonValue | undefined, part: string): boolean {
  if (typeof value === 'string') return value.toLowerCase().includes(part)
  if (typeof value !== 'object' || value === null) return false
  return Object.values(value).some((member) => findText(member as JsonValue | undefined, part))
}

function readWait(wait: WaitRule | undefined, { headers, body }: ResponseFacts): Partial<ResponseClass> {
  if (wait === undefined) return {}
  const value = wait.header === undefined ? getAtPath(body, wait.at ?? '') : headers.get(wait.header)
  if (value === null || value === undefined || value === '') return {}
  if (wait.unit !== 'time') {
    const ms = Number(value) * (wait.unit === 'ms' ? 1 : 1_000)
    return Number.isFinite(ms) && ms > 0 ? { retryAfterMs: Math.ceil(ms) } : {}
  }
  const instant = canonicalizeInstant(String(value))
  const at = instant === null ? Number(value) * 1_000 : instantToMs(instant)
  return Number.isFinite(at) ? { retryAt: at } : {}
}
