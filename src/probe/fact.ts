/**
 * `shown`: answers of the API prove it. `consistent`: the answers agree with it, and another behaviour could give the
 * same ones. `untestable`: the probe could not ask; `reason` says why.
 */
export type Certainty = 'shown' | 'consistent' | 'untestable'

/** The question that a fact answers. */
export type Topic =
  | 'records'
  | 'time-format'
  | 'time-precision'
  | 'lower-bound'
  | 'upper-bound'
  | 'paging'
  | 'page-size'
  | 'page-border'
  | 'list-end'
  | 'ids'
  | 'order'
  | 'stability'
  | 'late-rows'
  | 'clock'
  | 'lookup'
  | 'deletes'
  | 'rate-limit'

/** One fact about an API. */
export interface Fact {
  readonly topic: Topic
  /** The answer as a stable word, such as `inclusive`. `unknown` if it could not be tested. */
  readonly value: string
  /** The answer as a sentence. */
  readonly text: string
  readonly certainty: Certainty
  /** Why it could not be tested: a clause. */
  readonly reason?: string
  /** The API does not behave as it says, or as a reader must be able to expect. */
  readonly isWarning?: true
  readonly evidence: Evidence
}

/** The requests, by number, and the rows that a fact rests on. */
export interface Evidence {
  readonly requests: readonly number[]
  readonly rows: readonly EvidenceRow[]
}

/** A row by its key and time; never its other values. */
export interface EvidenceRow {
  readonly key: string
  readonly time: string | number | null
}

/** A declaration of a sync that the observations contradict. */
export interface Contradiction {
  /** The option or capability that declares it. */
  readonly declared: string
  readonly text: string
  readonly evidence: Evidence
}

/** Rows that one fact shows at most. */
const EVIDENCE_ROWS_MAX = 4

/** The evidence of a fact. */
export function toEvidence(
  requests: readonly (number | undefined)[],
  rows: readonly { readonly key: string; readonly time: { readonly raw: string | number } | null }[] = [],
): Evidence {
  return {
    requests: [...new Set(requests.filter((number) => number !== undefined))].toSorted((a, b) => a - b),
    rows: rows.slice(0, EVIDENCE_ROWS_MAX).map(({ key, time }) => ({ key, time: time?.raw ?? null })),
  }
}

/** A fact that could not be tested. */
export function untestable(topic: Topic, text: string, reason: string, requests: readonly number[] = []): Fact {
  return { topic, value: 'unknown', text, certainty: 'untestable', reason, evidence: { requests, rows: [] } }
}
